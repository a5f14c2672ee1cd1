"use strict";
// What every page has: copy buttons, and links into closed details.
(() => {
  const said = document.getElementById("said");

  // A button of class copy with data-copy="ID" copies the text of that element. It is hidden
  // where there are no scripts. Where the clipboard is refused, the text is selected instead.
  const wire = (root) => {
    for (const button of root.querySelectorAll("button.copy[data-copy]")) {
      const source = document.getElementById(button.dataset.copy);
      if (!source || button.dataset.wired) continue;
      button.dataset.wired = "1";
      button.hidden = false;
      button.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(source.textContent);
          said.textContent = "Copied.";
          const was = button.textContent;
          button.textContent = "Copied";
          setTimeout(() => { button.textContent = was; }, 1500);
        } catch {
          getSelection().selectAllChildren(source);
          said.textContent = "Selected. Copy it with your keyboard.";
        }
      });
    }
  };
  wire(document);

  // A link to something inside a closed details element opens it.
  const open = () => {
    let target = null;
    try { target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { return; }
    for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
  };
  addEventListener("hashchange", open);
  open();

  // A form with data-confirm asks before it is sent.
  for (const form of document.querySelectorAll("form[data-confirm]")) {
    form.addEventListener("submit", (e) => { if (!confirm(form.dataset.confirm)) e.preventDefault(); });
  }
})();
