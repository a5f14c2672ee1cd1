// What each figure needs is unpacked and drawn when it comes near.

const said = document.getElementById("said");
const say = (text) => { said.textContent = text; };
const made = [];

const parsed = new Map(); // by device: its timeline and its segments share it

function make(figure) {
  const id = "data-" + figure.dataset.device;
  if (!parsed.has(id)) parsed.set(id, JSON.parse(document.getElementById(id).textContent));
  const kind = figure.classList.contains("chart") ? Chart : SegmentMap;
  made.push(new kind(figure, parsed.get(id), say));
}

const near = new IntersectionObserver((entries) => {
  for (const e of entries) {
    if (!e.isIntersecting) continue;
    near.unobserve(e.target);
    make(e.target);
  }
}, { rootMargin: "400px" });
for (const f of document.querySelectorAll("figure.chart, figure.segments")) near.observe(f);

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const m of made) m.recolour(); });
