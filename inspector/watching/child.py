"""`watch` as a process of the server: it watches what people chose on the page, in local mode."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence

from django.db import connection, transaction
from django.db.models.signals import post_delete, post_save

from inspector.models import WatchedPlace

log = logging.getLogger(__name__)

LOOK_EVERY = 5.0  # seconds between checks whether the process lives and places that were missing are there
LINES = 30  # of what it printed that the page can show
END_SECONDS = 2.0  # until a process that was asked to end is killed: it has nothing to lose


class FolderWatch:
    """Runs `compaction-inspector watch` for the chosen places, and no process while there are none.

    The thread that starts the process outlives it: Linux ends a process with the thread that started it (lifeline.py).
    """

    def __init__(self, address: str, places: Callable[[], Sequence[str]] | None = None) -> None:
        self._address = address
        self._places = places or stored_places
        self._changed, self._stopping = threading.Event(), False
        self._process: subprocess.Popen[str] | None = None
        self._watched: list[str] = []
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self.lines: deque[str] = deque(maxlen=LINES)

    def start(self) -> None:
        """Begin with what is stored, and hear of every change."""
        for signal in (post_save, post_delete):
            signal.connect(self._hear, sender=WatchedPlace, dispatch_uid="watched places")
        self._thread.start()

    def stop(self) -> None:
        """End the process and the thread."""
        self._stopping = True
        self._changed.set()
        self._thread.join()

    def _hear(self, **_: object) -> None:
        """Signals forget a receiver that nothing else holds: hence a method. A change counts once it is committed."""
        transaction.on_commit(self._changed.set)

    def _run(self) -> None:
        while not self._stopping:
            self._changed.clear()
            if self._process is not None and self._process.poll() is not None:
                log.warning("the watching process stopped; starting another")
                self._end()
            wanted = self._wanted()
            if wanted != self._watched:
                self._end()
            if wanted and self._process is None:
                self._process, self._watched = self._spawn(wanted), wanted
            self._changed.wait(LOOK_EVERY)
        self._end()

    def _wanted(self) -> list[str]:
        """The stated places that exist: of any other the watching process could say nothing."""
        try:
            return [path for path in self._places() if os.path.exists(path)]
        except Exception:
            log.exception("the watched places cannot be read; those that are watched stay so")
            return self._watched

    def _spawn(self, paths: list[str]) -> subprocess.Popen[str]:
        command = [sys.executable, "-u", "-m", "inspector.project.cli", "watch", "--piped", "--server", self._address]
        process = subprocess.Popen(
            [*command, "--", *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        threading.Thread(target=self._read, args=(process,), name="watch output", daemon=True).start()
        return process

    def _read(self, process: subprocess.Popen[str]) -> None:
        """A pipe that nobody reads would fill up and stop the process."""
        assert process.stdout is not None
        with process.stdout as output:
            self.lines.extend(map(str.strip, output))

    def _end(self) -> None:
        process, self._process, self._watched = self._process, None, []
        if process is None:
            return
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdin is not None:
            process.stdin.close()


def stored_places() -> list[str]:
    """The paths of all watched places, in the order in which they were chosen."""
    try:
        return list(WatchedPlace.unscoped.order_by("pk").values_list("path", flat=True))
    finally:
        connection.close()  # each thread has its own


_of_this_server: list[FolderWatch] = []  # one at most


def begin(address: str) -> FolderWatch:
    """Watch the chosen places beside the server at an address."""
    watch = FolderWatch(address)
    _of_this_server[:] = [watch]
    watch.start()
    return watch


def of_this_server() -> FolderWatch | None:
    """The watch of this process; None where it is not a server of local mode."""
    return _of_this_server[0] if _of_this_server else None
