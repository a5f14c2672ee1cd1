// The timeline as a thing to use: zoom, pan, cross hair, layers, picked allocation.

class Chart {
  constructor(figure, packed, say) {
    this.figure = figure;
    this.say = say;
    this.d = unpack(packed);
    this.picture = new Picture(this.d);
    this.view = { a: 0, b: Math.max(this.d.events, 1) };
    this.layers = { active: true, reserved: true, blocks: this.d.blocks.n > 0, marks: true, fit: false };
    this.only = null; // the one stack that keeps its colours
    this.picked = -1;
    this.cursor = null; // {x, y} in CSS pixels of the stage
    this.build();
    this.recolour();
    new ResizeObserver(() => this.resize()).observe(this.stage);
  }

  build() {
    const button = (text, label, act) => {
      const b = element("button", { type: "button", "aria-label": label, title: label }, text);
      b.addEventListener("click", act);
      return b;
    };
    const toggle = (key, text) => {
      const box = element("input", { type: "checkbox" });
      box.checked = this.layers[key];
      box.disabled = key === "blocks" && !this.d.blocks.n;
      box.addEventListener("change", () => { this.layers[key] = box.checked; this.redraw(); });
      return element("label", {}, box, text);
    };
    const id = "chart-" + this.figure.dataset.device;
    const middle = () => (this.view.a + this.view.b) / 2;
    const tools = element("div", { class: "tools", role: "toolbar", "aria-label": "Timeline" },
      button("+", "Zoom in", () => this.zoom(0.5, middle())), button("−", "Zoom out", () => this.zoom(2, middle())),
      button("◀", "Earlier", () => this.pan(-0.5)), button("▶", "Later", () => this.pan(0.5)), button("Peak", "Zoom to the peak", () => this.toPeak()), button("Reset", "Show everything", () => this.reset()),
      element("span", { class: "gap" }),
      toggle("active", "Active"), toggle("reserved", "Reserved"), toggle("blocks", "Allocations"), toggle("marks", "Marks"), toggle("fit", "Fit height"));
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.over = element("canvas", { "aria-hidden": "true" });
    this.stage = element("div", { class: "stage", tabindex: "0", role: "application", "aria-label": "Allocation timeline", "aria-roledescription": "zoomable chart", "aria-describedby": id + "-keys" }, this.canvas, this.over);
    this.strip = element("canvas", { "aria-hidden": "true" });
    this.readout = element("div", { class: "readout" });
    this.scale = element("p", { class: "scale" });
    this.detail = element("div", { class: "picked", hidden: true, tabindex: "-1", role: "region", "aria-label": "Picked allocation" });
    const hands = element("p", { class: "scale" }, "Wheel or pinch zooms, dragging moves, a click or tap picks an allocation.");
    const help = element("p", { class: "scale keys", id: id + "-keys" },
      "Keys: + and − zoom, ← → move the cross hair, Shift ← → the picture, ↑ ↓ go through the allocations under it, Enter picks, Home and End, P peak, 0 everything.");
    this.body = element("div", { class: "chartbody" }, tools, this.stage, element("div", { class: "strip" }, this.strip), this.readout, this.scale, this.legend(), this.detail, hands, help);
    this.figure.append(this.body);
    this.figure.classList.add("live");
    listen(this);
  }

  legend() {
    const list = element("ul", { class: "legend", "aria-label": "Stacks by colour" });
    const { d } = this;
    if (!d.blocks.n) return list;
    let k = 0;
    for (const [stack, place] of d.order) {
      if (k++ === hues) break;
      const b = element("button", { type: "button", "aria-pressed": "false", title: "Show this stack alone: " + nameOf(d, stack) },
        element("span", { class: "swatch k" + place, "aria-hidden": "true" }), element("span", { class: "t" }, nameOf(d, stack)));
      b.addEventListener("click", () => {
        this.only = this.only === stack ? null : stack;
        for (const other of list.querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === b && this.only !== null));
        this.redraw();
      });
      list.append(element("li", {}, b));
    }
    const plain = (kind, text) => list.append(element("li", { class: "plainkey" }, element("span", { class: "swatch " + kind, "aria-hidden": "true" }), text));
    if (d.order.size > hues) plain("kx", count(d.order.size - hues) + " more stacks");
    plain("rest", d.rest ? count(d.rest) + " smaller allocations, not drawn one by one" : "not among the listed allocations");
    return list;
  }

  recolour() {
    const t = this.theme = theme();
    const shades = t.hues.concat(t.kx).map((c) => [pixel(c), pixel(c, 0.14), pixel(c, -0.25)]);
    const of = (group, k) => shades[Math.min(group, hues)][k];
    this.colours = { of, rest: pixel(t.rest), dim: pixel(t.rest, -0.08), dimEdge: pixel(t.rest, -0.15) };
    this.redraw();
  }

  // A burst of inputs becomes one picture.
  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  // redrawOver moves the cross hair; the picture below stays.
  redrawOver() {
    if (!this.waiting && this.width) {
      this.drawOver();
      this.tell();
    }
  }

  resize() {
    const width = this.stage.clientWidth;
    if (!width || width === this.width && this.ratio === devicePixelRatio) return;
    this.width = width;
    this.redraw();
  }

  size(canvas, width, height) {
    this.ratio = devicePixelRatio;
    const ratio = Math.min(2, Math.max(1, devicePixelRatio));
    const w = Math.round(width * ratio), h = Math.round(height * ratio);
    if (canvas.width !== w || canvas.height !== h) {
      canvas.width = w;
      canvas.height = h;
      canvas.style.height = height + "px";
    }
    const g = canvas.getContext("2d");
    g.setTransform(w / width, 0, 0, h / height, 0, 0);
    g.clearRect(0, 0, width, height);
    return g;
  }

  x(event) { return margin.left + (event - this.view.a) / (this.view.b - this.view.a) * this.w; }
  eventAt(x) { return this.view.a + (x - margin.left) / this.w * (this.view.b - this.view.a); }

  draw() {
    if (!this.width) return;
    const { d, view, theme: t, layers } = this;
    this.height = this.width < 560 ? 300 : 380;
    const g = this.size(this.canvas, this.width, this.height);
    this.w = this.width - margin.left - margin.right;
    this.h = this.height - margin.top - margin.bottom;
    const ratio = Math.min(2, Math.max(1, devicePixelRatio));
    const pw = Math.max(1, Math.round(this.w * ratio)), ph = this.rows = Math.max(1, Math.round(this.h * ratio));
    const c = this.seen = this.picture.columns(view, pw);
    this.top = this.picture.top * 1.04;
    if (layers.fit) this.top = Math.max(1, 1.06 * c.high.reduce((a, v, i) => Math.max(a, layers.active || layers.blocks ? v : 0, layers.reserved ? c.rhigh[i] : 0), 0));
    const toY = (v) => margin.top + this.h - v / this.top * this.h;
    g.fillStyle = t.plot;
    g.fillRect(margin.left, margin.top, this.w, this.h);
    this.grid(g, toY);
    g.save();
    g.beginPath();
    g.rect(margin.left, margin.top, this.w, this.h);
    g.clip();
    if (layers.blocks) {
      this.picture.paint(c, pw, ph, this.top, this.colours, this.picked, this.only);
      g.drawImage(this.picture.image, margin.left, margin.top, this.w, this.h);
      g.fillStyle = t.pick;
      const { low, high } = this.picture.pickedAt; // a thin one would not be seen
      for (let x = 0; x < pw; x++) if (high[x] > 0) g.fillRect(margin.left + x / ratio, Math.min(toY(high[x]), toY((low[x] + high[x]) / 2) - 1.5), 1 / ratio, Math.max(3, toY(low[x]) - toY(high[x])));
    } else {
      this.picture.painted = false;
      if (layers.active) {
        g.fillStyle = t.fill;
        g.beginPath();
        for (let x = 0; x < pw; x++) g.rect(margin.left + x / ratio, toY(c.high[x]), 1 / ratio, margin.top + this.h - toY(c.high[x]));
        g.fill();
      }
    }
    if (layers.reserved) {
      envelope(g, c.rlow, c.rhigh, toY, margin.left, 1 / ratio, t.reserved, 1.8);
    }
    if (layers.active) {
      envelope(g, c.low, c.high, toY, margin.left, 1 / ratio, t.active, 1.2);
    }
    g.restore();
    if (layers.marks) this.marks(g);
    g.strokeStyle = t.soft;
    g.lineWidth = 1;
    g.strokeRect(margin.left + 0.5, margin.top + 0.5, this.w - 1, this.h - 1);
    this.drawStrip();
    this.drawOver();
    this.tellScale();
    this.tell();
  }

  grid(g, toY) {
    const { theme: t, view, d } = this;
    g.font = "12px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
    g.strokeStyle = t.grid;
    g.fillStyle = t.soft;
    g.lineWidth = 1;
    g.textAlign = "right";
    g.textBaseline = "middle";
    const ys = ticks(0, this.top, this.h / 52, true);
    for (const v of ys.values) {
      const y = Math.round(toY(v)) + 0.5;
      if (y < margin.top + 6 && v > 0) continue;
      g.beginPath();
      g.moveTo(margin.left, y);
      g.lineTo(margin.left + this.w, y);
      g.stroke();
      g.fillText(v === 0 ? "0" : +(v / ys.unit).toPrecision(6) + " " + units[Math.round(Math.log2(ys.unit) / 10)], margin.left - 8, y);
    }
    g.textAlign = "center";
    g.textBaseline = "top";
    const xs = ticks(view.a, view.b, this.w / 110, false);
    const per = (view.b - view.a) / Math.max(1, xs.values.length);
    const unit = d.started ? Math.abs(d.time[bucketAt(d, view.b)] - d.time[bucketAt(d, view.a)]) / Math.max(1, (view.b - view.a) / per) : 0;
    for (const v of xs.values) {
      if (v !== Math.round(v)) continue;
      const x = Math.round(this.x(v)) + 0.5;
      g.beginPath();
      g.moveTo(x, margin.top);
      g.lineTo(x, margin.top + this.h + 4);
      g.stroke();
      const write = (text, y) => {
        const half = g.measureText(text).width / 2;
        g.fillText(text, Math.min(this.width - half, Math.max(margin.left + half, x)), y);
      };
      write(count(v), margin.top + this.h + 7);
      const time = d.time[bucketAt(d, v)];
      if (time > 0) write("+" + span(time - d.started, unit), margin.top + this.h + 22);
    }
    g.textAlign = "right";
    g.fillText("event", margin.left - 8, margin.top + this.h + 7);
    if (d.started) g.fillText("time", margin.left - 8, margin.top + this.h + 22);
  }

  // marks draws failures over all else, and of the rest as many as can be told apart.
  marks(g) {
    const { d, view, theme: t } = this;
    const inView = d.marks.filter((m) => m.e >= view.a && m.e < view.b);
    const failures = inView.filter((m) => m.k === "oom"), others = inView.filter((m) => m.k !== "oom");
    const taken = []; // stretches of the label line
    const label = (x, text, leftwards) => {
      const width = g.measureText(text).width;
      const from = Math.min(margin.left + this.w - width, Math.max(margin.left, leftwards ? x - width - 8 : x + 3));
      if (taken.some(([a, b]) => from < b + 10 && from + width > a - 10)) return;
      taken.push([from, from + width]);
      g.fillText(text, from, 5);
    };
    g.textAlign = "left";
    g.textBaseline = "top";
    g.strokeStyle = g.fillStyle = t.bad;
    g.lineWidth = 2;
    for (const m of failures) {
      const x = this.x(m.e + 0.5);
      g.beginPath();
      g.moveTo(x, margin.top);
      g.lineTo(x, margin.top + this.h);
      g.stroke();
      g.beginPath();
      g.moveTo(x - 5, margin.top - 9);
      g.lineTo(x + 5, margin.top - 9);
      g.lineTo(x, margin.top);
      g.fill();
    }
    for (const m of failures) label(this.x(m.e + 0.5), "out of memory", true);
    for (const m of failures) taken.push([this.x(m.e + 0.5) + 2, this.x(m.e + 0.5)]);
    g.strokeStyle = g.fillStyle = t.soft;
    g.lineWidth = 1;
    g.setLineDash([2, 4]);
    let last = -Infinity;
    for (const m of others) {
      const x = Math.round(this.x(m.e)) + 0.5;
      if (x - last < 6) continue;
      last = x;
      g.beginPath();
      g.moveTo(x, margin.top - 6);
      g.lineTo(x, margin.top + this.h);
      g.globalAlpha = 0.5;
      g.stroke();
      g.globalAlpha = 1;
      label(x, m.t || m.k, false);
    }
    g.setLineDash([]);
  }

  // drawStrip shows where in the whole history the picture is.
  drawStrip() {
    const { d, view, theme: t } = this, height = 36;
    const g = this.size(this.strip, this.width, height);
    const c = this.whole && this.whole.n === this.w ? this.whole : this.picture.columns({ a: 0, b: d.events }, Math.max(1, Math.floor(this.w)));
    this.whole = c;
    g.fillStyle = t.plot;
    g.fillRect(margin.left, 0, this.w, height);
    g.fillStyle = t.fill;
    for (let x = 0; x < c.n; x++) {
      const y = height - c.high[x] / this.picture.top * (height - 3);
      g.fillRect(margin.left + x, y, 1, height - y);
    }
    const a = margin.left + view.a / d.events * this.w, b = margin.left + view.b / d.events * this.w;
    g.fillStyle = t.focus;
    g.globalAlpha = 0.16;
    g.fillRect(a, 0, Math.max(2, b - a), height);
    g.globalAlpha = 1;
    g.strokeStyle = t.focus;
    g.lineWidth = 1.5;
    g.strokeRect(a + 0.75, 0.75, Math.max(2, b - a - 1.5), height - 1.5);
    g.fillStyle = t.soft;
    g.font = "12px system-ui, sans-serif";
    g.textAlign = "right";
    g.textBaseline = "middle";
    g.fillText("all", margin.left - 8, height / 2);
  }

  drawOver() {
    const g = this.size(this.over, this.width, this.height);
    const { cursor, theme: t } = this;
    if (!cursor || cursor.x < margin.left || cursor.x > margin.left + this.w) return;
    g.strokeStyle = t.ink;
    g.globalAlpha = 0.75;
    g.lineWidth = 1;
    g.setLineDash([3, 3]);
    const x = Math.round(cursor.x) + 0.5;
    g.beginPath();
    g.moveTo(x, margin.top);
    g.lineTo(x, margin.top + this.h);
    if (cursor.y >= margin.top && cursor.y <= margin.top + this.h) {
      const y = Math.round(cursor.y) + 0.5;
      g.moveTo(margin.left, y);
      g.lineTo(margin.left + this.w, y);
    }
    g.stroke();
  }

  // tellScale says how exact the picture is.
  tellScale() {
    const { d, view } = this, per = this.seen.span;
    const a = Math.max(0, Math.floor(view.a)), b = Math.min(d.events, Math.ceil(view.b));
    let s = `Events ${count(a)} to ${count(b - 1)} of ${count(d.events)}. `;
    s += per >= 1 ? `A column of pixels covers up to ${count(Math.ceil(per))} events and reaches from their lowest to their highest value. ` : `An event is ${(1 / per).toFixed(1)} columns of pixels wide. `;
    if (d.per > 1) s += per >= d.per ? "" : `The curve is kept in pieces of ${count(d.per)} events: of each the lowest and highest values are exact, their order is not kept. Allocations begin and end exactly.`;
    if (d.marksMore) s += ` ${count(d.marksMore)} marks are not drawn.`;
    this.scale.textContent = s;
  }

  // under is what stands at the cross hair, null where it is off the picture.
  under() {
    const { cursor, seen: c, d } = this;
    if (!cursor || !c || cursor.x < margin.left || cursor.x >= margin.left + this.w) return null;
    const column = Math.min(c.n - 1, Math.floor((cursor.x - margin.left) / this.w * c.n));
    const event = Math.min(d.events - 1, c.event[column]);
    const block = this.picture.blockAt(column, (cursor.y - margin.top) / this.h * this.rows);
    return { column, event, block, first: Math.floor(this.view.a + column * c.span), time: d.time[bucketAt(d, event)] };
  }

  // tell writes the figures at the cross hair below the picture.
  tell() {
    const u = this.under(), { d, seen: c } = this;
    if (!u) {
      this.readout.replaceChildren(element("span", { class: "item name" }, this.d.blocks.n ? "Point at the picture for exact figures; click an allocation for its stack." : "Point at the picture for exact figures."));
      return;
    }
    const item = (label, text) => element("span", { class: "item" }, element("b", {}, label), " " + text);
    const range = (low, high) => bytes(high) + " (" + count(high) + " bytes)" + (low < high ? ", lowest " + (bytes(low) === bytes(high) ? count(low) + " bytes" : bytes(low)) : "");
    const parts = [];
    const wide = c.span >= d.per && c.span > 1, k = bucketAt(d, u.event), piece = d.from[k + 1] ?? d.events;
    const last = Math.min(d.events, Math.ceil(this.view.a + (u.column + 1) * c.span)) - 1;
    if (wide) parts.push(item("event", d.peak[k] === u.event ? `${count(u.event)}, the peak of ${count(u.first)} to ${count(last)}` : `${count(u.first)} to ${count(last)}`));
    else parts.push(item("event", count(u.event) + (piece - d.from[k] > 1 ? `; curve of events ${count(d.from[k])} to ${count(piece - 1)}` : "")));
    if (u.time > 0) parts.push(item("time", (d.per > 1 ? "about +" : "+") + span(u.time - d.started, 10)));
    if (wide) parts.push(item("active", range(c.low[u.column], c.high[u.column])), item("reserved", range(c.rlow[u.column], c.rhigh[u.column])));
    else parts.push(item("active", range(d.activeMin[k], d.activeMax[k])), item("reserved", range(d.reservedMin[k], d.reservedMax[k])));
    if (u.block >= 0) {
      const name = nameOf(d, d.blocks.stack[u.block]);
      parts.push(element("span", { class: "item name" }, element("b", {}, "allocation"), " " + bytes(d.blocks.bytes[u.block]) + " by " + name));
    }
    this.readout.replaceChildren(...parts);
  }

  // pick shows all that is known of one allocation.
  pick(i) {
    this.picked = i;
    this.redraw();
    this.detail.hidden = i < 0;
    if (i < 0) return;
    const { d } = this, b = d.blocks, stack = d.stacks.get(b.stack[i]);
    const when = (e) => {
      const t = d.time[bucketAt(d, e)];
      return "event " + count(e) + (t > 0 ? ", about +" + span(t - d.started) : "");
    };
    const alive = b.to[i] === Infinity;
    const pair = (label, text) => element("div", {}, element("dt", {}, label), element("dd", {}, text));
    const close = element("button", { type: "button" }, "Close"), whole = element("button", { type: "button" }, "Zoom to its life");
    close.addEventListener("click", () => { this.pick(-1); this.stage.focus(); });
    whole.addEventListener("click", () => this.toLife(i));
    this.detail.replaceChildren(element("h4", {}, bytes(b.bytes[i]) + " by " + nameOf(d, b.stack[i])),
      element("dl", { class: "pairs" }, pair("Size", count(b.bytes[i]) + " bytes"), pair("Allocated", b.from[i] < 0 ? "before the history begins" : when(b.from[i])),
        pair("Freed", alive ? "not: alive at the end" : when(b.to[i])), pair("Lived", alive ? "to the end" : count(b.to[i] - Math.max(0, b.from[i])) + " events" + (b.from[i] < 0 ? " of the history" : "")), pair("Address", address(b, i))),
      stack && stack.frames.length ? element("ol", {}, ...stack.frames.map((f) => element("li", {}, element("code", {}, f)))) : element("p", { class: "note" }, "No stack was recorded for it."),
      element("div", { class: "tools" }, whole, close));
    this.say(bytes(b.bytes[i]) + " by " + nameOf(d, b.stack[i]));
  }

  show(a, b) {
    const n = Math.max(1, this.d.events), width = Math.min(n, Math.max(b - a, 12));
    const from = Math.min(n - width, Math.max(0, (a + b - width) / 2));
    this.view = { a: from, b: from + width };
    this.redraw();
  }

  zoom(factor, at) {
    const { a, b } = this.view, share = (at - a) / (b - a), width = Math.min(this.d.events, Math.max(12, (b - a) * factor));
    const from = Math.min(this.d.events - width, Math.max(0, at - share * width));
    this.view = { a: from, b: from + width };
    this.redraw();
  }

  pan(share) {
    const width = this.view.b - this.view.a;
    this.show(this.view.a + share * width, this.view.b + share * width);
  }

  reset() { this.show(0, this.d.events); }

  toPeak() {
    const { d } = this, i = d.highest(0, d.from.length);
    const e = d.peak[i] >= 0 ? d.peak[i] : d.from[i], width = Math.max(d.events / 50, 200);
    this.show(e - width / 2, e + width / 2);
  }

  toLife(i) {
    const b = this.d.blocks, from = Math.max(0, b.from[i]), to = Math.min(this.d.events, b.to[i]), rim = Math.max(6, (to - from) * 0.15);
    this.show(from - rim, to + rim);
  }
}
