// Checks of the memory page's drawing against the simplest way to the same answer. Run by
// drive-page.py behind data.js and timeline.js; gives a list of what is wrong.
(() => {
  const wrong = [];
  const check = (ok, ...what) => { if (!ok && wrong.length < 20) wrong.push(what.map((w) => (typeof w === "string" ? w : JSON.stringify(w))).join(" ")); };
  let seed = 12345;
  const random = (n) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor(seed / 4294967296 * n);
  };

  // Varints, written here by the book.
  const encode = (values) => {
    const out = [];
    for (const v of values) {
      let z = v < 0n ? -2n * v - 1n : 2n * v;
      for (; z >= 128n; z >>= 7n) out.push(Number(z & 127n) | 128);
      out.push(Number(z));
    }
    return btoa(String.fromCharCode(...out));
  };
  const some = [0n, -1n, 1n, 63n, -64n, 64n, 8191n, 1n << 31n, -(1n << 40n), (1n << 52n) - 1n];
  check(JSON.stringify([...numbers(encode(some))]) === JSON.stringify(some.map(Number)), "numbers", [...numbers(encode(some))]);
  check(numbers("").length === 0, "numbers of nothing");

  for (let n = 1; n < 40; n++) {
    const values = Float64Array.from({ length: n }, () => random(20));
    const most = extremes(values, true), least = extremes(values, false);
    for (let i = 0; i < n; i++) for (let j = i + 1; j <= n; j++) {
      const part = [...values.slice(i, j)], h = most(i, j), l = least(i, j);
      check(h >= i && h < j && values[h] === Math.max(...part), "largest of", part, h);
      check(l >= i && l < j && values[l] === Math.min(...part), "smallest of", part, l);
    }
  }

  // A history of random buckets and allocations.
  const history = (n, blocks) => {
    const d = { from: [], time: [], peak: [], activeMin: [], activeMax: [], reservedMin: [], reservedMax: [], per: 7, order: new Map() };
    let e = 0;
    for (let i = 0; i < n; i++) {
      const size = 1 + random(7), low = random(1000), reserved = 1000 + random(500);
      d.from.push(e);
      d.time.push(e * 10);
      d.peak.push(e + random(size));
      d.activeMin.push(low);
      d.activeMax.push(low + random(400));
      d.reservedMin.push(reserved);
      d.reservedMax.push(reserved + random(100));
      e += size;
    }
    d.events = e;
    d.highest = extremes(d.activeMax, true);
    d.lowest = extremes(d.activeMin, false);
    d.reservedHighest = extremes(d.reservedMax, true);
    d.reservedLowest = extremes(d.reservedMin, false);
    const list = Array.from({ length: blocks }, () => {
      const from = random(e + 1) - 1;
      return { from, to: random(4) ? from + random(e >> 1) : Infinity, bytes: 1 + random(60), stack: random(6) - 1 };
    }).sort((a, b) => a.from - b.from);
    d.blocks = { n: blocks, from: list.map((b) => b.from), to: list.map((b) => b.to), bytes: list.map((b) => b.bytes), stack: list.map((b) => b.stack) };
    [3, -1, 0, 4, 1].forEach((s, i) => d.order.set(s, i));
    return d;
  };

  for (let round = 0; round < 60; round++) {
    const d = history(1 + random(80), random(60)), picture = new Picture(d);
    const a = random(d.events), view = { a: a + random(10) / 10, b: 0 };
    view.b = Math.min(d.events, view.a + 1 + random(d.events));
    if (view.b <= view.a) continue;
    const width = 1 + random(60), c = picture.columns(view, width);
    for (let e = 0; e < d.events; e++) check(d.from.findLastIndex((f) => f <= e) === bucketAt(d, e), "bucket of event", e);

    // No peak is hidden: each column has all that any event in it could have had.
    for (let x = 0; x < width; x++) {
      const e0 = view.a + x * c.span, e1 = e0 + c.span;
      const inside = d.from.map((f, i) => i).filter((i) => d.from[i] < e1 && (d.from[i + 1] ?? d.events) > e0);
      const most = Math.max(...inside.map((i) => d.activeMax[i])), least = Math.min(...inside.map((i) => d.activeMin[i]));
      check(Math.abs(c.high[x] - most) < 1e-9 && Math.abs(c.low[x] - least) < 1e-9, "column", x, "of", width, view, [c.low[x], c.high[x]], "not", [least, most]);
      check(c.rhigh[x] === Math.max(...inside.map((i) => d.reservedMax[i])) && c.rlow[x] === Math.min(...inside.map((i) => d.reservedMin[i])), "reserved of column", x);
      check(x === 0 || c.event[x] >= c.event[x - 1], "events go back at column", x);
    }

    // What is drawn in a column is what lived at its event, in order.
    const height = 199, top = 1601, colours = { of: () => 1, rest: 2, dim: 3, dimEdge: 4 };
    picture.paint(c, width, height, top, colours, -1, null);
    const group = (i) => d.order.get(d.blocks.stack[i]) ?? d.order.size;
    for (let x = 0; x < width; x++) {
      const e = c.event[x], live = d.blocks.from.map((_, i) => i).filter((i) => d.blocks.from[i] <= e && d.blocks.to[i] > e).sort((i, j) => group(i) - group(j) || i - j);
      const want = new Int32Array(height).fill(-1);
      let sum = 0;
      for (const i of live) {
        for (let y = 0; y < height; y++) {
          const middle = (height - y - 0.5) / height * top; // of the pixel
          if (middle >= sum && middle < sum + d.blocks.bytes[i]) want[y] = i;
        }
        sum += d.blocks.bytes[i];
      }
      for (let y = 0; y < height; y++) check(picture.blockAt(x, y) === want[y], "pixel", [x, y], "is of", picture.blockAt(x, y), "not", want[y]);
    }
  }

  for (const [low, high, n] of [[0, 21e9, 6], [0, 1, 5], [5, 1e7, 10], [0, 3 * 1024 ** 3, 6]]) for (const binary of [false, true]) {
    const t = ticks(low, high, n, binary);
    check(t.values.length >= n / 3 && t.values.length <= n + 2 && t.values.every((v) => v >= low && v <= high * 1.0001), "ticks", [low, high, n, binary], t.values);
  }
  for (const [us, unit, want] of [[0, 0, "0.000 s"], [179_960_000, 45_000_000, "3 min 0 s"], [59_999_900, 0, "1 min 0.000 s"], [1_500_000, 100_000, "1.50 s"], [-2_000_000, 1e6, "−2.0 s"], [3_723_000_000, 1e9, "1 h 2 min 3 s"]])
    check(span(us, unit) === want, "time", us, span(us, unit), "not", want);
  return wrong;
})()
