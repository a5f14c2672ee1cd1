// The segment map: a row for each segment, its blocks coloured by state.

const rowHeight = 15, rowGap = 4, rowsFirst = 60;
const states = ["free", "active", "waiting for a stream", "in another state"];

class SegmentMap {
  constructor(figure, packed, say) {
    this.figure = figure;
    this.say = say;
    this.all = packed.segs.map((s) => ({ ...s, parts: numbers(s.parts) }));
    this.longest = Math.max(1, ...this.all.map((s) => s.total));
    this.shown = Math.min(rowsFirst, this.all.length);
    this.names = { stacks: new Map(packed.stacks.map((s) => [s.i, { name: s.name }])) };
    this.scaled = false;
    this.at = null; // {row, part}
    this.build();
    this.recolour();
    new ResizeObserver(() => this.draw()).observe(this.stage);
  }

  build() {
    const key = (kind, text) => element("li", { class: "plainkey" }, element("span", { class: "swatch " + kind, "aria-hidden": "true" }), text);
    const box = element("input", { type: "checkbox" });
    box.addEventListener("change", () => { this.scaled = box.checked; this.draw(); });
    this.more = element("button", { type: "button", hidden: this.shown === this.all.length }, `Show all ${count(this.all.length)} rows`);
    this.more.addEventListener("click", () => {
      this.shown = this.all.length;
      this.more.hidden = true;
      this.draw();
    });
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.stage = element("div", { class: "stage", tabindex: "0", role: "application", "aria-label": "Segment map. Arrow keys go from block to block.", "aria-roledescription": "map" }, this.canvas);
    this.readout = element("div", { class: "readout" }, "Point at a block for its size, state and stack.");
    this.figure.insertBefore(element("div", { class: "chartbody" },
      element("div", { class: "tools" }, element("ul", { class: "legend" }, key("active", "active"), key("pending", "waiting for a stream"), key("free", "free")), element("span", { class: "gap" }), element("label", {}, box, "Rows to scale")),
      this.readout, this.stage, element("div", { class: "tools" }, this.more)), this.figure.querySelector(".plainsegments"));
    this.stage.addEventListener("pointermove", (e) => this.point(e));
    this.stage.addEventListener("pointerdown", (e) => this.point(e));
    this.stage.addEventListener("pointerleave", () => this.select(null));
    const keys = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    this.stage.addEventListener("keydown", (e) => {
      if (!Object.hasOwn(keys, e.key)) return;
      e.preventDefault();
      const at = this.at || { row: 0, part: -keys[e.key][1] };
      const row = Math.min(this.shown - 1, Math.max(0, at.row + keys[e.key][0]));
      const last = this.all[row].parts.length / 4 - 1;
      this.select({ row, part: Math.max(0, row === at.row ? Math.min(last, at.part + keys[e.key][1]) : 0) });
      this.say(spoken(this.readout));
    });
  }

  recolour() {
    this.theme = theme();
    this.draw();
  }

  place(row) {
    const left = this.left, width = this.width - left - 1;
    return { left, scale: (this.scaled ? width / this.longest : width / Math.max(1, this.all[row].total)) };
  }

  draw() {
    this.width = this.stage.clientWidth;
    if (!this.width) return;
    const height = this.shown * (rowHeight + rowGap) + 2, t = this.theme;
    // Browsers refuse very large canvases.
    const ratio = Math.min(2, Math.max(1, devicePixelRatio), Math.max(1, 16000 / height));
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = height + "px";
    const g = this.canvas.getContext("2d");
    g.setTransform(this.canvas.width / this.width, 0, 0, this.canvas.height / height, 0, 0);
    g.font = "12px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
    g.textBaseline = "middle";
    const kinds = this.width < 560 ? [] : this.all.slice(0, this.shown).map((s) => kindOf(s));
    const widest = Math.min(230, kinds.reduce((a, k) => Math.max(a, g.measureText(k).width), 0));
    this.left = Math.ceil(84 + widest);
    const fills = [t["seg-free"], t["seg-active"], t["seg-pending"], t.kx];
    for (let row = 0; row < this.shown; row++) {
      const s = this.all[row], y = row * (rowHeight + rowGap) + 1, { left, scale } = this.place(row);
      g.fillStyle = t.ink;
      g.textAlign = "right";
      const size = bytes(s.total, s.total % 1048576 ? 2 : s.total >= 1073741824 ? 2 : 0);
      g.fillText(size, left - 10, y + rowHeight / 2);
      if (kinds.length) {
        g.fillStyle = t.soft;
        g.textAlign = "left";
        g.fillText(fit(g, kinds[row], widest), 0, y + rowHeight / 2);
      }
      g.fillStyle = t["seg-free"];
      g.fillRect(left, y, s.total * scale, rowHeight);
      this.blocks(g, s, left, y, scale, fills, t["seg-edge"]);
      g.strokeStyle = t.line;
      g.lineWidth = 1;
      g.strokeRect(left + 0.5, y + 0.5, Math.max(1, s.total * scale - 1), rowHeight - 1);
    }
    if (this.at && this.at.row < this.shown) {
      const s = this.all[this.at.row], y = this.at.row * (rowHeight + rowGap) + 1, { left, scale } = this.place(this.at.row), k = 4 * this.at.part;
      g.strokeStyle = t.pick;
      g.lineWidth = 2;
      g.strokeRect(left + s.parts[k] * scale, y, Math.max(3, s.parts[k + 1] * scale), rowHeight);
    }
  }

  // blocks draws used blocks over the free ground; one is never less than a pixel, so that
  // a small block that holds a large segment is seen.
  blocks(g, s, left, y, scale, fills, edge) {
    for (let k = 0; k < s.parts.length; k += 4) {
      if (!s.parts[k + 2]) continue;
      const x = left + s.parts[k] * scale, w = s.parts[k + 1] * scale;
      g.fillStyle = fills[s.parts[k + 2]];
      g.fillRect(x, y, Math.max(1, w), rowHeight);
      if (w > 3) {
        g.fillStyle = edge;
        g.fillRect(x + w - 0.75, y, 0.75, rowHeight);
      }
    }
  }

  point(e) {
    const r = this.stage.getBoundingClientRect(), row = Math.floor((e.clientY - r.top) / (rowHeight + rowGap));
    if (row < 0 || row >= this.shown) return this.select(null);
    const { left, scale } = this.place(row), offset = (e.clientX - r.left - left) / scale, { parts } = this.all[row];
    let part = -1;
    for (let k = 0; k < parts.length; k += 4) if (parts[k] <= offset && offset < parts[k] + parts[k + 1]) part = k / 4;
    this.select(part < 0 ? null : { row, part });
  }

  select(at) {
    if (at === this.at || at && this.at && at.row === this.at.row && at.part === this.at.part) return;
    this.at = at;
    this.draw();
    if (!at) {
      this.readout.textContent = "Point at a block for its size, state and stack.";
      return;
    }
    const s = this.all[at.row], k = 4 * at.part, stack = s.parts[k + 3];
    const item = (label, text) => element("span", { class: "item name" }, element("b", {}, label), " " + text);
    this.readout.replaceChildren(item("block", `${bytes(s.parts[k + 1])} (${count(s.parts[k + 1])} bytes), ${states[s.parts[k + 2]]}, at +${count(s.parts[k])}`),
      item("segment", `${s.addr}, ${bytes(s.total)}, ${s.class}, stream ${s.stream}${s.pool ? ", pool " + s.pool : ""}${s.more ? ", " + count(s.more) + " of its blocks are not drawn" : ""}`),
      ...(s.parts[k + 2] && stack >= 0 ? [item("by", nameOf(this.names, stack))] : []));
  }
}

// kindOf names what is not as usual of a segment.
function kindOf(s) {
  return [s.class, s.exp && "expandable", s.stream !== "0" && "stream " + s.stream, s.pool && s.pool !== "default" && "pool " + s.pool].filter(Boolean).join(", ");
}

// fit cuts text to a width.
function fit(g, text, width) {
  if (g.measureText(text).width <= width) return text;
  while (text && g.measureText(text + "…").width > width) text = text.slice(0, -1);
  return text + "…";
}
