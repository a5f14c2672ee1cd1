  // Plots that can be read off replace the drawings that came with the page.
  const figures = document.querySelectorAll(".plot");
  if (!figures.length || typeof uPlot !== "function") return;
  const incident = JSON.parse(document.getElementById("incident").textContent);
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const bytes = (v) => {
    let i = 0;
    while (Math.abs(v) >= 1024 && i < units.length - 1) { v /= 1024; i++; }
    return (i ? v.toFixed(2) : v) + " " + units[i];
  };
  const dashes = [[], [7, 3], [2, 3], [8, 3, 2, 3]];
  const made = [];

  function plot(figure) {
    const by = figure.dataset.by;
    const lines = figure.dataset.series.split(" ").map((i) => incident.series[+i]);
    const xs = [...new Set(lines.flatMap((s) => s.points.map((p) => p[by])))].sort((a, b) => a - b);
    const at = new Map(xs.map((x, i) => [x, i]));
    const from = parseFloat(figure.dataset.from), to = parseFloat(figure.dataset.to);
    if (to > xs[xs.length - 1]) { at.set(to, xs.length); xs.push(to); }
    const data = [xs];
    const firstBad = [];
    for (const s of lines) {
      const ys = new Array(xs.length); // undefined: not logged there, null: not finite
      let bad = null;
      for (const p of s.points) {
        ys[at.get(p[by])] = p.value;
        if (p.value === null && bad === null) bad = p[by];
      }
      if (bad !== null) firstBad.push(bad);
      data.push(ys);
    }
    const show = figure.dataset.bytes ? bytes : (v) => String(+v.toPrecision(5));
    const axis = { stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 } };
    const drawing = figure.querySelector(".drawing");
    const options = {
      width: drawing.clientWidth, height: 260,
      scales: { x: { time: false }, y: figure.dataset.log ? { distr: 3 } : figure.dataset.bytes ? { range: (u, lo, hi) => [0, hi * 1.05] } : {} },
      axes: [axis, { ...axis, size: figure.dataset.bytes ? 84 : 64, values: (u, v) => v.map((x) => x === null ? "" : show(x)) }],
      series: [{ label: by === "step" ? "step" : "value number", value: (u, v) => v === null ? "–" : String(v) }].concat(lines.map((s, i) => ({
        label: s.name.replaceAll("_", " ") + (s.rank === null ? "" : ", rank " + s.rank), stroke: color("--l" + i % 8), width: 1.8,
        dash: dashes[i % 4], spanGaps: false, points: { size: 5 }, value: (u, v, si, di) => v === undefined || v === null ? (di !== null && data[si][di] === null ? "not finite" : "–") : show(v),
      }))),
      hooks: {
        drawClear: [(u) => {
          if (isNaN(from)) return;
          const { ctx, bbox } = u;
          const a = Math.max(bbox.left, u.valToPos(from, "x", true)), b = Math.min(bbox.left + bbox.width, u.valToPos(to, "x", true));
          if (b < bbox.left || a > bbox.left + bbox.width) return;
          ctx.save();
          ctx.fillStyle = color("--bad-bg");
          ctx.fillRect(Math.min(a, b - 3), bbox.top, Math.max(b - a, 3), bbox.height);
          ctx.restore();
        }],
        draw: [(u) => {
          const { ctx, bbox } = u;
          ctx.save();
          ctx.strokeStyle = color("--bad");
          ctx.lineWidth = 2 * devicePixelRatio;
          ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
          for (const x of firstBad) {
            const p = u.valToPos(x, "x", true);
            if (p < bbox.left || p > bbox.left + bbox.width) continue;
            ctx.beginPath();
            ctx.moveTo(p, bbox.top);
            ctx.lineTo(p, bbox.top + bbox.height);
            ctx.stroke();
          }
          ctx.restore();
        }],
      },
    };
    figure.classList.add("live");
    const u = new uPlot(options, data, drawing);
    u.root.setAttribute("aria-hidden", "true"); // the caption and the table say it
    return u;
  }

  function draw() {
    for (const u of made.splice(0)) u.destroy();
    for (const f of figures) {
      try { made.push(plot(f)); } catch { f.classList.remove("live"); }
    }
  }
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    for (const u of made) u.setSize({ width: u.root.parentElement.clientWidth, height: 260 });
  });
