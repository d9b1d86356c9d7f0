"""SQLite files of unknown origin, read and never written: no extensions, views or triggers; limits on time and size.

With a `-wal` file beside it a database is copied together with it, because reading a write-ahead log needs a
shared-memory file next to the database; without one it is opened in place as immutable.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from guard_core.errors import DamagedRecording, LimitExceeded
from guard_core.recordings.reading import normalise
from guard_core.recordings.reading.source import ByteSource, SourceShape

_STEPS = 100_000  # SQLite instructions between two looks at the clock
WAL_MODE = b"\x02\x02"  # bytes 18 and 19 of the header
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION})
_FUNCTIONS = frozenset({"count", "max", "min", "length", "typeof", "sum", "coalesce"})
Tables = dict[str, tuple[str, ...]]
DatabaseRow = dict[str, Any]


def tables(source: ByteSource) -> Tables:
    """The plain tables of a SQLite source with their columns; empty where it is none, or cannot be opened."""
    columns: Tables = {} if source.shape is not SourceShape.SQLITE or why_unreadable(source) else source.memo["tables"]
    return columns


def why_unreadable(source: ByteSource) -> str:
    """Why a SQLite source cannot be opened: it is cut off, or what SQLite says; empty where it can."""
    if "unreadable" not in source.memo:
        try:
            with Database(source) as database:
                source.memo.update(tables=database.tables, unreadable="")
        except DamagedRecording as error:
            source.memo["unreadable"] = _cut_off(source) or str(error)
    reason: str = source.memo["unreadable"]
    return reason


def _cut_off(source: ByteSource) -> str:
    """That a file has fewer bytes than its pages need; empty where it has not. The header has the size of a page at 16
    (1: 65,536) and their number at 28: https://www.sqlite.org/fileformat2.html, section 1.3."""
    header = source.head(32)
    page, pages = int.from_bytes(header[16:18]), int.from_bytes(header[28:32])
    needed = pages * (65_536 if page == 1 else page)
    return f"it is cut off: it has {source.size:,} of {needed:,} bytes" if source.size < needed else ""


WAL_NOTE = "If the database was copied while it was in use, its newest messages are in the -wal file beside it."


def is_wal_missing(source: ByteSource) -> bool:
    """Does the database use a write-ahead log that is missing?"""
    wal = source.beside("-wal")
    return source.head(20)[18:20] == WAL_MODE and (wal is None or not wal.stat().st_size)


class Database:
    """A SQLite file opened for reading. Errors of SQLite become DamagedRecording or LimitExceeded."""

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self._folder: Path | None = None
        self._deadline = 0.0
        self._not_text = ""  # what is wrong with a text of the row that is being read
        self.wal_missing = False
        self._connection = self._connect()
        try:
            self._secure()
            self.tables: Tables = self._read_tables()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database and remove the copy."""
        self._connection.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def rows(
        self, table: str, columns: Sequence[str] = (), *, where: DatabaseRow | None = None, order: Sequence[str] = ()
    ) -> Iterator[DatabaseRow]:
        """Rows of a table as objects. Columns (all of them by default) that the table lacks are None.

        `where` compares columns for equality; `order` is a list of columns, "rowid" among them. A text that is not
        UTF-8 raises DamagedRecording in strict mode, else its bytes become U+FFFD, noted.
        """
        present = self.tables.get(table, ())
        wanted = list(columns or present)
        known = [name for name in wanted if name in present]
        if not known:
            return
        sql = f"SELECT {', '.join(_quoted(name) for name in known)} FROM {_quoted(table)}"
        conditions = {name: value for name, value in (where or {}).items() if name in present}
        if conditions:
            sql += " WHERE " + " AND ".join(f"{_quoted(name)} IS ?" for name in conditions)
        sorts = [_quoted(name) if name != "rowid" else name for name in order if name in present or name == "rowid"]
        if sorts:
            sql += f" ORDER BY {', '.join(sorts)}"
        empty = dict.fromkeys(wanted)
        for number, values in enumerate(self._query(sql, tuple(conditions.values())), 1):
            if self._not_text:
                self.source.problem(f"row {number} of the table {table}: {self._not_text}")
                self._not_text = ""
            yield {**empty, **dict(zip(known, values, strict=True))}

    def count(self, table: str) -> int:
        """The number of rows."""
        return next(iter(self._query(f"SELECT count(*) FROM {_quoted(table)}")))[0] if table in self.tables else 0

    def json(self, value: Any, what: str) -> Any:
        """The JSON in a column (text or bytes); None where it holds none. Raises DamagedRecording."""
        if isinstance(value, str):
            value = value.encode("utf-8", "replace")
        return self.source.parse(value, allow_nan=True, what=what) if isinstance(value, bytes) and value else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know where the write-ahead log is missing: as a program leaves its database when it
        ends, or because it was copied before."""
        return (WAL_NOTE,) if self.wal_missing else ()

    def wal_sentence(self) -> str:
        """What a person should know when rows that should be there are not, and the write-ahead log is missing."""
        if not self.wal_missing:
            return ""
        return "its newest rows may be in the write-ahead log, a file ending in -wal, which is missing"

    # -- safety

    def _connect(self) -> sqlite3.Connection:
        path = self.source.path
        wal = self.source.beside("-wal")
        if wal is not None and wal.stat().st_size:
            path = self._copy(path, wal)
            options = "mode=rw"
        else:
            self.wal_missing = is_wal_missing(self.source)
            options = "mode=ro&immutable=1"
        try:
            uri = f"file:{quote(str(path.resolve()))}?{options}"
            return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise DamagedRecording(f"the database cannot be opened ({error})") from error

    def _copy(self, path: Path, wal: Path) -> Path:
        limit = self.source.limits.request_bytes
        if wal.stat().st_size > limit:
            raise LimitExceeded(f"the -wal file has {wal.stat().st_size} bytes (limit {limit})")
        self._folder = Path(tempfile.mkdtemp(prefix="recording-"))
        copy = self._folder / "copy.db"
        shutil.copyfile(path, copy)
        shutil.copyfile(wal, self._folder / "copy.db-wal")
        return copy

    def _secure(self) -> None:
        connection = self._connection
        connection.text_factory = self._text
        length = self.source.limits.line_bytes
        for category, value in (
            (sqlite3.SQLITE_LIMIT_LENGTH, length),
            (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 100_000),
            (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 50),
            (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
            (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 1),
            (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
        ):
            connection.setlimit(category, value)
        for pragma in ("query_only=ON", "cell_size_check=ON", "mmap_size=0"):
            self._run(f"PRAGMA {pragma}")
        connection.set_progress_handler(self._too_long, _STEPS)

    def _read_tables(self) -> Tables:
        """Plain tables only: a view or a virtual table of a hostile file could run for ever.

        SQLite 3.40 takes its JSON functions for unsafe: where it distrusts the schema, it does not open a database with
        an index over one, such as Kilo's. So the schema is distrusted once it is read: reading it runs none of its
        functions, and each later statement is checked for those that it would run.
        """
        columns_of: Tables = {}
        schema = "SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name LIMIT 1000"
        for name, sql in self._query(schema):
            if isinstance(name, str) and isinstance(sql, str) and not sql.lstrip().upper().startswith("CREATE VIRTUAL"):
                columns = self._query(f"PRAGMA table_info({_quoted(name)})")
                columns_of[name] = tuple(column[1] for column in columns if isinstance(column[1], str))
        self._run("PRAGMA trusted_schema=OFF")
        self._connection.set_authorizer(_authorize)
        return columns_of

    def _run(self, sql: str) -> None:
        for _ in self._query(sql):
            pass

    def _query(self, sql: str, parameters: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        seconds = self.source.limits.database_seconds
        self._deadline = time.monotonic() + seconds
        try:
            for row in self._connection.execute(sql, parameters):
                yield row
                self._deadline = time.monotonic() + seconds  # the reader's own time does not count
        except sqlite3.OperationalError as error:
            if "interrupted" in str(error):
                raise LimitExceeded(f"reading the database took longer than {seconds:g} seconds") from error
            raise DamagedRecording(f"the database is damaged ({error})") from error
        except sqlite3.DataError as error:
            limit = self.source.limits.line_bytes
            raise LimitExceeded(f"a value in the database is longer than {limit} bytes") from error
        except UnicodeDecodeError as error:  # SQLite quotes the damaged bytes in its message
            raise DamagedRecording("the database is damaged (its schema is not text)") from error
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
            raise DamagedRecording(f"the database is damaged ({error})") from error

    def _too_long(self) -> int:
        """SQLite asks every `_STEPS` instructions of a statement, and ends it at anything but 0."""
        return 1 if time.monotonic() > self._deadline else 0

    def _text(self, raw: bytes) -> str:
        try:
            decoded = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            self._not_text = f"the byte 0x{raw[error.start]:02x}, which is not UTF-8"
            decoded = raw.decode("utf-8", "replace")
        cleaned, count = normalise.text(decoded)
        self.source.notes.mended += count
        return cleaned


def _authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """SQLite asks this of whatever a statement would do before it runs; only what is listed is allowed."""
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_OK if (second or "").lower() in _FUNCTIONS else sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
