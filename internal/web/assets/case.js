"use strict";
// Follows a case that has not ended, and shows the page again when it has.
(() => {
  const at = document.getElementById("progress");
  if (!at || !window.EventSource) return;
  const bar = at.querySelector("progress"), text = document.getElementById("how-far"), state = document.getElementById("state");
  const said = document.getElementById("said");
  const words = JSON.parse(at.dataset.words);
  let last = "";
  const show = (e) => {
    const c = JSON.parse(e.data);
    if (c.state !== last) said.textContent = state.textContent = words[c.state] || c.state;
    last = c.state;
    if (c.total) {
      bar.max = c.total;
      bar.value = c.done;
      text.textContent = c.done + " of " + c.total + (c.total === 1 ? " artifact" : " artifacts") + " read";
    } else bar.removeAttribute("value");
  };
  const events = new EventSource("/v1/cases/" + at.dataset.case + "/events");
  events.addEventListener("progress", show);
  events.addEventListener("end", () => { events.close(); location.reload(); });
})();
