// One figure: lines that can be read off, zoomed and switched, what is not finite marked
// along the axis and its part shaded, resumes and what logs tell as upright lines.

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const dashes = [[], [7, 3], [2, 3], [8, 3, 2, 3]];
const pale = (c) => (/^#[0-9a-f]{6}$/i.test(c) ? c + "60" : c);

// rangeOf is the range of the y axis for values from lo to hi. Values that differ by no more than
// single precision does are one value, which stands in the middle: no ticks lie between them.
function rangeOf(lo, hi) {
  if (lo === null) return [0, 1];
  const size = Math.max(Math.abs(lo), Math.abs(hi));
  return hi - lo > size * 1e-6 ? uPlot.rangeNum(lo, hi, 0.1, true) : [lo - (size || 1) * 0.1, hi + (size || 1) * 0.1];
}

// layout arranges lines for one drawing: columns over a common x, and what is marked.
// Kinds holds, by column and x, what a value was that is not finite.
function layout(lines, byTime, events) {
  const tables = [], columns = [], bands = [], doubts = [], bad = [], resumes = [];
  lines.forEach((line, n) => {
    const parts = unpackLine(line);
    const now = { x: [], y: [] };
    const put = (table, kinds, pairs) => {
      pairs.sort((a, b) => a[0] - b[0]);
      const last = new Map(pairs); // of several at one place the last one written
      const x = [...last.keys()];
      tables.push([x, x.map((v) => { const y = last.get(v); if (!Number.isFinite(y)) kinds.set(v, kindOf(y)); return Number.isFinite(y) ? y : null; })]);
    };
    let old = 0;
    for (const p of parts) {
      const x = byTime ? p.t : p.x;
      if (p.again && x.length) resumes.push(x[0]);
      let from = null, doubt = null;
      for (let i = 0; i < x.length; i++) {
        const y = p.y[i];
        if (!Number.isFinite(y)) bad.push({ x: x[i], past: p.past, n });
        if (!p.past) {
          if (!Number.isFinite(y)) { if (from === null) bands.push(from = [x[i], x[i]]); from[1] = x[i]; } else from = null;
          const doubtful = line.doubts.some((d) => p.x[i] >= d[0] && p.x[i] <= d[1]);
          if (doubtful) { if (doubt === null) doubts.push(doubt = [x[i], x[i]]); doubt[1] = x[i]; } else doubt = null;
        }
      }
      if (!p.past) {
        for (let i = 0; i < x.length; i++) { now.x.push(x[i]); now.y.push(p.y[i]); }
      } else if (old++ < 16) {
        const kinds = new Map();
        put(tables, kinds, Array.from(x, (v, i) => [v, p.y[i]]));
        columns.push({ line, n, past: true, kinds });
      }
    }
    const kinds = new Map();
    put(tables, kinds, now.x.map((v, i) => [v, now.y[i]]));
    columns.push({ line, n, past: false, kinds });
  });
  const data = tables.length ? uPlot.join(tables) : [[]];
  const marks = events.map((e) => ({ x: byTime ? e.t : e.s, n: e.n, text: e.w })).filter((e) => e.x !== null && e.x !== undefined);
  return { data, columns, bands, doubts, bad, resumes: [...new Set(resumes)], marks };
}

class Chart {
  constructor(figure, page) {
    this.figure = figure;
    this.page = page;
    this.lines = (figure.dataset.lines || "").split(" ").filter(Boolean).map((i) => page.data.lines[+i]);
    this.log = !!figure.dataset.log;
    this.drawing = figure.querySelector(".drawing");
    this.tools();
    this.draw();
  }

  // by is what the figure is drawn against: times where the page asks for them and all
  // lines have them.
  get by() {
    for (const l of this.lines) unpackLine(l);
    if (this.lines.some((l) => l.by === "time")) return "time";
    if (this.lines.some((l) => l.by === "order")) return "order";
    return this.page.byTime && this.lines.every((l) => l.timed) ? "time" : "step";
  }

  tools() {
    const bar = document.createElement("div");
    bar.className = "tools";
    const button = (text, title, act) => {
      const b = document.createElement("button");
      b.type = "button";
      b.textContent = text;
      b.title = title;
      b.addEventListener("click", act);
      bar.append(b);
      return b;
    };
    this.failedButton = button("Failed part", "Zoom to where values are not finite", () => this.zoomTo(this.failed()));
    this.zoomButtons = [button("Whole", "Show all of it", () => this.zoomTo(null)), button("Closer", "Zoom in", () => this.zoomBy(0.5)), button("Wider", "Zoom out", () => this.zoomBy(2))];
    this.logButton = button("Logarithmic", "Switch the scale of values", () => { this.log = !this.log; this.draw(); this.page.say(this.log ? "Logarithmic." : "Linear."); });
    this.readout = document.createElement("p");
    this.readout.className = "readout";
    this.drawing.before(bar);
    this.drawing.after(this.readout);
  }

  failed() {
    const m = this.model, all = m.bands.length ? m.bands : m.doubts;
    if (!all.length) return null;
    const from = Math.min(...all.map((b) => b[0])), to = Math.max(...all.map((b) => b[1]));
    const room = Math.max((to - from) * 0.25, this.span() * 0.03);
    return [from - room, to + room];
  }

  span() { const x = this.model.data[0]; return x.length ? x[x.length - 1] - x[0] || 1 : 1; }

  zoomTo(range) {
    if (!this.u) return;
    const whole = this.whole();
    if (!range) range = whole;
    this.u.batch(() => this.u.setScale("x", { min: Math.max(range[0], whole[0]), max: Math.min(range[1], whole[1]) }));
  }

  zoomBy(k) {
    if (!this.u) return;
    const s = this.u.scales.x, mid = (s.min + s.max) / 2, half = ((s.max - s.min) / 2) * k;
    if (half > 0) this.zoomTo([mid - half, mid + half]);
  }

  // whole is the range of x with room at its ends, so that what stands there is seen.
  whole() {
    const x = this.model.data[0];
    if (!x.length) return [0, 1];
    const low = x[0], high = x[x.length - 1], room = (high - low) * 0.01 || 0.5;
    return [low - room, high + room];
  }

  draw() {
    if (this.u) { this.u.destroy(); this.u = null; }
    if (!this.lines.length) { this.figure.classList.remove("live"); return; }
    const by = this.by;
    this.model = layout(this.lines, by === "time", this.page.data.events);
    const m = this.model;
    let top = 0, positive = true, any = false;
    for (const column of m.data.slice(1)) for (const v of column) if (v !== null && v !== undefined) { any = true; top = Math.max(top, Math.abs(v)); if (v < 0) positive = false; }
    const log = this.log && positive && top > 0;
    this.logButton.setAttribute("aria-pressed", String(log));
    this.logButton.hidden = !positive;
    const places = m.data[0].length;
    for (const b of this.zoomButtons) b.hidden = places < 2;
    this.failedButton.hidden = places < 2 || !m.bands.length && !m.doubts.length;
    if (!any) m.data.push(m.data[0].map(() => null));
    // Axes of the library end at 1e16: larger values, and very small ones, are divided.
    const f = !log && (top > 1e12 || top < 1e-9 && top > 0) ? 10 ** Math.floor(Math.log10(top)) : 1;
    if (f !== 1) for (let i = 1; i < m.data.length; i++) m.data[i] = m.data[i].map((v) => (v === null || v === undefined ? v : v / f));
    const bytes = !!this.figure.dataset.bytes;
    const show = bytes ? bytesWords : (v) => String(+v.toPrecision(5));
    const xWords = by === "time" ? timeWords : by === "order" ? (v) => "value " + stepWords(v + 1) : stepWords;
    // Times are of one day, or have their date.
    const xTick = (x, all) => {
      if (x === null || by === "step" && x % 1) return "";
      if (by !== "time") return stepWords(by === "order" ? x + 1 : x);
      const iso = new Date(x).toISOString(), span = all[all.length - 1] - all[0];
      return span > 86400e3 ? iso.slice(5, 16).replace("T", " ") : span > 300e3 ? iso.slice(11, 16) : iso.slice(11, 19);
    };
    const axis = { stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 } };
    const several = this.page.data.runs.length > 1;
    const series = m.columns.map((c, i) => {
      const stroke = color("--l" + c.n % 8);
      return {
        label: c.line.name + (several ? " · " + this.page.data.runs[c.line.run] : "") + (c.past ? " (superseded)" : ""),
        stroke: c.past ? pale(stroke) : stroke, width: c.past ? 1.2 : 1.8, dash: dashes[c.n % 4], spanGaps: false, points: { size: 5 },
        value: (u, v, si, di) => {
          if (di === null || di === undefined) return "–";
          const kind = c.kinds.get(m.data[0][di]);
          return kind || (v === null || v === undefined ? "–" : show(v * f));
        },
      };
    });
    if (!any && !series.length) series.push({ label: "" });
    const options = {
      width: this.drawing.clientWidth, height: this.height(), ms: 1,
      cursor: { drag: { x: true, y: false }, sync: { key: by, setSeries: false, filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } } },
      scales: {
        x: { time: by === "time", range: (u, lo, hi) => (lo === m.data[0][0] && hi === m.data[0][m.data[0].length - 1] ? this.whole() : [lo, hi]) },
        y: log ? { distr: 3 } : bytes ? { range: (u, lo, hi) => [0, (hi || 1) * 1.05] } : { range: (u, lo, hi) => rangeOf(lo, hi) },
      },
      axes: [{ ...axis, space: by === "time" ? 80 : 50, values: (u, v) => v.map((x) => xTick(x, v)) },
        { ...axis, size: bytes ? 84 : 68, values: (u, v) => v.map((x) => (x === null ? "" : show(x * f))) }],
      series: [{ label: by === "time" ? "time" : by === "order" ? "value" : this.lines[0].axis, value: (u, v) => (v === null ? "–" : xWords(v)) }].concat(series),
      hooks: { drawClear: [(u) => this.under(u)], draw: [(u) => this.over(u)], setCursor: [(u) => this.read(u, xWords)], setScale: [(u, key) => { if (key === "x") this.page.follow(this, by, u.scales.x.min, u.scales.x.max); }] },
    };
    if (by === "time") options.tzDate = (ts) => uPlot.tzDate(new Date(ts), "Etc/UTC");
    this.figure.classList.add("live");
    this.u = new uPlot(options, m.data, this.drawing);
    this.u.root.setAttribute("aria-hidden", "true"); // the caption and the tables say it
    this.drawnBy = by;
  }

  height() { return this.figure === this.figure.parentElement.firstElementChild && innerWidth > 800 ? 340 : 260; }

  // clip is where x stands in device pixels; null where that is outside of the drawing.
  at(u, x) {
    const p = u.valToPos(x, "x", true), b = u.bbox;
    return p < b.left - 1 || p > b.left + b.width + 1 ? null : p;
  }

  // under draws what lies behind the lines: the failed part, and what only looks finite.
  under(u) {
    const { ctx, bbox } = u, m = this.model, d = devicePixelRatio;
    const fill = (all, style, hatch) => {
      ctx.fillStyle = style;
      for (const [from, to] of all) {
        let a = u.valToPos(from, "x", true), b = u.valToPos(to, "x", true);
        if (b - a < 3 * d) { a -= 1.5 * d; b += 1.5 * d; }
        a = Math.max(a, bbox.left);
        b = Math.min(b, bbox.left + bbox.width);
        if (b <= a) continue;
        ctx.fillRect(a, bbox.top, b - a, bbox.height);
        if (!hatch) continue;
        ctx.save();
        ctx.beginPath();
        ctx.rect(a, bbox.top, b - a, bbox.height);
        ctx.clip();
        ctx.strokeStyle = color("--open");
        ctx.globalAlpha = 0.35;
        ctx.lineWidth = d;
        ctx.beginPath();
        for (let x = a - bbox.height; x < b; x += 9 * d) { ctx.moveTo(x, bbox.top + bbox.height); ctx.lineTo(x + bbox.height, bbox.top); }
        ctx.stroke();
        ctx.restore();
      }
    };
    ctx.save();
    fill(m.bands, color("--bad-bg"), false);
    fill(m.doubts, color("--open-bg"), true);
    ctx.restore();
  }

  // over draws what lies on the lines: resumes, what logs tell, a triangle for each value
  // that is not finite.
  over(u) {
    const { ctx, bbox } = u, m = this.model, d = devicePixelRatio, floor = bbox.top + bbox.height;
    const upright = (x, style, dash) => {
      ctx.strokeStyle = style;
      ctx.setLineDash(dash.map((n) => n * d));
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, floor);
      ctx.stroke();
    };
    ctx.save();
    ctx.lineWidth = 1.4 * d;
    for (const x of m.resumes) { const p = this.at(u, x); if (p !== null) upright(p, color("--soft"), [5, 4]); }
    ctx.font = 11 * d + "px system-ui, sans-serif";
    ctx.textAlign = "center";
    let last = -Infinity;
    for (const e of [...m.marks].sort((a, b) => a.x - b.x)) {
      const p = this.at(u, e.x);
      if (p === null) continue;
      upright(p, color("--open"), []);
      if (p - last < 14 * d) continue; // numbers that would meet
      last = p;
      ctx.fillStyle = color("--open");
      ctx.fillText(String(e.n), p, bbox.top - 4 * d);
    }
    ctx.setLineDash([]);
    let drawn = -Infinity;
    for (const b of [...m.bad].sort((a, b) => a.x - b.x)) {
      const p = this.at(u, b.x);
      if (p === null || p - drawn < 2 * d) continue;
      drawn = p;
      ctx.fillStyle = b.past ? pale(color("--bad")) : color("--bad");
      ctx.beginPath();
      ctx.moveTo(p, floor - 8 * d);
      ctx.lineTo(p + 4 * d, floor);
      ctx.lineTo(p - 4 * d, floor);
      ctx.fill();
    }
    ctx.restore();
  }

  // read says what is near the cursor and not in the legend.
  read(u, words) {
    const left = u.cursor.left, out = [];
    if (left >= 0) {
      for (const e of this.model.marks) if (Math.abs(u.valToPos(e.x, "x") - left) < 6) out.push(e.n + ": " + e.text);
      for (const x of this.model.resumes) if (Math.abs(u.valToPos(x, "x") - left) < 6) out.push("writing began again at " + words(x));
    }
    this.readout.textContent = out.slice(0, 3).join("; ");
  }
}
