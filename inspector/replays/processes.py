"""The long replays of this server: which run, which wait, and the pages of those that are done.

One entry a session and choice of settings, so that requests for the same share it. An entry's process holds the
analysis and makes the pages; it ends some time after the last request, which gives all of its memory back.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from queue import SimpleQueue
from uuid import uuid4

import msgspec

from inspector.project.pipes import environment
from inspector.replays.messages import PageRequest, PageResponse, Ready, ReplayFailed, ReplayProgress, Task, read, write

log = logging.getLogger(__name__)

AT_ONCE = 2  # replays computed at a time; one for each core of a small machine
HELD = 2  # processes alive at a time, of 100 to 250 MB; the one that was not asked for longest makes room
IDLE_SECONDS = 40.0  # without a request for a page; then a process ends
ABANDONED_SECONDS = 20.0  # without a look; then a replay that waits or ended is forgotten
LOOK_EVERY = 1.0  # seconds between checks for what to end
ENDED_EARLY = "The system ended this computation; most likely there was not enough memory."
CANCELLED = "The replay was cancelled."


class ProcessState(StrEnum):
    """How far a long replay is."""

    WAITING = "waiting"
    REPLAYING = "replaying"
    READY = "ready"
    ENDED = "ended"


@dataclass
class LongReplay:
    """One replay. `words` say why it ended without pages."""

    task: Task
    total: int  # steps
    id: str = field(default_factory=lambda: uuid4().hex)
    state: ProcessState = ProcessState.WAITING
    done: int = 0
    words: str = ""
    asked: float = field(default_factory=time.monotonic)
    process: subprocess.Popen[bytes] | None = None
    pages: SimpleQueue[PageResponse | None] = field(default_factory=SimpleQueue)
    turn: threading.Lock = field(default_factory=threading.Lock)  # one page at a time

    @property
    def percent(self) -> int:
        return min(99, 100 * self.done // max(self.total, 1))

    def page(self, meta: dict[str, str]) -> PageResponse | None:
        """The page that a request asks for; None where the process is gone."""
        with self.turn:
            process, self.asked = self.process, time.monotonic()
            if self.state is not ProcessState.READY or process is None or process.stdin is None:
                return None
            try:
                write(process.stdin, PageRequest(meta))
            except OSError:
                return None
            answer = self.pages.get()
            self.asked = time.monotonic()
            return answer

    def follow(self) -> None:
        """Hear what the process says until it ends."""
        process = self.process
        assert process is not None
        assert process.stdout is not None
        while (message := read(process.stdout)) is not None:
            match message:
                case ReplayProgress(done, total):
                    self.done, self.total = done, total
                case Ready():
                    self.asked, self.state = time.monotonic(), ProcessState.READY
                case ReplayFailed(words):
                    self.end(words)
                case PageResponse():
                    self.pages.put(message)
        self.end(ENDED_EARLY)
        self.pages.put(None)
        process.stdout.close()
        process.wait()
        with self.turn, suppress(OSError):  # what was not written to it any more is lost with it
            if process.stdin is not None:
                process.stdin.close()

    def end(self, words: str) -> None:
        """No more pages; the first reason given counts."""
        if self.state is not ProcessState.ENDED:
            self.words, self.asked, self.state = words, time.monotonic(), ProcessState.ENDED
        if self.process is not None:
            self.process.kill()


class LongReplays:
    """All entries of this server."""

    def __init__(self) -> None:
        self._entries: dict[Hashable, LongReplay] = {}
        self._lock = threading.Lock()
        self._watch: threading.Thread | None = None

    def find(self, key: Hashable) -> LongReplay | None:
        """The replay with this key, which counts as a look at it."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                entry.asked = time.monotonic()
            return entry

    def start(self, key: Hashable, task: Task, total: int) -> LongReplay:
        """The replay with this key; a new one where there is none."""
        with self._lock:
            entry = self._entries.setdefault(key, LongReplay(task, total))
            self._advance()
            if self._watch is None:
                self._watch = threading.Thread(target=self._look_after, name="long replays", daemon=True)
                self._watch.start()
            return entry

    def cancel(self, replay_id: str) -> LongReplay | None:
        """End a replay for all who wait for it, unless its pages are ready; None where there is no such replay."""
        with self._lock:
            replay = next((entry for entry in self._entries.values() if entry.id == replay_id), None)
            if replay is not None and replay.state is not ProcessState.READY:
                replay.end(CANCELLED)
            self._advance()
            return replay

    def forget(self, entry: LongReplay) -> None:
        """Drop an entry, so that the next request replays again."""
        with self._lock:
            self._entries = {key: other for key, other in self._entries.items() if other is not entry}

    def forget_ended(self, task: Task) -> None:
        """Drop what is left of a replay that ended without pages, so that the next request replays again."""
        with self._lock:
            ended = {id(entry) for entry in self._in(ProcessState.ENDED) if entry.task == task}
            self._entries = {key: entry for key, entry in self._entries.items() if id(entry) not in ended}

    def _look_after(self) -> None:
        """While there are entries: start what waits, end what is no longer asked for."""
        while True:
            time.sleep(LOOK_EVERY)
            with self._lock:
                self._advance()
                if not self._entries:
                    self._watch = None
                    return

    def _advance(self) -> None:
        now = time.monotonic()
        for key, entry in list(self._entries.items()):
            quiet = now - entry.asked
            if entry.state in (ProcessState.WAITING, ProcessState.ENDED) and quiet > ABANDONED_SECONDS:
                del self._entries[key]
            elif entry.state is ProcessState.READY and quiet > IDLE_SECONDS:
                self._drop(key)
        for entry in self._in(ProcessState.WAITING)[: AT_ONCE - len(self._in(ProcessState.REPLAYING))]:
            ready = sorted(self._in(ProcessState.READY), key=lambda other: other.asked)
            for other in ready[: max(0, len(ready) + len(self._in(ProcessState.REPLAYING)) + 1 - HELD)]:
                self._drop(next(key for key, value in self._entries.items() if value is other))
            _spawn(entry)

    def _drop(self, key: Hashable) -> None:
        self._entries.pop(key).end("")

    def _in(self, state: ProcessState) -> list[LongReplay]:
        return [entry for entry in self._entries.values() if entry.state is state]


def _spawn(entry: LongReplay) -> None:
    command = [sys.executable, "-m", "inspector.replays", msgspec.json.encode(entry.task).decode()]
    entry.state = ProcessState.REPLAYING
    try:
        entry.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())
    except OSError as error:
        log.warning("a process for a long replay could not be started: %s", error)
        entry.end(f"The system could not start a process for this replay ({error.strerror}).")
        return
    threading.Thread(target=entry.follow, name="long replay", daemon=True).start()


REPLAYS = LongReplays()
