"""The events of one ADK session in order, checked and counted, and which of them each context of it sees.

Definition: `google.adk.flows.llm_flows`, which builds every request anew from the session's events. Not in a request
are events that a rewind took back, events of another isolation scope (a delegated task), events of a sibling's branch
(parallel agents), and what a tool's own agents did on their branch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from guard_core.errors import DamagedRecording
from guard_core.events import Event, OtherPart, Part, Role, ToolCallPart, ToolResultPart
from guard_core.recordings.formats.adk.parts import content_parts, pick, pick_object, pick_text
from guard_core.recordings.reading import normalise
from guard_core.recordings.reading.build import FactCounter
from guard_core.recordings.reading.identities import Identities
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import ModelCall

Context = tuple[str, str]  # isolation scope, branch


@dataclass(frozen=True)
class CompactedRange:
    """One recorded compaction: its times, both inclusive, and the message that replaces them.

    `holes` are events between these times that it does not replace (invocation, time), as the Go services write them.
    """

    start: float
    end: float
    message: Event
    holes: frozenset[tuple[str, float | None]] = frozenset()

    def within(self, other: CompactedRange) -> bool:
        return other.start <= self.start and self.end <= other.end


@dataclass(frozen=True, slots=True)
class AdkEntry:
    """One event of the file that counts: no streaming piece, no repeat. `time` never decreases along the session."""

    number: int  # of the event in the file, from 1
    time: float
    event: dict[str, Any]
    context: Context
    call: ModelCall | None = None  # the request that it answers, in the provider's tokens where it reports them
    compaction: CompactedRange | None = None
    rewinds_to: str = ""  # the invocation before which a rewind leads


def entries(events: list[Any], source: ByteSource, counter: FactCounter) -> list[AdkEntry]:
    """The events by time, then by place; adds to the facts."""
    log: list[AdkEntry] = []
    ids = Identities(source, "event")
    for number, time, event in _in_order(events):
        with source.tolerate():
            if not isinstance(event, dict):
                raise DamagedRecording(f"event {number} is not an object")
            event_id = pick_text(event, "id")
            if pick(event, "partial") is True:
                source.notes.skip("streaming piece of an event")
            elif ids.is_repeat(event_id, event.get("content")):
                source.notes.folded += 1
            else:
                log.append(_entry(event, number, time, source, counter))
    return log


def _in_order(events: list[Any]) -> list[tuple[int, float, Any]]:
    """By timestamp, then by position; an event without a time stays behind the one before it."""
    last = 0.0
    keyed = []
    for number, event in enumerate(events, start=1):
        last = time_of(event, last)
        keyed.append((number, last, event))
    keyed.sort(key=lambda item: (item[1], item[0]))
    return keyed


def time_of(event: Any, default: float = 0.0) -> float:
    """Seconds since the epoch; `time` is what the first Go services called it."""
    stamp = pick(event, "timestamp")
    time = normalise.timestamp(pick(event, "time") if stamp is None else stamp)
    return default if time is None else time


def _entry(event: dict[str, Any], number: int, time: float, source: ByteSource, counter: FactCounter) -> AdkEntry:
    call = _reported(event, number)
    actions = pick_object(event, "actions")
    recorded = pick_object(actions, "compaction")
    compaction = _compaction(event, recorded) if recorded else None
    context = pick_text(event, "isolationScope"), pick_text(event, "branch")
    counter.message()
    if call is not None and call.prompt_tokens is not None:
        counter.call(call.prompt_tokens)
    if compaction is not None:
        counter.compaction()
        return AdkEntry(number, time, event, context, call, compaction)
    role, parts = message_of(event)
    counter.parts(parts)
    rewinds_to = pick_text(actions, "rewindBeforeInvocationId")
    if not parts and not rewinds_to:
        source.notes.skip(
            "error of an agent, without content" if pick_text(event, "errorCode") else "event without content"
        )
    if call is None and _is_answer(event, role, parts):
        name, when = pick_text(event, "modelVersion"), time_of(event) or None
        call = ModelCall(at=0, source_id=pick_text(event, "id"), timestamp=when, model=name)
    return AdkEntry(number, time, event, context, call, None, rewinds_to)


def _reported(event: dict[str, Any], number: int) -> ModelCall | None:
    usage = pick(event, "usageMetadata")
    if not isinstance(usage, dict):
        return None
    where = f"event {number}: "
    prompt = normalise.count(pick(usage, "promptTokenCount"), f"{where}promptTokenCount")
    cached = normalise.count(pick(usage, "cachedContentTokenCount"), f"{where}cachedContentTokenCount")
    answer = normalise.count(pick(usage, "candidatesTokenCount"), f"{where}candidatesTokenCount")
    thoughts = normalise.count(pick(usage, "thoughtsTokenCount"), f"{where}thoughtsTokenCount")
    return ModelCall(
        at=0,
        prompt_tokens=prompt,
        cached_tokens=cached,
        output_tokens=None if answer is None and thoughts is None else (answer or 0) + (thoughts or 0),
        model=pick_text(event, "modelVersion"),
        timestamp=time_of(event) or None,
        source_id=pick_text(event, "id"),
    )


def _compaction(event: dict[str, Any], compaction: dict[str, Any]) -> CompactedRange:
    start = normalise.timestamp(pick(compaction, "startTimestamp"))
    end = normalise.timestamp(pick(compaction, "endTimestamp"))
    if start is None or end is None:
        raise DamagedRecording("a compaction without its range of times (startTimestamp, endTimestamp)")
    if start > end:
        raise DamagedRecording("a compaction whose range of times is reversed (startTimestamp after endTimestamp)")
    content = pick_object(compaction, "compactedContent")
    message = Event(
        role=Role.USER if pick_text(content, "role") == "user" else Role.MODEL,
        parts=content_parts(content),
        source_id=pick_text(event, "id"),
        timestamp=time_of(event) or None,
        meta=True,
    )
    excluded = pick(compaction, "excludedEvents")
    holes = frozenset(
        (pick_text(item, "invocationId"), normalise.timestamp(pick(item, "timestamp")))
        for item in (excluded if isinstance(excluded, list) else ())
    )
    return CompactedRange(start, end, message, holes)


def message_of(event: dict[str, Any]) -> tuple[Role, tuple[Part, ...]]:
    """What an event says: its content, or the transcription of what was spoken in a live session."""
    content = pick_object(event, "content")
    parts = content_parts(content)
    if parts:
        stated, author = pick_text(content, "role"), pick_text(event, "author")
        of_model = stated == "model" if stated else author not in ("", "user")
        return (Role.MODEL if of_model else Role.USER), parts
    for kind, role in (("inputTranscription", Role.USER), ("outputTranscription", Role.MODEL)):
        if spoken := content_parts({"parts": [pick_object(event, kind)]}):
            return role, spoken
    return Role.USER, ()


def _is_answer(event: dict[str, Any], role: Role, parts: tuple[Part, ...]) -> bool:
    """Did a model call write this, though it reports no usage: not speech, and not what tools or code gave back."""
    if role is not Role.MODEL or not pick_object(event, "content"):
        return False
    return not all(
        isinstance(part, ToolResultPart) or (isinstance(part, OtherPart) and part.kind == "codeExecutionResult")
        for part in parts
    )


# -- what is in a request


def taken_back(log: list[AdkEntry]) -> set[int]:
    """The numbers of the events that a rewind took back, the rewinds' own events among them.

    As ADK does it: from the end on, a rewind takes back everything to the first event of the invocation it names.
    """
    first: dict[str, int] = {}
    for index, entry in enumerate(log):
        first.setdefault(pick_text(entry.event, "invocationId"), index)
    rewound: set[int] = set()
    index = len(log) - 1
    while index >= 0:
        target = log[index].rewinds_to
        if target:
            start = min(first.get(target, index), index)
            rewound.update(entry.number for entry in log[start : index + 1])
            index = start
        index -= 1
    return rewound


class Contexts:
    """Which context made which calls, and what it sees. The main one is without scope and branch, where it calls."""

    def __init__(self, log: list[AdkEntry]) -> None:
        calls_by_context = Counter(
            entry.context for entry in log if entry.call is not None and entry.compaction is None
        )
        branches = {entry.context[1] for entry in log if entry.context[1]}
        scopes = {entry.context[0] for entry in log if entry.compaction is None}
        self.split = len(calls_by_context) > 1 and (len(branches) > 1 or len(scopes) > 1)
        root = ("", "")
        self.main: Context = (
            root if root in calls_by_context or not calls_by_context else calls_by_context.most_common(1)[0][0]
        )
        self.own = [
            context
            for context, calls in calls_by_context.items()
            if context != self.main and (calls > 1 or self.main != root)
        ]
        self._call_ids = _call_ids(log) if any("@" in branch for branch in branches) else frozenset()
        self._known: dict[tuple[Context, Context], bool] = {}

    def __iter__(self) -> Iterator[Context]:
        """The contexts with a session of their own, the main one first. Those of a single call have none."""
        yield self.main
        if self.split:
            yield from self.own

    def is_own(self, entry: AdkEntry, context: Context) -> bool:
        """Is it an event of the context's own agents?"""
        return not self.split or entry.context == context

    def is_side_call(self, entry: AdkEntry, context: Context, *, rewound: bool) -> bool:
        """Is the event's call a side call of the context: taken back, a summariser's, or without a session of its own.

        Then the context is the event's own, where it has a session, else the main one.
        """
        holder = entry.context if not self.split or entry.context in self.own else self.main
        beside = rewound or entry.compaction is not None or (self.split and entry.context != context)
        return beside and (not self.split or holder == context)

    def sees(self, entry: AdkEntry, context: Context) -> bool:
        """Would a request of the context hold the event?"""
        if not self.split:
            return True
        pair = entry.context, context
        if pair not in self._known:
            (other_scope, other_branch), (scope, branch) = pair
            shares = other_scope == scope and self._tool_of(other_branch) == self._tool_of(branch)
            is_around = not other_branch or not branch or f"{branch}.".startswith(f"{other_branch}.")
            self._known[pair] = shares and is_around
        return self._known[pair]

    def _tool_of(self, branch: str) -> str:
        """The innermost tool call on whose branch an agent works ("name@id of the call"); "" where there is none."""
        tools = (segment for segment in reversed(branch.split(".")) if segment.partition("@")[2] in self._call_ids)
        return next(tools, "")


def _call_ids(log: list[AdkEntry]) -> frozenset[str]:
    parts = (part for entry in log for part in content_parts(pick_object(entry.event, "content")))
    return frozenset(part.id for part in parts if isinstance(part, ToolCallPart) and part.id)
