"""Sessions in several files, chosen or dropped in a browser: they become what `manage.py import` makes of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from uuid import uuid4

import pytest

from guard_core.recordings.formats.opencode.storage import Storage
from guard_core.recordings.reading.folders import pack
from guard_core.recordings.reading.limits import Limits
from tests.browser.conftest import shot
from tests.plugins.tiers import mostly_long
from tests.recordings.seeds import SEEDS
from tests.services.server import running

SESSION = re.compile(r"/s/[0-9a-f-]{36}/$")


class Agent:
    """A storage folder of OpenCode that sessions are kept in."""

    def __init__(self, folder: Path, *, old: bool = False) -> None:
        self.folder, self.old = folder / "storage", old
        self.first = f"ses_{uuid4().hex[:12]}"
        self.title = f"first of {self.first}"

    def session(self, name: str, title: str) -> None:
        self._write(f"session/{'info' if self.old else 'project1'}/{name}.json", {
            "id": name, "title": title, "version": "1.0.0", "directory": "/srv", "time": {"created": 1, "updated": 2},
        })  # fmt: skip

    def exchange(self, session: str, number: int, text: str = "", parts: int = 1) -> None:
        """A question with an answer of some parts."""
        asked, answered = f"msg_{number:06}a", f"msg_{number:06}b"
        tokens = {"input": 900 + number, "output": 5, "reasoning": 0, "cache": {"read": 10, "write": 0}}
        self._message(
            session, asked, {"role": "user"}, [{"type": "text", "text": text or f"question {uuid4().hex} 日本"}]
        )
        self._message(session, answered, {"role": "assistant", "modelID": "m", "providerID": "p"}, [
            {"type": "step-start"},
            *({"type": "text", "text": f"answer {part} of {number}"} for part in range(parts)),
            {"type": "step-finish", "reason": "stop", "cost": 0, "tokens": tokens},
        ])  # fmt: skip

    def _message(self, session: str, name: str, value: dict, parts: list[dict]) -> None:
        base, owner = ("session/", f"{session}/{name}") if self.old else ("", name)
        shared = {"id": name, "sessionID": session, "time": {"created": 1}}
        self._write(f"{base}message/{session}/{name}.json", {**shared, **value})
        for number, part in enumerate(parts):
            piece = f"prt_{name[4:]}{number:05}"
            self._write(
                f"{base}part/{owner}/{piece}.json", {"id": piece, "messageID": name, "sessionID": session, **part}
            )

    def _write(self, place: str, value: dict) -> None:
        path = self.folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


@pytest.fixture
def agent(tmp_path) -> Agent:
    """With one session, which no other test brings to the server."""
    writer = Agent(tmp_path / "opencode")
    writer.session(writer.first, writer.title)
    writer.exchange(writer.first, 1)
    writer.exchange(writer.first, 2)
    return writer


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("stored")) as started:
        yield started


@pytest.fixture
def added(server):
    """Gives the one recording that the server has since the test began."""
    before = recordings(server)

    def path() -> Path:
        (new,) = recordings(server) - before
        return new

    return path


def recordings(server) -> set[Path]:
    return {path for path in (server.data_dir / "recordings").rglob("*") if path.is_file()}


@pytest.fixture
def home(open_page, server):
    page = open_page(server=server)
    page.goto("/")
    return page


def choose(page, folder: Path) -> None:
    page.goto("/")
    page.locator("input[webkitdirectory]").set_input_files(folder)


def drop(page, folder: Path) -> None:
    """A folder dropped as from a file manager, which no event made by a script can carry."""
    session = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(folder)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, "x": 300, "y": 300, "data": data})


@pytest.mark.parametrize("old", mostly_long([False, True], short=[False]))
def test_a_session_in_pieces_is_the_recording_that_the_command_makes(home, added, tmp_path, old):
    agent = Agent(tmp_path / "opencode", old=old)
    agent.session(agent.first, "kept in pieces")
    for number in reversed(range(40)):  # more pieces than one request takes
        agent.exchange(agent.first, number)
    (agent.folder / "session/share").mkdir()
    (agent.folder / f"session/share/{agent.first}.json").write_text('{"secret": "s"}')
    (agent.folder / "migration").write_text("2")
    choose(home, tmp_path / "opencode")
    home.wait_for_url(SESSION)
    assert home.locator("h1").inner_text() == "kept in pieces"
    storage = Storage.of(agent.folder)
    assert added().read_bytes() == storage.export(storage.sessions[0])


def test_a_dropped_folder_is_read_and_dropped_again_opens_what_is_there(home, agent):
    drop(home, agent.folder)
    home.wait_for_url(SESSION)
    first = home.url
    home.goto("/")
    drop(home, agent.folder)
    home.wait_for_url(SESSION)
    assert home.url == first


def test_each_session_of_a_folder_is_one_and_pieces_of_none_are_told(home, agent):
    agent.session("ses_2", "second of the folder")
    agent.exchange("ses_2", 7)
    agent.exchange("ses_gone", 8)
    (agent.folder.parent / "notes.md").write_text("buy milk")
    choose(home, agent.folder.parent)
    home.get_by_text("2 files were imported").wait_for()
    home.get_by_text("7 other files in the folder were skipped").click()
    assert home.get_by_text("belongs to no session").is_visible()
    shot(home, "upload-storage", full_page=True)
    home.get_by_role("link", name="show the list").click()
    home.locator(".row-title").first.wait_for()
    titles = home.locator(".row-title .truncate").all_inner_texts()
    assert {agent.title, "second of the folder"} <= set(titles)


def test_a_damaged_piece_is_named_and_can_be_left_out(home, agent):
    damaged = agent.folder / "part/msg_000001b/prt_000001b00001.json"
    damaged.write_bytes(b'{"text": "\xff"}')
    choose(home, agent.folder)
    home.get_by_text("the file msg_000001b/prt_000001b00001.json holds no JSON value").wait_for()
    shot(home, "upload-storage-damaged")
    home.get_by_role("button", name="Skip damaged lines").click()
    home.get_by_text("1 file was imported").wait_for()
    home.get_by_text("1 other file in the folder was skipped").click()
    assert home.get_by_text("it holds no JSON value – msg_000001b/prt_000001b00001.json").is_visible()
    home.get_by_role("link", name="show the list").click()
    home.locator(".row-title").filter(has_text=agent.title).wait_for()


def test_hostile_names_and_texts_are_text(home, agent):
    name = "ses_<img src=x onerror=alert(1)>__proto__"
    agent.session(name, "<img src=x onerror=alert(1)>")
    agent.exchange(name, 9, "<script>alert(1)</script>")
    (agent.folder / f"session/project1/{name}.json").write_text("[")
    choose(home, agent.folder)
    home.get_by_text(f"{name}.json holds no JSON value").wait_for()
    assert home.locator("[data-upload-status] img").count() == 0
    assert home.get_by_text("1 file was imported").is_visible()


def test_a_session_of_several_files_is_the_archive_that_the_command_makes(home, added, tmp_path):
    folder = tmp_path / "sessions" / "sid"
    (folder / "subagents/größe").mkdir(parents=True)
    (folder / "context.jsonl").write_bytes(SEEDS["kimi-cli"])
    (folder / "wire.jsonl").write_bytes(SEEDS["kimi-cli wire"])
    (folder / "subagents/größe/context.jsonl").write_bytes(SEEDS["kimi-cli"])
    choose(home, tmp_path / "sessions")
    home.wait_for_url(re.compile(r"/(s|imports)/"))
    pack(folder, tmp_path / "made.zip", Limits(), (path for path in folder.rglob("*.jsonl")))
    assert added().read_bytes() == (tmp_path / "made.zip").read_bytes()
