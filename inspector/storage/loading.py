"""Engine values from rows: the one place where stored columns, heads and texts are read.

Columns and heads are cached per process by (id, revision); texts are read for the window asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.columns import bytes_of, narrowed
from guard_core.counts import counted_compactions
from guard_core.errors import GuardError, OtherVersion
from guard_core.estimation.attribution import Attribution
from guard_core.estimation.grown import extended
from guard_core.events import Event as CoreEvent
from guard_core.findings.presence import RequestWords
from guard_core.ledger import Ints, Ledger
from guard_core.packing import decode
from guard_core.sessions import Provenance, Sourced
from guard_core.sessions import Session as CoreSession
from inspector.models import Event, Payload, Session, SessionData
from inspector.models.prepared import Select, Slot
from inspector.storage import chunks
from inspector.storage.byte_cache import ByteCache
from inspector.storage.compression import decompressed
from inspector.storage.contents import Content, key_of, packed
from inspector.storage.stored_calls import StoredCalls
from inspector.storage.texts import Marks, StoredTexts, store_texts

CACHE_BYTES = 40_000_000  # of loaded columns, heads and marks in a process; of a 50,000-step session about 45 MB
FETCHED, FEW = 2_000, 100  # keys of texts, texts in memory at once
TRIES = 10  # to read a session while it grows
CALL_BYTES, ID_BYTES = 320, 90  # of one model call, of one id, as Python holds them
READ_BYTES = 160  # of one event in the columns and prefix sums, of 8 bytes each, that pages read of a ledger


def short_head(known: SessionData) -> CoreSession:
    """The session without its events, and without its calls where they are in chunks."""
    return decode(decompressed(known.head), CoreSession, "session")


def window_in_use(row: Session) -> Sourced:
    """The context window of a session and where it comes from: a person's figure before the recording's."""
    if row.window_override:
        return Sourced(row.window_override, Provenance.USER, "set for this session")
    if row.model_window:
        return Sourced(row.model_window, Provenance.USER, f"set for {row.model}")
    return own_window(row)


def load_short_head(row: Session) -> CoreSession:
    """The session without its events and all that there is one of per call or compaction."""
    return short_head(_data(str(row.pk), "head"))


def own_window(row: Session) -> Sourced:
    """The context window that was looked up for a session, or that its recording has."""
    return Sourced(row.window, Provenance(row.window_source), row.window_note)


def ledger_state(row: Session) -> bytes:
    """What is stored of a ledger in chunks besides these."""
    return decompressed(_data(str(row.pk), "ledger").ledger)


def stored_keys(row: Session, start: int, stop: int) -> list[bytes]:
    """The keys of the texts of the events `start` to `stop` (exclusive)."""
    rows = Event.objects.in_session(row).filter(seq__gte=start, seq__lt=stop).order_by("seq")
    return list(map(bytes, rows.values_list("payload_id", flat=True)))


def common_events(row: Session, events: Sequence[CoreEvent]) -> int:
    """How many events at the beginning of a stored session are the same as these."""
    stored = Event.objects.in_session(row).order_by("seq").values_list("payload_id", flat=True)
    keys = keys_of(events) if isinstance(events, StoredTexts) else (key_of(packed(e)) for e in events)
    same = 0
    for known, key in zip(stored.iterator(chunk_size=FETCHED), keys, strict=False):
        if bytes(known) != key:
            break
        same += 1
    return same


def load_contents(value: CoreSession, start: int, stop: int) -> list[Content]:
    """The messages `start` to `stop` (exclusive) of a session that is being imported, from where they are stored."""
    keys = list(islice(keys_of(stored_texts(value)), start, stop))
    bodies = {bytes(key): body for key, body in Payload.objects.filter(sha256__in=keys).values_list("sha256", "body")}
    return [load_content(bodies[key]) for key in keys]


def first_key(value: CoreSession) -> bytes:
    """The key of the first text of a session that is being imported; empty where it has none."""
    return next(keys_of(stored_texts(value)), b"")


def is_in_a_row(value: CoreSession) -> bool:
    """Are the events of a session that is being imported numbered under a row already."""
    return isinstance(value.events, StoredTexts) and value.events.row is not None


def keys_of(texts: StoredTexts) -> Iterator[bytes]:
    """The keys of stored texts, in order."""
    if texts.row is None:
        return iter(texts.keys)
    stored = Event.objects.in_session(texts.row).order_by("seq").values_list("payload_id", flat=True)
    return map(bytes, stored.iterator(chunk_size=FETCHED))


class Outdated(Exception):
    """The columns of a session were stored by an earlier version. `recount` makes them again, which takes as long as
    its texts are: no page does that."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self.session_id = session_id


def load_ledger(row: Session) -> Ledger:
    """The columns of a session. Raises Outdated."""
    return cast(Ledger, kept_of(row, _ledger))


def load_only_ledger(row: Session) -> Ledger:
    """The same for a caller that uses nothing else of the session. Raises Outdated."""
    return cast(Ledger, _alone(row, _ledger))


def load_attribution(row: Session) -> Attribution | None:
    """The attribution of a session, by what was learnt when it was shorter if it has grown since; None where it was
    not made. Raises Outdated."""
    learnt = cast(Attribution | None, kept_of(row, _attribution))
    if learnt is None:
        return None
    ledger = load_ledger(row)
    if (len(learnt.tokens), len(learnt.residual)) == (ledger.event_count, ledger.step_count):
        return learnt
    key = extended, str(row.pk), row.revision
    return cast(Attribution, _cache.get(key, lambda: extended(learnt, ledger)))


def load_head(row: Session) -> CoreSession:
    """Calls, recorded compactions, system prompt, tools: the session without its events."""
    return cast(CoreSession, kept_of(row, _head))


def load_only_head(row: Session) -> CoreSession:
    """The same for a caller that uses nothing else of the session."""
    return cast(CoreSession, _alone(row, _head))


def load_events(row: Session, start: int, stop: int) -> list[CoreEvent]:
    """The events `start` to `stop` (exclusive), with their texts."""
    rows = Event.objects.in_session(row).filter(seq__gte=start, seq__lt=stop).order_by("seq")
    return [event for _, event in _events(row, rows)]


def load_some_events(row: Session, sequence: Sequence[int]) -> dict[int, CoreEvent]:
    """The events with these numbers, by number."""
    rows = Event.objects.in_session(row).filter(seq__in=list(sequence)).order_by("seq")
    return dict(_events(row, rows))


def load_messages(row: Session, sequence: Sequence[int]) -> list[tuple[int, CoreEvent]]:
    """The events with these numbers, each with its number, ascending: without place and time, which lie elsewhere."""
    rows = Event.objects.in_session(row).filter(seq__in=list(sequence)).order_by("seq")
    return [(seq, _message(body)) for seq, body in rows.values_list("seq", "payload__body")]


def load_content(body: bytes | memoryview) -> Content:
    """The message in a payload's bytes."""
    return decode(decompressed(body), Content, "message")


def stored_events(value: Session | StoredTexts) -> Iterator[CoreEvent]:
    """All messages of a stored session, or of one that is being imported, without place and time, few in memory."""
    if isinstance(value, StoredTexts):
        bodies = _bodies(value.keys) if value.row is None else _bodies_of(value.row)
    else:
        bodies = _bodies_of(value)
    yield from map(_message, bodies)


def _message(body: bytes | memoryview) -> CoreEvent:
    """A stored message without place and time."""
    content = load_content(body)
    return CoreEvent(content.role, content.parts, author=content.author, meta=content.meta, joined=content.joined)


def _bodies_of(row: Session) -> Iterator[bytes | memoryview]:
    """In queries that end before the next text is used: SQLite refuses a write, by this connection, of whoever still
    reads while another connection has written."""
    rows = Event.objects.in_session(row).order_by("seq").values_list("payload__body", flat=True)
    start = 0
    while some := list(rows.filter(seq__gte=start, seq__lt=start + FEW)):
        yield from some
        start += FEW


def _bodies(keys: Sequence[bytes]) -> Iterator[bytes | memoryview]:
    """The stored texts with these digests, in their order; at most `FEW` are in memory."""
    for first in range(0, len(keys), FEW):
        some = keys[first : first + FEW]
        bodies = dict(Payload.objects.filter(sha256__in=some).values_list("sha256", "body"))
        by_key = {bytes(key): body for key, body in bodies.items()}
        yield from (by_key[key] for key in some)


def load_inserted(row: Session, places: Sequence[tuple[int, int]]) -> list[CoreEvent]:
    """Messages that recorded compactions inserted, each by the number of its compaction and its own; both count from 0,
    compactions among those that count."""
    head = load_head(row)
    known = counted_compactions(head).compactions if places else ()
    return [head.compactions[known[compaction].place].messages[message] for compaction, message in places]


def request_words_of(row: Session) -> tuple[RequestWords, ...] | None:
    """Where the words of the users' requests are; None where they have not been looked up yet, or by an older version
    that stored them otherwise: the session is assessed again."""
    if row.requests is None:
        return None
    try:
        return decode(bytes(row.requests), tuple[RequestWords, ...], "requests")
    except GuardError:
        return None


def load_session(row: Session) -> CoreSession:
    """The whole session, all texts: for exports and jobs, not for pages. One that has grown since its row was read has
    all the events that its calls are over."""
    head = load_head(row)
    try:
        events = load_ledger(row).event_count
    except Outdated:  # its texts are the same; it does not grow before its columns are made again
        events = row.events
    return msgspec.structs.replace(head, events=tuple(load_events(row, 0, events)))


def forget(row: Session) -> None:
    """Drop cached columns, after a session was changed in place."""
    _cache.clear()


def kept_of(row: Session, load: Callable[[str], Any]) -> Any:
    """What `load` gives for a session, kept by its key and revision. What is stored of a session that grows is of one
    moment: head, columns and attribution are read together."""
    key = str(row.pk)
    if load not in _COLUMNS:
        return _cache.get((load, key, row.revision), lambda: load(key))
    try:
        value = _kept_together(row).values[load]
    except _NotWhole as error:
        value = error.values[load]
    if isinstance(value, Exception):
        raise value
    return value


def read_together(row: Session) -> ReadTogether:
    """Head, columns and attribution of a session as of one moment. As long as this is held, whatever else is read of
    the same revision is of that moment. Raises Outdated, and GuardError for what cannot be read."""
    try:
        return _kept_together(row)
    except _NotWhole as error:
        raise next(value for value in error.values.values() if isinstance(value, Exception)) from None


def _kept_together(row: Session) -> ReadTogether:
    return cast(ReadTogether, _cache.get((_together, str(row.pk), row.revision), lambda: _together(row)))


def _alone(row: Session, load: Callable[[str], Any]) -> Any:
    """The same of one part, for a caller that compares it with no other: the others are not read."""
    key = str(row.pk)
    known = cast(ReadTogether | None, _cache.known((_together, key, row.revision)))
    return known.values[load] if known else _cache.get((load, key, row.revision), lambda: load(key))


_REVISION = Select(Session.objects.of(Slot(Session, "project")).filter(pk=Slot(Session, "id")).values_list("revision"))


class ReadTogether:
    """What was read of a session at one moment, by what reads it."""

    def __init__(self, values: dict[Callable[[str], Any], Any]) -> None:
        self.values = values


class _NotWhole(Exception):
    """Some of what is stored of a session cannot be read now: an exception is in its place. Not kept."""

    def __init__(self, values: dict[Callable[[str], Any], Any]) -> None:
        super().__init__()
        self.values = values


def _together(row: Session) -> ReadTogether:
    """Head, columns and attribution as of one revision, if there is one in TRIES. Raises _NotWhole."""
    now, values = partial(_REVISION.first, project=row.project_id, id=row.pk), {}
    for _ in range(TRIES):
        before = now()
        values = {load: _or_error(load, str(row.pk)) for load in _COLUMNS}
        if now() == before:
            break
    if any(isinstance(value, Exception) for value in values.values()):
        raise _NotWhole(values)
    return ReadTogether(values)


def _or_error(load: Callable[[str], Any], session_id: str) -> Any:
    """What is loaded, or why it is not: each reader of a session raises the error of what it asks for."""
    try:
        return load(session_id)
    except (GuardError, Outdated) as error:
        return error


def _size(value: Any) -> int:
    """About the bytes that a loaded value holds."""
    match value:
        case Ledger():
            held = sum(map(bytes_of, (value.events, value.parts, value.steps)))
            return held + READ_BYTES * value.event_count
        case Attribution():
            return 2 * (value.tokens.nbytes + value.source.nbytes + value.residual.nbytes + value.baseline.nbytes)
        case CoreSession():
            calls = value.calls
            return calls.nbytes if isinstance(calls, StoredCalls) else CALL_BYTES * len(calls)
        case ReadTogether():
            return sum(map(_size, value.values.values()))
        case _EventPlaces(lines=lines, timestamps=timestamps, source_ids=source_ids):
            return int(lines.nbytes + timestamps.nbytes + ID_BYTES * len(source_ids))
    return 0


_cache: ByteCache[Any] = ByteCache(CACHE_BYTES, _size, revision=2)


def _ledger(session_id: str) -> Ledger:
    known = _data(session_id, "ledger")
    plain = decompressed(known.ledger)
    try:
        ledger = chunks.load_ledger(session_id, plain) if known.in_chunks else Ledger.from_bytes(plain)
        return replace(ledger, steps=narrowed(ledger.steps))
    except OtherVersion:
        raise Outdated(session_id) from None


def _attribution(session_id: str) -> Attribution | None:
    stored = _data(session_id, "attribution").attribution
    try:
        return Attribution.from_bytes(decompressed(stored)) if stored else None
    except OtherVersion:
        raise Outdated(session_id) from None


def _head(session_id: str) -> CoreSession:
    known = _data(session_id, "head")
    return chunks.load_head(session_id, decompressed(known.head)) if known.in_chunks else short_head(known)


_COLUMNS: tuple[Callable[[str], Any], ...] = (_head, _ledger, _attribution)


class _EventPlaces(NamedTuple):
    """Where the events from number `first` on are in their file, when they happened, and their ids."""

    first: int
    lines: Ints  # -1: none
    timestamps: NDArray[np.float64]  # nan: none
    source_ids: tuple[str, ...]


def _places_of(row: Session, seq: int) -> _EventPlaces:
    """Those of an event and its neighbours: of a chunk, since the ids of a long session take many megabytes."""
    session_id, number = str(row.pk), seq // chunks.ROWS
    return cast(
        _EventPlaces, _cache.get((_places, session_id, row.revision, number), lambda: _places(session_id, number))
    )


def _places(session_id: str, number: int) -> _EventPlaces:
    whole = not _data(session_id, "lines").in_chunks  # an earlier version stored the session
    marks = marks_of(session_id) if whole else chunks.load_some_marks(session_id, number)
    lines, timestamps = np.frombuffer(marks.lines, dtype="<i8"), np.frombuffer(marks.timestamps, dtype="<f8")
    return _EventPlaces(0 if whole else number * chunks.ROWS, lines, timestamps, marks.source_ids)


def marks_of(session_id: str) -> Marks:
    """Where the events of a session are in their file, when they happened, and their ids."""
    known = _data(session_id, "lines")
    if known.in_chunks:
        return chunks.load_marks(session_id)
    return decode(decompressed(known.lines or b""), Marks, "places of events")


def _data(session_id: str, name: str) -> SessionData:
    """What is stored of a session besides its chunks, with one of the large columns."""
    if (stored := _stored_with(name).row(session=session_id)) is None:
        raise SessionData.DoesNotExist
    return cast(SessionData, stored)


@cache
def _stored_with(name: str) -> Select:
    return Select(SessionData.objects.in_session(Slot(SessionData, "session")).only("in_chunks", name))


def _events(row: Session, rows: Any) -> Iterator[tuple[int, CoreEvent]]:
    """Events, each with its number."""
    for seq, body in rows.values_list("seq", "payload__body"):
        places, content = _places_of(row, seq), load_content(body)
        at = seq - places.first
        event = CoreEvent(
            role=content.role,
            parts=content.parts,
            author=content.author,
            meta=content.meta,
            joined=content.joined,
            source_id=places.source_ids[at],
            line=None if places.lines[at] < 0 else int(places.lines[at]),
            timestamp=None if np.isnan(places.timestamps[at]) else float(places.timestamps[at]),
        )
        yield seq, event


def stored_texts(value: CoreSession) -> StoredTexts:
    """The texts of a session that is being imported, stored now if they are not yet."""
    events: Any = value.events
    return events if isinstance(events, StoredTexts) else store_texts(events)
