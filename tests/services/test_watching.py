"""`compaction-inspector watch` beside a real server: sessions grow on it while their files are written."""

import json
import os
import re
import signal
import threading
from itertools import count
from pathlib import Path
from urllib.parse import urlparse

import pytest

from guard_core import Guard, Recorder
from tests.services.server import Running, command, running
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.once


def claude_line(number: int) -> dict:
    """A line of a Claude Code transcript: the user's words, then an answer with its usage."""
    role = "user" if number % 2 == 0 else "assistant"
    usage = {"input_tokens": 100 * number, "output_tokens": 5}
    message = {"role": role, "content": f"message {number}"} | (
        {"id": f"m{number}", "type": "message", "model": "claude-sonnet-4-5", "usage": usage} if number % 2 else {}
    )
    return {
        "type": role,
        "uuid": f"u{number}",
        "parentUuid": f"u{number - 1}" if number else None,
        "sessionId": "11111111-2222-4333-8444-555555555555",
        "timestamp": f"2026-01-01T00:00:{number:02}.000Z",
        "version": "2.1.14",
        "cwd": "/home/u/p",
        "message": message,
    }


class Watcher:
    """The watching process, and what it said."""

    def __init__(self, folder: Path, origin: str) -> None:
        self.process = command("watch", str(folder), "--server", origin, "--every", "0.1")
        self.lines: list[str] = []
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.stdout or ()), daemon=True)
        self.reader.start()

    def said(self, name: str) -> str:
        """The address that it named last for a file: its session's, or that of the import that still reads it."""
        match = [line for line in self.lines if line.startswith(f"{name}: http")]
        return urlparse(match[-1].split(": ", 1)[1].strip()).path if match else ""

    def url(self, name: str) -> str:
        """Where the session of a file is; empty while the watcher names no more than its import."""
        match = [line for line in self.lines if line.startswith(f"{name}: http") and "/s/" in line]
        return re.sub(r".*(/s/[0-9a-f-]{36}/).*", r"\1", match[-1].strip()) if match else ""

    def end(self, how: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(how)
        code = self.process.wait(PATIENCE)
        self.reader.join(5)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        return code


def steps(server: Running, url: str) -> int:
    """How many model calls the session's page says that it has."""
    match = re.search(r"([\d,]+) steps?\b", server.get(url).text) if url else None
    return int(match[1].replace(",", "")) if match else 0


def test_sessions_grow_at_their_address_while_two_agents_write_them(tmp_path: Path) -> None:
    folder = tmp_path / "agents"
    folder.mkdir()
    log = folder / "claude.jsonl"
    with running(tmp_path / "data", DATABASE_URL="") as server:
        watcher = Watcher(folder, server.origin)
        try:
            with log.open("w") as file:
                for number in range(4):
                    file.write(json.dumps(claude_line(number)) + "\n")
            url = until(lambda: watcher.url("claude.jsonl"))
            until(lambda: steps(server, url) == 2)
            with log.open("a") as file:
                for number in range(4, 7):
                    file.write(json.dumps(claude_line(number)) + "\n")
                file.write(json.dumps(claude_line(7))[:40])  # a line that is being written
                file.flush()
                until(lambda: "message 6" in server.get(f"{url}steps").text or steps(server, url) == 3)
                file.write(json.dumps(claude_line(7))[40:] + "\n")
            until(lambda: steps(server, url) == 4)
            assert watcher.url("claude.jsonl") == url

            guard, history = Guard("none", window=100_000), []
            recorder = Recorder(folder / "own.jsonl", agent="own")
            for number in range(3):
                history.append({"role": "user", "content": f"request {number}"})
                guard.before_call(history)
                guard.after_call(100 * (number + 1))
                history.append({"role": "assistant", "content": "done"})
                recorder.record(guard)
            recorder.close(guard)
            own = until(lambda: watcher.url("own.jsonl"))
            until(lambda: steps(server, own) == 3)
            assert watcher.end() == 0
        finally:
            watcher.end(signal.SIGKILL)  # where a check has failed


def session_of(server: Running, address: str) -> str:
    """Where the session of an import is, once it has ended."""

    def url() -> str:
        told: str = json.loads(server.get(f"{address}status", Accept="application/json").body)["url"]
        return told if told.startswith("/s/") else ""

    return until(url)


def of(numbers: range, session: str) -> str:
    """These lines of a session of another name."""
    lines = []
    for number in numbers:
        line = claude_line(number)
        line["sessionId"] = f"{session}{line['sessionId'][len(session) :]}"
        line["message"]["content"] = f"message {number} of {session}"
        line["uuid"], line["parentUuid"] = f"{session}{number}", f"{session}{number - 1}" if number else None
        lines.append(json.dumps(line) + "\n")
    return "".join(lines)


def test_files_that_are_cut_rotated_and_replaced_lose_and_double_no_session(tmp_path: Path) -> None:
    folder = tmp_path / "agents"
    folder.mkdir()
    log, rotated = folder / "x.jsonl", folder / "x.1.jsonl"
    numbers = count()  # of probes: of a file that comes again nothing is said that was said before

    def sessions() -> list[int]:
        rows = json.loads(server.get("/api/v1/sessions?limit=50").body)["sessions"]
        return sorted(row["steps"] for row in rows)

    with running(tmp_path / "data", DATABASE_URL="") as server:
        watcher = Watcher(folder, server.origin)

        def written(*stored: int, at: Path = log) -> str:
            """The file is sent after the change, and these sessions are stored then; where that of the file is."""
            before = len(watcher.lines)
            until(lambda: server.get("/healthz").status == 200 and sessions() == list(stored))
            probe = folder / f"probe{next(numbers)}.jsonl"  # sent after what was changed before it
            probe.write_text("no session\n")
            until(lambda: any(probe.name in line for line in watcher.lines[before:]))
            probe.unlink()
            assert sessions() == list(stored)
            said = watcher.said(at.name)
            return said if said.startswith("/s/") else session_of(server, said)

        try:
            log.write_text(of(range(6), "a"))
            first = written(3)
            assert first.startswith("/s/")
            log.write_text(of(range(4), "a"))  # cut in place
            assert written(3) == first
            (folder / "new").write_text(of(range(2), "a"))
            (folder / "new").replace(log)  # another file in its place
            assert written(3) == first
            log.write_text(of(range(8), "a"))
            assert written(4) == first
            log.rename(rotated)
            log.write_text(of(range(4), "b"))
            second = written(2, 4)
            assert second not in ("", first)
            with rotated.open("a") as file:  # whoever has it open still writes to it
                file.write(of(range(8, 10), "a"))
            assert written(2, 5, at=rotated) == first
            log.unlink()
            log.write_text(of(range(6), "b"))
            assert written(3, 5) == second
            os.truncate(log, 0)
            log.write_text(of(range(2), "c"))
            assert written(1, 3, 5) not in ("", first, second)
            assert watcher.end() == 0
        finally:
            watcher.end(signal.SIGKILL)  # where a check has failed


def test_a_folder_that_is_chosen_on_the_page_is_watched_by_the_server_until_it_is_stopped(tmp_path: Path) -> None:
    folder = tmp_path / "home/agents"
    folder.mkdir(parents=True)
    with running(tmp_path / "data", DATABASE_URL="", HOME=str(tmp_path / "home")) as server:
        before = server.children()
        assert server.post("/watching/add", b"path=~/agents").status == 302
        (watcher,) = until(lambda: set(server.children()) - set(before))
        write(folder / "claude.jsonl", range(4))

        def session() -> str:
            match = re.search(r'href="(/s/[0-9a-f-]{36}/)">claude.jsonl<', server.get("/watching/").text)
            return match[1] if match else ""

        url = until(session)
        until(lambda: steps(server, url) == 2)
        write(folder / "claude.jsonl", range(4, 8))
        until(lambda: steps(server, url) == 4)

        os.kill(watcher, signal.SIGKILL)
        (watcher,) = until(lambda: set(server.children()) - {*before, watcher})
        write(folder / "claude.jsonl", range(8, 10))
        until(lambda: steps(server, url) == 5)

        place = re.search(r'action="(/watching/\d+/remove)"', server.get("/watching/").text)
        assert place is not None
        assert server.post(place[1]).status == 302
        until(lambda: watcher not in server.children())
        assert server.stop() == 0


def write(log: Path, numbers: range) -> None:
    with log.open("a") as file:
        file.writelines(json.dumps(claude_line(number)) + "\n" for number in numbers)
