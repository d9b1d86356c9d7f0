"""The one seam between rows and engine values.

A session is stored as columns (ledger, attribution, marks), a head (everything but the events) and one payload per
distinct message. Columns and heads are cached per process by (id, revision); texts are read for the window asked for.
"""

from __future__ import annotations

import hashlib
import math
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import islice
from typing import Any, cast

import msgspec
import numpy as np
import zstandard
from django.db import connection, transaction
from django.db.models import F

from guard_core.attribution import Attribution
from guard_core.events import Event as CoreEvent
from guard_core.events import Part, Role
from guard_core.ledger import Ledger
from guard_core.packing import decode, encode
from guard_core.sessions import Session as CoreSession
from guard_core.sessions import Sourced
from inspector.kept import Kept
from inspector.models import Event, Payload, Recording, Session, SessionData

BATCH_BYTES = 4_000_000  # of texts a statement
BATCH = 500  # rows a statement; PostgreSQL takes 65,535 parameters, old SQLite 32,766
ZSTD_LEVEL = 3  # measured on transcripts: 0.34 of the size at 200 MB/s
KEPT_BYTES = 120_000_000  # of loaded columns, heads and marks in a process; of a 50,000-step session about 45 MB
CALL_BYTES, ID_BYTES = 320, 90  # of one model call, of one id, as Python holds them

_local = threading.local()


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


def store_session(
    recording: Recording,
    ordinal: int,
    value: CoreSession,
    ledger: Ledger,
    attribution: Attribution | None,
    *,
    window: Sourced,
    counts: dict[str, Any],
) -> Session:
    """Store one session, whole or not at all. `counts` are further columns of the row."""
    with transaction.atomic():
        texts = _stored(value)
        row = Session.objects.create(
            recording=recording,
            ordinal=ordinal,
            title=(value.title or recording.name)[:200],
            format=value.format[:40],
            agent=value.agent[:200],
            model=value.model[:200],
            window=window.value,
            window_source=window.source.value,
            window_note=window.note[:200],
            started_at=_moment(value.started_at),
            **counts,
        )
        SessionData.objects.create(
            session=row,
            ledger=_pack(ledger.to_bytes()),
            head=_pack(encode(msgspec.structs.replace(value, events=()))),
            attribution=_pack(attribution.to_bytes()) if attribution else None,
            lines=_pack(encode(texts.marks)),
        )
        _insert_events(row, texts.keys)
    return row


def extend_session(
    row: Session,
    recording: Recording,
    value: CoreSession,
    ledger: Ledger,
    attribution: Attribution | None,
    *,
    window: Sourced,
    counts: dict[str, Any],
    kept: int,
) -> Session:
    """The same session, longer: its first `kept` events stay, its name, tags and own window too."""
    with transaction.atomic():
        texts = _stored(value)
        Event.objects.filter(session=row, seq__gte=kept).delete()
        columns = {
            "recording": recording,
            "agent": value.agent[:200],
            "model": value.model[:200],
            "window": window.value,
            "window_source": window.source.value,
            "window_note": window.note[:200],
            **counts,
        }
        Session.objects.filter(pk=row.pk).update(revision=F("revision") + 1, **columns)
        SessionData.objects.filter(session=row).update(
            ledger=_pack(ledger.to_bytes()),
            head=_pack(encode(msgspec.structs.replace(value, events=()))),
            attribution=_pack(attribution.to_bytes()) if attribution else None,
            lines=_pack(encode(texts.marks)),
        )
        _insert_events(row, texts.keys, kept)
    row.refresh_from_db()
    return row


def common_events(row: Session, events: Sequence[CoreEvent]) -> int:
    """How many events at the beginning of a stored session are the same as these."""
    stored = Event.objects.filter(session=row).order_by("seq").values_list("payload_id", flat=True)
    keys = events.keys if isinstance(events, StoredTexts) else (hashlib.sha256(_packed(e)).digest() for e in events)
    same = 0
    for known, key in zip(stored.iterator(chunk_size=2_000), keys, strict=False):
        if bytes(known) != key:
            break
        same += 1
    return same


def load_ledger(row: Session) -> Ledger:
    """The columns of a session."""
    return cast(Ledger, _kept_of(row, _ledger))


def load_attribution(row: Session) -> Attribution | None:
    """The attribution of a session; None where it was not made."""
    return cast(Attribution | None, _kept_of(row, _attribution))


def load_head(row: Session) -> CoreSession:
    """Calls, recorded compactions, system prompt, tools: the session without its events."""
    return cast(CoreSession, _kept_of(row, _head))


def load_events(row: Session, start: int, stop: int) -> list[CoreEvent]:
    """The events `start` to `stop` (exclusive), with their texts."""
    rows = Event.objects.filter(session=row, seq__gte=start, seq__lt=stop).order_by("seq")
    return list(_events(row, rows))


def load_some_events(row: Session, sequence: Sequence[int]) -> dict[int, CoreEvent]:
    """The events with these numbers, by number."""
    rows = Event.objects.filter(session=row, seq__in=list(sequence)).order_by("seq")
    numbers = list(rows.values_list("seq", flat=True))
    return dict(zip(numbers, _events(row, rows), strict=True))


def load_content(body: bytes) -> Content:
    """The message in a payload's bytes."""
    return decode(_unpack(body), Content, "message")


def load_session(row: Session) -> CoreSession:
    """The whole session, all texts: for exports and jobs, not for pages."""
    return msgspec.structs.replace(load_head(row), events=tuple(load_events(row, 0, row.events)))


def forget(row: Session) -> None:
    """Drop cached columns, after a session was changed in place."""
    _kept.clear()


def _kept_of(row: Session, load: Callable[[str], Any]) -> Any:
    """What `load` gives for a session, kept by its key and revision."""
    key = str(row.pk)
    return _kept.get((load, key, row.revision), lambda: load(key))


def _size(value: Any) -> int:
    """About the bytes that a loaded value holds."""
    match value:
        case Ledger():
            return 2 * sum(column.nbytes for column in (*value.events.values(), *value.steps.values()))  # prefix sums
        case Attribution():
            return 2 * (value.tokens.nbytes + value.source.nbytes + value.residual.nbytes + value.baseline.nbytes)
        case CoreSession():
            return CALL_BYTES * len(value.calls)
        case (lines, timestamps, source_ids):
            return int(lines.nbytes + timestamps.nbytes + ID_BYTES * len(source_ids))
    return 0


_kept: Kept[Any] = Kept(KEPT_BYTES, _size)


def _ledger(session_id: str) -> Ledger:
    return Ledger.from_bytes(_unpack(_data(session_id, "ledger")))


def _attribution(session_id: str) -> Attribution | None:
    stored = _data(session_id, "attribution")
    return Attribution.from_bytes(_unpack(stored)) if stored else None


def _head(session_id: str) -> CoreSession:
    return decode(_unpack(_data(session_id, "head")), CoreSession, "session")


def _loaded_marks(session_id: str) -> tuple[Any, Any, tuple[str, ...]]:
    marks = decode(_unpack(_data(session_id, "lines")), Marks, "places of events")
    return np.frombuffer(marks.lines, dtype="<i8"), np.frombuffer(marks.timestamps, dtype="<f8"), marks.source_ids


def _data(session_id: str, name: str) -> bytes:
    value: bytes = SessionData.objects.values_list(name, flat=True).get(session_id=session_id)
    return value


def _events(row: Session, rows: Any) -> Iterator[CoreEvent]:
    lines, timestamps, source_ids = _kept_of(row, _loaded_marks)
    for seq, body in rows.values_list("seq", "payload__body"):
        content = load_content(body)
        yield CoreEvent(
            role=content.role,
            parts=content.parts,
            author=content.author,
            meta=content.meta,
            source_id=source_ids[seq],
            line=None if lines[seq] < 0 else int(lines[seq]),
            timestamp=None if np.isnan(timestamps[seq]) else float(timestamps[seq]),
        )


def _packed(event: CoreEvent) -> bytes:
    return encode(Content(role=event.role, parts=event.parts, author=event.author, meta=event.meta))


class StoredTexts(Sequence[CoreEvent]):
    """The events of a session whose texts are in the database already: what is left to store of them.

    It stands in the place of a session's events; only convert looks inside, and nobody can read an event from it.
    """

    def __init__(self, keys: list[bytes], marks: Marks) -> None:
        self.keys, self.marks = keys, marks

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: Any) -> Any:
        raise TypeError("the texts of this session are stored; load them from its row")


def store_texts(events: Iterable[CoreEvent], each: Callable[[CoreEvent], object] = lambda event: None) -> StoredTexts:
    """Store the texts of events, each text once, in many short transactions; `each` sees every event on its way.

    Nothing shows them before `store_session` names them; what no session names is swept by `deleting.drop_texts`.
    """
    lines, moments, source_ids = array("q"), array("d"), []
    with _TextWriter() as writer:
        for event in events:
            each(event)
            writer.add(event)
            lines.append(-1 if event.line is None else event.line)
            moments.append(math.nan if event.timestamp is None else event.timestamp)
            source_ids.append(event.source_id)
        writer.flush()
    marks = Marks(np.array(lines, dtype="<i8").tobytes(), np.array(moments, dtype="<f8").tobytes(), tuple(source_ids))
    return StoredTexts(writer.keys, marks)


def _stored(value: CoreSession) -> StoredTexts:
    found: Any = value.events
    return found if isinstance(found, StoredTexts) else store_texts(found)


class _TextWriter:
    """Compresses texts and inserts them in batches; `keys` in the order of the events.

    A batch is compressed in one call without the interpreter's lock, on a thread beside this one.
    """

    def __init__(self) -> None:
        self.keys: list[bytes] = []
        self._known: dict[bytes, bytes] = {}
        self._fresh: dict[bytes, bytes] = {}
        self._bytes = 0
        self._helper = ThreadPoolExecutor(1, "texts")
        self._pressed: tuple[list[bytes], Future[list[bytes]]] | None = None

    def __enter__(self) -> _TextWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._helper.shutdown()

    def add(self, event: CoreEvent) -> None:
        packed = _packed(event)
        key = hashlib.sha256(packed).digest()
        known = self._known.setdefault(key, key)
        self.keys.append(known)
        if known is key:
            self._fresh[key] = packed
            self._bytes += len(packed)
            if len(self._fresh) >= BATCH or self._bytes >= BATCH_BYTES:
                self._send()

    def flush(self) -> None:
        self._send()
        self._store()

    def _send(self) -> None:
        """Insert the batch before, and hand this one over."""
        fresh, self._fresh, self._bytes = self._fresh, {}, 0
        self._store()
        if fresh:
            self._pressed = list(fresh), self._helper.submit(_compressed, list(fresh.values()))

    def _store(self) -> None:
        """Texts that another session brought already are left as they are."""
        if self._pressed is None:
            return
        keys, bodies = self._pressed
        self._pressed = None
        table = connection.ops.quote_name(Payload._meta.db_table)
        statement = f"INSERT INTO {table} (sha256, body) VALUES (%s, %s) ON CONFLICT DO NOTHING"
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.executemany(statement, list(zip(keys, bodies.result(), strict=True)))


def _compressed(texts: list[bytes]) -> list[bytes]:
    compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL)
    if len(texts) == 1:
        return [compressor.compress(texts[0])]
    return [segment.tobytes() for segment in compressor.multi_compress_to_buffer(texts)]


def _insert_events(row: Session, keys: list[bytes], start: int = 0) -> None:
    table = connection.ops.quote_name(Event._meta.db_table)
    owner = Event._meta.get_field("session").get_db_prep_value(row.pk, connection)
    statement = f"INSERT INTO {table} (session_id, seq, payload_id) VALUES (%s, %s, %s)"
    numbered = iter((owner, seq, key) for seq, key in enumerate(keys) if seq >= start)
    with connection.cursor() as cursor:
        while batch := list(islice(numbered, BATCH)):
            cursor.executemany(statement, batch)


def _moment(seconds: float | None) -> datetime | None:
    """A time that both databases can keep; a year outside 1 to 9999 is no time."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _pack(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(data)


def _unpack(data: bytes) -> bytes:
    """One decompressor a thread: making one costs more than a message does."""
    if not hasattr(_local, "decompressor"):
        _local.decompressor = zstandard.ZstdDecompressor()
    unpacked: bytes = _local.decompressor.decompress(bytes(data))
    return unpacked
