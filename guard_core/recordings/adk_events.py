"""Events of the Agent Development Kit (ADK), in both spellings, as one session. Definition: README.md, format "adk".

Python writes camelCase or snake_case with nulls; Go writes camelCase and has no compaction record, but the state keys
of ContextGuard. Compacted events stay in the list: the request after a compaction is derived from the ranges.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from guard_core.errors import DamagedRecording
from guard_core.events import (
    Event,
    MediaPart,
    OtherPart,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    value_text,
)
from guard_core.recordings import fields, normalise
from guard_core.recordings.build import FactCounter, SessionBuilder
from guard_core.recordings.source import Source
from guard_core.sessions import Evidence, GuardState, ModelCall, RecordedCompaction, Session
from guard_core.views import Inserted, Segment, Span, View

NAME = "adk"
# State keys of ContextGuard (adk-utils-go, plugin/contextguard), each followed by the agent's name.
GUARD_KEYS = {
    "__context_guard_summary_": "summary",
    "__context_guard_summarized_at_": "summarized_at",
    "__context_guard_contents_at_compaction_": "contents_at_compaction",
    "__context_guard_real_tokens_": "real_tokens",
    "__context_guard_last_heuristic_": "last_heuristic",
}
# How ContextGuard wraps its summary when it puts it in front of a request.
_SUMMARY_HEAD = "[Previous conversation summary]"
_SUMMARY_FOOT = "[End of summary — conversation continues below]"
_OTHER_PARTS = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")
_BEFORE_CAPITAL = re.compile(r"(?=[A-Z])")
_SNAKE: dict[str, str] = {}


def pick(value: Any, camel: str) -> Any:
    """A field by its camelCase name, or by its snake_case name."""
    if not isinstance(value, dict):
        return None
    found = value.get(camel)
    if found is not None:
        return found
    snake = _SNAKE.get(camel)
    if snake is None:
        snake = _SNAKE[camel] = _BEFORE_CAPITAL.sub("_", camel).lower()
    return value.get(snake)


def pick_text(value: Any, camel: str) -> str:
    """The same where it is text, else ""."""
    found = pick(value, camel)
    return found if isinstance(found, str) else ""


def pick_object(value: Any, camel: str) -> dict[str, Any]:
    """The same where it is an object, else an empty one."""
    found = pick(value, camel)
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True)
class _Range:
    """One recorded compaction: its times, both inclusive, and the message that stands for them."""

    start: float
    end: float
    message: Event

    def within(self, other: _Range) -> bool:
        return other.start <= self.start and self.end <= other.end


@dataclass
class _Reading:
    """One session while it is read."""

    source: Source
    counter: FactCounter
    builder: SessionBuilder
    times: list[float] = field(default_factory=list)  # of each log event, never decreasing
    ranges: list[_Range] = field(default_factory=list)  # those that no later one swallowed
    guards: dict[str, GuardState] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    authors: dict[str, None] = field(default_factory=dict)


def read_session(header: dict[str, Any], events: Iterable[Any], source: Source, counter: FactCounter) -> Session:
    """One session from its header (id, app name, state) and its event objects; adds to the facts."""
    reading = _Reading(source, counter, SessionBuilder(NAME, source))
    for position, event in _in_order(list(events)):
        with source.tolerate():
            _read_event(reading, event, position)
    state = pick_object(header, "state")
    if not reading.builder.guard_states:
        _guard_state(reading, state)
    if len(reading.authors) > 1:
        names = ", ".join(list(reading.authors)[:6])
        reading.builder.notes.append(f"several agents share this session: {names}")
    return reading.builder.session(
        source_id=pick_text(header, "id"),
        agent=pick_text(header, "appName") or next(iter(reading.authors), ""),
        title=fields.text(state.get("__session_metadata__"), "displayName"),
    )


def _in_order(events: list[Any]) -> list[tuple[int, Any]]:
    """By timestamp, then by position; an event without a time stays behind the one before it."""
    last = 0.0
    keyed = []
    for position, event in enumerate(events):
        last = _time(event, last)
        keyed.append((last, position, event))
    keyed.sort(key=lambda item: item[:2])
    return [(position, event) for _, position, event in keyed]


def _time(event: Any, default: float) -> float:
    found = normalise.timestamp(pick(event, "timestamp"))
    return default if found is None else found


def _read_event(reading: _Reading, event: Any, position: int) -> None:
    if not isinstance(event, dict):
        raise DamagedRecording(f"event {position + 1} is no object")
    if pick(event, "partial") is True:
        reading.source.notes.skip("streaming piece of an event")
        return
    event_id = pick_text(event, "id")
    if event_id and event_id in reading.ids:
        reading.source.notes.folded += 1
        return
    call = _call(event, position)
    reading.ids.add(event_id)
    reading.counter.message()
    if call is not None and call.prompt_tokens is not None:
        reading.counter.call(call.prompt_tokens)
    actions = pick_object(event, "actions")
    compaction = pick_object(actions, "compaction")
    if compaction:
        _compaction(reading, event, compaction, call)
    else:
        _message(reading, event, call)
    _guard_state(reading, pick_object(actions, "stateDelta"))
    if pick_text(actions, "rewindBeforeInvocationId"):
        reading.builder.notes.append(f"event {position + 1} rewinds the session; the log keeps what it took back")


def _call(event: dict[str, Any], position: int) -> ModelCall | None:
    usage = pick(event, "usageMetadata")
    if not isinstance(usage, dict):
        return None
    where = f"event {position + 1}: "
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
        timestamp=normalise.timestamp(pick(event, "timestamp")),
        source_id=pick_text(event, "id"),
    )


def _message(reading: _Reading, event: dict[str, Any], call: ModelCall | None) -> None:
    content = pick_object(event, "content")
    parts = content_parts(content)
    author = pick_text(event, "author")
    by_model = _is_model(content, author)
    builder = reading.builder
    at = len(builder.events)
    response = None
    if parts:
        when = normalise.timestamp(pick(event, "timestamp"))
        role = Role.MODEL if by_model else Role.USER
        response = builder.event(role, parts, source_id=pick_text(event, "id"), timestamp=when, author=author)
        reading.times.append(max(when or 0.0, reading.times[-1] if reading.times else 0.0))
        _count_parts(parts, reading.counter)
        if author and author != "user":
            reading.authors[author] = None
    else:
        reading.source.notes.skip("event without content")
    if call is not None or (by_model and parts):
        call = call or ModelCall(at=0, source_id=pick_text(event, "id"), timestamp=_time(event, 0.0) or None)
        builder.calls.append(msgspec.structs.replace(call, at=at, response=response if by_model else None))


def _is_model(content: dict[str, Any], author: str) -> bool:
    role = pick_text(content, "role")
    if role:
        return role == "model"
    return author not in ("", "user")


def _count_parts(parts: Iterable[Part], counter: FactCounter) -> None:
    for part in parts:
        if isinstance(part, ToolCallPart):
            counter.tool_call(part.id)
        elif isinstance(part, ToolResultPart):
            counter.tool_result(part.call_id, len(value_text(part.content)))


def content_parts(content: Any) -> tuple[Part, ...]:
    """The parts of a Gemini content, in either spelling; parts that hold nothing are left out."""
    return tuple(part for item in fields.objects(pick(content, "parts")) if (part := _part(item)) is not None)


def _part(item: dict[str, Any]) -> Part | None:
    metadata = pick_object(item, "partMetadata") or None
    if call := pick_object(item, "functionCall"):
        return ToolCallPart(pick_text(call, "name"), pick(call, "args"), pick_text(call, "id"), metadata)
    if result := pick_object(item, "functionResponse"):
        response = pick(result, "response")
        failed = isinstance(response, dict) and "error" in response and len(response) == 1
        return ToolResultPart(pick_text(result, "name"), response, pick_text(result, "id"), failed, metadata)
    if data := pick_object(item, "inlineData"):
        size = fields.base64_size(pick_text(data, "data"))
        return MediaPart(mime=pick_text(data, "mimeType"), size=size, metadata=metadata)
    if file := pick_object(item, "fileData"):
        return MediaPart(mime=pick_text(file, "mimeType"), uri=pick_text(file, "fileUri"), metadata=metadata)
    for kind in _OTHER_PARTS:
        if value := pick_object(item, kind):
            return OtherPart(kind, value, metadata)
    text = pick_text(item, "text")
    if pick(item, "thought") is True:
        signature = pick_text(item, "thoughtSignature")
        return ReasoningPart(text, fields.opaque_size(signature) if signature else 0, metadata)
    return TextPart(text, metadata) if text else None


# -- recorded compactions


def _compaction(reading: _Reading, event: dict[str, Any], compaction: dict[str, Any], call: ModelCall | None) -> None:
    """A compaction event is no message of the log; its usage belongs to the summariser."""
    start = normalise.timestamp(pick(compaction, "startTimestamp"))
    end = normalise.timestamp(pick(compaction, "endTimestamp"))
    if start is None or end is None or start > end:
        raise DamagedRecording("a compaction without its range of times (startTimestamp, endTimestamp)")
    builder = reading.builder
    reading.counter.compaction()
    when = normalise.timestamp(pick(event, "timestamp"))
    if call is not None:
        call = msgspec.structs.replace(call, at=len(builder.events))
        builder.side_calls.append(call)
    content = pick_object(compaction, "compactedContent")
    role = Role.USER if pick_text(content, "role") == "user" else Role.MODEL
    source_id = pick_text(event, "id")
    message = Event(role=role, parts=content_parts(content), source_id=source_id, timestamp=when, meta=True)
    new = _Range(start, end, message)
    reading.ranges = [*(old for old in reading.ranges if not old.within(new)), new]
    base, messages = _base(reading)
    builder.compaction(
        RecordedCompaction(
            at=len(builder.events),
            evidence=Evidence.DECLARED,
            kind="summary+tail" if any(isinstance(item, Span) for item in base) else "summary",
            base=base,
            messages=messages,
            summariser=call,
            timestamp=when,
        )
    )


def _base(reading: _Reading) -> tuple[View, tuple[Event, ...]]:
    """The request after the newest compaction: a summary stands at the end of its range, what no range covers stays."""
    segments: list[Segment] = []
    messages: list[Event] = []
    place = 0
    for item in sorted(reading.ranges, key=lambda item: (item.end, item.start)):
        start = max(bisect_left(reading.times, item.start), place)
        if place < start:
            segments.append(Span(place, start))
        place = max(place, bisect_right(reading.times, item.end))
        segments.append(Inserted(len(messages)))
        messages.append(item.message)
    size = len(reading.builder.events)
    if place < size:
        segments.append(Span(place, size))
    return tuple(segments), tuple(messages)


# -- ContextGuard's state


def _guard_state(reading: _Reading, delta: dict[str, Any]) -> None:
    """Note the state that ContextGuard kept, per agent, and a compaction where its summary changed."""
    changed: dict[str, dict[str, Any]] = {}
    for key, value in delta.items():
        for prefix, name in GUARD_KEYS.items():
            if key.startswith(prefix):
                changed.setdefault(key[len(prefix) :], {})[name] = _guard_value(name, value)
    size = len(reading.builder.events)
    for agent, values in changed.items():
        old = reading.guards.get(agent) or GuardState(at=0, agent=agent)
        new = msgspec.structs.replace(old, at=size, **values)
        reading.guards[agent] = new
        reading.builder.guard_states.append(new)
        if "contents_at_compaction" in values and new.summary:
            _guard_compaction(reading, new)


def _guard_value(name: str, value: Any) -> str | int | None:
    """As ContextGuard loads it: a summary that is no text is none, a number may have become a float."""
    if name == "summary":
        return value if isinstance(value, str) else ""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > normalise.MAX_TOKENS:
        return 0
    return int(value)


def _guard_compaction(reading: _Reading, state: GuardState) -> None:
    """The state was written before the call that carries it: the compaction stands before that call's answer."""
    builder = reading.builder
    last = builder.calls[-1] if builder.calls else None
    at = last.at if last is not None and last.response == len(builder.events) - 1 else len(builder.events)
    watermark = min(max(state.contents_at_compaction or 0, 0), at)
    text = f"{_SUMMARY_HEAD}\n{state.summary}\n{_SUMMARY_FOOT}"
    kept = (Span(watermark, at),) if watermark < at else ()
    reading.counter.compaction()
    builder.compaction(
        RecordedCompaction(
            at=at,
            evidence=Evidence.DECLARED,
            kind="summary+tail" if kept else "summary",
            base=(Inserted(0), *kept),
            messages=(Event(role=Role.USER, parts=(TextPart(text),), meta=True),),
            trigger="ContextGuard",
            tokens_before=state.summarized_at or None,
            timestamp=last.timestamp if last else None,
            note="from ContextGuard's state; the continuation message of the compacting call is not recorded",
        )
    )
