"""Claude Managed Agents: the events of a session, as its API lists or streams them.

Definition: https://platform.claude.com/docs/en/managed-agents/reference (event types; beta header
`managed-agents-2026-04-01`). `{data: [event, …]}` is a page of the list; programs keep the events as an array, beside
their session (`{session, events}`), or as lines, alone or under one key (`raw`, `event`, `data`). Kinds are
`{domain}.{action}`, ids `sevt_…`. A call is the span between `span.model_request_start` and
`span.model_request_end`, which has Anthropic's counts of it (`model_usage`); what the agent said, thought (without
text) and called in between is its answer; what the user or a tool says in between is not in its request.
`agent.thread_context_compacted` is a declared compaction: neither its summary nor what it kept is in the events.
Events under another thread's `session_thread_id` are copies, by which a sub-agent asks for permission. The system
prompt, the schemas of the tools and, but for the session's own record, the model are not in the events. Previews of a
stream (`event_start`, `event_delta`) come again as events. Facts count the events of user, agent and tools as messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from guard_core.events import Part, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.anthropic_messages import block_parts, usage_of
from guard_core.recordings.reading import fields, wrong_kinds
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.identities import Identities
from guard_core.recordings.reading.known_names import ANTHROPIC_COUNTS, ANTHROPIC_USAGE, Names, words
from guard_core.recordings.reading.refusals import names_length
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Session

NAME = "managed-agents"
_STARTED, _ENDED, _COMPACTED = "span.model_request_start", "span.model_request_end", "agent.thread_context_compacted"
_ANSWER = frozenset({"agent.message", "agent.thinking"})
_CALLS = frozenset({"agent.tool_use", "agent.mcp_tool_use", "agent.custom_tool_use"})
# What names the call of each kind of result.
_RESULTS = {
    "agent.tool_result": "tool_use_id",
    "user.tool_result": "tool_use_id",
    "agent.mcp_tool_result": "mcp_tool_use_id",
    "user.custom_tool_result": "custom_tool_use_id",
}
_OWN = frozenset({*_ANSWER, *_CALLS, *_RESULTS, _STARTED, _ENDED, _COMPACTED, "user.define_outcome"})
_WRAPPERS = ("raw", "event", "data")  # keys under which programs keep an event in a line of their own
_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_LOST = "Neither the summary nor what was kept is in the file."


class ManagedAgentsFormat:
    name = NAME
    label = "Claude Managed Agents"
    place = "GET /v1/sessions/…/events"
    known_names = Names(
        usage=ANTHROPIC_USAGE | words("model_usage"),
        counts=ANTHROPIC_COUNTS | words("web_fetch_requests"),
        tools=frozenset({*_CALLS, *_RESULTS, *_WRAPPERS}) | words("tools content events"),
        passed_over=words("input evaluation rubric"),
    )

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.LINES:
            return any(_is_own(_event(line.obj)) for line in source.head_lines())
        value = source.json_head() if source.shape is SourceShape.JSON else None
        items = value if isinstance(value, list) else _listed(value)
        return any(_is_own(_event(item)) for item in fields.objects(items))

    def read(self, source: ByteSource) -> Recording:
        reader = _EventReader(source)
        events: Iterator[tuple[JSON, int | None]]
        if source.shape is SourceShape.LINES:
            events = ((_event(line.obj), line.number) for line in source.lines())
        else:
            items = wrong_kinds.objects(source, source.elements(_listed), "event")
            events = ((_event(item), None) for item in items)
        for event, line in events:
            with source.tolerate(line):
                reader.event(event, line)
        head = None if source.shape is SourceShape.LINES else source.json_head()  # where the session's own record is
        agent = fields.mapping(fields.mapping(head, "session"), "agent") or fields.mapping(head, "agent")
        model = fields.text(agent, "model") or fields.text(fields.mapping(agent, "model"), "id")
        return Recording(NAME, (reader.session(model),), reader.facts.facts(), source.notes)


FORMAT = ManagedAgentsFormat()


def _listed(value: Any) -> list[Any]:
    """The events of a page, or of an export with its session."""
    return fields.items(value, "data") or fields.items(value, "events")


def _event(record: JSON) -> JSON:
    """The event in a record, where a program keeps it under a key of its own."""
    if _is_event(record):
        return record
    return next((inner for key in _WRAPPERS if _is_event(inner := fields.mapping(record, key))), record)


def _is_event(record: JSON) -> bool:
    return "." in fields.text(record, "type") and isinstance(record.get("id"), str)


def _is_own(event: JSON) -> bool:
    return _is_event(event) and fields.text(event, "type") in _OWN


class _EventReader:
    def __init__(self, source: ByteSource) -> None:
        self.facts = FactCounter(NAME)
        self._source = source
        self._log = SessionBuilder(NAME, source)
        self._known = Identities(source, "event")
        self._request: JSON | None = None  # the fields of the call that runs
        self._at = 0
        self._said: list[Part] = []
        self._arrived: list[tuple[tuple[Part, ...], int | None, float | None]] = []  # while the call runs
        self.facts.session()

    def event(self, event: JSON, line: int | None) -> None:
        kind = fields.text(event, "type")
        if self._known.is_repeat(fields.text(event, "id"), event, line):
            return
        if fields.text(event, "session_thread_id") and kind in _OWN:
            self._source.notes.skip(f"copy of a sub-agent's event {kind}")
        elif kind == _STARTED:
            self._close()
            self._at = len(self._log.events)
            self._request = {"timestamp": fields.timestamp(event, "processed_at"), "line": line}
        elif kind == _ENDED:
            self._ended(event, line)
        elif kind in _ANSWER or kind in _CALLS:
            self.facts.message(kind != "agent.thinking")
            self._said += self._parts(event, kind, line)
        elif kind == _COMPACTED:
            self._close()
            self._compacted(event, line)
        elif kind == "session.error":
            message = fields.text(fields.mapping(event, "error"), "message")
            if names_length(message):
                self._log.refuse(message)
        elif parts := self._from_outside(event, kind, line):
            self._arrive(parts, line, fields.timestamp(event, "processed_at"))
        else:
            self._source.notes.skip(f"event {ascii(kind[:40])[1:-1]}")

    def _parts(self, event: JSON, kind: str, line: int | None) -> Iterable[Part]:
        if kind in _CALLS:
            yield ToolCallPart(fields.text(event, "name"), event.get("input"), fields.text(event, "id"))
        elif kind == "agent.thinking":
            yield ReasoningPart(fields.text(event, "thinking"))
        else:
            wrong_kinds.check_words(self._source, event, "content", "an event", line)
            yield from block_parts(event.get("content"))

    def _from_outside(self, event: JSON, kind: str, line: int | None) -> tuple[Part, ...]:
        """What the user or a tool says."""
        if kind == "user.define_outcome":
            return (TextPart(fields.text(event, "description")),)
        if kind != "user.message" and kind not in _RESULTS:
            return ()
        wrong_kinds.check_words(self._source, event, "content", "an event", line)
        parts = block_parts(event.get("content"))
        if kind == "user.message":
            return parts
        content: Any = fields.plain_text(event.get("content"))
        if not all(isinstance(part, TextPart) for part in parts):
            content = event.get("content")
        return (ToolResultPart("", content, fields.text(event, _RESULTS[kind]), event.get("is_error") is True),)

    def _arrive(self, parts: tuple[Part, ...], line: int | None, timestamp: float | None) -> None:
        """Something from outside came. While a request runs it waits: it is not in that request, and follows its
        answer."""
        self.facts.message()
        self.facts.parts(parts)
        self._arrived.append((parts, line, timestamp))
        if self._request is None:
            self._close()

    def _ended(self, event: JSON, line: int | None) -> None:
        usage = fields.mapping(event, "model_usage")
        wrong_kinds.check_counts(self._source, usage, _COUNTS, "an event", line)
        counts = usage_of(usage)
        if not counts.get("prompt_tokens"):  # an error has zeros
            counts = {}
        else:
            self.facts.call(counts["prompt_tokens"])
        if self._request is None:
            self._at = len(self._log.events)
        self._request = None if event.get("is_error") is True else {**(self._request or {"line": line}), **counts}
        self._close(fields.timestamp(event, "processed_at"))

    def _close(self, ended: float | None = None) -> None:
        """What was said is complete; without a span around it, it is an answer without counts."""
        request, parts = self._request, tuple(self._said)
        self._request, self._said = None, []
        if parts:
            self.facts.parts(parts)
            index = self._log.event(Role.MODEL, parts, line=(request or {}).get("line"), timestamp=ended)
            at = self._at if request else index
            self._log.calls.append(ModelCall(at, index, **(request or {})))
        elif request and "prompt_tokens" in request:
            self._log.calls.append(ModelCall(self._at, **request))
        for outside, line, timestamp in self._arrived:
            self._log.event(Role.USER, outside, line=line, timestamp=timestamp)
        self._arrived = []

    def _compacted(self, event: JSON, line: int | None) -> None:
        self.facts.compaction()
        self._log.compaction(
            RecordedCompaction(
                len(self._log.events),
                Evidence.DECLARED,
                "opaque",
                (),
                trigger="auto",
                line=line,
                timestamp=fields.timestamp(event, "processed_at"),
                note=_LOST,
            )
        )

    def session(self, model: str) -> Session:
        self._close()
        if not self._log.events:
            raise self._source.nothing_left("no event can be read")
        notes = ["The system prompt and the schemas of the tools are not in the file."]
        return self._log.session(agent="Claude Managed Agents", model=model, notes=notes)
