// Wheel, pointers and keys of the timeline.

function listen(chart) {
  const { stage } = chart;
  const place = (e) => {
    const r = stage.getBoundingClientRect();
    return { x: e.clientX - r.left, y: e.clientY - r.top };
  };
  const move = (cursor) => {
    chart.cursor = cursor;
    chart.redrawOver();
  };

  // Zooming out further than everything is left to the page, which scrolls.
  stage.addEventListener("wheel", (e) => {
    const unit = e.deltaMode === 1 ? 16 : 1, all = chart.view.b - chart.view.a >= chart.d.events;
    if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
      if (all) return;
      chart.pan((e.deltaX || e.deltaY) * unit / chart.w);
    } else {
      if (all && e.deltaY > 0 && !e.ctrlKey) return;
      chart.zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY * unit * (e.ctrlKey ? 0.01 : 0.002)))), chart.eventAt(place(e).x));
    }
    e.preventDefault();
  }, { passive: false });

  const down = new Map(); // pointers that are down
  let moved = false, start = null;
  stage.addEventListener("pointerdown", (e) => {
    if (e.button) return;
    down.set(e.pointerId, place(e));
    start = place(e);
    moved = down.size > 1;
  });
  stage.addEventListener("pointermove", (e) => {
    const now = place(e), before = down.get(e.pointerId);
    if (before && down.size === 1) {
      if (!moved && Math.abs(now.x - start.x) < 4) return;
      if (!moved) stage.setPointerCapture(e.pointerId);
      moved = true;
      stage.classList.add("drag");
      chart.pan((before.x - now.x) / chart.w);
    } else if (before) { // a pinch: what was between the fingers stays between them
      const other = [...down].find(([id]) => id !== e.pointerId)[1];
      const ratio = Math.abs(before.x - other.x) / Math.max(8, Math.abs(now.x - other.x));
      chart.zoom(Math.min(4, Math.max(0.25, ratio)), chart.eventAt((now.x + other.x) / 2));
    }
    if (before) down.set(e.pointerId, now);
    move(now);
  });
  const up = (e) => {
    if (!down.delete(e.pointerId)) return;
    stage.classList.remove("drag");
    if (e.type === "pointerup" && !moved) {
      move(place(e));
      const u = chart.under();
      chart.pick(u ? u.block : -1);
    }
  };
  stage.addEventListener("pointerup", up);
  stage.addEventListener("pointercancel", up);
  stage.addEventListener("pointerleave", (e) => { if (e.pointerType === "mouse") move(null); });
  stage.addEventListener("dblclick", (e) => chart.zoom(0.25, chart.eventAt(place(e).x)));

  const middle = () => (chart.cursor ? chart.eventAt(chart.cursor.x) : (chart.view.a + chart.view.b) / 2);
  const step = (sign) => {
    const wide = chart.w / (chart.view.b - chart.view.a); // of one event
    const from = chart.cursor || { x: margin.left + chart.w / 2, y: margin.top + chart.h / 2 };
    const x = from.x + sign * Math.max(6, wide);
    if (x < margin.left || x >= margin.left + chart.w) chart.pan(sign * 0.25);
    move({ x: Math.min(margin.left + chart.w - 1, Math.max(margin.left, x)), y: from.y });
    chart.say(spoken(chart.readout));
  };
  const keys = {
    "+": () => chart.zoom(0.5, middle()), "=": () => chart.zoom(0.5, middle()), "-": () => chart.zoom(2, middle()), _: () => chart.zoom(2, middle()),
    0: () => chart.reset(), p: () => chart.toPeak(), P: () => chart.toPeak(),
    Home: () => chart.show(0, chart.view.b - chart.view.a), End: () => chart.show(chart.d.events - (chart.view.b - chart.view.a), chart.d.events),
    PageUp: () => chart.pan(-0.9), PageDown: () => chart.pan(0.9),
    ArrowLeft: (e) => (e.shiftKey ? chart.pan(-0.2) : step(-1)), ArrowRight: (e) => (e.shiftKey ? chart.pan(0.2) : step(1)),
    ArrowUp: () => climb(chart, -1, move), ArrowDown: () => climb(chart, 1, move),
    Enter: () => {
      const u = chart.under();
      if (!u || u.block < 0) return;
      chart.pick(u.block);
      chart.detail.focus();
    },
    Escape: () => { chart.pick(-1); move(null); },
  };
  stage.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.altKey || e.metaKey || !Object.hasOwn(keys, e.key)) return;
    keys[e.key](e);
    e.preventDefault();
  });

  const strip = chart.strip;
  const centre = (e) => {
    const at = (e.clientX - strip.getBoundingClientRect().left - margin.left) / chart.w * chart.d.events, half = (chart.view.b - chart.view.a) / 2;
    chart.show(at - half, at + half);
  };
  strip.addEventListener("pointerdown", (e) => { strip.setPointerCapture(e.pointerId); centre(e); });
  strip.addEventListener("pointermove", (e) => { if (e.buttons) centre(e); });
}

// climb moves the cross hair to the next allocation above or below in its column.
function climb(chart, sign, move) {
  const { picture } = chart;
  if (!chart.cursor) chart.cursor = { x: margin.left + chart.w / 2, y: margin.top + chart.h };
  const u = chart.under();
  if (!u || !picture.painted) return;
  const height = chart.rows, pixels = (y) => (y - margin.top) / chart.h * height;
  let y = Math.min(height - 1, Math.max(0, Math.floor(pixels(chart.cursor.y))));
  const was = picture.blockAt(u.column, y);
  while (y >= 0 && y < height && (picture.blockAt(u.column, y) === was || picture.blockAt(u.column, y) < 0)) y += sign;
  if (y < 0 || y >= height) return;
  const now = picture.blockAt(u.column, y);
  let end = y;
  while (end + sign >= 0 && end + sign < height && picture.blockAt(u.column, end + sign) === now) end += sign;
  move({ x: chart.cursor.x, y: margin.top + ((y + end) / 2 + 0.5) / height * chart.h });
  chart.say(spoken(chart.readout));
}
