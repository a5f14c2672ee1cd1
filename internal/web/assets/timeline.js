"use strict";
// The timeline without reloading the page: the server draws each window, and this puts its answer
// into the page. What is asked for stands in the address, so that a link to it shows the same.
(() => {
  const live = document.getElementById("timeline-live");
  const form = document.getElementById("timeline-form");
  const said = document.getElementById("said");
  if (!live || !form) return;
  document.getElementById("timeline-keys").hidden = false;
  live.tabIndex = 0;
  live.setAttribute("role", "group");
  live.setAttribute("aria-label", "Timeline. Arrow keys go along it, plus and minus zoom, Home and End go to its ends, 0 shows all.");

  // The window that is wanted; the drawing follows as the answers come.
  let from, to, low, high;
  const take = () => {
    [from, to, low, high] = ["from", "to", "low", "high"].map((k) => parseFloat(live.dataset[k]));
    const lanes = document.getElementById("timeline-lanes");
    if (lanes) lanes.classList.add("live");
  };
  take();

  // One request at a time; of the ones that are wanted meanwhile, the last.
  let running = false, next = null;
  async function show(address, announce) {
    if (running) { next = [address, announce]; return; }
    running = true;
    live.classList.add("busy");
    try {
      const answer = await fetch(address, { headers: { Accept: "text/html" } });
      if (!answer.ok) throw new Error(answer.statusText);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("timeline-live");
      if (!fresh) throw new Error("not a timeline");
      const focused = live.contains(document.activeElement) && document.activeElement !== live && document.activeElement.dataset.move;
      live.replaceChildren(...fresh.childNodes);
      for (const k of ["from", "to", "low", "high", "view", "fault"]) live.dataset[k] = fresh.dataset[k];
      for (const name of ["from", "to"]) form.elements[name].value = page.getElementById("f-" + name).value;
      document.getElementById("lanes-h").textContent = page.getElementById("lanes-h").textContent;
      const problems = page.querySelectorAll("#timeline-problems > *");
      document.getElementById("timeline-problems").replaceChildren(...problems);
      history.replaceState(null, "", address);
      if (!next) take();
      if (focused) (live.querySelector('[data-move="' + focused + '"]') || live).focus();
      if (announce) said.textContent = document.getElementById("timeline-sum").textContent;
    } catch (e) {
      said.textContent = "The timeline could not be drawn: " + e.message + ". Reload the page.";
    }
    live.classList.remove("busy");
    running = false;
    if (next) { const n = next; next = null; show(...n); }
  }

  // asked is the address of what the form asks for, in the window a to b.
  function asked(a, b) {
    const v = new URLSearchParams(new FormData(form));
    v.delete("from");
    v.delete("to");
    if (b - a < (high - low) * 0.9999) {
      v.set("from", String(+a.toFixed(6)));
      v.set("to", String(+b.toFixed(6)));
    }
    for (const [k, x] of [...v]) if (!x) v.delete(k);
    return form.action + "?" + v;
  }

  const least = () => (live.dataset.view === "order" ? 1 : 1e-4);
  function move(a, b) {
    const width = Math.min(Math.max(b - a, least()), high - low);
    const middle = (a + b) / 2;
    a = Math.min(Math.max(middle - width / 2, low), high - width);
    [from, to] = [a, a + width];
    show(asked(from, to), true);
  }
  const center = () => (live.dataset.fault && from < 0 && to > 0 ? 0 : (from + to) / 2);
  const zoom = (by, at = center()) => move(at - (at - from) * by, at + (to - at) * by);
  const along = (part) => move(from + part * (to - from), to + part * (to - from));
  const ends = { Home: () => move(low, low + to - from), End: () => move(high - (to - from), high) };

  live.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input, select, textarea")) return;
    const act = {
      ArrowLeft: () => along(-0.2), ArrowRight: () => along(0.2), PageUp: () => along(-0.8), PageDown: () => along(0.8),
      "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": () => move(low, high), ...ends,
    }[e.key];
    // In the table arrows and pages scroll.
    if (!act || e.target.closest(".scroll") && e.key.length > 1) return;
    e.preventDefault();
    act();
  });

  live.addEventListener("click", (e) => {
    const a = e.target.closest("a");
    if (!a || e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
    if (dragged) { e.preventDefault(); return; } // the end of a drag is no click
    const address = new URL(a.getAttribute("href"), location.href); // a mark's own href is no string
    if (address.pathname !== location.pathname) return; // to a line
    e.preventDefault();
    show(address.href.replace(/#.*/, ""), true).then(() => { if (address.hash === "#events") document.getElementById("events").scrollIntoView(); });
  });

  form.addEventListener("submit", (e) => {
    e.preventDefault();
    const v = new URLSearchParams(new FormData(form));
    for (const [k, x] of [...v]) if (!x.trim()) v.delete(k);
    show(form.action + "?" + v, true);
  });
  form.addEventListener("change", (e) => {
    if (e.target.name === "view") { form.elements.from.value = form.elements.to.value = ""; }
    form.requestSubmit();
  });

  live.addEventListener("wheel", (e) => {
    const marks = e.target.closest(".lanes");
    if (!marks || !e.ctrlKey) return;
    e.preventDefault();
    const box = marks.querySelector(".marks").getBoundingClientRect();
    zoom(e.deltaY > 0 ? 1.4 : 1 / 1.4, from + (to - from) * Math.min(Math.max((e.clientX - box.left) / box.width, 0), 1));
  }, { passive: false });

  // Dragging moves the drawing by its attributes at once, and asks when it ends.
  let dragged = false, grip = null;
  live.addEventListener("pointerdown", (e) => {
    const marks = e.target.closest(".lanes .marks");
    dragged = false;
    if (!marks || e.button || e.pointerType === "touch") return;
    grip = { x: e.clientX, marks, width: marks.getBoundingClientRect().width };
  });
  addEventListener("pointermove", (e) => {
    if (!grip) return;
    const by = e.clientX - grip.x;
    if (!dragged && Math.abs(by) < 5) return;
    dragged = true;
    grip.marks.closest(".lanes").classList.add("drag");
    for (const g of grip.marks.querySelectorAll(".moving")) g.setAttribute("transform", "translate(" + by + " 0)");
  });
  addEventListener("pointerup", (e) => {
    if (!grip) return;
    const part = (grip.x - e.clientX) / grip.width;
    const { marks } = grip;
    grip = null;
    marks.closest(".lanes").classList.remove("drag");
    if (dragged) along(part);
    setTimeout(() => { dragged = false; });
  });
  live.addEventListener("dragstart", (e) => { if (e.target.closest(".marks")) e.preventDefault(); });
})();
