"""What scenarios use: a browser context that watches what its pages do."""
import pathlib

from axe_playwright_python.sync_playwright import Axe

# Rules of axe-core count from this impact on.
BAD = ("serious", "critical")

SIZES = {"wide": (1440, 900), "phone": (390, 844), "narrow": (320, 640)}


class Site:
    """A visitor. page is where it is; scripts=False visits without JavaScript."""

    def __init__(self, browser, served, work, scripts=True):
        self.browser, self.served, self.work = browser, served, work
        self.url = served.url
        self.origin = served.url.rstrip("/")
        self.pictures = work / "pictures"
        self.pictures.mkdir(parents=True, exist_ok=True)
        self.checked = self.requests = 0
        self.wrong, self.others = [], []
        self.context = browser.new_context(viewport={"width": 1440, "height": 900}, java_script_enabled=scripts, accept_downloads=True,
                                           permissions=["clipboard-read", "clipboard-write"])
        self.context.set_default_timeout(60000)
        self.context.on("request", self._request)
        self.context.on("page", self._watch)
        self.page = self.context.new_page()

    def _request(self, request):
        self.requests += 1
        if not request.url.startswith((self.origin + "/", "data:", "blob:" + self.origin)):
            self.wrong.append("a request left the origin: " + request.url)

    def _watch(self, page):
        page.on("pageerror", lambda e: self.wrong.append(f"{page.url}: {e}"))
        page.on("console", lambda m: m.type in ("error", "warning") and self.wrong.append(f"{page.url}: console: {m.text}"))

    def without_scripts(self):
        """Another visitor, without JavaScript; it is closed with this one."""
        other = Site(self.browser, self.served, self.work, scripts=False)
        self.others.append(other)
        return other

    def expected(self, text):
        """Takes back a complaint that contains text: what a scenario provoked, as the console's
        line about an answer with status 404."""
        before = len(self.wrong)
        self.wrong = [w for w in self.wrong if text not in w]
        assert len(self.wrong) < before, f"nothing complained of {text!r}"

    def visit(self, path):
        """Opens a path of the site."""
        return self.page.goto(self.url + path.lstrip("/"))

    def look(self, name, full=True):
        """Looks at the page as it is: it must not be wider than the window, axe must find nothing
        bad, and pictures are taken: light and dark, wide and on phones."""
        page, before = self.page, self.page.viewport_size
        for size, (width, height) in SIZES.items():
            page.set_viewport_size({"width": width, "height": height})
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                page.evaluate("() => new Promise((ok) => requestAnimationFrame(() => requestAnimationFrame(ok)))")
                if size != "narrow":
                    self.axe(f"{name}, {size}, {scheme}")
                page.screenshot(path=self.pictures / f"{name}-{size}-{scheme}.png", full_page=full)
            wider = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
            if wider > 0:
                self.wrong.append(f"{name}: {wider} pixels wider than a window of {width}")
        page.emulate_media(color_scheme="light")
        page.set_viewport_size(before)

    def axe(self, name):
        self.checked += 1
        for v in Axe().run(self.page).response["violations"]:
            if v["impact"] in BAD:
                places = "; ".join(f"{' '.join(map(str, n['target']))}: {n.get('failureSummary', '')}" for n in v["nodes"][:4])
                self.wrong.append(f"{name}: axe: {v['id']} ({v['impact']}, {len(v['nodes'])} places): {v['help']}: {places}")

    def close(self):
        """Ends the visit; what was wrong is a failure."""
        wrong = list(self.wrong)
        for other in self.others:
            wrong += other.wrong
            self.checked, self.requests = self.checked + other.checked, self.requests + other.requests
            other.context.close()
        self.context.close()
        assert not wrong, "\n".join(wrong)

    def abandon(self, name):
        """Ends a visit that failed, with a picture of where it stood."""
        for w in self.wrong:
            print("also:", w)
        try:
            self.page.screenshot(path=self.pictures / f"failed-{name}.png")
            self.context.close()
        except Exception as e:
            print("no picture of the failure:", e)


def examples():
    """The folder with the examples of the repository."""
    return pathlib.Path(__file__).resolve().parents[2] / "examples"
