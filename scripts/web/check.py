"""Runs the scenarios against inquest serve in Chromium.

    check.py CHROMIUM INQUEST WORK [SCENARIO...]

A scenario is a function that the list SCENARIOS of a file in scenarios/ names; it takes a Site
(site.py) and fails by an exception. Each has a browser context of its own; all share one inquest
serve, whose store is WORK/state.
"""
import importlib.util, pathlib, sys, time, traceback

from playwright.sync_api import sync_playwright

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here))
from served import Served  # noqa: E402
from site_driver import Site  # noqa: E402


def scenarios(wanted):
    for path in sorted((here / "scenarios").glob("*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for run in module.SCENARIOS:
            if not wanted or run.__name__ in wanted or path.stem in wanted:
                yield run


def main():
    chromium, inquest, work, wanted = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4:]
    failed, ran, pages, requests = [], 0, 0, 0
    with Served(inquest, work) as served, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"])
        for run in scenarios(wanted):
            site, began = Site(browser, served, work), time.monotonic()
            try:
                run(site)
                site.close()
                said = "ok"
            except Exception:
                traceback.print_exc()
                failed.append(run.__name__)
                site.abandon(run.__name__)
                said = "FAILED"
            ran, pages, requests = ran + 1, pages + site.checked, requests + site.requests
            print(f"{said:6} {run.__name__} ({time.monotonic() - began:.1f} s, {site.checked} looks with axe)", flush=True)
        browser.close()
    if not ran:
        sys.exit("no scenario of that name")
    print(f"{ran} scenarios, {len(failed)} failed; {requests} requests, none to another origin; {pages} looks with axe; pictures in {work / 'pictures'}")
    sys.exit(1 if failed else 0)


main()
