"""A ledger in chunks: what is stored of a session that grows, in which only the last chunk of a kind changes.

    growing = GrowingLedger.of(session)              # or GrowingLedger.resumed(state, last chunks)
    growing.add(events, calls, compactions)
    growing.chunks(), growing.state                  # to store: the chunks that are new or changed, and the state
    joined(state, chunks)                            # the ledger, equal to that of the whole session, byte for byte

What later events may change is not stored and follows from the rest: which events lie between a tool call and its
result, and to which turn and recorded compaction a call belongs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from guard_core.columns import Packed, join_columns, pack_columns, replaced, rows_of, unpack_columns
from guard_core.compaction_bases import CompactionBase, base_of
from guard_core.costs import EVENT_COLUMNS, IN_PAIR, PART_COLUMNS, CounterState, EventCounter
from guard_core.errors import GuardError
from guard_core.events import Event
from guard_core.ledger import LEDGER_VERSION, Fixed, Ledger, counter_for, fixed_of
from guard_core.packing import decode, decode_version, encode
from guard_core.sessions import ModelCall, RecordedCompaction, Session
from guard_core.step_columns import CALL_COLUMNS, call_columns

# Rows of a full chunk; the state of a stored ledger says which it was stored with. Measured on a session of 50,000
# calls with tools: 77 chunks, of which one of events has up to 23 kB compressed; half of one is rewritten on average.
ROWS = {"events": 2_048, "calls": 2_048, "bases": 64}


class Chunk(NamedTuple):
    """Some rows of one kind: events with their parts, calls, or recorded compactions. All but the last are full."""

    kind: str
    number: int
    body: bytes


class _Events(msgspec.Struct, frozen=True):
    events: Packed
    parts: Packed


class LedgerState(msgspec.Struct, frozen=True):
    """What is stored besides the chunks: enough to count on, and how many rows of each kind there are."""

    version: int
    sizes: dict[str, int]  # rows of a full chunk, by kind
    counter: CounterState
    calls: int
    bases: int
    models: tuple[str, ...]  # in the order of their numbers
    fixed: Fixed

    @property
    def rows(self) -> dict[str, int]:
        """The rows of each kind."""
        return {"events": self.counter.events, "calls": self.calls, "bases": self.bases}

    @property
    def open_chunks(self) -> dict[str, int]:
        """By kind the number of the last chunk, where it is not full: a ledger that grows needs it."""
        return {kind: count // self.sizes[kind] for kind, count in self.rows.items() if count % self.sizes[kind]}


class GrowingLedger:
    """A ledger in its stored form, to which events, calls and recorded compactions are added in order."""

    def __init__(
        self, counter: EventCounter, fixed: Fixed, sizes: Mapping[str, int] = ROWS, models: Iterable[str] = ()
    ) -> None:
        self.fixed = fixed
        self._sizes = dict(sizes)
        self._counter = counter
        self._models = {name: number for number, name in enumerate(models)}
        # What is in chunks that are not full, by kind; `_first` is the number of the first of them.
        self._first = dict.fromkeys(ROWS, 0)
        self._events = {name: np.zeros(0, dtype=np.int64) for name in EVENT_COLUMNS}
        self._parts = {name: np.zeros(0, dtype=np.int64) for name in PART_COLUMNS}
        self._calls = call_columns((), {})
        self._bases: tuple[CompactionBase, ...] = ()
        self._stored = dict.fromkeys(ROWS, 0)

    @classmethod
    def of(
        cls, session: Session, counter: EventCounter | None = None, sizes: Mapping[str, int] = ROWS
    ) -> GrowingLedger:
        """That of a session. `counter`: one that has counted its events, where they are not here any more. `sizes`:
        rows of a full chunk, by kind."""
        events = session.events if counter is None else ()
        counter = counter or counter_for(session)
        growing = cls(counter, msgspec.structs.replace(fixed_of(session), encoding=counter.encoding), sizes)
        growing.add(events, session.calls, session.compactions)
        return growing

    @classmethod
    def of_ledger(cls, ledger: Ledger, models: Iterable[str], sizes: Mapping[str, int] = ROWS) -> GrowingLedger:
        """The growing ledger of a ledger that knows its counter. `models` are in the order of their numbers."""
        if ledger.counter is None:
            raise ValueError("this ledger does not know which calls wait for a result")
        growing = cls(EventCounter(ledger.counter), ledger.fixed, sizes, models)
        growing._events = replaced(ledger.events, flags=ledger.events["flags"] & ~IN_PAIR)
        growing._parts, growing._bases = ledger.parts, ledger.bases
        growing._calls = {name: ledger.steps[name] for name in CALL_COLUMNS}
        return growing

    @classmethod
    def resumed(cls, state: bytes, last: Mapping[str, bytes]) -> GrowingLedger:
        """The stored one. `last`: the bodies of the chunks that LedgerState.open_chunks names. Raises GuardError, and
        OtherVersion where another version stored it."""
        known = read_state(state)
        growing = cls(EventCounter(known.counter), known.fixed, known.sizes, known.models)
        growing._stored = known.rows
        growing._first = {kind: count // known.sizes[kind] for kind, count in known.rows.items()}
        for kind in known.open_chunks:
            if kind not in last:
                raise GuardError(f"the last chunk of {kind} is missing: import the session again")
        if "events" in known.open_chunks:
            rows = decode(last["events"], _Events, "events of the ledger")
            growing._events, growing._parts = unpack_columns(rows.events), unpack_columns(rows.parts)
        if "calls" in known.open_chunks:
            growing._calls = unpack_columns(decode(last["calls"], Packed, "calls of the ledger"))
        if "bases" in known.open_chunks:
            growing._bases = decode(last["bases"], tuple[CompactionBase, ...], "compactions of the ledger")
        return growing

    def add(
        self,
        events: Iterable[Event] = (),
        calls: Sequence[ModelCall] = (),
        compactions: Iterable[RecordedCompaction] = (),
    ) -> None:
        """What comes next: the events of the log first, then calls and compactions over it."""
        for event in events:
            self._counter.add(event)
        more = call_columns(calls, self._models)
        self._calls = {name: np.concatenate([self._calls[name], more[name]]) for name in CALL_COLUMNS}
        self._bases += tuple(map(base_of, compactions))

    @property
    def state(self) -> bytes:
        """What is stored besides the chunks."""
        rows, counter = self._rows, self._counter.state
        numbers = (rows["calls"], rows["bases"])
        return encode(LedgerState(LEDGER_VERSION, self._sizes, counter, *numbers, tuple(self._models), self.fixed))

    def chunks(self, skip: Mapping[str, int] | None = None) -> list[Chunk]:
        """The chunks that are new, or longer than they were when this was begun or resumed; of some kinds without the
        first `skip` ones."""
        grown = [kind for kind, count in self._rows.items() if count > self._stored[kind]]
        return [chunk for kind in grown for chunk in self._chunks_of(kind, (skip or {}).get(kind, 0))]

    @property
    def _rows(self) -> dict[str, int]:
        begin = {kind: number * self._sizes[kind] for kind, number in self._first.items()}
        calls, bases = len(self._calls["at"]), len(self._bases)
        return {"events": self._counter.count, "calls": begin["calls"] + calls, "bases": begin["bases"] + bases}

    def _chunks_of(self, kind: str, skip: int) -> list[Chunk]:
        """The chunks of a kind from its first new one on, without those of a number below `skip`."""
        size, first = self._sizes[kind], self._first[kind]
        skip = max(0, skip - first)
        count = self._rows[kind] - first * size
        bodies = self._bodies(kind, [(start, min(start + size, count)) for start in range(skip * size, count, size)])
        return [Chunk(kind, number, body) for number, body in enumerate(bodies, first + skip)]

    def _bodies(self, kind: str, places: list[tuple[int, int]]) -> list[bytes]:
        if kind == "bases":
            return [encode(self._bases[start:stop]) for start, stop in places]
        if kind == "calls":
            return [encode(pack_columns(rows_of(self._calls, start, stop), CALL_COLUMNS)) for start, stop in places]
        events = join_columns([self._events, self._counter.columns()], EVENT_COLUMNS)
        parts = join_columns([self._parts, self._counter.parts()], PART_COLUMNS)
        begin = self._first["events"] * self._sizes["events"]
        ends = np.searchsorted(parts["event"], [begin + place for span in places for place in span]).reshape(-1, 2)
        return [
            encode(
                _Events(
                    pack_columns(rows_of(events, start, stop), EVENT_COLUMNS),
                    pack_columns(rows_of(parts, int(first), int(last)), PART_COLUMNS),
                )
            )
            for (start, stop), (first, last) in zip(places, ends, strict=True)
        ]


def read_state(state: bytes) -> LedgerState:
    """The state of a stored ledger. Raises GuardError, and OtherVersion where another version stored it."""
    return decode_version(state, LedgerState, LEDGER_VERSION, "ledger")


def joined(state: bytes, chunks: Mapping[str, Sequence[bytes]]) -> Ledger:
    """The ledger whose chunks these are, by kind and in order. Raises GuardError, and OtherVersion where another
    version stored it."""
    known = read_state(state)
    rows = [decode(body, _Events, "events of the ledger") for body in chunks.get("events", ())]
    calls = [unpack_columns(decode(body, Packed, "calls of the ledger")) for body in chunks.get("calls", ())]
    bases = [decode(body, tuple[CompactionBase, ...], "compactions of the ledger") for body in chunks.get("bases", ())]
    events = join_columns((unpack_columns(some.events) for some in rows), EVENT_COLUMNS)
    parts = join_columns((unpack_columns(some.parts) for some in rows), PART_COLUMNS)
    columns = join_columns(calls, CALL_COLUMNS)
    all_bases = tuple(base for some in bases for base in some)
    counts = {"events": len(events["flags"]), "calls": len(columns["at"]), "bases": len(all_bases)}
    if counts != known.rows or len(parts["event"]) != known.counter.parts:
        raise GuardError(f"the stored ledger has {counts} rows, not {known.rows}: import the session again")
    return Ledger.joined(events, parts, columns, all_bases, known.fixed, known.models, known.counter)
