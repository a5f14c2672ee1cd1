"""The encyclopedia, search, and the incidents of the store."""
import re, sys

from playwright.sync_api import expect

# A training script that ends as one does whose device memory ran out; what it prints depends on
# its batch size, and a small one fits.
TRAIN = '''import sys
batch = int(sys.argv[sys.argv.index("--batch-size") + 1])
for step in range(3):
    print(f"step {step} loss {2.0 / (step + 1):.3f}", flush=True)
if batch > 16:
    sys.stderr.write("""Traceback (most recent call last):
  File "train.py", line 41, in <module>
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.20 GiB is free. Process 4711 has 77.90 GiB memory in use. Of the allocated memory 70.10 GiB is allocated by PyTorch, and 6.90 GiB is reserved by PyTorch but unallocated.
""")
    sys.exit(1)
print("done")
'''
EVALUATE = '''import sys
print("step 0 loss 2.0")
print("step 1 loss nan")
sys.stderr.write("RuntimeError: Function 'AddmmBackward0' returned nan values in its 1th output.\\n")
sys.exit(1)
'''


def incidents(site):
    """Two incidents in the store: one of two trials, and one of another script."""
    listed = site.served.run("incident", "list", "--format", "json").stdout
    if '"i-' in listed:
        return
    folder = site.work / "project"
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(TRAIN)
    (folder / "evaluate.py").write_text(EVALUATE)
    for command in (["train.py", "--batch-size", "64"], ["train.py", "--batch-size", "32"], ["evaluate.py"]):
        ran = site.served.run("run", "--", sys.executable, *command, cwd=folder)
        assert ran.returncode == 1, ran.stderr


def search_and_copy_a_fix(site):
    site.visit("/encyclopedia")
    site.look("encyclopedia")
    # The box in the frame is the second thing that the keyboard reaches behind the navigation.
    site.page.get_by_label("Search the encyclopedia").fill("loss nan after oom")
    site.page.keyboard.press("Enter")
    found = site.page.locator(".found > li")
    expect(found.first).to_be_visible()
    titles = " ".join(found.all_inner_texts()[:5]).lower()
    assert "nan" in titles and "memory" in titles, titles
    site.look("search")
    found.first.get_by_role("link").click()
    expect(site.page.get_by_role("heading", level=2, name="Quick answer")).to_be_visible()
    site.look("entry")
    copy = site.page.locator("#the-fix-by-stack").get_by_role("button", name="Copy").first
    code = site.page.locator("#" + copy.get_attribute("data-copy")).text_content()
    copy.click()  # it is named otherwise for a moment
    expect(site.page.locator("#said")).to_have_text("Copied.")
    # Pages may not read the clipboard; a person pastes.
    site.visit("/search")
    field = site.page.locator("main").get_by_label("An error text")
    field.focus()
    site.page.keyboard.press("Control+V")
    expect(field).to_have_value(code)


def stacks_by_keyboard(site):
    site.visit("/encyclopedia/fragmentation")
    tabs = site.page.get_by_role("tab")
    assert tabs.count() > 1
    tabs.first.focus()
    first = site.page.get_by_role("tabpanel").get_attribute("id")
    site.page.keyboard.press("ArrowRight")
    expect(tabs.nth(1)).to_be_focused()
    assert site.page.get_by_role("tabpanel").get_attribute("id") != first
    site.page.keyboard.press("Tab")
    expect(site.page.get_by_role("tabpanel")).to_be_focused()
    # The next entry opens with the same stack where it has it; without scripts all are there.
    plain = site.without_scripts()
    plain.visit("/encyclopedia/fragmentation")
    for tab in tabs.all_inner_texts():
        expect(plain.page.get_by_role("heading", level=3, name=tab, exact=True)).to_be_visible()
    assert plain.page.get_by_role("button", name="Copy").count() == 0


def paste_an_error(site):
    site.visit("/search")
    site.page.locator("main").get_by_label("An error text").fill("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n" * 100)
    site.page.locator("main").get_by_role("button", name="Search").click()
    expect(site.page.get_by_role("heading", name="Entries, best first")).to_be_visible()
    expect(site.page.locator("main")).to_contain_text("cudaErrorMemoryAllocation")
    site.page.locator("main").get_by_label("An error text").fill("NVRM: Xid (PCI:0000:1b:00): 79, pid=4711, GPU has fallen off the bus.")
    site.page.locator("main").get_by_role("button", name="Search").click()
    site.page.wait_for_url("**/search?q=*")
    expect(site.page.get_by_role("heading", name="Codes and errors")).to_be_visible()


def decide_and_compare(site):
    site.visit("/encyclopedia/decide")
    site.look("symptoms")
    site.page.get_by_label("A symptom").fill("CUDA out of memory. Tried to allocate 2.00 GiB")
    site.page.keyboard.press("Enter")
    expect(site.page.get_by_role("columnheader", name="Safer next action").first).to_be_visible()
    site.look("decide")
    site.visit("/encyclopedia/compare")
    site.page.get_by_label("This", exact=True).select_option("fragmentation")
    site.page.get_by_label("With this").select_option("host-ram")
    site.page.get_by_role("button", name="Compare").click()
    expect(site.page.get_by_role("heading", name="How to tell them apart")).to_be_visible()
    site.look("compare-entries")


def tables_of_codes(site):
    site.visit("/encyclopedia/xid")
    site.look("table")
    site.page.get_by_role("link", name=re.compile("^79 ")).click()
    expect(site.page.get_by_role("heading", level=1)).to_contain_text("79")
    site.look("code")


def compare_two_incidents(site):
    incidents(site)
    site.visit("/incidents")
    expect(site.page.get_by_role("row")).to_have_count(3)
    site.look("incidents")
    for label, n in (("This incident", 1), ("With this one", 2)):
        site.page.get_by_label(label).select_option(index=n)
    site.page.get_by_role("button", name="Compare").click()
    expect(site.page.get_by_role("heading", level=1)).to_have_text("Compare two incidents")
    expect(site.page.locator("main")).to_contain_text("What differs between the runs that failed")
    expect(site.page.locator("main")).to_contain_text("train.py")
    site.look("compare-incidents")


def an_incident_and_a_note(site):
    incidents(site)
    site.visit("/incidents")
    site.page.get_by_role("link", name=re.compile("memory", re.I)).first.click()
    expect(site.page.get_by_role("heading", name="Trials", exact=True)).to_be_visible()
    site.look("incident")
    site.page.get_by_role("button", name="What changed").click()
    expect(site.page.locator("main")).to_contain_text("--batch-size 64 → 32")
    site.look("compare-trials")
    # Without scripts the note is kept as well.
    plain = site.without_scripts()
    plain.page.goto(site.page.url.rsplit("/compare", 1)[0])
    plain.page.get_by_label("What was seen").fill("the node was drained <b>at 14:10</b>, token=hf_" + "abcdefghijklmnopqrstuvwxyz01234567")
    plain.page.get_by_role("button", name="Keep the note").click()
    acts = plain.page.locator("#acts")
    expect(acts).to_contain_text("the node was drained <b>at 14:10</b>")
    expect(acts).not_to_contain_text("abcdefghijklmnopqrstuvwxyz01234567")


def reach(site, selector, most=60):
    """Presses Tab until the focus is on what selector means."""
    for _ in range(most):
        site.page.keyboard.press("Tab")
        if site.page.evaluate("(s) => document.activeElement.matches(s)", selector):
            return
    raise AssertionError(f"{most} tabs do not reach {selector}")


def by_keyboard_alone(site):
    site.visit("/incidents")
    reach(site, "#search")
    site.page.keyboard.type("cuda out of memory fragmentation")
    site.page.keyboard.press("Enter")
    site.page.wait_for_url("**/search?q=*")
    reach(site, ".skip")
    site.page.keyboard.press("Enter")
    reach(site, ".found a")
    site.page.keyboard.press("Enter")
    site.page.wait_for_url("**/encyclopedia/*")
    reach(site, "#the-fix-by-stack button.copy", 120)
    site.page.keyboard.press("Enter")
    expect(site.page.locator("#said")).to_have_text("Copied.")
    incidents(site)
    site.visit("/incidents")
    reach(site, ".incidents a")
    site.page.keyboard.press("Enter")
    site.page.wait_for_url("**/incidents/i-*")
    reach(site, "#note textarea")
    site.page.keyboard.type("seen again on node7")
    reach(site, "#note button")
    site.page.keyboard.press("Enter")
    expect(site.page.locator("#acts")).to_contain_text("seen again on node7")
    assert site.page.url.endswith("#acts")
    site.page.locator("details.diagnosis > summary").focus()
    site.page.keyboard.press("Enter")
    expect(site.page.locator("details.diagnosis #evidence")).to_be_visible()
    site.look("incident-noted")


def nothing_is_kept(site):
    site.visit("/encyclopedia/no-such-entry")
    expect(site.page.get_by_role("alert")).to_contain_text("no entry of that name")
    site.visit("/incidents/i-nonesuch")
    expect(site.page.get_by_role("heading", level=1)).to_have_text("There is no such incident")
    site.expected("status of 404")


SCENARIOS = [search_and_copy_a_fix, stacks_by_keyboard, paste_an_error, decide_and_compare, tables_of_codes, compare_two_incidents, an_incident_and_a_note, by_keyboard_alone, nothing_is_kept]
