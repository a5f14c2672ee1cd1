"""The pages of a case that has ended: verdict, timeline, lines, memory, tracker."""
import json, re

from playwright.sync_api import expect

import runs
from site_driver import examples


def hand_over(site, folder):
    """Diagnoses a folder, and returns the path of its case."""
    site.visit("/")
    site.page.get_by_label("A folder").set_input_files(folder)
    site.page.get_by_role("button", name="Diagnose the files").click()
    site.page.wait_for_url(re.compile(r"/cases/[a-z0-9]+$"))
    expect(site.page.locator("#verdict")).to_be_visible(timeout=120000)
    return re.search(r"/cases/[a-z0-9]+", site.page.url).group(0)


def tab(page, name):
    return page.get_by_role("navigation", name="This case").get_by_role("link", name=name)


def marked_line(site):
    row = site.page.locator("tr.marked")
    expect(row).to_have_count(1)
    expect(row).to_be_in_viewport()
    return row.inner_text()


def two_clicks_and_the_fix(site):
    """From the folder of 64 ranks to the first fault's line, and to the fix on the clipboard."""
    folder = runs.ranks(site.work / "job-64", 64, 41)
    site.visit("/")
    site.page.get_by_label("A folder").set_input_files(folder)
    clicks = 0

    def click(locator):
        nonlocal clicks
        clicks += 1
        locator.click()

    click(site.page.get_by_role("button", name="Diagnose the files"))
    site.page.wait_for_url(re.compile(r"/cases/[a-z0-9]+$"))
    first = site.page.get_by_role("link", name="Read the first fault's line")
    expect(first).to_be_visible(timeout=120000)
    site.look("verdict-64")
    click(first)
    expect(site.page.get_by_role("heading", level=1)).to_contain_text("rank_41.log")
    expect(site.page.locator("tr.marked .tag.first")).to_be_visible()
    assert clicks == 2, clicks
    line = marked_line(site)
    site.look("lines-64", full=False)
    tab(site.page, "Verdict").click()
    quoted = site.page.locator(".ev.first mark").inner_text()
    assert quoted[:60] in line, (quoted, line)
    copy = site.page.locator("#change button.copy").first
    wanted = site.page.locator("#" + copy.get_attribute("data-copy")).text_content()
    copy.click()
    expect(site.page.locator("#said")).to_have_text("Copied.")
    # Pages may not read the clipboard; a person pastes.
    site.visit("/")
    site.page.get_by_label("Log", exact=True).focus()
    site.page.keyboard.press("Control+V")
    assert site.page.get_by_label("Log", exact=True).input_value() == wanted


def timeline_by_keyboard(site):
    case = hand_over(site, runs.ranks(site.work / "job-64", 64, 41))
    site.visit(case + "/timeline")
    live = site.page.locator("#timeline-live")
    expect(live).to_be_visible()
    site.look("timeline-64")
    window = lambda: [float(live.get_attribute("data-" + k)) for k in ("from", "to")]

    def press(key):
        before = window()
        live.focus()
        site.page.keyboard.press(key)
        site.page.wait_for_function("([a, b]) => { const d = document.getElementById('timeline-live'); return !d.classList.contains('busy') && (parseFloat(d.dataset.from) !== a || parseFloat(d.dataset.to) !== b); }", arg=before)
        return before, window()

    whole = window()
    before, after = press("+")
    assert abs((after[1] - after[0]) * 2 - (before[1] - before[0])) < 1e-3, (before, after)
    assert "from=" in site.page.url
    expect(site.page.locator("#said")).to_contain_text("events")
    before, after = press("ArrowRight")
    assert after[0] > before[0] and abs((after[1] - after[0]) - (before[1] - before[0])) < 1e-3
    before, after = press("ArrowLeft")
    before, after = press("Home")
    assert after[0] == whole[0]
    before, after = press("End")
    assert after[1] == whole[1]
    before, after = press("-")
    assert after == whole, (after, whole)
    assert site.page.evaluate("document.activeElement.id") == "timeline-live"
    # Filters work without leaving the page, and what they show can be linked to.
    site.page.locator("#f-ranks").fill("41")
    site.page.get_by_role("button", name="Show", exact=True).click()
    expect(site.page.locator(".names text")).to_have_count(1)
    site.page.reload()
    expect(site.page.locator(".names text")).to_have_count(1)
    site.page.locator("a.mark.first").focus()
    site.page.keyboard.press("Enter")
    site.page.wait_for_url(re.compile("/lines"))
    assert "first fault" in marked_line(site)


def timeline_by_mouse(site):
    case = hand_over(site, runs.ranks(site.work / "job-64", 64, 41))
    site.visit(case + "/timeline")
    live = site.page.locator("#timeline-live")
    start = live.get_attribute("data-from")
    site.page.get_by_role("link", name="Zoom in").click()
    expect(live).not_to_have_attribute("data-from", start)
    expect(site.page.get_by_role("link", name="Zoom in")).to_be_focused()
    start = live.get_attribute("data-from")
    box = site.page.locator(".marks").bounding_box()
    site.page.mouse.move(box["x"] + box["width"] * .6, box["y"] + 4)
    site.page.mouse.down()
    site.page.mouse.move(box["x"] + box["width"] * .4, box["y"] + 6, steps=4)
    site.page.mouse.up()
    expect(live).not_to_have_attribute("data-from", start)
    site.page.locator("#f-view").select_option("order")
    expect(live).to_have_attribute("data-view", "order")
    site.look("timeline-order")


def one_gpu(site):
    """A verdict with a checklist and a plot; boxes that the person ticks stay."""
    case = hand_over(site, examples() / "oom-then-nan")
    site.look("verdict-oom")
    box = site.page.locator("#checklist input[type=checkbox]").first
    box.check()
    site.page.reload()
    expect(site.page.locator("#checklist input[type=checkbox]").first).to_be_checked()
    for reader in ("On call", "Executive"):
        link = site.page.get_by_role("navigation", name="Written for").get_by_role("link", name=reader)
        link.click()
        expect(link).to_have_attribute("aria-current", "true")
        site.look("verdict-" + reader.replace(" ", "-").lower())
    with site.page.expect_download() as got:
        site.page.get_by_role("link", name="JSON", exact=True).click()
    report = json.loads(got.value.path().read_text())
    assert report["schema"] == "inquest.incident/v1"
    site.visit(case)
    site.page.get_by_role("link", name="Read the first fault's line").click()
    marked_line(site)
    site.look("lines-oom", full=False)


def plots(site):
    hand_over(site, examples() / "nan-memory-fine")
    expect(site.page.locator(".plot canvas").first).to_be_visible()
    site.look("verdict-plots")


def memory_page(site):
    case = hand_over(site, examples() / "fragmentation")
    tab(site.page, "Memory").click()
    site.page.wait_for_url(re.compile(case + "/memory"))
    expect(site.page.locator(".stage canvas").first).to_be_visible()
    site.look("memory")


def tracker_page(site):
    case = hand_over(site, examples() / "resumed-nan")
    tab(site.page, "Tracker").click()
    site.page.wait_for_url(re.compile(case + "/tracker"))
    expect(site.page.locator(".plot canvas").first).to_be_visible()
    site.look("tracker")


def case_without_scripts(site):
    case = hand_over(site, runs.ranks(site.work / "job-64", 64, 41))
    other = site.without_scripts()
    other.visit(case)
    expect(other.page.locator("#change")).to_be_visible()
    tab(other.page, "Timeline").click()
    expect(other.page.locator(".marks .first")).to_be_visible()
    other.page.locator("#f-ranks").fill("41")
    other.page.get_by_role("button", name="Show", exact=True).click()
    expect(other.page.locator(".names text")).to_have_count(1)
    other.page.get_by_role("link", name="Zoom in").click()
    expect(other.page.locator("#f-from")).not_to_have_value("")
    other.visit(case)
    other.page.get_by_role("link", name="Read the first fault's line").click()
    expect(other.page.locator("tr.marked")).to_be_in_viewport()


SCENARIOS = [two_clicks_and_the_fix, timeline_by_keyboard, timeline_by_mouse, one_gpu, plots, memory_page, tracker_page, case_without_scripts]
