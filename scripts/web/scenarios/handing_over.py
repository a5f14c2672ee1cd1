"""The first page: handing things over, with and without scripts."""
import base64, io, os, re, zipfile

from playwright.sync_api import expect

import runs
from served import Served
from site_driver import Site


def at_verdict(site):
    """Waits until the case has ended, and its verdict is shown."""
    site.page.wait_for_url(re.compile(r"/cases/[a-z0-9]+$"))
    expect(site.page.locator("#verdict")).to_be_visible(timeout=120000)


def first_page(site):
    site.visit("/")
    expect(site.page.get_by_role("heading", level=1)).to_be_visible()
    site.look("home")
    # The keyboard reaches the content first, then everything else.
    site.page.keyboard.press("Tab")
    assert site.page.evaluate("document.activeElement.className") == "skip"
    site.page.keyboard.press("Enter")
    assert site.page.evaluate("document.activeElement.id") == "main"
    site.page.keyboard.press("Tab")
    assert site.page.evaluate("document.activeElement.id") == "text"


def paste_an_oom(site):
    site.visit("/")
    site.page.get_by_label("Log", exact=True).fill(runs.oom())
    site.page.get_by_role("button", name="Diagnose the text").click()
    at_verdict(site)
    expect(site.page.locator("main")).to_contain_text("out of memory")


def choose_a_folder_of_ranks(site):
    folder = runs.ranks(site.work / "job-64", 64, 41)
    written = 1767225600  # 2026-01-01T00:00:00Z
    for log in folder.iterdir():
        os.utime(log, (written, written))
    sent = []
    site.page.on("request", lambda r: r.method == "PUT" and sent.append(r.url))
    site.visit("/")
    site.page.get_by_label("A folder").set_input_files(folder)
    expect(site.page.locator("#picked-sum")).to_contain_text("64 files")
    site.look("chosen")
    site.page.get_by_role("button", name="Diagnose the files").click()
    at_verdict(site)
    expect(site.page.locator("#verdict")).to_contain_text("rank 41")
    assert len(sent) == 64 and all("?modified=2026-01-01T00%3A00%3A00.000Z" in url for url in sent), sent


DROP = """([name, files]) => {
  const entry = (path, data) => ({ isFile: true, isDirectory: false, name: path.split("/").pop(),
    file: (ok) => ok(new File([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], path.split("/").pop())) });
  const folder = { isFile: false, isDirectory: true, name, createReader: () => {
    const all = files.map(([n, d]) => entry(n, d));
    return { readEntries: (ok) => ok(all.splice(0, 100)) };
  } };
  const data = new DataTransfer();
  data.items.add(new File(["x"], "x"));
  const e = new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: data });
  Object.defineProperty(e, "dataTransfer", { value: { types: ["Files"], files: [], items: [{ webkitGetAsEntry: () => folder }] } });
  document.body.dispatchEvent(e);
}"""


def drop_a_folder_of_ranks(site):
    folder = runs.ranks(site.work / "job-64", 64, 41)
    written = 1767225600  # 2026-01-01T00:00:00Z
    for log in folder.iterdir():
        os.utime(log, (written, written))
    sent = []
    site.page.on("request", lambda r: r.method == "PUT" and sent.append(r.url))
    site.visit("/")
    files = [[p.name, base64.b64encode(p.read_bytes()).decode()] for p in sorted(folder.iterdir())]
    site.page.evaluate(DROP, ["job-64", files])
    expect(site.page.locator("#picked-sum")).to_contain_text("64 files")
    site.page.keyboard.press("Enter")  # the button has the focus
    at_verdict(site)
    expect(site.page.locator("#verdict")).to_contain_text("rank 41")
    site.page.reload()
    at_verdict(site)


def hand_over_an_archive(site):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("job/train.log", runs.oom())
        z.writestr("../../outside.log", runs.oom())
    site.visit("/")
    site.page.get_by_label("Files", exact=True).set_input_files({"name": "job.zip", "mimeType": "application/zip", "buffer": packed.getvalue()})
    site.page.get_by_role("button", name="Diagnose the files").click()
    at_verdict(site)


def try_a_sample(site):
    site.visit("/")
    site.page.get_by_role("button", name="Diagnose Eight ranks").click()
    at_verdict(site)
    expect(site.page.locator("#verdict")).to_contain_text("rank 5")


def cancel_while_sending(site):
    site.visit("/")
    # The second file never comes whole: the browser's own line is held until it is cancelled.
    site.page.route("**/files/**", lambda route: None)
    site.page.get_by_label("Files", exact=True).set_input_files([{"name": f"rank_{i}.log", "mimeType": "text/plain", "buffer": b"step 1 loss 2.0\n" * 1000} for i in range(8)])
    site.page.get_by_role("button", name="Diagnose the files").click()
    expect(site.page.locator("#sent")).to_contain_text("of 8 files")
    site.look("sending")
    site.page.get_by_role("button", name="Cancel").click()
    expect(site.page.locator("#problem")).to_contain_text("Cancelled")
    site.page.unroute("**/files/**")
    # It can be sent again at once.
    site.page.get_by_role("button", name="Diagnose the files").click()
    site.page.wait_for_url("**/cases/*")


def refused_files_are_named(site):
    site.visit("/")
    site.page.get_by_label("Files", exact=True).set_input_files([{"name": "con.log", "mimeType": "text/plain", "buffer": b"x"}])
    site.page.get_by_role("button", name="Diagnose the files").click()
    expect(site.page.locator("#problem")).to_contain_text("con.log")
    site.look("refused")
    site.expected("status of 4")


def remove_a_case(site):
    site.visit("/")
    site.page.get_by_label("Log", exact=True).fill("nothing of a training run\n")
    site.page.get_by_role("button", name="Diagnose the text").click()
    site.page.wait_for_url("**/cases/*")
    expect(site.page.locator("#progress")).to_have_count(0)  # it loads itself again at its end
    address = site.page.url
    site.visit("/cases")
    site.look("cases")
    row = site.page.locator("tr", has=site.page.locator(f'a[href="/cases/{address.rsplit("/", 1)[1]}"]'))
    site.page.once("dialog", lambda d: d.accept())
    row.get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)
    assert site.page.goto(address).status == 404
    site.look("no-case")
    site.expected("404")


def without_scripts(site):
    plain = site.without_scripts()
    plain.visit("/")
    plain.page.get_by_label("Log", exact=True).fill(runs.oom())
    plain.page.get_by_role("button", name="Diagnose the text").click()
    at_verdict(plain)
    plain.visit("/")
    plain.page.get_by_label("Files", exact=True).set_input_files(sorted(runs.ranks(site.work / "job-8", 8, 3).iterdir()))
    plain.page.get_by_role("button", name="Diagnose the files").click()
    at_verdict(plain)
    expect(plain.page.locator("#verdict")).to_contain_text("rank 3")


def hostile_text_is_text(site):
    site.visit("/")
    site.page.get_by_label("Log", exact=True).fill(
        "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">\x1b]0;taken\x07\u202e\n" + runs.oom())
    site.page.get_by_role("button", name="Diagnose the text").click()
    at_verdict(site)
    assert "taken" not in site.page.title()
    assert site.page.locator("main img[src=x]").count() == 0


def with_a_token(site):
    with Served(site.served.inquest, site.work / "token", "--token") as served:
        visitor = Site(site.browser, served, site.work)
        site.others.append(visitor)
        assert visitor.visit("/cases").status == 401
        visitor.look("token")
        visitor.page.locator("#token").fill("wrong")
        visitor.page.keyboard.press("Enter")
        expect(visitor.page.get_by_role("alert")).to_be_visible()
        visitor.page.goto(served.address)
        assert visitor.page.url == served.url, "the token stays in the address bar"
        assert visitor.visit("/cases").status == 200
        visitor.expected("401")


SCENARIOS = [first_page, paste_an_oom, choose_a_folder_of_ranks, drop_a_folder_of_ranks, hand_over_an_archive, try_a_sample, cancel_while_sending,
             refused_files_are_named, remove_a_case, without_scripts, hostile_text_is_text, with_a_token]
