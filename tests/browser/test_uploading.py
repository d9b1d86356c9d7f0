"""Bringing a session in by hand: dropped, chosen, pasted; told what is wrong; watched while it is read."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from uuid import uuid4

import pytest

from guard_core.recordings import native
from guard_core.simulator.samples import SAMPLES, big_session
from tests.browser.conftest import drawn, shot

ROOT = Path(__file__).parents[2]
RECORDINGS = ROOT / "../shared/samples"
SESSION = re.compile(r"/s/[0-9a-f-]{36}/$")
REPORT = re.compile(r"/imports/[0-9a-f-]{36}/")

DROP = """([name, text]) => {
  const carried = new DataTransfer();
  carried.items.add(new File([text], name));
  for (const kind of ["dragenter", "dragover", "drop"])
    document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: carried, bubbles: true, cancelable: true }));
}"""
PASTE = """(text) => {
  const carried = new DataTransfer();
  carried.setData("text/plain", text);
  document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData: carried, bubbles: true, cancelable: true }));
}"""


def chat() -> str:
    """A short chat that no other test has uploaded."""
    return native.write(SAMPLES["small-window"].build()).decode().replace("access log", f"access log {uuid4().hex}")


def damaged() -> str:
    lines = chat().splitlines(keepends=True)
    return "".join([*lines[:5], "{broken\n", *lines[5:]])


@pytest.fixture
def home(page):
    page.goto("/")
    return page


def test_a_dropped_file_opens_as_a_session(home):
    home.evaluate(DROP, ["chat.jsonl", chat()])
    home.wait_for_url(SESSION)
    drawn(home)


def test_while_a_file_is_over_the_window_it_says_so(home):
    enter = DROP.replace('"dragenter", "dragover", "drop"', '"dragenter"')
    home.evaluate(enter, ["chat.jsonl", "{}"])
    assert home.get_by_text("Drop to import").is_visible()


def test_pasted_text_opens_as_a_session(home):
    home.evaluate(PASTE, chat())
    home.wait_for_url(SESSION)


def test_a_damaged_file_is_told_and_the_rest_can_be_kept(home):
    home.evaluate(DROP, ["damaged.jsonl", damaged()])
    home.get_by_text("line 6").wait_for()
    shot(home, "upload-damaged")
    home.seen.console.clear()  # the browser itself notes the status 422
    home.get_by_role("button", name="Leave damaged lines out").click()
    home.wait_for_url(REPORT)
    assert home.get_by_text("line 6").is_visible()
    shot(home, "import-report", full_page=True)


def test_what_is_no_session_is_told(home):
    home.evaluate(DROP, ["notes.txt", "buy milk"])
    home.get_by_text("no known format").wait_for()
    home.seen.console.clear()
    assert home.get_by_role("button", name="Leave damaged lines out").count() == 0


def test_without_script_the_form_does_the_same(open_page):
    page = open_page(java_script_enabled=False)
    page.goto("/")
    if page.locator("#bring").count():
        page.get_by_text("Import…").click()
    page.locator("textarea[name=text]").first.fill(chat())
    page.get_by_role("button", name="Import", exact=True).first.click()
    page.wait_for_url(SESSION)


def test_a_long_import_is_watched_and_ends_in_its_session(home, served):
    started = served.upload("long.jsonl", native.write(big_session(12_000, 7)))
    home.goto(started.headers["location"])
    assert home.locator("progress, h1").first.is_visible()
    home.wait_for_url(SESSION, timeout=60_000)


def test_a_long_import_can_be_cancelled(home, served):
    started = served.upload("cancelled.jsonl", native.write(big_session(20_000, 3)))
    home.goto(started.headers["location"])
    shot(home, "import-progress")
    home.get_by_role("button", name="Cancel").click()
    home.get_by_text("Nothing was stored").wait_for()


@pytest.mark.parametrize(
    "name", ["claude-code/long-2-compactions.jsonl", "adk/session-camel-token-threshold-4-compactions.json"]
)
def test_a_real_recording_is_shown_without_a_further_click(name, home):
    path = RECORDINGS / name
    if not path.is_file():
        pytest.skip("../shared/samples is absent")
    home.evaluate("document.getElementById('bring')?.setAttribute('open', '')")
    started = time.monotonic()
    home.locator("input[type=file]").first.set_input_files(path)
    home.wait_for_url(SESSION)
    drawn(home)
    seconds = time.monotonic() - started
    print(f"{name}: overview complete after {seconds:.2f} s")
    assert home.locator("h1").inner_text()


def test_the_picture_of_the_readme(open_page, sessions):
    page = open_page(width=1280, height=860)
    page.goto(sessions("long-coding"))
    drawn(page)
    shot(page, "overview")
    if os.environ.get("README_PICTURE"):
        (ROOT / "docs").mkdir(exist_ok=True)
        page.screenshot(path=ROOT / "docs/overview.png")
