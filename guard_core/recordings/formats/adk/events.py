"""One session of the Agent Development Kit (ADK) from its events, in both spellings. Definition: README.md, "adk".

Python writes camelCase or snake_case with nulls; Go writes camelCase. Compacted events stay in the list: the request
after a compaction is derived from the ranges. Parallel agents and delegated tasks have contexts of their own, which
become sessions of their own; ContextGuard's compactions are in the state.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from guard_core.errors import LimitExceeded
from guard_core.events import Event, Role, ToolResultPart
from guard_core.plural import counted
from guard_core.recordings.formats.adk import guard as adk_guard
from guard_core.recordings.formats.adk.entries import (
    AdkEntry,
    CompactedRange,
    Context,
    Contexts,
    entries,
    message_of,
    taken_back,
    time_of,
)
from guard_core.recordings.formats.adk.guard import GuardStateReader
from guard_core.recordings.formats.adk.parts import pick_object, pick_text
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import AgentSetting, Evidence, ModelCall, RecordedCompaction, Session
from guard_core.views import Inserted, Segment, Span, View

NAME = "adk"
# A session is read once for each of its contexts: so many events in all, in units of the limit for one session.
CONTEXT_FACTOR = 20
# By running 1.22.0, 1.26.0 and 2.13.0; no recording holds the version.
AS_SENT = "The summary is read as ADK 2.13 sends it. Up to 1.26 it is a user's message with 26 characters more."
WITHIN_INVOCATIONS = AgentSetting("compacts_within_invocations", 1, "a compaction lies between messages of one")


@dataclass
class AdkEventReader:
    """One context while it is read."""

    builder: SessionBuilder
    guard: GuardStateReader
    places: list[tuple[float, str]] = field(default_factory=list)  # time and invocation of each log event
    ranges: list[CompactedRange] = field(default_factory=list)  # those that no later one swallowed
    authors: dict[str, None] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)  # ids of tool calls with a result
    answered_again: int = 0  # results of long-running calls that had one
    taken_back: int = 0  # events in no later request, because of a rewind


def read_sessions(
    header: dict[str, Any], events: Iterable[Any], source: ByteSource, counter: FactCounter
) -> list[Session]:
    """The sessions of one header (id, app name, state) and its event objects, the main context first; adds to facts."""
    counter.session()
    log = entries(list(events), source, counter)
    rewound = taken_back(log)
    contexts = Contexts([entry for entry in log if entry.number not in rewound])
    own_contexts = list(contexts)
    if len(own_contexts) * len(log) > CONTEXT_FACTOR * source.limits.events:
        raise LimitExceeded(f"a session of {len(log)} events in {len(own_contexts)} contexts")
    for entry in log:
        if entry.number not in rewound and not any(contexts.sees(entry, context) for context in own_contexts):
            source.notes.skip("event that no session of several calls holds")
    readings = [_read_context(log, rewound, contexts, context, source) for context in own_contexts]
    state = pick_object(header, "state")
    if not any(reading.builder.guard_states for reading in readings):
        readings[0].guard.end(state)
    compactions = [compaction for reading in readings for compaction in reading.builder.compactions]
    for compaction in compactions:
        if compaction.trigger == adk_guard.TRIGGER:
            counter.compaction()
    return [_session(reading, context, header, state) for reading, context in zip(readings, own_contexts, strict=True)]


def _read_context(
    log: list[AdkEntry], rewound: set[int], contexts: Contexts, context: Context, source: ByteSource
) -> AdkEventReader:
    builder = SessionBuilder(NAME, source)
    reading = AdkEventReader(builder, GuardStateReader(builder))
    for entry in log:
        is_rewound, sees = entry.number in rewound, contexts.sees(entry, context)
        reading.taken_back += is_rewound and sees and not entry.rewinds_to
        if sees and not is_rewound and entry.compaction is not None:
            _compaction(reading, entry.event, entry.compaction, entry.call)
        elif sees and not is_rewound:
            _message(reading, entry, answers=contexts.is_own(entry, context))
        if entry.call is not None and contexts.is_side_call(entry, context, rewound=is_rewound):
            builder.side_calls.append(msgspec.structs.replace(entry.call, at=len(builder.events)))
        if not is_rewound and contexts.is_own(entry, context):
            delta = pick_object(pick_object(entry.event, "actions"), "stateDelta")
            if delta:
                reading.guard.step(delta)
    return reading


def _session(reading: AdkEventReader, context: Context, header: dict[str, Any], state: dict[str, Any]) -> Session:
    builder = reading.builder
    if reading.taken_back:
        taken = f"{counted(reading.taken_back, 'event')} taken back by a rewind"
        builder.notes.append(f"{taken}: not in the log, their calls count apart.")
    if reading.answered_again:
        again = f"{counted(reading.answered_again, 'result')} of long-running calls replaced an earlier one"
        builder.notes.append(f"{again}: the log holds both, a request only the newest, behind its call.")
    if len(reading.authors) > 1:
        builder.notes.append(f"several agents share this session: {', '.join(list(reading.authors)[:6])}")
    title = fields.text(state.get("__session_metadata__"), "displayName")
    name = next((name for name in reversed(context) if name), "")
    invocations, count = [invocation for _, invocation in reading.places], len(reading.places)
    # Something was compacted between two messages of one invocation.
    places = (item.at for item in builder.compactions)
    is_within = any(0 < at < count and invocations[at - 1] == invocations[at] != "" for at in places)
    return builder.session(
        source_id=pick_text(header, "id"),
        agent=name or pick_text(header, "appName") or next(iter(reading.authors), ""),
        title=f"{title} · {name}".strip(" ·"),
        settings=(WITHIN_INVOCATIONS,) if is_within else (),
    )


def _message(reading: AdkEventReader, entry: AdkEntry, *, answers: bool) -> None:
    """One message of the log, and the call that wrote it where that call is the context's own."""
    event, builder = entry.event, reading.builder
    role, parts = message_of(event)
    at = len(builder.events)
    if parts:
        author = pick_text(event, "author")
        when = time_of(event) or None
        builder.event(role, parts, source_id=pick_text(event, "id"), timestamp=when, author=author)
        reading.places.append((entry.time, pick_text(event, "invocationId")))
        if author and author != "user":
            reading.authors[author] = None
        results = {part.call_id for part in parts if isinstance(part, ToolResultPart) and part.call_id}
        reading.answered_again += len(results & reading.answered)
        reading.answered |= results
    if entry.call is None or not answers:
        return
    if not parts and pick_text(event, "author") == "user":  # a summariser's, whose compaction cannot be read
        builder.side_calls.append(msgspec.structs.replace(entry.call, at=at))
    else:
        response = at if parts and role is Role.MODEL else None
        builder.calls.append(msgspec.structs.replace(entry.call, at=at, response=response))


# -- recorded compactions


def _compaction(reading: AdkEventReader, event: dict[str, Any], new: CompactedRange, call: ModelCall | None) -> None:
    """A compaction event is not a message of the log; its usage belongs to the summariser."""
    builder = reading.builder
    at = len(builder.events)
    reading.ranges = [*(old for old in reading.ranges if not old.within(new)), new]
    base, messages = _base(reading)
    builder.compaction(
        RecordedCompaction(
            at=at,
            evidence=Evidence.DECLARED,
            kind="summary+tail" if any(isinstance(item, Span) for item in base) else "summary",
            base=base,
            messages=messages,
            trigger="auto",  # nothing else asks for one
            summariser=msgspec.structs.replace(call, at=at) if call else None,
            timestamp=time_of(event) or None,
            note=AS_SENT,
        )
    )


def _base(reading: AdkEventReader) -> tuple[View, tuple[Event, ...]]:
    """The request after the newest compaction: a summary is at the end of its range, what no range covers stays."""
    segments: list[Segment] = []
    messages: list[Event] = []
    place, places = 0, reading.places
    for item in sorted(reading.ranges, key=lambda item: (item.end, item.start)):
        start = max(bisect_left(places, item.start, key=_time), place)
        stop = max(bisect_right(places, item.end, key=_time), start)
        if place < start:
            segments.append(Span(place, start))
        if item.holes:
            holes = (index for index in range(start, stop) if places[index][::-1] in item.holes)
            segments.extend(Span(index, index + 1) for index in holes)
        place = stop
        segments.append(Inserted(len(messages)))
        messages.append(item.message)
    size = len(reading.builder.events)
    if place < size:
        segments.append(Span(place, size))
    return tuple(segments), tuple(messages)


def _time(place: tuple[float, str]) -> float:
    return place[0]
