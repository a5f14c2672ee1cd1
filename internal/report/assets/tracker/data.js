// Unpacking what the page carries, and words for figures.

// numbers decodes base64 of zigzag varints, each the difference to the one before.
function numbers(text) {
  const raw = atob(text), out = [];
  let v = 0, scale = 1, sum = 0;
  for (let i = 0; i < raw.length; i++) {
    const b = raw.charCodeAt(i);
    v += (b & 127) * scale;
    scale *= 128;
    if (b < 128) {
      sum += v % 2 ? -(v + 1) / 2 : v / 2;
      out.push(sum);
      v = 0;
      scale = 1;
    }
  }
  return out;
}

// floats decodes base64 of doubles, NaN and infinities among them.
function floats(text) {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  const view = new DataView(bytes.buffer), out = new Float64Array(raw.length / 8);
  for (let i = 0; i < out.length; i++) out[i] = view.getFloat64(8 * i, true);
  return out;
}

// unpackLine makes the parts of a line from their packed form, once.
function unpackLine(line) {
  if (!line.unpacked) {
    line.unpacked = line.parts.map((p) => ({ past: p.past, again: p.again, x: numbers(p.x), t: numbers(p.t), y: floats(p.y) }));
    line.timed = line.unpacked.every((p) => p.t.length === p.y.length);
  }
  return line.unpacked;
}

const units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
function bytesWords(v) {
  let i = 0;
  while (Math.abs(v) >= 1024 && i < units.length - 1) { v /= 1024; i++; }
  return (i ? v.toFixed(2) : v) + " " + units[i];
}

const kindOf = (v) => (Number.isNaN(v) ? "NaN" : v > 0 ? "+Inf" : "-Inf");
const stepWords = (v) => String(Math.round(v)).replace(/\B(?=(\d{3})+$)/g, ",");
const timeWords = (ms) => { const d = new Date(ms); return isNaN(d) ? "–" : d.toISOString().replace(/\.\d+Z$/, "Z"); };
