"""Open memory pages in a headless Chromium, use them, and say what came of it.

    drive-page.py CHROMIUM FOLDER-OF-PAGES [FOLDER-FOR-PICTURES]

Talks to the browser through a pipe (--remote-debugging-pipe): needs nothing but
Python. For each page: no error on the console, no request but for the page itself,
and twenty wheel turns and twenty keys, each timed from the input to the frame after
the one that showed it. What the page itself works for one is its main thread's CPU time,
which other programs on the machine hardly change: that must keep to the goal. Waiting for
frames may take CEILING_MS in the median on a busy machine.
"""
import base64, json, os, pathlib, statistics, subprocess, sys, tempfile, time

GOAL_MS, CEILING_MS = 100, 1000

# Runs in the page before its own script: the time of each input, and the time at which
# the second frame after it begins. The first one draws; by the second it is painted.
WATCH = """
window.__waits = [];
for (const kind of ["wheel", "keydown"])
  addEventListener(kind, (e) => {
    const from = performance.now();
    requestAnimationFrame(() => requestAnimationFrame(() => window.__waits.push([kind, performance.now() - from])));
  }, { capture: true, passive: true });
"""


class Browser:
    def __init__(self, program, profile):
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()

        def wire():
            # 3 is where the browser reads, 4 where it writes.
            a, b = os.dup(to_read), os.dup(from_write)
            high = [os.dup(a) for _ in range(8)][-1], [os.dup(b) for _ in range(8)][-1]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
             "--host-resolver-rules=MAP * ~NOTFOUND", "--user-data-dir=" + profile, "--remote-debugging-pipe", "about:blank"],
            preexec_fn=wire, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.out, self.into = to_write, os.fdopen(from_read, "rb", buffering=0)
        self.rest, self.number, self.events, self.session = b"", 0, [], None

    def message(self):
        while b"\0" not in self.rest:
            part = self.into.read(1 << 20)
            if not part:
                raise SystemExit("the browser has gone")
            self.rest += part
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, **params):
        self.number += 1
        msg = {"id": self.number, "method": method, "params": params}
        if self.session:
            msg["sessionId"] = self.session
        data = json.dumps(msg).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        while True:
            got = self.message()
            if got.get("id") == self.number:
                if "error" in got:
                    raise SystemExit(f"{method}: {got['error']}")
                return got["result"]
            self.events.append(got)

    def wait(self, event):
        while not any(e.get("method") == event for e in self.events):
            self.events.append(self.message())

    def js(self, text):
        got = self.call("Runtime.evaluate", expression=text, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in got:
            raise SystemExit(f"{text[:80]}: {got['exceptionDetails']}")
        return got["result"].get("value")

    def busy(self):
        """CPU time of the page's main thread so far, in ms."""
        return 1000 * next(m["value"] for m in self.call("Performance.getMetrics")["metrics"] if m["name"] == "TaskDuration")

    def page(self):
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.call("Performance.enable", timeDomain="threadTicks")
        self.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        self.events.clear()

    def look(self, width, height, scheme="light", scale=1, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=mobile)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path):
        self.js("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 150))))")
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def close(self):
        self.session = None
        try:
            self.call("Browser.close")
        except (SystemExit, OSError):
            pass
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def faults(events, url):
    for e in events:
        method, params = e.get("method"), e.get("params", {})
        if method == "Runtime.exceptionThrown":
            yield "exception: " + json.dumps(params["exceptionDetails"])[:400]
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            yield params["entry"]["level"] + ": " + params["entry"]["text"]
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            yield "console: " + json.dumps(params["args"])[:400]
        elif method == "Network.requestWillBeSent" and params["request"]["url"] != url:
            yield "a request: " + params["request"]["url"][:200]


def hands(browser, box, scale):
    """A mouse that drags moves the picture, two fingers that part zoom it."""
    frame = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    press = lambda key, code: browser.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, text=key)
    browser.js("document.querySelector('.stage').focus()")
    press("0", 48), press("+", 187), press("+", 187)
    browser.js(frame)
    before = scale()
    x, y = box[0] + box[2] / 2, box[1] + box[3] / 2
    mouse = lambda kind, x: browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
    mouse("mousePressed", x)
    for i in range(6):
        mouse("mouseMoved", x + 20 * i)
    mouse("mouseReleased", x + 100)
    browser.js(frame)
    if scale() == before:
        yield "dragging does not move the picture"
    press("0", 48)
    browser.js(frame)
    whole = scale()
    touch = lambda kind, *xs: browser.call("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": p, "y": y, "id": i} for i, p in enumerate(xs)])
    touch("touchStart", x - 20, x + 20)
    for i in range(1, 6):
        touch("touchMove", x - 20 - 20 * i, x + 20 + 20 * i)
    touch("touchEnd")
    browser.js(frame)
    if scale() == whole:
        yield "a pinch does not zoom"


READY = """new Promise((done) => {
  const all = () => [...document.querySelectorAll("figure.chart")].slice(0, 1).every((f) => f.classList.contains("live") && f.querySelector("canvas").width > 300);
  const look = () => (all() ? requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))) : requestAnimationFrame(look));
  look();
})"""


def use(browser, path, pictures):
    url = path.resolve().as_uri()
    bad = []
    browser.page()
    browser.look(1280, 900)
    started = time.monotonic()
    browser.call("Page.navigate", url=url)
    browser.wait("Page.loadEventFired")
    if not browser.js("document.querySelector('figure.chart') !== null"):
        bad += faults(browser.events, url)
        for b in bad:
            print(f"{path.name}: {b}", file=sys.stderr)
        print(f"{path.name}: no timeline in it")
        return not bad
    browser.js("document.querySelector('figure.chart').scrollIntoView({block: 'start', behavior: 'instant'})")
    drawn = browser.js(READY)
    opened = (time.monotonic() - started) * 1000
    box = browser.js("(() => { const r = document.querySelector('.stage').getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; })()")
    x, y = box[0] + box[2] * 0.55, box[1] + box[3] * 0.5
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def settled(n):
        browser.js(f"new Promise((done) => {{ const look = () => (window.__waits.length >= {n} ? done(1) : requestAnimationFrame(look)); look(); }})")

    def scale_words():
        return browser.js("document.querySelector('.chart .scale').textContent")

    n, worked = 0, browser.busy()
    before = scale_words()
    for i in range(20):
        browser.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-240 if i < 12 else 120)
        settled(n := n + 1)
    if scale_words() == before:
        bad.append("the wheel does not zoom")
    browser.js("document.querySelector('.stage').focus()")
    for i in range(20):
        key, code = [("0", 48), ("p", 80), ("+", 187), ("-", 189), ("ArrowRight", 39)][i % 5]
        browser.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, text=key if len(key) == 1 else "")
        browser.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)
        settled(n := n + 1)
    waits = browser.js("window.__waits")
    worked = (browser.busy() - worked) / n
    # An allocation under the pointer is picked by a click.
    browser.js("document.querySelector('.stage').focus()")
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="0", windowsVirtualKeyCode=48, text="0")
    settled(n + 1)
    for kind in ("mousePressed", "mouseReleased"):
        browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=box[1] + box[3] - 46, button="left", clickCount=1)
    browser.js("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    picked = browser.js("(() => { const p = document.querySelector('.picked'); return p.hidden ? '' : p.querySelector('h4').textContent; })()")
    if not picked:
        bad.append("a click picks no allocation")
    bad += hands(browser, box, scale_words)
    figures = {}
    for kind in ("wheel", "keydown"):
        ms = [w for k, w in waits if k == kind]
        figures[kind] = (statistics.median(ms), max(ms))
        if figures[kind][0] > CEILING_MS:
            bad.append(f"{kind}: median {figures[kind][0]:.0f} ms is above the ceiling of {CEILING_MS} ms")
    if worked > GOAL_MS:
        bad.append(f"{worked:.0f} ms of work for an input are above the goal of {GOAL_MS} ms")
    if pictures:
        for name, look in {"wide": (1600, 900, "light"), "dark": (1280, 900, "dark"), "phone": (390, 844, "light", 2, True), "light": (1280, 900, "light")}.items():
            browser.look(*look)
            browser.js("new Promise(async (done) => { for (let y = 0; y < document.body.scrollHeight; y += 600) { scrollTo({top: y, behavior: 'instant'}); await new Promise((r) => requestAnimationFrame(r)); } scrollTo({top: 0, behavior: 'instant'}); setTimeout(done, 300); })")
            browser.picture(pictures / f"{path.stem}-{name}.png")
            over = browser.js("document.documentElement.scrollWidth - innerWidth")
            if over > 0:
                bad.append(f"{name}: the page is {over} pixels wider than the window")
    bad += list(faults(browser.events, url))
    words = ", ".join(f"{kind} median {m:.0f} ms, worst {w:.0f} ms" for kind, (m, w) in figures.items())
    print(f"{path.name}: {path.stat().st_size} bytes, drawn {drawn:.0f} ms after its start ({opened:.0f} ms with the browser's own time); {words}; {worked:.0f} ms of work for each (goal {GOAL_MS} ms)")
    for b in bad:
        print(f"{path.name}: {b}", file=sys.stderr)
    return not bad


def unit(browser):
    """The drawing's parts against the simplest way to the same answer."""
    here = pathlib.Path(__file__).parent
    parts = [here.parent / "internal/report/assets/memory" / name for name in ("data.js", "timeline.js")]
    browser.page()
    text = "".join(p.read_text() for p in parts) + (here / "page-test.js").read_text()
    wrong = browser.js(text)
    for w in wrong:
        print("page-test.js: " + w, file=sys.stderr)
    print("page-test.js: " + (f"{len(wrong)} wrong" if wrong else "all as the simple way has it"))
    return not wrong


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    pictures = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(program, profile)
        try:
            good = [unit(browser)] + [use(browser, p, pictures) for p in sorted(folder.glob("*.html"))]
        finally:
            browser.close()
    if len(good) < 2:
        sys.exit("no page to open in " + str(folder))
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
