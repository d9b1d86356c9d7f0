"""Texts on their way into the database: each stored once, compressed; events numbered; words indexed.

A session that is stored for the first time has a row from the beginning, which no page shows: its events, their texts
and the words of the text search come in short transactions, each of them whole, and `storing.store_session` puts the
session on the list in the end. What is left of an import that ended otherwise is a row like that of a deleted session,
and `deleting.purge_unfinished` takes it away.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec
import numpy as np
import zstandard
from django.db import connection, transaction
from django.db.models import Max, Min, Model
from django.utils import timezone

from guard_core.events import Event as CoreEvent
from inspector.ingest.reading.messages import EventBatch
from inspector.models import Event, Payload, Recording, Session
from inspector.storage import compression
from inspector.storage.contents import key_of, packed, unpacked
from inspector.storage.text_index import IndexedText, text_index

AHEAD = 1  # batches that are prepared, on a thread, while one is stored
ROWS = 512  # of a statement; PostgreSQL takes 65,535 values in one, SQLite 32,766 (999 before 3.32)
FEW = 20  # rows that are not worth filling up


class Marks(msgspec.Struct, frozen=True):
    """Place and time of every event of a session, in order."""

    lines: bytes  # int64, -1: none
    timestamps: bytes  # float64, nan: none
    source_ids: tuple[str, ...]


class StoredTexts(Sequence[CoreEvent]):
    """The events of a session whose texts are in the database already: what is left to store of them.

    It takes the place of a session's events; only convert looks inside, and no event can be read from it.
    `row` is the row that has them; None where they are to be put into one, by their `keys`.
    """

    def __init__(self, count: int, keys: list[bytes], marks: Marks, row: Session | None) -> None:
        self._count, self.keys, self.marks, self.row = count, keys, marks, row

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        raise TypeError("the texts of this session are stored; load them from its row")


def begin(recording: Recording) -> Session:
    """The row of a session that is being stored: off the list, at no place in the file."""
    last = recording.sessions.aggregate(last=Min("ordinal"))["last"]
    return Session.objects.of(recording.project_id).create(
        recording=recording, ordinal=min(last or 0, 0) - 1, deleted=timezone.now(), window=0
    )


class TextWriter:
    """Stores the texts of one session, batch by batch in short transactions; on the pool's one thread the next batch is
    compressed and its events are counted (`each` receives them, in order, without place and time).

    With a `recording` a row is begun for the session, and its events and their words are stored, too; else the texts
    alone. `stored` is called after each transaction with the number of its events.
    """

    def __init__(
        self,
        recording: Recording | None,
        pool: Executor,
        *,
        each: Callable[[CoreEvent], object] = lambda event: None,
        stored: Callable[[int], object] = lambda count: None,
    ) -> None:
        self.row: Session | None = None  # begun with the first batch
        self._recording, self._pool, self._each, self._stored = recording, pool, each, stored
        self._waiting: deque[Future[_Batch]] = deque()
        self._count = 0
        self._keys: list[bytes] = []  # where the events are not stored
        self._lines, self._moments = bytearray(), bytearray()
        self._source_ids: list[str] = []

    def add(self, batch: EventBatch) -> None:
        """Take a batch; it is stored when the next one comes."""
        self._note_places(batch)
        self._waiting.append(self._pool.submit(self._prepared, batch))
        while len(self._waiting) > AHEAD:
            self._store(self._waiting.popleft().result())

    def skip(self, batch: EventBatch) -> None:
        """Take a batch whose texts are stored already, of a session whose events another row has."""
        self.settle()
        self._note_places(batch)
        self._keys += batch.keys
        self._count += len(batch.keys)
        self._stored(len(batch.keys))

    @property
    def is_new(self) -> bool:
        """Has no batch come yet."""
        return not self._lines

    def settle(self) -> int:
        """Store what waits; how many events are stored."""
        while self._waiting:
            self._store(self._waiting.popleft().result())
        return self._count

    def cut(self, count: int) -> None:
        """Continue behind the first `count` events: those behind them are gone from the database."""
        self._count = count
        del self._keys[count:], self._lines[8 * count :], self._moments[8 * count :], self._source_ids[count:]

    def texts(self) -> StoredTexts:
        """What is stored, in the place of the session's events."""
        self.settle()
        marks = Marks(bytes(self._lines), bytes(self._moments), tuple(self._source_ids))
        return StoredTexts(self._count, self._keys, marks, self.row)

    def _note_places(self, batch: EventBatch) -> None:
        self._lines += batch.lines
        self._moments += batch.timestamps
        self._source_ids += batch.source_ids

    def _prepared(self, batch: EventBatch) -> _Batch:
        """On the pool's thread, while the batch before it is stored."""
        for text, seconds in zip(batch.texts, np.frombuffer(batch.timestamps, dtype="<f8").tolist(), strict=True):
            self._each(unpacked(text, seconds))
        return _Batch(batch.keys, _compressed(dict(zip(batch.keys, batch.texts, strict=True))), batch.words)

    def _store(self, batch: _Batch) -> None:
        """Texts that another session brought already are left as they are."""
        with transaction.atomic():
            row = self.row or (begin(self._recording) if self._recording is not None else None)
            _insert(Payload, ("sha256", "body"), batch.texts.items())
            if row is not None:
                start, stop = self._count, self._count + len(batch.keys)
                insert_events(row, batch.keys, start)
                text_index().add(row, list(map(IndexedText, _numbers(row, start, stop), batch.words)))
                Session.objects.row(row).update(events=stop, indexed=stop)
                row.events = row.indexed = stop
        self.row = row
        self._count += len(batch.keys)
        if self.row is None:
            self._keys += batch.keys
        self._stored(len(batch.keys))


def marks_of(events: Sequence[CoreEvent]) -> Marks:
    """Place and time of some events."""
    lines = np.array([-1 if event.line is None else event.line for event in events], dtype="<i8")
    moments = np.array([np.nan if event.timestamp is None else event.timestamp for event in events], dtype="<f8")
    return Marks(lines.tobytes(), moments.tobytes(), tuple(event.source_id for event in events))


def store_texts(events: Sequence[CoreEvent]) -> StoredTexts:
    """Store the texts of events, without a row."""
    texts = list(map(packed, events))
    keys = list(map(key_of, texts))
    with transaction.atomic(savepoint=False):
        _insert(Payload, ("sha256", "body"), _compressed(dict(zip(keys, texts, strict=True))).items())
    return StoredTexts(len(keys), keys, marks_of(events), None)


def insert_events(row: Session, keys: Sequence[bytes], start: int = 0) -> None:
    """The numbered events of a session from `start` on."""
    owner = Event._meta.get_field("session").get_db_prep_value(row.pk, connection)
    _insert(Event, ("session_id", "seq", "payload_id"), ((owner, seq, key) for seq, key in enumerate(keys, start)))


@dataclass
class _Batch:
    keys: list[bytes]  # of the events, in order
    texts: dict[bytes, bytes]  # compressed
    words: list[str]


def _compressed(texts: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """In the order of their keys: on PostgreSQL, transactions that bring the same texts wait for each other, which is a
    deadlock where each has them in another order."""
    texts = dict(sorted(texts.items()))
    compressor = zstandard.ZstdCompressor(level=compression.LEVEL)
    plain: list[bytes | bytearray | memoryview] = list(texts.values())
    if len(plain) < 2:
        bodies = [compressor.compress(text) for text in plain]
    else:
        segments = compressor.multi_compress_to_buffer(plain)
        bodies = [segments[place].tobytes() for place in range(len(segments))]
    return dict(zip(texts, bodies, strict=True))


def _numbers(row: Session, start: int, stop: int) -> Iterable[int]:
    """The row numbers of events. Without gaps, as on SQLite, the ends are enough: fetched one by one, each would wait
    for the threads that have the interpreter's lock."""
    rows = Event.objects.in_session(row).filter(seq__gte=start, seq__lt=stop)
    ends = rows.aggregate(first=Min("pk"), last=Max("pk"))
    if ends["last"] - ends["first"] == stop - start - 1:
        return range(ends["first"], ends["last"] + 1)
    return rows.order_by("seq").values_list("pk", flat=True)


def _insert(model: type[Model], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Many rows a statement, since one call of the database for each is most of the time otherwise; those that are
    there already stay.

    The number of rows is a power of two, the last one repeated: SQLite's driver keeps statements that it has seen, each
    with the values that it had last.
    """
    table = connection.ops.quote_name(model._meta.db_table)
    place = f"({', '.join(['%s'] * len(columns))})"
    waiting = iter(rows)
    with connection.cursor() as cursor:
        while some := list(islice(waiting, ROWS)):
            full = some + some[-1:] * ((1 << (len(some) - 1).bit_length()) - len(some)) if len(some) > FEW else some
            places = ", ".join([place] * len(full))
            statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES {places} ON CONFLICT DO NOTHING"
            cursor.execute(statement, [value for values in full for value in values])
