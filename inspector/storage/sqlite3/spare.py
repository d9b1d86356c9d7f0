"""Connections to SQLite that no thread uses now: the next thread that needs one takes it.

The threads in which the server answers requests give their connections back, each of which keeps pages in memory. To
open one and to read the schema takes about a millisecond of processor, a tenth of what a step of a session costs.
"""

from __future__ import annotations

import os
import sqlite3
from typing import Any, NamedTuple

from django.core.signals import request_finished
from django.db import connections


class File(NamedTuple):
    """The file that a connection was opened to; another one may lie at the same path later."""

    path: str
    device: int
    number: int

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> File | None:
        """The file at a path; None where there is none."""
        try:
            stat = os.stat(path)
        except OSError:
            return None
        return cls(os.fspath(path), stat.st_dev, stat.st_ino)


class Spares:
    """The connections of one process that are kept for later, `most` at a time; 0: none are."""

    def __init__(self) -> None:
        self.most = 0
        self._process = 0
        self._held: list[tuple[File, sqlite3.Connection]] = []

    def hold(self, most: int) -> None:
        """Keep up to `most` connections from now on. Those of a request are given back when it has been answered."""
        self.most, self._process = most, os.getpid()
        request_finished.connect(_give_back)

    def take(self, path: str | os.PathLike[str]) -> sqlite3.Connection | None:
        """A connection to the file at a path; None where none is spare. Threads may ask at once."""
        while self._held and self._process == os.getpid():  # a copy of the process leaves those of its parent alone
            try:
                file, connection = self._held.pop()
            except IndexError:
                break
            if file == File.at(path):
                return connection
            connection.close()
        return None

    def keep(self, file: File | None, connection: sqlite3.Connection) -> bool:
        """Take a connection to a file that no thread uses any more; False: it is to be closed."""
        if file is None or len(self._held) >= self.most or self._process != os.getpid() or connection.in_transaction:
            return False
        self._held.append((file, connection))
        return True

    def close(self) -> None:
        """Close all, and keep none from now on."""
        self.most = 0
        request_finished.disconnect(_give_back)
        while self._held and self._process == os.getpid():
            self._held.pop()[1].close()


SPARES = Spares()


def _give_back(**_: Any) -> None:
    connections.close_all()
