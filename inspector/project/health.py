"""Is this server fit to work: what the disk, the database and the worker say, in sentences for a person."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.db import connection, transaction
from django.db.utils import Error

from inspector.data_folder.versions import is_outdated
from inspector.project.trouble import LOCKED, trouble_of
from inspector.storage.writing import waiting_at_most

WORKER_SILENT_SECONDS = 30  # a beat is due every 2 seconds, and may wait for a lock of the database (LOCK_SECONDS)
STARTING_SECONDS = 30  # after this process began: its worker may not have come up yet
WRITER_SECONDS = 1.5  # for another writer of SQLite, whose transactions are short; health checks wait for 2 s
LOCKED_SECONDS = 5.0  # from the first check to the last that all found a lock, while nothing was committed
_LOCKED = f"{LOCKED.title}."
_began = time.monotonic()
_current: list[bool] = []  # filled once the database was found to be of this version


class Lock:
    """Distinguishes a lock that is never released from writers that take turns, as while a large file is imported.

    A check that finds the database locked says when that was, and what was `written` last.
    """

    def __init__(self) -> None:
        self._since: float | None = None
        self._written: object = None

    def is_stuck(self, moment: float, written: object) -> bool:
        """Did all checks of LOCKED_SECONDS find a lock, and nothing that was written meanwhile."""
        if self._since is None or written != self._written:
            self._since, self._written = moment, written
        return moment - self._since >= LOCKED_SECONDS

    def free(self) -> None:
        """A check has found no lock."""
        self._since = None


_lock = Lock()


def beat() -> None:
    """Say that a worker is alive."""
    with suppress(OSError):  # a full disk: then that is what is reported
        _beat_file().touch(mode=0o600)


def problems(began: float = _began) -> Iterator[dict[str, str]]:
    """What keeps the server from its work, each with what it is about and a sentence.

    `began`: the moment at which this process did, by the clock of `time.monotonic`.
    """
    if full := disk():
        yield {"about": "disk", "reason": full}
    if locked := _database():
        yield {"about": "database", "reason": locked}
    if silent := _worker(began):
        yield {"about": "worker", "reason": silent}


def unready() -> Iterator[dict[str, str]]:
    """What keeps this process from answering requests, as `problems`."""
    trouble = _database_now()
    if trouble and trouble != _LOCKED:
        yield {"about": "database", "reason": trouble}
    elif not trouble and _is_outdated():
        yield {"about": "database", "reason": "The database is of another version and waits for its upgrade."}


def _is_outdated() -> bool:
    """Asked until it is not: no other version takes over a database in use."""
    if not _current:
        _current.extend([True] * (not is_outdated()))
    return not _current


def forget_version() -> None:
    """Look at the version of the database again."""
    _current.clear()


def disk() -> str:
    """What is wrong with the disk of the data folder, in a sentence; "" for nothing."""
    free = shutil.disk_usage(settings.DATA_DIR).free
    if free >= settings.MIN_FREE_BYTES:
        return ""
    limit = settings.MIN_FREE_BYTES
    return f"{free:,} bytes are free on the disk of the data folder, below the limit of {limit:,} (MIN_FREE_BYTES)."


def _database() -> str:
    """Why the database does not work. A lock counts once it is held for long: writers hold it for moments."""
    trouble = _database_now()
    if trouble != _LOCKED:
        _lock.free()
        return trouble
    return trouble if _lock.is_stuck(time.monotonic(), _written()) else ""


def _written() -> int:
    """When SQLite was last written to, as its file system says: each commit writes to the log beside the database."""
    try:
        return Path(f"{connection.settings_dict['NAME']}-wal").stat().st_mtime_ns
    except OSError:
        return 0


def _database_now() -> str:
    try:
        if connection.vendor == "sqlite":
            _take_the_lock()
        elif _read_only_postgres():
            return "The database takes no writes: it is read-only."
    except Error as error:
        connection.close()
        trouble = trouble_of(error)
        return f"{trouble.title}." if trouble else "The database does not answer."
    return ""


def _take_the_lock() -> None:
    """Begin to write, and leave it at that; other requests wait longer for another writer."""
    with waiting_at_most(WRITER_SECONDS), transaction.atomic():
        pass


def _read_only_postgres() -> bool:
    """Does the server refuse writes, as a standby or by its settings; it answers every question all the same."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'")
        return bool(cursor.fetchone()[0])


def _worker(began: float) -> str:
    try:
        silent = time.time() - _beat_file().stat().st_mtime
    except FileNotFoundError:
        silent = WORKER_SILENT_SECONDS
    starting = time.monotonic() - began < STARTING_SECONDS
    # A beat of the future is one from before the clock was set back: the next one puts it right.
    if starting or -WORKER_SILENT_SECONDS < silent < WORKER_SILENT_SECONDS:
        return ""
    return "No worker is alive: imports wait. The server starts one by itself; see its log."


def _beat_file() -> Path:
    return Path(settings.DATA_DIR) / "worker.beat"
