"""The loop of `compaction-inspector watch`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from guard_core.plain_text import plain
from inspector.watching.files import Watched, existing, is_only_begun, known_folders, versions_of
from inspector.watching.sending import Away, Changed, Server

SLOWEST = 60.0  # seconds between two tries while the server is away
REST = 4  # a file that took t seconds to send is left alone for REST times t


def _print(words: str) -> None:
    """Say it on a terminal, which names of files must not control."""
    print(plain(words))


def watch(
    paths: Sequence[str],
    address: str,
    every: float = 1.0,
    *,
    hours: float = 1.0,
    once: bool = False,
    key: str = "",
    say: Callable[[str], None] = _print,
) -> int:
    """Send recordings as they change, until the process is interrupted; the exit code.

    `paths`: files and folders, those of known agents where none is given. `every`: seconds between checks. Files
    that were last changed more than `hours` ago are sent when they change. `once`: one look, then end.
    `key`: of the server in team mode, with the scope "ingest".
    """
    places, missing = existing(paths) if paths else (known_folders(), [])
    for name in missing:
        say(f"{name} is not there; it is not watched.")
    if not places:
        print("There is nothing to watch: name files or folders.", file=sys.stderr)
        return 2
    try:
        server = Server(address, key)
    except ValueError as error:
        print(plain(str(error)), file=sys.stderr)
        return 2
    say(f"Watching {', '.join(map(str, places))}; sessions are at {server.origin}.")
    loop = _Loop(server, Watched(places, since=time.time() - hours * 3600), say)
    while True:
        pause = loop.look(every)
        if once:
            return 1 if loop.is_away else 0
        time.sleep(pause)


class _Loop:
    """One look after the other."""

    def __init__(self, server: Server, watched: Watched, say: Callable[[str], None]) -> None:
        self._server, self._watched, self._say = server, watched, say
        self._shown: dict[Path, str] = {}  # what was said of a file last
        self._rests: dict[Path, float] = {}  # until when a large file is left alone
        self._pause = 0.0
        self.is_away = False

    def look(self, every: float) -> float:
        """Send what has changed; seconds until the next look."""
        for path in list(self._watched.changed()):
            if time.monotonic() < self._rests.get(path, 0.0):
                continue
            try:
                self._send(path)
            except Away as error:
                return self._wait(str(error), every)
            except Changed:
                continue
            except OSError as error:  # of this file; the next look may find it readable
                self._report_change(path, f"{path.name} cannot be read: {error.strerror or error}")
        if self.is_away:
            self.is_away, self._pause = False, 0.0
        return every

    def _send(self, path: Path) -> None:
        versions, begin = versions_of(path), time.monotonic()
        if is_only_begun(path):
            self._watched.sent(path, versions)  # what it holds is sent with its first message
            return
        answer = self._server.send(path)
        self._watched.sent(path, versions)
        self._rests[path] = time.monotonic() + REST * (time.monotonic() - begin)
        self._report_change(path, f"{path.name}: {answer.url or answer.refused}")

    def _wait(self, reason: str, every: float) -> float:
        """Seconds until the server is tried again, twice as many each time; the reason is said once."""
        if not self.is_away:
            self._say(f"{reason.rstrip('.')}; trying again.")
        self.is_away = True
        self._pause = min(max(self._pause * 2, every), SLOWEST)
        return self._pause

    def _report_change(self, path: Path, words: str) -> None:
        if self._shown.get(path) != words:
            self._shown[path] = words
            self._say(words)
