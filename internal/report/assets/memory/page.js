// What each figure needs is unpacked and drawn when it comes near.

const said = document.getElementById("said");
const say = (text) => { said.textContent = text; };
const made = [];

function make(figure) {
  const packed = JSON.parse(document.getElementById("data-" + figure.dataset.device).textContent);
  const kind = figure.classList.contains("chart") ? Chart : SegmentMap;
  made.push(new kind(figure, packed, say));
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
