"""A SQLite connection that does not starve while others write.

SQLite has one writer. Its own busy handler looks for the lock after longer and longer pauses, of up to 100 ms
(`sqliteDefaultBusyCallback`, https://www.sqlite.org/src/file/src/main.c), in no order: a process that waits while
another one writes many short transactions may miss every gap between them for as long as they come. Here whoever waits
looks every millisecond or two, and so finds the first gap that is as long.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterable
from time import monotonic, sleep
from typing import Any
from weakref import WeakSet

from django.db.backends.sqlite3 import base

from inspector.storage.sqlite3.spare import SPARES, File

# Seconds between two looks for the lock. Ours: a look costs SQLite two microseconds, a short transaction takes some
# milliseconds; of random length, for two that would look at the same moments.
LOOK_EVERY = 0.001, 0.002
# What waiting helps against (https://www.sqlite.org/rescode.html): another connection writes, or mends the log of one
# that died. A transaction that began to read before another wrote (SQLITE_BUSY_SNAPSHOT) never gets the lock.
BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_RECOVERY}


class Cursor(base.SQLiteCursorWrapper):
    """A cursor whose statements wait for the lock for as long as its connection has patience."""

    def __init__(self, connection: sqlite3.Connection, patience: Callable[[], float]) -> None:
        super().__init__(connection)
        self._patience = patience

    def execute(self, query: str, params: Any = None) -> Any:
        """Execute; sqlite3.OperationalError ("database is locked") where others write for too long."""
        return self._waiting(lambda: super(Cursor, self).execute(query, params))

    def executemany(self, query: str, param_list: Iterable[Any]) -> Any:
        """As `execute`, for each row of parameters."""
        rows = list(param_list)
        return self._waiting(lambda: super(Cursor, self).executemany(query, rows))

    def _waiting(self, execute: Callable[[], Any]) -> Any:
        give_up = None
        while True:
            try:
                return execute()
            except sqlite3.OperationalError as error:
                now = monotonic()
                give_up = give_up or now + self._patience()
                if getattr(error, "sqlite_errorcode", None) not in BUSY or now >= give_up:  # Python raises some itself
                    raise
            sleep(random.uniform(*LOOK_EVERY))  # noqa: S311 - no secret


class DatabaseWrapper(base.DatabaseWrapper):
    """As Django's. `patience`: the seconds for which a statement waits for the lock of the writer."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.patience: float = self.settings_dict["OPTIONS"].get("timeout", 5.0)  # the default of sqlite3.connect
        self._cursors: WeakSet[Cursor] = WeakSet()
        self._file: File | None = None

    def get_new_connection(self, conn_params: dict[str, Any]) -> sqlite3.Connection:
        """A connection that has been set up, and from now on does not wait by itself; a spare one, if there is one."""
        connection = SPARES.take(conn_params["database"])
        if connection is None:
            connection = super().get_new_connection(conn_params)
            assert connection is not None
            connection.execute("PRAGMA busy_timeout = 0")
        self._file = File.at(conn_params["database"])
        return connection

    def create_cursor(self, name: str | None = None) -> Cursor:
        """A cursor that waits. The connection makes it, for only then does it forget the cursors that are gone
        (`_pysqlite_drop_unused_cursor_references`, CPython 3.11 Modules/_sqlite/connection.c): a connection that lives
        for as long as the process would keep a hundred bytes of each."""
        cursor: Cursor = self.connection.cursor(lambda connection: Cursor(connection, lambda: self.patience))
        self._cursors.add(cursor)
        return cursor

    def _close(self) -> None:
        """Close the connection, or keep it for another thread, without a cursor that has not read all of its rows: the
        next statements would not see what was written since."""
        for cursor in list(self._cursors):
            cursor.close()
        self._cursors.clear()
        if self.errors_occurred or not SPARES.keep(self._file, self.connection):
            with self.wrap_database_errors:
                self.connection.close()
