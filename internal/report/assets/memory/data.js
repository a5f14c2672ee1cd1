// Unpacking what the page carries, and words for figures.

// numbers decodes base64 of zigzag varints.
function numbers(text) {
  const raw = atob(text);
  let n = 0;
  for (let i = 0; i < raw.length; i++) if (raw.charCodeAt(i) < 128) n++;
  const out = new Float64Array(n);
  let v = 0, scale = 1, k = 0;
  for (let i = 0; i < raw.length; i++) {
    const b = raw.charCodeAt(i);
    v += (b & 127) * scale;
    scale *= 128;
    if (b < 128) {
      out[k++] = v % 2 ? -(v + 1) / 2 : v / 2;
      v = 0;
      scale = 1;
    }
  }
  return out;
}

// sums undoes differences.
function sums(column) {
  for (let i = 1; i < column.length; i++) column[i] += column[i - 1];
  return column;
}

// extremes answers, for any range of a column, where its largest (or smallest) value
// is: a tree of places, in which each node holds the better one of its two children.
// So a picture of any width costs the same, and no peak can fall between two columns.
function extremes(values, largest) {
  const n = values.length, tree = new Uint32Array(2 * n);
  const better = largest ? (a, b) => (values[b] > values[a] ? b : a) : (a, b) => (values[b] < values[a] ? b : a);
  for (let i = 0; i < n; i++) tree[n + i] = i;
  for (let i = n - 1; i > 0; i--) tree[i] = better(tree[2 * i], tree[2 * i + 1]);
  return (from, to) => { // to is exclusive, and larger than from
    let best = from;
    for (let l = from + n, r = to + n; l < r; l >>= 1, r >>= 1) {
      if (l & 1) best = better(best, tree[l++]);
      if (r & 1) best = better(best, tree[--r]);
    }
    return best;
  };
}

// unpack makes the history of one device from its packed form.
function unpack(packed) {
  const c = packed.curve;
  const from = sums(numbers(c.from)), time = sums(numbers(c.time)), peak = numbers(c.peak);
  const activeMin = sums(numbers(c.active_min)), activeMax = numbers(c.active);
  const reservedMin = sums(numbers(c.reserved_min)), reservedMax = numbers(c.reserved);
  for (let i = 0; i < from.length; i++) {
    activeMax[i] += activeMin[i];
    reservedMax[i] += reservedMin[i];
    peak[i] = peak[i] < 0 ? -1 : from[i] + peak[i];
  }
  const d = {
    events: packed.events, per: packed.per, rest: packed.rest, marks: packed.marks, marksMore: packed.marks_more,
    from, time, peak, activeMin, activeMax, reservedMin, reservedMax,
    highest: extremes(activeMax, true), lowest: extremes(activeMin, false),
    reservedHighest: extremes(reservedMax, true), reservedLowest: extremes(reservedMin, false),
    blocks: unpackBlocks(packed.blocks, packed.events),
    order: new Map(packed.order.map((s, i) => [s, i])),
    stacks: new Map(packed.stacks.map((s) => [s.i, { name: s.name, frames: s.f.map((i) => packed.frames[i]) }])),
  };
  d.started = 0;
  for (const t of time) if (t > 0) { d.started = t; break; }
  return d;
}

function unpackBlocks(b, events) {
  const from = sums(numbers(b.from)), to = numbers(b.life), high = sums(numbers(b.high)), low = numbers(b.low);
  for (let i = 0; i < from.length; i++) to[i] = to[i] < 0 ? Infinity : from[i] + to[i];
  return { n: from.length, from, to, high, low, bytes: numbers(b.bytes), stack: numbers(b.stack) };
}

const address = (b, i) => "0x" + ((BigInt(b.high[i]) << 32n) | BigInt(b.low[i])).toString(16);

// bucketAt is the bucket that holds event e: the last that begins at or before it.
function bucketAt(d, e) {
  let low = 0, high = d.from.length - 1;
  while (low < high) {
    const mid = (low + high + 1) >> 1;
    if (d.from[mid] <= e) low = mid; else high = mid - 1;
  }
  return low;
}

function nameOf(d, stack) {
  if (stack < 0) return "no stack recorded";
  const s = d.stacks.get(stack);
  return s ? s.name || "an empty stack" : "stack " + stack;
}

const units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];

function bytes(v, digits = 2) {
  let i = 0;
  while (Math.abs(v) >= 1024 && i < units.length - 1) { v /= 1024; i++; }
  return (i ? v.toFixed(digits) : String(Math.round(v))) + " " + units[i];
}

const count = (v) => Math.round(v).toLocaleString("en-US");

// span is a time in microseconds as people read it, with as many digits as a step of
// unit microseconds needs.
function span(us, unit) {
  const digits = unit ? Math.min(6, Math.max(0, 1 + Math.ceil(-Math.log10(unit / 1e6)))) : 3;
  const sign = us < 0 ? "−" : "", all = +Math.abs(us / 1e6).toFixed(digits), minutes = Math.floor(all / 60);
  if (!minutes) return sign + all.toFixed(digits) + " s";
  const rest = (all - 60 * minutes).toFixed(digits) + " s";
  if (minutes < 60) return sign + minutes + " min " + rest;
  return sign + Math.floor(minutes / 60) + " h " + (minutes % 60) + " min " + rest;
}

// spoken is what an element shows, for a screen reader.
const spoken = (e) => [...e.childNodes].map((n) => n.textContent).join("; ");

// element makes a piece of the page. Texts become text, never markup.
function element(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes)) {
    if (k === "class") e.className = v;
    else if (v !== null && v !== false) e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...children.filter((c) => c !== null));
  return e;
}
