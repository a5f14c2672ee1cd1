// Drawing one device's history.

const margin = { left: 76, right: 14, top: 26, bottom: 40 };
const hues = 10; // stacks with a colour of their own

// theme reads the colours of the page, which follow light and dark.
function theme() {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue("--" + name).trim();
  const out = { hues: [] };
  for (const name of ["ink", "soft", "line", "card", "plot", "grid", "bad", "open", "focus", "reserved", "active", "fill", "rest", "kx", "pick", "seg-active", "seg-pending", "seg-free", "seg-edge"]) out[name] = get(name);
  for (let i = 0; i < hues; i++) out.hues.push(get("k" + i));
  return out;
}

// pixel is #rrggbb as a pixel of an ImageData, lightened (share > 0) or darkened.
function pixel(hex, share = 0) {
  const part = (i) => {
    const v = parseInt(hex.slice(i, i + 2), 16);
    return Math.round(share > 0 ? v + (255 - v) * share : v * (1 + share));
  };
  return (255 << 24 | part(5) << 16 | part(3) << 8 | part(1)) >>> 0;
}

// A Stacking lays the listed allocations one upon the other: those of one stack
// together, older ones below. It goes through events that do not decrease, with work only
// for what changes, and finds what lies at a height without adding up all that is below:
// a Fenwick tree holds the sizes of what lives, by place.
class Stacking {
  constructor(d) {
    const b = this.blocks = d.blocks;
    const group = this.group = Uint32Array.from(b.stack, (s) => d.order.get(s) ?? d.order.size);
    this.at = Uint32Array.from(b.stack, (_, i) => i).sort((x, y) => group[x] - group[y] || x - y); // place -> block
    this.place = new Uint32Array(b.n); // block -> place
    this.at.forEach((i, p) => { this.place[i] = p; });
    this.byEnd = Uint32Array.from(b.stack, (_, i) => i).sort((x, y) => (b.to[x] < b.to[y] ? -1 : b.to[x] > b.to[y] ? 1 : x - y));
    this.tree = new Float64Array(b.n + 1);
    this.step = 2 ** Math.floor(Math.log2(Math.max(1, b.n)));
  }

  // start is the state at event e, from nothing.
  start(e) {
    const { blocks: b, tree, place } = this;
    tree.fill(0);
    this.total = 0;
    this.next = 0; // the first block that begins after e
    for (; this.next < b.n && b.from[this.next] <= e; this.next++) {
      if (b.to[this.next] <= e) continue;
      tree[place[this.next] + 1] = b.bytes[this.next];
      this.total += b.bytes[this.next];
    }
    for (let p = 1; p <= b.n; p++) {
      const up = p + (p & -p);
      if (up <= b.n) tree[up] += tree[p];
    }
    this.gone = 0; // the first of byEnd that lives beyond e
    while (this.gone < b.n && b.to[this.byEnd[this.gone]] <= e) this.gone++;
    this.event = e;
  }

  add(i, size) {
    for (let p = this.place[i] + 1; p <= this.blocks.n; p += p & -p) this.tree[p] += size;
    this.total += size;
  }

  // to moves on to event e; it reports whether anything changed.
  to(e) {
    const { blocks: b, byEnd } = this;
    let changed = false;
    for (; this.next < b.n && b.from[this.next] <= e; this.next++) {
      if (b.to[this.next] <= e) continue;
      this.add(this.next, b.bytes[this.next]);
      changed = true;
    }
    for (; this.gone < b.n && b.to[byEnd[this.gone]] <= e; this.gone++) {
      const i = byEnd[this.gone];
      if (b.from[i] > this.event) continue; // came and went in between
      this.add(i, -b.bytes[i]);
      changed = true;
    }
    this.event = e;
    return changed;
  }

  // find returns the block at a height in bytes, and leaves in this.ground where it begins.
  find(height) {
    const { tree } = this, n = this.blocks.n;
    let p = 0, rest = height;
    for (let k = this.step; k; k >>= 1) {
      if (p + k <= n && tree[p + k] <= rest) {
        p += k;
        rest -= tree[p];
      }
    }
    this.ground = height - rest;
    return this.at[Math.min(p, n - 1)];
  }

  // below is how much lies under block i.
  below(i) {
    let sum = 0;
    for (let p = this.place[i]; p; p -= p & -p) sum += this.tree[p];
    return sum;
  }

  lives(i) { return this.blocks.from[i] <= this.event && this.blocks.to[i] > this.event; }
}

// A Picture is the plot of the events view.a to view.b in width by height pixels.
class Picture {
  constructor(d) {
    this.d = d;
    this.stacking = new Stacking(d);
    const all = d.from.length;
    this.top = Math.max(d.activeMax[d.highest(0, all)], d.reservedMax[d.reservedHighest(0, all)], 1);
    this.image = document.createElement("canvas");
  }

  // columns finds, for each column of pixels, the extremes of all buckets that it
  // touches, and one event that stands for it: that of its peak where it covers whole
  // buckets, else the one in its middle.
  columns(view, width) {
    const { d } = this, span = (view.b - view.a) / width;
    const c = { n: width, span, low: new Float64Array(width), high: new Float64Array(width), rlow: new Float64Array(width), rhigh: new Float64Array(width), event: new Float64Array(width) };
    let last = -Infinity;
    for (let x = 0; x < width; x++) {
      const e0 = view.a + x * span, e1 = e0 + span;
      const i = bucketAt(d, e0), j = Math.max(i + 1, bucketAt(d, Math.ceil(e1) - 1) + 1);
      const h = d.highest(i, j);
      c.high[x] = d.activeMax[h];
      c.low[x] = d.activeMin[d.lowest(i, j)];
      c.rhigh[x] = d.reservedMax[d.reservedHighest(i, j)];
      c.rlow[x] = d.reservedMin[d.reservedLowest(i, j)];
      const inside = Math.floor(e0 + span / 2);
      last = Math.max(last, span >= d.per && d.peak[h] >= 0 ? d.peak[h] : inside);
      c.event[x] = last;
    }
    return c;
  }

  // paint fills the pixels under the active curve with the allocations that lived in
  // each column, and remembers which pixel is whose. It works column by column, and
  // turns the picture over at the end.
  paint(c, width, height, top, colours, picked, only) {
    const { stacking: s } = this, b = s.blocks;
    if (!this.ids || this.ids.length !== width * height || this.size.width !== width) {
      this.ids = new Int32Array(width * height); // block + 1, 0 none, -1 the rest
      this.shades = new Uint32Array(width * height);
      this.image.width = width;
      this.image.height = height;
      this.data = this.image.getContext("2d").createImageData(width, height);
      this.size = { width, height };
    }
    const { ids, shades } = this;
    ids.fill(0);
    shades.fill(0);
    s.start(c.event[0]);
    const at = this.pickedAt = { low: new Float64Array(width), high: new Float64Array(width) };
    const edges = Math.max(4, height / 80), perPixel = top / height;
    let below = height; // the uppermost row of the stack in the column before
    const fill = (from, to, id, shade) => {
      for (let k = from; k < to; k++) {
        ids[k] = id;
        shades[k] = shade;
      }
    };
    for (let x = 0; x < width; x++) {
      const base = x * height;
      if (!s.to(c.event[x]) && x > 0) {
        ids.copyWithin(base + below, base - height + below, base);
        shades.copyWithin(base + below, base - height + below, base);
        at.low[x] = at.low[x - 1];
        at.high[x] = at.high[x - 1];
      } else {
        below = height;
        while (below > 0) {
          const middle = (height - below + 0.5) * perPixel; // of the row above
          if (middle >= s.total) break;
          const i = s.find(middle), y = Math.min(below - 1, Math.max(0, Math.round(height - (s.ground + b.bytes[i]) / perPixel)));
          const dim = only !== null && b.stack[i] !== only;
          fill(base + y, base + below, i + 1, dim ? colours.dim : colours.of(s.group[i], s.place[i] & 1));
          if (below - y >= edges) shades[base + y] = dim ? colours.dimEdge : colours.of(s.group[i], 2);
          below = y;
        }
        if (picked >= 0 && s.lives(picked)) {
          at.low[x] = s.below(picked);
          at.high[x] = at.low[x] + b.bytes[picked];
        }
      }
      fill(base + Math.max(0, Math.round(height - c.high[x] / perPixel)), base + below, -1, colours.rest);
    }
    const out = new Uint32Array(this.data.data.buffer), strip = 16; // columns at a time, for the caches
    for (let x0 = 0; x0 < width; x0 += strip) {
      const x1 = Math.min(width, x0 + strip);
      for (let y = 0; y < height; y++) for (let x = x0; x < x1; x++) out[y * width + x] = shades[x * height + y];
    }
    this.image.getContext("2d").putImageData(this.data, 0, 0);
    this.painted = true;
  }

  // blockAt is the allocation under a pixel of the painted picture, -1 where none is.
  blockAt(x, y) {
    if (!this.painted) return -1;
    const { width, height } = this.size;
    if (x < 0 || y < 0 || x >= width || y >= height) return -1;
    return Math.max(-1, this.ids[Math.floor(x) * height + Math.floor(y)] - 1);
  }
}

// envelope draws the band between the lowest and the highest value of each column, and
// the line of the highest.
function envelope(g, low, high, toY, x0, step, colour, thick) {
  g.fillStyle = g.strokeStyle = colour;
  g.lineWidth = thick;
  g.lineJoin = "bevel";
  g.beginPath();
  for (let x = 0; x < high.length; x++) {
    const y = toY(high[x]);
    g.lineTo(x0 + x * step, y);
    g.lineTo(x0 + (x + 1) * step, y);
  }
  g.stroke();
  g.globalAlpha = 0.25;
  for (let x = high.length - 1; x >= 0; x--) {
    const y = toY(low[x]);
    g.lineTo(x0 + (x + 1) * step, y);
    g.lineTo(x0 + x * step, y);
  }
  g.fill();
  g.globalAlpha = 1;
}

// ticks are round values between low and high, about n of them, in steps of 1, 2 or 5
// times a power of ten; for bytes, of the unit that high is written in.
function ticks(low, high, n, binary) {
  const unit = binary ? 1024 ** Math.floor(Math.log2(Math.max(high, 1)) / 10) : 1;
  const rough = Math.max((high - low) / unit / Math.max(n, 1), 1e-9), p = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((v) => v * p).find((v) => v >= rough * 0.999) * unit;
  const out = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step) out.push(v);
  return { step, unit, values: out };
}
