"""What the machine may refuse, in words: a full disk, a locked or unwritable database."""

from __future__ import annotations

import errno
import os
import sqlite3
from typing import NamedTuple

from django.db import DatabaseError, InterfaceError

UNAVAILABLE, FULL = 503, 507  # HTTP status: Service Unavailable, Insufficient Storage
_FULL_CODES = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_UNWRITABLE_CODES = (errno.EROFS, errno.EACCES, errno.EPERM)
_FULL_WORDS = {os.strerror(code) for code in _FULL_CODES}  # where only the words came through a pipe
_POSTGRES_FULL, _POSTGRES_LOCKED = ("53100",), ("55P03", "57014", "40P01")  # SQLSTATE: disk_full; locks and timeouts


class Trouble(NamedTuple):
    """An answer: its HTTP status, a title and what to do. `sentence` ends with what became of the request."""

    status: int
    title: str
    sentence: str

    @property
    def words(self) -> str:
        """All of it, where there is one line."""
        return f"{self.title}. {self.sentence}"


DISK_FULL = Trouble(
    FULL,
    "The disk is full",
    "The disk of the data folder, or of temporary files, has no space left. Free some and try again. "
    "Nothing was changed.",
)
LOCKED = Trouble(
    UNAVAILABLE,
    "The database is busy",
    "Another program holds the database, such as a backup or a second server. Try again in a moment. "
    "Nothing was changed.",
)
UNWRITABLE = Trouble(
    UNAVAILABLE,
    "The data folder cannot be written",
    "The server may not write to its data folder: check its owner, and whether the disk is mounted read-only. "
    "Nothing was changed.",
)
NO_DATABASE = Trouble(
    UNAVAILABLE,
    "The database does not answer",
    "The server cannot reach its database, or the database cannot read its files. Check that it runs, and try again. "
    "Nothing was changed.",
)


def trouble_of(error: BaseException | None) -> Trouble | None:
    """The trouble behind an exception; None where it is something else."""
    if isinstance(error, OSError):
        if error.errno in _FULL_CODES or error.strerror in _FULL_WORDS:
            return DISK_FULL
        return UNWRITABLE if error.errno in _UNWRITABLE_CODES else None
    if isinstance(error, DatabaseError | InterfaceError | sqlite3.Error):
        words = str(error).lower()
        sqlite = next((trouble for begin, trouble in _SQLITE_WORDS.items() if words.startswith(begin)), None)
        return _of_postgres(error) or sqlite
    return None


def _of_postgres(error: Exception) -> Trouble | None:
    state = getattr(error.__cause__, "sqlstate", None)
    if state in _POSTGRES_FULL:
        return DISK_FULL
    if state in _POSTGRES_LOCKED:
        return LOCKED
    connecting = type(error.__cause__).__module__.startswith("psycopg") and type(error).__name__ == "OperationalError"
    return NO_DATABASE if connecting else None


# The words of SQLite's result codes: https://www.sqlite.org/rescode.html
_SQLITE_WORDS = {
    "database or disk is full": DISK_FULL,
    "database is locked": LOCKED,
    "database table is locked": LOCKED,
    "attempt to write a readonly database": UNWRITABLE,
    "unable to open database file": NO_DATABASE,
    "disk i/o error": NO_DATABASE,
}
