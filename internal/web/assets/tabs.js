"use strict";
// Parts below headings of their own, as the fix for each stack, shown one at a time: tabs as
// the ARIA practices have them. Without this script all parts stand one below the other.
(() => {
  const remembered = () => { try { return localStorage.getItem("inquest-stack"); } catch { return null; } };
  const remember = (name) => { try { localStorage.setItem("inquest-stack", name); } catch { /* not kept */ } };

  for (const box of document.querySelectorAll("[data-tabs]")) {
    const panels = [...box.querySelectorAll(":scope > .group")].filter((p) => p.id && p.querySelector(":scope > h3"));
    if (panels.length < 2) continue;
    const list = document.createElement("div");
    list.className = "tabs";
    list.setAttribute("role", "tablist");
    list.setAttribute("aria-label", box.dataset.tabs);
    const tabs = panels.map((panel) => {
      const heading = panel.querySelector(":scope > h3");
      const tab = document.createElement("button");
      tab.type = "button";
      tab.id = "tab-" + panel.id;
      tab.textContent = heading.textContent;
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-controls", panel.id);
      heading.classList.add("sr");
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", tab.id);
      panel.tabIndex = 0;
      list.append(tab);
      return tab;
    });
    const show = (n, focus) => {
      tabs.forEach((tab, i) => {
        tab.setAttribute("aria-selected", String(i === n));
        tab.tabIndex = i === n ? 0 : -1;
        panels[i].hidden = i !== n;
      });
      if (focus) tabs[n].focus();
    };
    tabs.forEach((tab, i) => {
      tab.addEventListener("click", () => { show(i); remember(tab.textContent); });
      tab.addEventListener("keydown", (e) => {
        const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1 }[e.key];
        if (to === undefined) return;
        e.preventDefault();
        const n = (to + tabs.length) % tabs.length;
        show(n, true);
        remember(tabs[n].textContent);
      });
    });
    box.prepend(list);
    const at = panels.findIndex((p) => "#" + p.id === location.hash);
    const was = tabs.findIndex((t) => t.textContent === remembered());
    show(at >= 0 ? at : Math.max(was, 0));
    addEventListener("beforeprint", () => panels.forEach((p) => { p.hidden = false; }));
    addEventListener("afterprint", () => show(Math.max(tabs.findIndex((t) => t.getAttribute("aria-selected") === "true"), 0)));
  }
})();
