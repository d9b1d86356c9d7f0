"""The ledger: what every event of a session costs, in columns with prefix sums, so that a view is priced and not built.

All columns are int64. Counted once per session; the text is not needed again for a replay, a sweep or a chart.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.events import (
    Event,
    MediaPart,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    part_text,
    utf8_bytes,
)
from guard_core.packing import Packed, check_version, decode, encode, pack_columns, unpack_columns
from guard_core.sessions import RecordedCompaction, Session
from guard_core.tokens.heuristic import event_costs, parts_costs, tool_definition_tokens
from guard_core.views import Inserted, Rewritten, Span, Synthetic, View

Ints = NDArray[np.int64]

# One entry per event. Tokens of the first three are ContextGuard's heuristic (bytes // 4 per field), split by what
# its profiles count or leave out, so that any profile is a sum of columns.
EVENT_COLUMNS = (
    "text_tokens",  # text, calls and results
    "inline_tokens",  # inline data
    "metadata_tokens",  # part metadata and server-side tool parts
    "chars",  # code points of all text
    "bytes",  # UTF-8 bytes of all text
    "media_bytes",  # raw bytes of inline media
    "reasoning_bytes",  # of `bytes`: reasoning text
    "call_bytes",  # of `bytes`: tool calls
    "result_bytes",  # of `bytes`: tool results
    "opaque_bytes",  # signed or encrypted reasoning, not in `bytes`
    "flags",  # bits below
    "request_bytes",  # UTF-8 bytes of the first non-empty text part
    "fallback_bytes",  # what the mechanical summary takes from it
    "transcript_bytes",  # what the summariser's prompt shows of it
)
STEP_COLUMNS = (
    "at",  # events in the log when the request was built
    "response",  # index of the answering event, -1: none
    "prompt_tokens",  # reported by the provider, -1: not reported
    "cached_tokens",
    "cache_write_tokens",
    "output_tokens",
    "epoch",  # index of the recorded compaction whose base this call was built on, -1: none yet
    "user_event",  # index of the event that began the user turn this call belongs to, -1: none
    "turn",  # number of that turn, from 0; -1 before the first
)

USER, MODEL, SYSTEM = 1, 2, 4
HAS_TEXT, HAS_CALL, HAS_RESULT, HAS_MEDIA, HAS_REASONING = 8, 16, 32, 64, 128
STARTS_TURN, IS_ERROR, STARTS_WITH_MARKER = 256, 512, 1024
IN_PAIR = 2048  # a cut just before this event would separate a tool call from its result
LEDGER_VERSION = 2  # of the stored bytes; raise it when a column is added or changes its meaning
_SCALARS = (
    "system_tokens",
    "system_metadata_tokens",
    "tools_tokens",
    "system_recorded",
    "tools_recorded",
    "usage_ratio",
    "usage_reported_from",
)
_ROLE_FLAG = {Role.USER: USER, Role.MODEL: MODEL, Role.SYSTEM: SYSTEM}


class Base(msgspec.Struct, frozen=True):
    """The view right after a recorded compaction, and the cost columns of the messages it inserted."""

    at: int
    view: View
    costs: dict[str, tuple[int, ...]]
    kind: str = ""  # as RecordedCompaction has it
    tokens_before: int = -1  # the recorder's own figures, -1: none
    tokens_after: int = -1

    @property
    def is_edit(self) -> bool:
        """Was old content only cleared or told anew (a pruned result, a resumed history): no compaction of its own.

        A recorder that gives the tokens before it meant it as a compaction.
        """
        return self.kind == "edit" and self.tokens_before <= 0


class _StoredLedger(msgspec.Struct, frozen=True):
    """A ledger as it is stored."""

    version: int
    events: Packed
    steps: Packed
    bases: tuple[Base, ...]
    system_tokens: int
    system_metadata_tokens: int
    tools_tokens: int
    system_recorded: bool
    tools_recorded: bool
    usage_ratio: float | None
    usage_reported_from: int


@dataclass(frozen=True)
class Ledger:
    """Columns of one session: `events[name]` per event, `steps[name]` per model call, and the fixed costs."""

    events: dict[str, Ints]
    steps: dict[str, Ints]
    bases: tuple[Base, ...] = ()
    system_tokens: int = 0
    system_metadata_tokens: int = 0
    tools_tokens: int = 0
    system_recorded: bool = False
    tools_recorded: bool = False
    usage_ratio: float | None = None
    usage_reported_from: int = 0
    _prefixes: dict[str, Ints] = field(default_factory=dict, compare=False, repr=False)

    @property
    def event_count(self) -> int:
        return len(self.events["flags"])

    @property
    def step_count(self) -> int:
        return len(self.steps["at"])

    def prefix(self, name: str) -> Ints:
        """Prefix sums of a column: `prefix[j] - prefix[i]` is the cost of events i to j - 1."""
        if name not in self._prefixes:
            self._prefixes[name] = prefix_sums(self.events[name])
        return self._prefixes[name]

    def prefix_of(self, names: tuple[str, ...]) -> Ints:
        """Prefix sums of the sum of some columns."""
        key = "+".join(names)
        if key not in self._prefixes:
            self._prefixes[key] = prefix_sums(np.sum([self.events[name] for name in names], axis=0))
        return self._prefixes[key]

    def cut(self, index: int) -> int:
        """The largest index up to this one at which the log can be cut without parting a tool call from its result."""
        if "cut" not in self._prefixes:
            allowed = np.where(self.events["flags"] & IN_PAIR, 0, np.arange(self.event_count))
            self._prefixes["cut"] = np.append(np.maximum.accumulate(allowed), self.event_count).astype(np.int64)
        return int(self._prefixes["cut"][index])

    def price(self, view: View, name: str, *, epoch: int = -1) -> int:
        """The cost of a view in one additive column. `epoch` says whose inserted messages the view means."""
        return sum(self._segment_cost(segment, name, epoch) for segment in view)

    def _segment_cost(self, segment: Span | Inserted | Rewritten | Synthetic, name: str, epoch: int) -> int:
        match segment:
            case Span(start, stop):
                prefix = self.prefix(name)
                return int(prefix[stop] - prefix[start])
            case Inserted(index):
                return self.bases[epoch].costs[name][index]
            case Rewritten(message=message):
                return event_columns(message)[name]
            case Synthetic(bytes=size):
                return synthetic_columns(size).get(name, 0)

    def recorded_view(self, step: int) -> tuple[View, int]:
        """The view that was really sent at a step, as far as the recording tells, and the epoch it belongs to."""
        epoch = int(self.steps["epoch"][step])
        at = int(self.steps["at"][step])
        if epoch < 0:
            return (Span(0, at),), epoch
        base = self.bases[epoch]
        return (*base.view, Span(base.at, at)), epoch

    @cached_property
    def turns(self) -> int:
        """Number of user turns that have at least one model call."""
        return len(np.unique(self.steps["turn"]))

    @classmethod
    def of(cls, session: Session) -> Ledger:
        """Count a session once."""
        counter = EventCounter()
        for event in session.events:
            counter.add(event)
        return cls.counted(session, counter)

    @classmethod
    def counted(cls, session: Session, counter: EventCounter) -> Ledger:
        """The ledger of a session whose events were counted one by one; they are not looked at again."""
        system_text, system_inline, system_metadata = parts_costs(session.system or ())
        events = counter.columns()
        return cls(
            events=events,
            steps=_step_columns(session, np.flatnonzero(events["flags"] & STARTS_TURN)),
            bases=tuple(_base(item) for item in session.compactions),
            system_tokens=system_text + system_inline,
            system_metadata_tokens=system_metadata,
            tools_tokens=sum(tool_definition_tokens(tool) for tool in session.tools or ()),
            system_recorded=session.system is not None,
            tools_recorded=session.tools is not None,
            usage_ratio=session.usage_ratio,
            usage_reported_from=session.usage_reported_from,
        )

    def to_bytes(self) -> bytes:
        """The ledger as bytes: equal ledgers give equal bytes on any machine."""
        scalars = {name: getattr(self, name) for name in _SCALARS}
        events = pack_columns(self.events, EVENT_COLUMNS)
        steps = pack_columns(self.steps, STEP_COLUMNS)
        return encode(_StoredLedger(version=LEDGER_VERSION, events=events, steps=steps, bases=self.bases, **scalars))

    @classmethod
    def from_bytes(cls, data: bytes) -> Ledger:
        """The ledger again, exactly; GuardError for bytes of another version or of something else."""
        stored = decode(data, _StoredLedger, "ledger")
        check_version(stored.version, LEDGER_VERSION, "ledger")
        scalars = {name: getattr(stored, name) for name in _SCALARS}
        return cls(unpack_columns(stored.events), unpack_columns(stored.steps), stored.bases, **scalars)


def prefix_sums(column: Ints) -> Ints:
    """Prefix sums with a leading zero, one longer than the column."""
    sums = np.zeros(len(column) + 1, dtype=np.int64)
    np.cumsum(column, out=sums[1:])
    return sums


class EventCounter:
    """Counts events one after the other, in order, so that nobody needs to hold all of them."""

    def __init__(self) -> None:
        self.count = 0
        self._values = array("q")
        self._open_calls: dict[tuple[str, str], list[int]] = {}
        self._pairs = array("q")  # begin and end of each pair of a call and its result

    def add(self, event: Event) -> None:
        """Count one event."""
        self._values.extend(event_columns(event).values())
        for part in event.parts:
            if isinstance(part, ToolCallPart):
                key = ("id", part.id) if part.id else ("name", part.name)
                self._open_calls.setdefault(key, []).append(self.count)
            elif isinstance(part, ToolResultPart):
                start = _take_call(self._open_calls, part)
                if start is not None:
                    self._pairs.extend((start, self.count))
        self.count += 1

    def columns(self) -> dict[str, Ints]:
        """The columns of EVENT_COLUMNS."""
        table = np.array(self._values, dtype=np.int64).reshape(self.count, len(EVENT_COLUMNS))
        columns = {name: table[:, place].copy() for place, name in enumerate(EVENT_COLUMNS)}
        columns["flags"] |= np.where(self._inside_pairs(), IN_PAIR, 0)
        return columns

    def to_bytes(self) -> bytes:
        """What is counted, for another process to take its columns; it does not go on there."""
        return encode((self.count, self._values.tobytes(), self._pairs.tobytes()))

    @classmethod
    def from_bytes(cls, data: bytes) -> EventCounter:
        """The same counts again; GuardError for bytes of something else."""
        counter = cls()
        counter.count, values, pairs = decode(data, tuple[int, bytes, bytes], "counts")
        counter._values.frombytes(values)
        counter._pairs.frombytes(pairs)
        return counter

    def _inside_pairs(self) -> NDArray[np.bool_]:
        """For every event: is there a tool call before it whose result stands at it or after it.

        Results are matched by id; where ids are missing, to the oldest open call of the same name, else to the oldest.
        """
        pairs = np.array(self._pairs, dtype=np.int64).reshape(-1, 2)
        depth = np.zeros(self.count + 1, dtype=np.int64)
        np.add.at(depth, pairs[:, 0] + 1, 1)
        np.add.at(depth, pairs[:, 1] + 1, -1)
        return np.asarray(np.cumsum(depth[:-1]) > 0)


def _take_call(open_calls: dict[tuple[str, str], list[int]], result: ToolResultPart) -> int | None:
    for key in (("id", result.call_id), ("name", result.name)):
        if waiting := open_calls.get(key):
            start = waiting.pop(0)
            if not waiting:
                del open_calls[key]
            return start
    return None


def event_columns(event: Event) -> dict[str, int]:
    """The cost of one event in every column of EVENT_COLUMNS, in their order; in one pass, since all are counted."""
    text_tokens, inline_tokens, metadata_tokens = event_costs(event)
    flags = _ROLE_FLAG[event.role] | (STARTS_TURN if event.starts_turn() else 0)
    chars = total = media = reasoning = call = result = opaque = 0
    request = fallback = transcript = 0  # what the summariser's prompt and the mechanical summary take
    said = len(event.role.value) + 2
    for index, part in enumerate(event.parts):
        text = part_text(part)
        size = utf8_bytes(text)
        chars += len(text)
        total += size
        if isinstance(part, TextPart | ReasoningPart):
            if text:
                request = request or size
                fallback += said + min(size, 200) + (3 if size > 200 else 0) + 1
                transcript += said + size + 1
            if isinstance(part, ReasoningPart):
                reasoning += size
                opaque += part.opaque_bytes
                flags |= HAS_REASONING
            else:
                flags |= HAS_TEXT if text else 0
                if index == 0 and text.startswith("[Previous conversation summary]"):
                    flags |= STARTS_WITH_MARKER
        elif isinstance(part, ToolCallPart):
            call += size
            transcript += said + len("[called tool: ]") + utf8_bytes(part.name) + 1
            flags |= HAS_CALL
        elif isinstance(part, ToolResultPart):
            result += size
            transcript += said + len("[tool  returned a result]") + utf8_bytes(part.name) + 1
            flags |= HAS_RESULT | (IS_ERROR if part.is_error else 0)
        elif isinstance(part, MediaPart):
            media += part.size
            flags |= HAS_MEDIA
    return {
        "text_tokens": text_tokens,
        "inline_tokens": inline_tokens,
        "metadata_tokens": metadata_tokens,
        "chars": chars,
        "bytes": total,
        "media_bytes": media,
        "reasoning_bytes": reasoning,
        "call_bytes": call,
        "result_bytes": result,
        "opaque_bytes": opaque,
        "flags": flags,
        "request_bytes": request,
        "fallback_bytes": fallback,
        "transcript_bytes": transcript,
    }


def synthetic_columns(size: int) -> dict[str, int]:
    """The cost of a synthetic message of one text part of `size` UTF-8 bytes; characters are taken as bytes."""
    return {"text_tokens": size // 4, "chars": size, "bytes": size}


def _base(compaction: RecordedCompaction) -> Base:
    rows = [event_columns(message) for message in compaction.messages]
    costs = {name: tuple(row[name] for row in rows) for name in EVENT_COLUMNS}
    figures = [-1 if tokens is None else tokens for tokens in (compaction.tokens_before, compaction.tokens_after)]
    return Base(compaction.at, compaction.base, costs, compaction.kind, *figures)


def _step_columns(session: Session, starts: Ints) -> dict[str, Ints]:
    """`starts`: the events that begin a user turn."""
    boundaries = [compaction.at for compaction in session.compactions]
    at = np.array([call.at for call in session.calls], dtype=np.int64)
    turn = np.searchsorted(starts, at, side="left") - 1
    padded = np.concatenate([np.array([-1], dtype=np.int64), starts])

    def column(name: str) -> Ints:
        values = [getattr(call, name) for call in session.calls]
        return np.array([-1 if value is None else value for value in values], dtype=np.int64)

    return {
        "at": at,
        "response": column("response"),
        "prompt_tokens": column("prompt_tokens"),
        "cached_tokens": column("cached_tokens"),
        "cache_write_tokens": column("cache_write_tokens"),
        "output_tokens": column("output_tokens"),
        "epoch": np.searchsorted(np.array(boundaries, dtype=np.int64), at, side="right") - 1,
        "user_event": padded[turn + 1],
        "turn": turn,
    }
