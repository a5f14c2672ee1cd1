// The page: figures are drawn when they come near, and move together.

const said = document.getElementById("said");
const page = {
  data: JSON.parse(document.getElementById("data").textContent),
  byTime: false,
  charts: [],
  busy: false,
  say: (text) => { said.textContent = text; },
  // follow gives the part that one figure shows to those against the same axis; where that is
  // the whole, each shows its own.
  follow(from, by, min, max) {
    if (page.busy) return;
    page.busy = true;
    const own = from.whole(), all = min <= own[0] && max >= own[1];
    for (const c of page.charts) {
      if (c === from || !c.u || c.drawnBy !== by) continue;
      const whole = c.whole();
      const a = all ? whole[0] : Math.max(min, whole[0]), b = all ? whole[1] : Math.min(max, whole[1]);
      if (b > a) c.u.batch(() => c.u.setScale("x", { min: a, max: b })); // at once, while busy holds
    }
    page.busy = false;
  },
};

function attempt(chart) {
  try { chart.draw(); } catch { chart.figure.classList.remove("live"); } // the drawing without script stays
}

const near = new IntersectionObserver((entries) => {
  for (const e of entries) {
    if (!e.isIntersecting) continue;
    near.unobserve(e.target);
    try { page.charts.push(new Chart(e.target, page)); } catch { e.target.classList.remove("live"); }
  }
}, { rootMargin: "400px" });
for (const f of document.querySelectorAll("figure.plot:not(.chooser)")) near.observe(f);

// Any series: a list to choose from.
const chooser = document.getElementById("chooser");
if (chooser) {
  chooser.hidden = false;
  const chart = new Chart(chooser, page);
  const select = document.createElement("select");
  select.multiple = true;
  select.size = 6;
  select.setAttribute("aria-label", "Series to draw");
  const groups = page.data.runs.map((name) => { const g = document.createElement("optgroup"); g.label = name; return g; });
  page.data.lines.forEach((l, i) => {
    const o = document.createElement("option");
    o.value = i;
    o.textContent = l.name;
    groups[l.run].append(o);
  });
  select.append(...groups.filter((g) => g.children.length));
  select.addEventListener("change", () => {
    const chosen = [...select.selectedOptions].slice(0, 8).map((o) => page.data.lines[+o.value]);
    chart.lines = chosen.filter((l) => (l.by === "step") === (chosen[0].by === "step")); // of one axis
    chooser.dataset.bytes = chosen.length && chosen.every((l) => l.bytes) ? "1" : "";
    attempt(chart);
    page.say(chart.lines.length + " drawn.");
  });
  chooser.querySelector("figcaption").append(select);
  page.charts.push(chart);
}

// Steps or times, for all figures that have both.
const both = page.data.lines.some((l) => { unpackLine(l); return l.by === "step" && l.timed; });
const bar = document.querySelector(".page-tools");
if (bar && both) {
  bar.hidden = false;
  bar.append("Against ");
  const buttons = [["steps", false], ["times (UTC)", true]].map(([text, byTime]) => {
    const b = document.createElement("button");
    b.type = "button";
    b.textContent = text;
    b.setAttribute("aria-pressed", String(page.byTime === byTime));
    b.addEventListener("click", () => {
      page.byTime = byTime;
      for (const x of buttons) x.setAttribute("aria-pressed", String(x === b));
      for (const c of page.charts) attempt(c);
      page.say("Against " + text + ".");
    });
    bar.append(b);
    return b;
  });
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const c of page.charts) attempt(c); });
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  for (const c of page.charts) if (c.u) c.u.setSize({ width: c.drawing.clientWidth, height: c.height() });
});
