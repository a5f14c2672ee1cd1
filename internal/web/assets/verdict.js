"use strict";
// Beside each item of the checklist that the evidence does not answer stands a box for what the
// person has found out. It is kept by this browser, for this case; the report does not change.
(() => {
  const section = document.getElementById("checklist");
  const verdict = document.getElementById("verdict");
  if (!section || !verdict) return;
  const said = document.getElementById("said");
  const key = "inquest checklist " + verdict.dataset.case;

  const read = () => {
    try { return new Set(JSON.parse(localStorage.getItem(key)) || []); } catch { return new Set(); }
  };
  const ticked = read();
  const keep = () => {
    try {
      if (ticked.size) localStorage.setItem(key, JSON.stringify([...ticked])); else localStorage.removeItem(key);
    } catch { /* nothing is kept: the boxes still work until the page is left */ }
  };

  const items = [...section.querySelectorAll(".checks > li:not(.yes)")];
  if (!items.length) return;
  const sum = document.createElement("p");
  sum.className = "note";
  const count = () => {
    const n = items.filter((li) => li.querySelector("input").checked).length;
    sum.textContent = n + " of the " + items.length + " that the evidence does not confirm ticked by you, in this browser.";
  };
  for (const li of items) {
    const words = li.querySelector("div");
    const name = words.textContent.replace(/\s+/g, " ").trim();
    const label = document.createElement("label");
    label.className = "mine";
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = ticked.has(name);
    box.setAttribute("aria-label", "Checked by you: " + name.slice(0, 200));
    box.addEventListener("change", () => {
      if (box.checked) ticked.add(name); else ticked.delete(name);
      keep();
      count();
      said.textContent = box.checked ? "Ticked." : "No longer ticked.";
    });
    label.append(box, "checked by me");
    words.append(document.createElement("br"), label);
  }
  count();
  section.append(sum);
})();
