"""Texts on their way into the database: each stored once, compressed; events numbered; words indexed.

A session that is stored for the first time has a row from the beginning, which no page shows: its events, their texts
and the words of the text search come in short transactions, each of them whole, and `convert.store_session` puts the
session on the list in the end. What is left of an import that ended otherwise is a row like that of a deleted session,
and `deleting.purge_unfinished` takes it away.

Three things run beside one another, since the interpreter's lock is free in two of them: counting and packing on one
thread, compressing on a second, the statements of the database here.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

import msgspec
import numpy as np
import zstandard
from django.db import connection, transaction
from django.db.models import Min, Model
from django.utils import timezone

from guard_core.events import Event as CoreEvent
from guard_core.events import Part, Role
from guard_core.packing import encode
from inspector.models import Event, Payload, Recording, Session
from inspector.text_index import Entry, text_index, text_of

BATCH_BYTES = 2_000_000  # of texts a transaction: a few of them are in memory at once
BATCH = 2_000  # events a transaction: each one is a segment of the text index
AHEAD = 1  # batches made before they are needed, on each of two threads
ROWS = 500  # of a statement; PostgreSQL takes 65,535 values in one, SQLite 32,766 (999 before 3.32)
ZSTD_LEVEL = 3  # measured on transcripts: 0.34 of the size at 200 MB/s
FEW = 20  # rows that are not worth filling up
T = TypeVar("T")
_END: Any = object()


class Content(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is stored once however often it is said: an event without its place and time."""

    role: Role
    parts: tuple[Part, ...]
    author: str = ""
    meta: bool = False


class Marks(msgspec.Struct, frozen=True):
    """Place and time of every event of a session, in order."""

    lines: bytes  # int64, -1: none
    timestamps: bytes  # float64, nan: none
    source_ids: tuple[str, ...]


class StoredTexts(Sequence[CoreEvent]):
    """The events of a session whose texts are in the database already: what is left to store of them.

    It stands in the place of a session's events; only convert looks inside, and nobody can read an event from it.
    `row` is the row that has them; None where the session that they extend is to take them over.
    """

    def __init__(self, keys: list[bytes], marks: Marks, row: Session | None) -> None:
        self.keys, self.marks, self.row = keys, marks, row

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: Any) -> Any:
        raise TypeError("the texts of this session are stored; load them from its row")


def begin(recording: Recording) -> Session:
    """The row of a session that is being stored: off the list, at no place in the file."""
    with transaction.atomic():
        last = Session.objects.filter(recording=recording).aggregate(last=Min("ordinal"))["last"]
        return Session.objects.create(
            recording=recording, ordinal=min(last or 0, 0) - 1, deleted=timezone.now(), window=0
        )


def store_texts(
    events: Iterable[CoreEvent],
    each: Callable[[CoreEvent], object] = lambda event: None,
    *,
    row: Session | None = None,
    stored: Callable[[int], object] = lambda count: None,
) -> StoredTexts:
    """Store the texts of events, and with a `row` the events and their words too, in many short transactions.

    `each` sees every event, on another thread; `stored` is told after each transaction how many events came with it.
    """
    marks = _MarkList()
    keys: list[bytes] = []
    with (
        closing(_ahead(_batches(events, each, marks, searched=row is not None))) as made,
        closing(_ahead(map(_compressed, made))) as batches,
    ):
        for batch in batches:
            _store(batch, row, len(keys))
            keys += batch.keys
            stored(len(batch.keys))
    return StoredTexts(keys, marks.packed(), row)


def packed(event: CoreEvent) -> bytes:
    """The bytes that are stored of an event's message, and whose SHA-256 is its key."""
    return encode(Content(role=event.role, parts=event.parts, author=event.author, meta=event.meta))


def insert_events(row: Session, keys: Sequence[bytes], start: int = 0) -> None:
    """The numbered events of a session from `start` on."""
    owner = Event._meta.get_field("session").get_db_prep_value(row.pk, connection)
    _insert(Event, ("session_id", "seq", "payload_id"), ((owner, seq, key) for seq, key in enumerate(keys, start)))


@dataclass
class _Batch:
    keys: list[bytes] = field(default_factory=list)  # of the events, in order
    texts: dict[bytes, bytes] = field(default_factory=dict)  # those that no batch before had
    words: list[str] = field(default_factory=list)  # of the events, where they are indexed
    size: int = 0  # bytes of `texts`


class _MarkList:
    """Places and times of events, one by one."""

    def __init__(self) -> None:
        self.lines, self.moments = array("q"), array("d")
        self.source_ids: list[str] = []

    def add(self, event: CoreEvent) -> None:
        self.lines.append(-1 if event.line is None else event.line)
        self.moments.append(math.nan if event.timestamp is None else event.timestamp)
        self.source_ids.append(event.source_id)

    def packed(self) -> Marks:
        lines, moments = np.array(self.lines, dtype="<i8"), np.array(self.moments, dtype="<f8")
        return Marks(lines.tobytes(), moments.tobytes(), tuple(self.source_ids))


def _batches(
    events: Iterable[CoreEvent], each: Callable[[CoreEvent], object], marks: _MarkList, *, searched: bool
) -> Iterator[_Batch]:
    known: dict[bytes, bytes] = {}
    batch = _Batch()
    for event in events:
        each(event)
        marks.add(event)
        text = packed(event)
        digest = hashlib.sha256(text).digest()
        key = known.setdefault(digest, digest)
        batch.keys.append(key)
        if key is digest:
            batch.texts[key] = text
            batch.size += len(text)
        if searched:
            batch.words.append(text_of(event.parts))
        if len(batch.keys) >= BATCH or batch.size >= BATCH_BYTES:
            yield batch
            batch = _Batch()
    if batch.keys:
        yield batch


def _compressed(batch: _Batch) -> _Batch:
    compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL)
    texts = list(batch.texts.values())
    if len(texts) == 1:
        bodies = [compressor.compress(texts[0])]
    else:
        bodies = [segment.tobytes() for segment in compressor.multi_compress_to_buffer(texts)] if texts else []
    batch.texts = dict(zip(batch.texts, bodies, strict=True))
    return batch


def _store(batch: _Batch, row: Session | None, start: int) -> None:
    """Texts that another session brought already are left as they are."""
    with transaction.atomic():
        _insert(Payload, ("sha256", "body"), batch.texts.items())
        if row is None:
            return
        insert_events(row, batch.keys, start)
        numbers = Event.objects.filter(session=row, seq__gte=start).order_by("seq").values_list("pk", flat=True)
        text_index().add(row, list(map(Entry, numbers, batch.words)))
        stop = start + len(batch.keys)
        Session.objects.filter(pk=row.pk).update(events=stop, indexed=stop)


def _insert(model: type[Model], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Many rows a statement, since one call of the database for each is most of the time otherwise; those that are
    there already stay.

    Always the same number of rows, the last one repeated: SQLite's driver keeps statements that it has seen, each with
    the values that it had last.
    """
    table = connection.ops.quote_name(model._meta.db_table)
    place = f"({', '.join(['%s'] * len(columns))})"
    waiting = iter(rows)
    with connection.cursor() as cursor:
        while some := list(islice(waiting, ROWS)):
            full = some + some[-1:] * (ROWS - len(some)) if len(some) > FEW else some
            places = ", ".join([place] * len(full))
            statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES {places} ON CONFLICT DO NOTHING"
            cursor.execute(statement, [value for values in full for value in values])


def _ahead(items: Iterable[T]) -> Generator[T, None, None]:
    """The same items, a few of them made on a thread before they are needed."""
    source = iter(items)
    with ThreadPoolExecutor(1, "texts") as pool:
        waiting = deque(pool.submit(next, source, _END) for _ in range(AHEAD))
        while (item := waiting.popleft().result()) is not _END:
            waiting.append(pool.submit(next, source, _END))
            yield item
