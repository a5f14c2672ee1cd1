"""Open pages of inquest tracker in a headless Chromium, use them, and say what came of it.

    drive-curves.py CHROMIUM FOLDER-OF-PAGES [FOLDER-FOR-PICTURES]

For each page: no error on the console, no request but for the page itself, no width that
makes it scroll sideways, every figure drawn, zoomed by its buttons and by a drag, switched to
a logarithmic scale and to times. What a figure draws and marks is compared with the points in the page.
"""
import importlib.util, pathlib, sys, tempfile

here = pathlib.Path(__file__).parent
spec = importlib.util.spec_from_file_location("drive_page", here / "drive-page.py")
drive = importlib.util.module_from_spec(spec)
spec.loader.exec_module(drive)

LOOKS = {"wide": (1600, 3000, "light"), "dark": (1280, 3000, "dark"), "phone": (390, 3000, "light", 2, True), "narrow": (320, 3000, "dark", 1, True)}

# The charts are the page's own; a hook in front of its script keeps them.
WATCH = """
window.__charts = [];
Object.defineProperty(window, "uPlot", { configurable: true, get() { return this.__uPlot; }, set(v) {
  const kept = function (o, d, t) { const u = new v(o, d, t); window.__charts.push(u); return u; };
  Object.assign(kept, v);
  for (const k of Object.getOwnPropertyNames(v)) if (!(k in kept)) kept[k] = v[k];
  this.__uPlot = kept;
} });
"""

# Windows are so high that every figure is near, and drawn.
SETTLED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))"

# What is not finite in the page's data, counted the simplest way, against what the figures
# have as gaps.
COUNT = """(() => {
  const el = document.getElementById("data");
  if (!el) return [];
  const data = JSON.parse(el.textContent), wrong = [];
  const bytes = (t) => Uint8Array.from(atob(t), (c) => c.charCodeAt(0));
  const ys = (t) => [...new Float64Array(bytes(t).buffer)];
  for (const f of document.querySelectorAll("figure.plot:not(.chooser)")) {
    const lines = f.dataset.lines.split(" ").map((i) => data.lines[+i]);
    const finite = lines.some((l) => l.parts.some((p) => ys(p.y).some(Number.isFinite)));
    const places = new Set(lines.flatMap((l) => l.parts.flatMap((p) => ys(p.y).map((v, i) => p.x.length + ":" + i)))).size;
    const bad = places > 1 && lines.some((l) => l.parts.some((p) => !p.past && ys(p.y).some((v) => !Number.isFinite(v))));
    if (!f.classList.contains("live")) wrong.push(f.id + " is not drawn");
    if (bad && !f.querySelector(".badtick")) wrong.push(f.id + " has no mark without script");
    if (bad !== !![...f.querySelectorAll("button")].some((b) => b.textContent === "Failed part" && !b.hidden) && !lines.some((l) => l.doubts.length)) wrong.push(f.id + ": the button for the failed part is " + (bad ? "missing" : "there"));
    if (finite && !f.querySelector("canvas")) wrong.push(f.id + " has no canvas");
  }
  return wrong;
})()"""

PRESS = """(() => { const wrong = [];
  const charts = () => window.__charts.filter((u) => u.root.isConnected);
  for (const f of document.querySelectorAll("figure.plot.live")) {
    const press = (text) => { const b = [...f.querySelectorAll("button")].find((b) => b.textContent === text); if (b && !b.hidden) { b.click(); return true; } return false; };
    const chart = () => charts().find((u) => f.contains(u.root));
    const width = () => chart().scales.x.max - chart().scales.x.min;
    const whole = width();
    if (!press("Closer")) continue; // of one place only
    if (!(width() < whole)) wrong.push(f.id + ": closer does not zoom in");
    press("Wider"); press("Wider");
    if (width() > whole * 1.001) wrong.push(f.id + ": wider than the whole");
    press("Whole");
    if (Math.abs(width() - whole) > whole / 1000) wrong.push(f.id + ": not the whole again");
    if (press("Failed part") && !(width() > 0 && width() <= whole * 1.001)) wrong.push(f.id + ": no failed part");
    press("Whole");
    if (press("Logarithmic") && !chart()) wrong.push(f.id + ": nothing after the switch of scales");
    press("Logarithmic");
  }
  return wrong; })()"""

TIMES = """(() => { const b = [...document.querySelectorAll(".page-tools button")]; if (!b.length) return ""; b[1].click(); return b[1].getAttribute("aria-pressed"); })()"""
STEPS = """(() => { const b = [...document.querySelectorAll(".page-tools button")]; if (b.length) b[0].click(); return [...document.querySelectorAll("figure.plot:not(.chooser)")].every((f) => f.classList.contains("live")); })()"""
CHOOSE = """(() => { const s = document.querySelector(".chooser select"); if (!s) return true; s.options[s.options.length - 1].selected = true; s.dispatchEvent(new Event("change")); return document.querySelector(".chooser").classList.contains("live"); })()"""


def use(browser, path, pictures):
    url = path.resolve().as_uri()
    bad = []
    browser.page()
    browser.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
    browser.look(1280, 5000)
    browser.call("Page.navigate", url=url)
    browser.wait("Page.loadEventFired")
    browser.js(SETTLED)
    bad += browser.js(COUNT)
    figures = browser.js("document.querySelectorAll('figure.plot.live').length")
    if figures:
        bad += browser.js(PRESS)
        if browser.js(TIMES) not in ("", "true"):
            bad.append("the page does not turn to times")
        if not browser.js(STEPS):
            bad.append("a figure is lost after turning to times and back")
        if not browser.js(CHOOSE):
            bad.append("a chosen series is not drawn")
        box = browser.js("(() => { const f = document.querySelector('figure.plot.live'); f.scrollIntoView({block: 'center', behavior: 'instant'}); const r = f.querySelector('.u-over').getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; })()")
        y = box[1] + box[3] / 2
        scale = "(() => { const u = window.__charts.filter((u) => u.root.isConnected).find((u) => document.querySelector('figure.plot.live').contains(u.root)); return u.scales.x.max - u.scales.x.min; })()"
        whole = browser.js(scale)
        mouse = lambda kind, x: browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
        mouse("mousePressed", box[0] + box[2] * 0.3)
        for i in range(5):
            mouse("mouseMoved", box[0] + box[2] * (0.35 + 0.05 * i))
        mouse("mouseReleased", box[0] + box[2] * 0.6)
        browser.js("new Promise((done) => setTimeout(done, 100))")
        if not browser.js(scale) < whole:
            bad.append("a drag does not zoom")
        browser.js("[...document.querySelectorAll('figure.plot.live button')].filter((b) => b.textContent === 'Whole').forEach((b) => b.click())")
    for name, look in LOOKS.items():
        browser.look(*look)
        browser.js(SETTLED)
        if pictures:
            browser.picture(pictures / f"{path.stem}-{name}.png")
        over = browser.js("document.documentElement.scrollWidth - innerWidth")
        if over > 0:
            bad.append(f"{name}: the page is {over} pixels wider than the window")
    bad += list(drive.faults(browser.events, url))
    print(f"{path.name}: {path.stat().st_size} bytes, {figures} figures drawn")
    for b in bad:
        print(f"{path.name}: {b}", file=sys.stderr)
    browser.call("Page.close")
    return not bad


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    pictures = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile:
        browser = drive.Browser(program, profile)
        try:
            good = [use(browser, p, pictures) for p in sorted(folder.glob("*.html"))]
        finally:
            browser.close()
    if not good:
        sys.exit("no page to open in " + str(folder))
    sys.exit(0 if all(good) else 1)


main()
