"""Bringing a session in by hand: dropped, chosen, pasted; told what is wrong; watched while it is read."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import time
from base64 import b64encode
from pathlib import Path
from uuid import uuid4

import pytest

from guard_core.recordings.formats import native
from guard_core.simulator.samples import SAMPLES
from tests.big_sessions import big_session
from tests.browser.conftest import drawn, shot
from tests.services.server import go_on, held_worker, running

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
DROP_BYTES = DROP.replace("[text]", "[Uint8Array.from(atob(text), (one) => one.charCodeAt(0))]")
PASTE = """(text) => {
  const carried = new DataTransfer();
  carried.setData("text/plain", text);
  document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData: carried, bubbles: true, cancelable: true }));
}"""


def chat() -> str:
    """A short chat that no other test has uploaded."""
    asked = "Is the disk full again?"
    text = native.write(SAMPLES["small-window"].build()).decode()
    assert asked in text
    return text.replace(asked, f"{asked} {uuid4().hex}")


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
    home.get_by_role("button", name="Skip damaged lines").click()
    home.wait_for_url(REPORT)
    assert home.get_by_text("line 6").is_visible()
    shot(home, "import-report", full_page=True)


DROP_ALL = """(files) => {
  const carried = new DataTransfer();
  for (const [name, text] of files) carried.items.add(new File([text], name));
  for (const kind of ["dragenter", "dragover", "drop"])
    document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: carried, bubbles: true, cancelable: true }));
}"""


def test_of_several_damaged_files_each_can_be_kept_in_turn(home):
    """To keep the rest of one does not take away the word about the others, nor what to do about them."""
    files = [["one.jsonl", damaged()], ["two.jsonl", damaged()], ["notes.txt", "buy salt"], ["good.jsonl", chat()]]
    home.evaluate(DROP_ALL, files)
    again = home.get_by_role("button", name="Skip damaged lines")
    again.nth(1).wait_for()
    home.seen.console.clear()  # the browser itself notes the status 422
    again.first.click()
    home.get_by_text("2 files were imported").wait_for()
    assert again.count() == 1
    assert home.get_by_text("begins with 'buy salt'").is_visible()
    again.click()
    home.get_by_text("3 files were imported").wait_for()
    assert home.locator("[data-upload-status] .notice").count() == 1


def test_on_a_narrow_screen_a_failed_file_is_dismissed_beside_its_name(open_page):
    page = open_page(width=360)
    page.goto("/")
    page.evaluate(DROP, ["narrow.txt", "buy bread"])
    page.get_by_text("begins with 'buy bread',").wait_for()
    page.seen.console.clear()
    page.goto("/")
    row = page.locator("#imports li").filter(has_text="narrow.txt")
    link, button = (row.locator(name).bounding_box() for name in ("a", "form"))
    assert abs(link["y"] + link["height"] / 2 - button["y"] - button["height"] / 2) < 8


def test_several_files_open_the_list_with_those_that_came_last_at_its_top(home):
    chats = [chat() for _ in range(2)]
    home.evaluate(DROP_ALL, [[f"{number}.jsonl", text] for number, text in enumerate(chats)])
    home.wait_for_url("**/?sort=-added")
    home.locator(".row-title").first.wait_for()


def test_what_is_no_session_is_told(home):
    home.evaluate(DROP, ["notes.txt", "buy bread and milk"])
    home.get_by_text("begins with 'buy bread and milk'").wait_for()
    home.seen.console.clear()
    assert home.get_by_role("button", name="Skip damaged lines").count() == 0


def test_without_script_the_form_does_the_same(open_page):
    page = open_page(java_script_enabled=False)
    page.goto("/")
    if page.locator("#bring").count():
        page.get_by_text("Import…").click()
    page.locator("textarea[name=text]").first.fill(chat())
    page.get_by_role("button", name="Import", exact=True).first.click()
    page.wait_for_url(SESSION)


def test_a_long_import_is_watched_and_ends_in_its_session(home, served):
    worker = held_worker(served)  # so that the import is not over before the page is there
    try:
        started = served.upload("long.jsonl", native.write(big_session(400, 7)))
        home.goto(started.headers["location"])
        assert home.locator("progress, h1").first.is_visible()
    finally:
        go_on(worker)
    home.wait_for_url(SESSION)


def test_a_long_import_can_be_cancelled(home, served):
    content = native.write(big_session(400, 3))
    worker = held_worker(served)  # so that the import is not over before the button is there
    try:
        started = served.upload("cancelled.jsonl", content)
        home.goto(started.headers["location"])
        shot(home, "import-progress")
        home.get_by_role("button", name="Cancel").click()
        home.get_by_text("Nothing was stored").wait_for()
    finally:
        go_on(worker)


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


@pytest.fixture
def project(tmp_path) -> Path:
    """A folder as Claude Code leaves it, with more files than one request takes."""
    folder = tmp_path / "project"
    beside = folder / "0ccf1a04"
    (beside / "subagents").mkdir(parents=True)
    (beside / "tool-results").mkdir()
    for number in range(60):
        (beside / "tool-results" / f"b{number}.txt").write_text("total 3\n")
    (folder / "0ccf1a04.jsonl").write_text(claude("read the log"))
    (beside / "subagents" / "agent-a1.jsonl").write_text(claude("look into the log", sidechain=True))
    (beside / "subagents" / "agent-a1.meta.json").write_text('{"agentType": "Explore"}')
    (folder / "notes.md").write_text("buy milk")
    return folder


def claude(text: str, sidechain: bool = False) -> str:
    lines = [
        {"type": "user", "message": {"role": "user", "content": f"{text} {uuid4().hex}"}},
        {
            "type": "assistant",
            "message": {
                "role": "assistant",
                "id": "m1",
                "model": "claude-sonnet-4-5",
                "content": [{"type": "text", "text": "it is empty"}],
                "usage": {"input_tokens": 900, "output_tokens": 9},
            },
        },
    ]
    shared = {"isSidechain": sidechain, "sessionId": "0ccf1a04", "version": "2.0.0", "cwd": "/srv"}
    linked = [
        {"uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None, **line, **shared} for n, line in enumerate(lines)
    ]
    return "".join(json.dumps(line) + "\n" for line in linked)


def test_a_chosen_folder_is_read_and_what_lies_beside_is_no_error(open_page, project, tmp_path_factory):
    with running(tmp_path_factory.mktemp("folder")) as server:
        worker = held_worker(server)  # as if it were busy: not all is read when the last request is answered
        page = open_page(server=server)
        page.goto("/")
        page.locator("input[webkitdirectory]").set_input_files(project)
        page.get_by_text("Reading 64 files").wait_for()
        go_on(worker)
        page.get_by_text("2 files were imported").wait_for()
        summary = page.get_by_text("62 other files in the folder were skipped")
        summary.click()
        shot(page, "upload-folder", full_page=True)
        assert page.get_by_text("60 × ").is_visible()
        assert page.locator(".notice-error").count() == 0
        page.get_by_role("link", name="show the list").click()
        page.locator(".row-title").first.wait_for()
        assert page.locator(".row-title").count() == 2


def test_a_dropped_zip_archive_is_read_as_the_folder_in_it(open_page, project, tmp_path, tmp_path_factory):
    packed = Path(shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path, project.name))
    with running(tmp_path_factory.mktemp("packed")) as server:
        page = open_page(server=server)
        page.goto("/")
        page.evaluate(DROP_BYTES, ["project.zip", b64encode(packed.read_bytes()).decode()])
        page.get_by_text("2 files were imported").wait_for()
        page.get_by_text("62 other files in the folder were skipped").click()
        assert page.get_by_text("60 × ").is_visible()
        assert page.locator(".notice-error").count() == 0


def test_a_database_and_its_log_that_are_dropped_are_one_import(home, tmp_path):
    path = tmp_path / "state.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE agent_sessions (session_id TEXT, created_at TEXT, updated_at TEXT)")
    connection.execute(
        "CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id TEXT, message_data TEXT, created_at TEXT)"
    )
    connection.execute("INSERT INTO agent_sessions VALUES ('one', '2026-01-01', '2026-01-01')")
    for role in ("user", "assistant"):
        message = json.dumps({"role": role, "content": uuid4().hex})
        connection.execute("INSERT INTO agent_messages (session_id, message_data) VALUES ('one', ?)", [message])
    home.evaluate("document.getElementById('bring')?.setAttribute('open', '')")
    home.locator("input[type=file]").first.set_input_files([path, Path(f"{path}-wal")])
    home.wait_for_url(SESSION)
    connection.close()
