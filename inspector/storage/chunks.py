"""Columns, calls and places of events in chunks, so that a session that grows rewrites the last chunk of each kind.

A chunk holds some rows of one kind, all but the last as many. What is stored is compared by digest with what a session
has now, whatever the reason that it differs: a longer log, an answer that was still being written, columns that are
made again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple, cast
from uuid import UUID

import msgspec
import numpy as np
from django.db.models import Q

from guard_core import chunks
from guard_core.errors import GuardError
from guard_core.events import Event
from guard_core.ledger import Ledger
from guard_core.packing import decode, encode
from guard_core.sessions import GuardState, ModelCall, RecordedCompaction
from guard_core.sessions import Session as CoreSession
from inspector.models import Session, SessionChunk
from inspector.models.prepared import Insert, Select, Slot
from inspector.storage.compression import compressed, decompressed
from inspector.storage.stored_calls import StoredCalls
from inspector.storage.texts import Marks, marks_of

ROWS = chunks.ROWS["events"]
COLUMNS = ("events", "calls", "bases")  # the kinds of guard_core.chunks
MARKS = "marks"
# What a session's head has one entry of per call or compaction: the type of all of them, and how many a chunk has.
SEQUENCES: dict[str, tuple[Any, int]] = {
    "calls": (tuple[ModelCall, ...], chunks.ROWS["calls"]),
    "side_calls": (tuple[ModelCall, ...], 2_048),
    "guard_states": (tuple[GuardState, ...], 2_048),
    "compactions": (tuple[RecordedCompaction, ...], 64),
}
FEW_CHUNKS = 2  # of calls, whose values stay in memory: a megabyte and a half
HEAD = "head "  # before the name of a sequence: the kind of its chunks
_STORE = Insert(SessionChunk, "session", "kind", "number", "digest", "body", unique=("session", "kind", "number"))


class Stored(NamedTuple):
    """What is stored of a session besides its chunks, and whether storing it changed any chunk."""

    state: bytes  # of the ledger
    head: bytes
    changed: bool


def store(
    row: Session,
    value: CoreSession,
    ledger: Ledger,
    marks: Marks,
    same_texts: int | None = None,
    *,
    is_new: bool = False,
) -> Stored:
    """Store the chunks of a session that differ from those stored, and remove those it has no more; one that `is_new`
    has none stored.

    `same_texts`: its first events are stored with the same texts; None where columns are not stored, or by another
    version. Columns of an event follow from its text and its time, which is among its marks, those of a call from the
    call: where these are the same, they are not looked at again.
    """
    writer = _Writer(row, [] if is_new else None)
    first = {"events": writer.add(MARKS, _marks_chunks(marks))}
    for name, (_, size) in SEQUENCES.items():
        first[name] = writer.add(HEAD + name, _pieces(getattr(value, name), size))
    skip = dict.fromkeys(COLUMNS, 0)
    if same_texts is not None:
        skip |= {"events": min(first["events"], same_texts // ROWS), "calls": first["calls"]}
    numbers, begins = np.unique(ledger.steps["model"], return_index=True)
    known = zip(numbers.tolist(), begins.tolist(), strict=True)
    models = (value.calls[step].model for number, step in known if number >= 0)  # in the order of their numbers
    growing = chunks.GrowingLedger.of_ledger(ledger, models)
    columns = growing.chunks(skip)
    for kind in COLUMNS:
        writer.add(kind, (chunk.body for chunk in columns if chunk.kind == kind), skip[kind])
    return Stored(growing.state, short_head(value), writer.close())


def append(row: Session, state: bytes, events: Sequence[Event], calls: Sequence[ModelCall]) -> bytes:
    """Add events and calls at the end of a session in chunks; the new state of its ledger. Only the last chunks are
    read. Raises GuardError, and OtherVersion where another version stored them."""
    known = chunks.read_state(state)
    places = dict(known.open_chunks)
    if "events" in places:
        places[MARKS] = places["events"]
    if "calls" in places:
        places[HEAD + "calls"] = places["calls"]
    stored = _stored_at(row, tuple(places.items())) if places else []
    last = {kind: decompressed(body) for kind, _, _, body in stored}
    growing = chunks.GrowingLedger.resumed(state, last)
    growing.add(events, calls)
    writer, columns = _Writer(row, [(kind, number, digest) for kind, number, digest, _ in stored]), growing.chunks()
    for kind in COLUMNS:
        first = known.rows[kind] // known.sizes[kind]
        writer.add(kind, (chunk.body for chunk in columns if chunk.kind == kind), first)
    before = decode(last[MARKS], Marks, "places of events") if MARKS in last else marks_of(())
    writer.add(MARKS, _marks_chunks(_joined(before, marks_of(events))), known.counter.events // ROWS)
    kind, size = SEQUENCES["calls"]
    old = decode(last[HEAD + "calls"], kind, "calls") if HEAD + "calls" in last else ()
    writer.add(HEAD + "calls", _pieces((*old, *calls), size), known.calls // size)
    writer.close()
    return growing.state


def short_head(value: CoreSession) -> bytes:
    """What is stored of a session's head besides its chunks."""
    return encode(msgspec.structs.replace(value, events=(), **dict.fromkeys(SEQUENCES, ())))


def repeated_calls(row: Session, state: bytes, value: CoreSession) -> int | None:
    """How many model calls are stored of a session, where `value` begins with them and has the same recorded
    compactions, states and side calls; None where it has not. `state` is that of the stored ledger."""
    count = chunks.read_state(state).calls
    if len(value.calls) < count:
        return None
    stored = SessionChunk.objects.in_session(row).filter(kind__startswith=HEAD).order_by("kind", "number")
    digests: dict[str, list[bytes]] = {}
    for kind, digest in stored.values_list("kind", "digest"):
        digests.setdefault(kind, []).append(bytes(digest))
    for name, (_, size) in SEQUENCES.items():
        values = value.calls[:count] if name == "calls" else getattr(value, name)
        if [hashlib.sha256(body).digest() for body in _pieces(values, size)] != digests.get(HEAD + name, []):
            return None
    return count


def load_ledger(session_id: UUID | str, state: bytes) -> Ledger:
    """The ledger of a session in chunks. Raises GuardError, and OtherVersion where another version stored it."""
    chunks.read_state(state)  # before any chunk is read: those of another version may have another form
    return chunks.joined(state, _bodies(session_id, COLUMNS))


def load_head(session_id: UUID | str, head: bytes) -> CoreSession:
    """The session without its events."""
    bodies = _compressed(session_id, tuple(HEAD + name for name in SEQUENCES))
    values: dict[str, Any] = {
        name: tuple(value for body in bodies[HEAD + name] for value in decode(decompressed(body), kind, name))
        for name, (kind, _) in SEQUENCES.items()
        if name != "calls" or len(bodies[HEAD + name]) <= FEW_CHUNKS
    }
    if "calls" not in values:
        values["calls"] = StoredCalls(bodies[HEAD + "calls"], SEQUENCES["calls"][1])
    return msgspec.structs.replace(decode(head, CoreSession, "session"), **values)


def load_marks(session_id: UUID | str) -> Marks:
    """Place and time of every event of a session."""
    return _joined(*(decode(body, Marks, "places of events") for body in _bodies(session_id, (MARKS,))[MARKS]))


def load_some_marks(session_id: UUID | str, number: int) -> Marks:
    """Place and time of the events from ROWS times this number on, as many as a chunk has. Raises GuardError."""
    stored = SessionChunk.objects.in_session(session_id).filter(kind=MARKS, number=number)
    if (body := stored.values_list("body", flat=True).first()) is None:
        raise GuardError(f"the chunk {number} of places of events is missing: import the session again")
    return decode(decompressed(body), Marks, "places of events")


def digests(session_id: UUID | str) -> list[bytes]:
    """The digests of all chunks of a session, in order: what they hold."""
    stored = SessionChunk.objects.in_session(session_id).order_by("kind", "number")
    return [bytes(digest) for digest in stored.values_list("digest", flat=True)]


def _stored_at(row: Session, places: Sequence[tuple[str, int]]) -> list[tuple[str, int, bytes, bytes]]:
    """Kind, number, digest and body of the chunks at these places, each a kind and a number."""
    at: dict[str, Any] = {}
    for place, (kind, number) in enumerate(places):
        at |= {f"kind {place}": kind, f"number {place}": number}
    return cast(list[tuple[str, int, bytes, bytes]], _chunks_at(len(places)).all(session=row.pk, **at))


@cache
def _chunks_at(count: int) -> Select:
    """The chunks of a session at so many places."""
    at = Q()
    for place in range(count):
        kind, number = (Slot(SessionChunk, name, f"{name} {place}") for name in ("kind", "number"))
        at |= Q(kind=kind, number=number)
    some = SessionChunk.objects.in_session(Slot(SessionChunk, "session")).filter(at)
    return Select(some.values_list("kind", "number", "digest", "body"))


class _Writer:
    """Writes the chunks of one session that are not stored already."""

    def __init__(self, row: Session, last: Iterable[tuple[str, int, bytes]] | None = None) -> None:
        """`last`: kind, number and digest of the last chunk of each kind, where the session grows; none is removed
        then."""
        self._grows = last is not None
        self._row, self._counts = row, dict[str, int]()
        self._changed: list[dict[str, Any]] = []
        known = SessionChunk.objects.in_session(row).values_list("kind", "number", "digest") if last is None else last
        self._known = {(kind, number): bytes(digest) for kind, number, digest in known}

    def add(self, kind: str, bodies: Iterator[bytes], first: int = 0) -> int:
        """Take the chunks of a kind from number `first` on; the number of the first that is not stored like this."""
        number, same = first - 1, 0
        for number, body in enumerate(bodies, first):
            digest = hashlib.sha256(body).digest()
            if self._known.get((kind, number)) != digest:
                at = {"session": self._row.pk, "kind": kind, "number": number}
                self._changed.append({**at, "digest": digest, "body": compressed(body)})
            elif same == number - first:
                same += 1
        self._counts[kind] = number + 1
        return first + same

    def close(self) -> bool:
        """Write what has changed and remove the chunks behind the last ones; was there any of both."""
        _STORE.run(self._changed)
        if self._grows or not any(number >= self._counts.get(kind, 0) for kind, number in self._known):
            return bool(self._changed)
        behind = Q(*(Q(kind=kind, number__gte=count) for kind, count in self._counts.items()), _connector=Q.OR)
        SessionChunk.objects.in_session(self._row).filter(behind).delete()
        return True


def _joined(*some: Marks) -> Marks:
    lines, moments = (b"".join(getattr(item, name) for item in some) for name in ("lines", "timestamps"))
    return Marks(lines, moments, tuple(name for item in some for name in item.source_ids))


def _bodies(session_id: UUID | str, kinds: tuple[str, ...]) -> dict[str, list[bytes]]:
    bodies = _compressed(session_id, kinds)
    return {kind: [decompressed(body) for body in some] for kind, some in bodies.items()}


def _compressed(session_id: UUID | str, kinds: tuple[str, ...]) -> dict[str, list[bytes]]:
    bodies: dict[str, list[bytes]] = {kind: [] for kind in kinds}
    for kind, body in _chunks_of(kinds).all(session=session_id):
        bodies[kind].append(bytes(body))
    return bodies


@cache
def _chunks_of(kinds: tuple[str, ...]) -> Select:
    """The chunks of these kinds of a session, in order."""
    some = SessionChunk.objects.in_session(Slot(SessionChunk, "session")).filter(kind__in=kinds)
    return Select(some.order_by("kind", "number").values_list("kind", "body"))


def _pieces(values: Sequence[Any], size: int) -> Iterator[bytes]:
    return (encode(values[start : start + size]) for start in range(0, len(values), size))


def _marks_chunks(marks: Marks) -> Iterator[bytes]:
    for start in range(0, len(marks.source_ids), ROWS):
        place = slice(8 * start, 8 * (start + ROWS))
        yield encode(Marks(marks.lines[place], marks.timestamps[place], marks.source_ids[start : start + ROWS]))
