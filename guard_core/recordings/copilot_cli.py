"""GitHub Copilot CLI event logs (`events.jsonl`): one session per file.

Definition: the session events of https://github.com/github/copilot-sdk (`{type, data, id, parentId, timestamp}`).
`system.message` is the real system prompt. A user message's `transformedContent` (with date and reminders) is what is
sent, its `content` what was typed. An `assistant.message` is one model call: `toolRequests` are its calls, reasoning
may be readable or opaque. `tool.execution_complete` gives the result text that the model saw (`result.content`, or the
error's message). Files hold no prompt tokens per call (`assistant.usage`, where a client did write it, is read: its
input tokens include cached ones); totals in `session.shutdown` are told in a note. Events of sub-agents
(`parentToolCallId`, or `agentId`) are another context: their calls are side calls, their messages are left out.
`session.compaction_complete` is a declared compaction whose summary takes the place of the history;
`session.truncation` is a declared trim of the oldest messages. The window is the recorder's `tokenLimit`.
Facts count events whose type ends in `.message`, and the tool calls of sub-agents, too.
"""

from __future__ import annotations

from typing import Any

import msgspec

from guard_core.events import Event, MediaPart, Part, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings import fields
from guard_core.recordings.base import Recording
from guard_core.recordings.build import FactCounter, SessionBuilder
from guard_core.recordings.fields import JSON
from guard_core.recordings.source import Line, Source
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Sourced
from guard_core.sessions import Source as NumberSource
from guard_core.views import Inserted, Segment, Span, View

OWN_TYPES = frozenset({"session.start", "user.message", "assistant.message", "assistant.turn_start", "system.message"})


class CopilotFormat:
    name = "copilot-cli"
    label = "Copilot CLI"

    def matches(self, source: Source) -> bool:
        lines = source.head_lines()
        own = sum(
            1 for line in lines if fields.text(line.obj, "type") in OWN_TYPES and isinstance(line.obj.get("data"), dict)
        )
        return own > 0 and all("type" in line.obj and "data" in line.obj for line in lines[:3])

    def read(self, source: Source) -> Recording:
        reader = _Events(source)
        for line in source.lines():
            reader.take(line)
        return reader.recording()


FORMAT = CopilotFormat()


class _Events:
    """Takes the events in the order of the file."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._facts = FactCounter("copilot-cli")
        self._builder = SessionBuilder("copilot-cli", source)
        self._system: tuple[Part, ...] | None = None
        self._about: dict[str, Any] = {"agent": "Copilot CLI"}
        self._usage: dict[str, Any] = {}  # of the call whose message has not come yet
        self._open_call = False  # has this turn a call without usage? Clients write the usage before or after it
        self._handlers = {
            "session.start": self._start,
            "session.resume": self._start,
            "session.model_change": self._model_change,
            "system.message": self._system_message,
            "user.message": self._user,
            "assistant.message": self._assistant,
            "assistant.turn_start": self._turn_start,
            "assistant.usage": self._assistant_usage,
            "tool.execution_complete": self._result,
            "session.compaction_complete": self._compaction,
            "session.truncation": self._truncation,
            "session.usage_info": self._window,
            "session.shutdown": self._shutdown,
        }

    def take(self, line: Line) -> None:
        kind = fields.text(line.obj, "type")
        if kind.endswith(".message"):
            self._facts.message()
        handler = self._handlers.get(kind)
        if handler is None:
            self._source.notes.skip(kind[:80] or "event without a type")
            return
        handler(fields.mapping(line.obj, "data"), line)

    def recording(self) -> Recording:
        session = self._builder.session(system=self._system, **self._about)
        return Recording("copilot-cli", (session,), self._facts.facts(), self._source.notes)

    def _start(self, data: JSON, line: Line) -> None:
        self._about.setdefault("source_id", fields.text(data, "sessionId"))
        self._about.setdefault("started_at", fields.timestamp(data, "startTime"))
        self._about["model"] = fields.text(data, "selectedModel") or self._about.get("model", "")

    def _model_change(self, data: JSON, line: Line) -> None:
        self._about["model"] = fields.text(data, "newModel") or self._about.get("model", "")

    def _system_message(self, data: JSON, line: Line) -> None:
        parts = fields.content_parts(data.get("content"))
        if not self._builder.calls:
            self._system = parts
        elif parts != self._system:
            self._source.notes.skip("later system prompt")

    def _user(self, data: JSON, line: Line) -> None:
        if self._is_other_context(data, line):
            return
        typed, sent = data.get("content"), fields.text(data, "transformedContent")
        parts: list[Part] = [TextPart(sent)] if sent else list(fields.content_parts(typed))
        parts.extend(_attachment(item) for item in fields.objects(data.get("attachments")))
        source = fields.text(data, "source")
        self._builder.event(Role.USER, parts, meta=source not in {"", "user"}, **_place(line))

    def _assistant(self, data: JSON, line: Line) -> None:
        place = _place(line)
        call = {
            "model": fields.text(data, "model"),
            "output_tokens": fields.tokens(data, "outputTokens"),
            "timestamp": place["timestamp"],
            "line": line.number,
            "source_id": fields.text(data, "apiCallId") or fields.text(data, "messageId"),
        }
        calls = [_tool_call(item) for item in fields.objects(data.get("toolRequests"))]
        for part in calls:
            self._facts.tool_call(part.id)
        if self._is_other_context(data, line):
            self._builder.side_calls.append(ModelCall(at=len(self._builder.events), **call))
            return
        parts = (*_reasoning(data), *fields.content_parts(data.get("content")), *calls)
        self._builder.answer(parts, call={**call, **self._usage}, **place)
        self._usage, self._open_call = {}, not self._usage

    def _turn_start(self, data: JSON, line: Line) -> None:
        self._usage, self._open_call = {}, False

    def _assistant_usage(self, data: JSON, line: Line) -> None:
        prompt = fields.tokens(data, "inputTokens")
        if prompt is None:
            return
        self._facts.call(prompt)
        usage: dict[str, Any] = {
            "prompt_tokens": prompt,
            "cached_tokens": fields.tokens(data, "cacheReadTokens"),
            "cache_write_tokens": fields.tokens(data, "cacheWriteTokens"),
        }
        if self._is_other_context(data, line):
            self._builder.side_calls.append(ModelCall(at=len(self._builder.events), line=line.number, **usage))
        elif self._open_call:
            self._builder.calls[-1] = msgspec.structs.replace(self._builder.calls[-1], **usage)
            self._open_call = False
        else:
            self._usage = usage

    def _result(self, data: JSON, line: Line) -> None:
        call_id = fields.text(data, "toolCallId")
        result = data.get("result")
        found = fields.plain_text(result) or fields.text(fields.mapping(data, "error"), "message")
        self._facts.tool_result(call_id, len(found))
        if self._is_other_context(data, line):
            return
        failed = data.get("success") is False
        part = ToolResultPart(fields.text(data, "toolName"), found, call_id, failed)
        self._builder.event(Role.USER, (part,), **_place(line))

    def _compaction(self, data: JSON, line: Line) -> None:
        if self._is_other_context(data, line):
            return
        if data.get("success") is False:
            self._source.notes.skip("failed compaction")
            return
        self._facts.compaction()
        summary = fields.text(data, "summaryContent")
        used = fields.mapping(data, "compactionTokensUsed")
        prompt = fields.first_tokens(used, "input", "inputTokens")
        at = len(self._builder.events)
        summariser = None if prompt is None else ModelCall(at=at, prompt_tokens=prompt, line=line.number)
        message = Event(Role.USER, (TextPart(summary),), meta=True, **_place(line))
        self._builder.compactions.append(
            RecordedCompaction(
                at=at,
                evidence=Evidence.DECLARED,
                kind="summary" if summary else "opaque",
                base=(Inserted(0),) if summary else (),
                messages=(message,) if summary else (),
                trigger=fields.text(data, "trigger"),
                tokens_before=fields.tokens(data, "preCompactionTokens"),
                tokens_after=fields.tokens(data, "postCompactionTokens"),
                summariser=summariser,
                line=line.number,
                timestamp=fields.timestamp(line.obj, "timestamp"),
                note="" if summary else "The summary is not in the file.",
            )
        )

    def _truncation(self, data: JSON, line: Line) -> None:
        if self._is_other_context(data, line):
            return
        self._window(data, line)
        removed = fields.tokens(data, "messagesRemovedDuringTruncation") or 0
        if not removed:
            self._source.notes.skip("truncation without effect")
            return
        self._facts.compaction()
        base, messages = self._without_oldest(removed)
        self._builder.compactions.append(
            RecordedCompaction(
                at=len(self._builder.events),
                evidence=Evidence.DECLARED,
                kind="trim",
                base=base,
                messages=messages,
                tokens_before=fields.tokens(data, "preTruncationTokensInMessages"),
                tokens_after=fields.tokens(data, "postTruncationTokensInMessages"),
                line=line.number,
                timestamp=fields.timestamp(line.obj, "timestamp"),
                note="Which messages were removed is not in the file: the oldest are taken to be.",
            )
        )

    def _without_oldest(self, removed: int) -> tuple[View, tuple[Event, ...]]:
        """The history as it is sent now without its oldest messages, and the inserted messages still in it."""
        last = self._builder.compactions[-1] if self._builder.compactions else None
        now = (*last.base, Span(last.at, len(self._builder.events))) if last else (Span(0, len(self._builder.events)),)
        kept: list[Segment] = []
        messages: list[Event] = []
        for segment in now:
            size = segment.stop - segment.start if isinstance(segment, Span) else 1
            drop, removed = min(size, removed), removed - min(size, removed)
            if isinstance(segment, Span):
                kept.append(Span(segment.start + drop, segment.stop))
            elif not drop and isinstance(segment, Inserted) and last is not None:
                kept.append(Inserted(len(messages)))
                messages.append(last.messages[segment.index])
        return tuple(kept), tuple(messages)

    def _window(self, data: JSON, line: Line) -> None:
        limit = fields.tokens(data, "tokenLimit")
        if limit:
            self._about["window"] = Sourced(limit, NumberSource.RECORDER, "tokenLimit in the recording")

    def _shutdown(self, data: JSON, line: Line) -> None:
        for model, metrics in fields.mapping(data, "modelMetrics").items():
            count = fields.tokens(fields.mapping(metrics, "requests"), "count")
            sent = fields.tokens(fields.mapping(metrics, "usage"), "inputTokens")
            if count and sent is not None:
                self._builder.notes.append(f"{sent} prompt tokens in {count} calls of {model[:80]} together.")

    def _is_other_context(self, data: JSON, line: Line) -> bool:
        other = bool(fields.text(data, "parentToolCallId") or fields.text(line.obj, "agentId"))
        if other:
            self._source.notes.skip("sub-agent event")
        return other


def _place(line: Line) -> dict[str, Any]:
    return {
        "line": line.number,
        "source_id": fields.text(line.obj, "id"),
        "timestamp": fields.timestamp(line.obj, "timestamp"),
    }


def _tool_call(item: JSON) -> ToolCallPart:
    call_id = fields.text(item, "toolCallId") or fields.text(item, "id")
    return ToolCallPart(fields.text(item, "name"), fields.arguments(item.get("arguments")), call_id)


def _reasoning(data: JSON) -> tuple[Part, ...]:
    opaque = fields.text(data, "reasoningOpaque") or fields.text(data, "encryptedContent")
    readable = fields.text(data, "reasoningText")
    if not opaque and not readable:
        return ()
    return (ReasoningPart(readable, opaque_bytes=fields.opaque_size(opaque) if opaque else 0),)


def _attachment(item: JSON) -> Part:
    data = fields.text(item, "data") or fields.text(item, "content")
    if data:
        return fields.media(fields.text(item, "mimeType"), data)
    return MediaPart(mime=fields.text(item, "mimeType"), uri=fields.text(item, "path") or fields.text(item, "uri"))
