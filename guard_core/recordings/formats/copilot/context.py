"""One context of a Copilot CLI event log: the main conversation, or that of a sub-agent."""

from __future__ import annotations

from typing import Any

import msgspec

from guard_core.events import Event, MediaPart, Part, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.build import SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import ByteSource, Line
from guard_core.sessions import AgentSetting, Evidence, ModelCall, Provenance, RecordedCompaction, Session, Sourced
from guard_core.triggers import OVERFLOW
from guard_core.views import Inserted, Segment, Span, View

MODEL_LIMIT = "tokenLimit"  # of the model, in what several events say
AFTER_REFUSAL = "context_limit_retry"  # why a compaction was made, where the provider had refused the request
GIVEN_UP = "summary_given_up_at"  # name of a setting: events when a summary that was begun failed or was cancelled
RESUMED = "resumed_at"  # name of a setting: events before a run that resumed the session
# 1.0.102 sends a sentence of 63 characters as the result of each.
INTERRUPTED = "Tool calls that were interrupted: {:,}. What Copilot sends as their results is not in the file."
# 1.0.40 to 1.0.102 send 241 characters of their own and 32 with each of those messages, by runs compared with requests.
UNWRITTEN = "Copilot's own words around the user's messages and the summary are not in the file."
# 1.0.40 wrote one of two compactions two calls late, 1.0.69 both one call early.
UNPLACED = "The file does not say which request was the first without the old messages: it may be a call or two away."


class CopilotContext:
    """Takes the events of one context in the order of the file."""

    def __init__(self, format_name: str, source: ByteSource, agent: str) -> None:
        self.builder = SessionBuilder(format_name, source)
        self.about: dict[str, Any] = {"agent": agent}
        self._notes = source.notes
        self._system: tuple[Part, ...] | None = None
        self._words: list[str] = []  # what the user typed: a compaction repeats it before the summary
        self._usage: dict[str, Any] = {}  # of the call whose message has not come yet
        self._usage_line = 0
        self._open_call = False  # has this turn a call without usage? Clients write the usage before or after it
        self._names_calls = False  # do messages name the API call that they answer?
        self._unanswered: set[str] = set()  # tool calls without a result
        self._newest: dict[str, None] = {}  # those of the last answer, in its order
        self._results: dict[str, tuple[tuple[Part, ...], dict[str, Any]]] = {}  # of some of them, to be put in order
        self._prompt_limit: Sourced | None = None  # of a recording that states no limit of the model
        self._compacted_from: int | None = None  # events when the compaction under way began
        self._resumed: list[AgentSetting] = []
        self._given_up: list[AgentSetting] = []
        self._compacted_at: int | None = None  # tokens then, as Copilot compared them
        self._asked: ModelCall | None = None  # for its summary
        self._is_asking = False  # has a turn begun whose answer has not come yet?
        self._later: tuple[JSON, Line] | None = None  # a compaction that waits for that answer
        self.orders_results = False  # does this version send results in the order of their calls?

    def session(self) -> Session:
        self._put_results()
        self._close_call()
        self._settle()
        self.no_compaction()
        if interrupted := self._unanswered - self._newest.keys():
            self.builder.notes.append(INTERRUPTED.format(len(interrupted)))
        window = self.builder.window(f"{MODEL_LIMIT} in the recording") or self._prompt_limit
        settings = (*self._resumed, *self._given_up)
        return self.builder.session(system=self._system, window=window, settings=settings, **self.about)

    def system_message(self, data: JSON, line: Line) -> None:
        parts = fields.content_parts(data.get("content"))
        if not self.builder.calls:
            self._system = parts
        elif parts != self._system:
            self._notes.skip("later system prompt")

    def user(self, data: JSON, line: Line) -> None:
        """A message; date and reminders, which Copilot puts around what was typed, are events joined with it."""
        self._put_results()
        typed, sent = data.get("content"), fields.text(data, "transformedContent")
        words = fields.plain_text(typed)
        own = fields.text(data, "source") in {"", "user"}
        if own and words:
            self._words.append(words)
        before, typed_words, behind = sent.partition(words) if own and words else (sent, "", "")
        parts: list[Part] = [TextPart(typed_words or sent)] if sent else list(fields.content_parts(typed))
        parts.extend(_attachment(item) for item in fields.objects(data.get("attachments")))
        if typed_words and before:
            self.builder.event(Role.USER, (TextPart(before),), meta=True, **place_of(line))
        self.builder.event(Role.USER, parts, meta=not own, joined=bool(typed_words and before), **place_of(line))
        if behind:
            self.builder.event(Role.USER, (TextPart(behind),), meta=True, joined=True, **place_of(line))

    def notification(self, data: JSON, line: Line) -> None:
        """What the software says to the model by itself, in the user's name: a background agent is done."""
        self._put_results()
        self.builder.event(Role.USER, fields.content_parts(data.get("content")), meta=True, **place_of(line))

    def assistant(self, data: JSON, line: Line) -> None:
        """A model's message and its call; no call where Copilot wrote it itself: then it names no API call."""
        self._put_results()
        parts = (*_reasoning(data), *fields.content_parts(data.get("content")), *tool_calls(data))
        call_id = fields.text(data, "apiCallId")
        self._newest = dict.fromkeys(part.id for part in parts if isinstance(part, ToolCallPart))
        self._unanswered |= self._newest.keys()
        if self._names_calls and not call_id:
            self.builder.event(Role.MODEL, parts, **place_of(line))
            return
        self._names_calls = self._names_calls or bool(call_id)
        call = {
            "model": fields.text(data, "model"),
            "output_tokens": fields.tokens(data, "outputTokens"),
            "timestamp": fields.timestamp(line.obj, "timestamp"),
            "line": line.number,
            "source_id": call_id or fields.text(data, "messageId"),
        }
        self.builder.answer(parts, call={**call, **self._usage}, **place_of(line))
        self._usage, self._open_call, self._is_asking = {}, not self._usage, False
        self._settle()

    def turn_start(self) -> None:
        self._put_results()
        self._close_call()
        self._open_call, self._is_asking = False, True

    def usage(self, usage: dict[str, Any], line: Line) -> None:
        """The tokens of a call (fields of `ModelCall`), before or after its message."""
        self._put_results()
        if self._open_call:
            self.builder.calls[-1] = msgspec.structs.replace(self.builder.calls[-1], **usage)
            self._open_call = False
            return
        self._close_call()
        self._usage, self._usage_line = usage, line.number

    def _close_call(self) -> None:
        """A call whose usage was recorded, but whose answer never came."""
        if self._usage:
            at = len(self.builder.events)
            self.builder.calls.append(ModelCall(at=at, line=self._usage_line, **self._usage))
            self._usage = {}

    def result(self, data: JSON, line: Line) -> None:
        """A result; it is written when its tool ends, and sent when all tools of the answer have ended."""
        name, call_id = fields.text(data, "toolName"), fields.text(data, "toolCallId")
        self._unanswered.discard(call_id)
        part = ToolResultPart(name, result_text(data), call_id, data.get("success") is False)
        shown = fields.objects(fields.mapping(data, "result").get("binaryResultsForLlm"))
        parts = (part, *map(_binary, shown))
        if not self.orders_results or call_id not in self._newest or call_id in self._results:
            self.builder.event(Role.USER, parts, **place_of(line))
            return
        self._results[call_id] = parts, place_of(line)
        if len(self._results) == len(self._newest):
            self._put_results()

    def _put_results(self) -> None:
        """Append the results that wait, in the order of their calls."""
        results, self._results = self._results, {}
        for call_id in self._newest:
            if call_id in results:
                parts, place = results[call_id]
                self.builder.event(Role.USER, parts, **place)

    def refuse(self, words: str) -> None:
        """The provider refused the request of a turn as too long, in these words."""
        self._put_results()
        self.builder.refuse(words)

    def compaction_start(self, data: JSON, line: Line) -> None:
        """It runs beside the conversation: what comes before it ends is kept behind the summary."""
        self._put_results()
        self._compacted_from, self._compacted_at = len(self.builder.events), fields.tokens(data, "currentTokens")
        when, model = fields.timestamp(line.obj, "timestamp"), fields.text(data, "model")
        self._asked = ModelCall(at=self._compacted_from, model=model, timestamp=when, line=line.number)
        self.window(data, MODEL_LIMIT)

    def no_compaction(self) -> None:
        """A compaction failed, was cancelled or not ended: its summary was asked for, and not used."""
        if self._asked is not None:
            self.builder.side_calls.append(self._asked)
            self._given_up.append(AgentSetting(GIVEN_UP, len(self.builder.events), "session.compaction_start"))
        self._compacted_from = self._compacted_at = self._asked = None

    def resumed(self) -> None:
        """Another process reads the session from its file."""
        self._put_results()
        self._settle()
        self.no_compaction()
        self._resumed.append(AgentSetting(RESUMED, len(self.builder.events), "session.resume"))

    def compaction(self, data: JSON, line: Line) -> None:
        """Versions whose start names no count (1.0.69) have sent the request of a turn that has begun already."""
        self._put_results()
        if self._is_asking and self._asked is not None and self._compacted_at is None:
            self._later = data, line
        else:
            self._compacted(data, line)

    def _settle(self) -> None:
        """Take a compaction that waited for an answer."""
        if self._later is not None:
            later, self._later = self._later, None
            self._compacted(*later)

    def _compacted(self, data: JSON, line: Line) -> None:
        summary, trigger = fields.text(data, "summaryContent"), fields.text(data, "trigger")
        before, after = fields.tokens(data, "preCompactionTokens"), fields.tokens(data, "postCompactionTokens")
        compared, is_older = self._compacted_at, self._asked is not None and self._compacted_at is None
        self._compacted_at = self._asked = None
        used = fields.mapping(data, "compactionTokensUsed")
        # A summariser that calls tools is asked several times, and its tokens are added up.
        requests = fields.tokens(used, "requestCount") or 1
        asked = f" The summary took {requests:,} requests; their tokens are added up." if requests > 1 else ""
        note = f"{UNWRITTEN} {UNPLACED}" if is_older else UNWRITTEN
        at = len(self.builder.events)
        parts = tuple(TextPart(text) for text in (*self._words, summary))
        message = Event(Role.USER, parts, meta=True, **place_of(line))
        tail = self._tail(at)
        self.builder.compaction(
            RecordedCompaction(
                at=at,
                evidence=Evidence.DECLARED,
                kind="opaque" if not summary else "summary+tail" if tail else "summary",
                base=(Inserted(0), *tail) if summary else tail,
                messages=(message,) if summary else (),
                trigger=OVERFLOW if trigger == AFTER_REFUSAL else trigger,
                tokens_before=compared or before,
                tokens_after=after if not compared or compared == before else None,  # of another measure
                summariser=_summariser(used, at, line),
                line=line.number,
                timestamp=fields.timestamp(line.obj, "timestamp"),
                note=(note if summary else "The summary is not in the file.") + asked,
            )
        )
        self.window(data, MODEL_LIMIT)

    def _tail(self, at: int) -> tuple[Span, ...]:
        """The messages since the compaction began; a tool result keeps the call that it answers."""
        start = at if self._compacted_from is None else self._compacted_from
        self._compacted_from = None
        events = self.builder.outlines
        while 0 < start < at and any(isinstance(part, ToolResultPart) for part in events[start].parts):
            start -= 1
        return (Span(start, at),) if start < at else ()

    def truncation(self, data: JSON, line: Line) -> None:
        self._put_results()
        removed = fields.tokens(data, "messagesRemovedDuringTruncation") or 0
        base, messages = self._without_oldest(removed)
        self.builder.compaction(
            RecordedCompaction(
                at=len(self.builder.events),
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
        last = self.builder.compactions[-1] if self.builder.compactions else None
        now = (*last.base, Span(last.at, len(self.builder.events))) if last else (Span(0, len(self.builder.events)),)
        segments: list[Segment] = []
        messages: list[Event] = []
        for segment in now:
            if isinstance(segment, Span):
                start, removed = self._behind_oldest(segment, removed)
                segments.append(Span(start, segment.stop))
            elif removed:
                removed -= 1
            elif isinstance(segment, Inserted) and last is not None:
                segments.append(Inserted(len(messages)))
                messages.append(last.messages[segment.index])
        return tuple(segments), tuple(messages)

    def _behind_oldest(self, span: Span, removed: int) -> tuple[int, int]:
        """Where a span begins without so many messages, and how many of these are not in it: joined events are one."""
        events = self.builder.outlines
        for index in range(span.start, span.stop):
            if not events[index].joined or index == span.start:
                if not removed:
                    return index, 0
                removed -= 1
        return span.stop, removed

    def window(self, data: JSON, key: str) -> None:
        """The limit of the model from here on, or what its requests may have."""
        limit = fields.window(data, key)
        if key == MODEL_LIMIT:
            self.builder.states_window(len(self.builder.events), limit)
        elif limit:
            self._prompt_limit = Sourced(limit, Provenance.RECORDER, f"{key} in the recording")


def _summariser(used: JSON, at: int, line: Line) -> ModelCall | None:
    """The call that wrote a summary, by what a compaction used: older versions name the counts otherwise."""
    prompt = fields.first_tokens(used, "input", "inputTokens")
    if prompt is None:
        return None
    return ModelCall(
        at=at,
        prompt_tokens=prompt,
        cached_tokens=fields.first_tokens(used, "cachedInput", "cacheReadTokens"),
        cache_write_tokens=fields.tokens(used, "cacheWriteTokens"),
        output_tokens=fields.first_tokens(used, "output", "outputTokens"),
        model=fields.text(used, "model"),
        line=line.number,
    )


def place_of(line: Line) -> dict[str, Any]:
    """Line, id and time of an event, as fields of an Event."""
    return {
        "line": line.number,
        "source_id": fields.text(line.obj, "id"),
        "timestamp": fields.timestamp(line.obj, "timestamp"),
    }


def tool_calls(data: JSON) -> list[ToolCallPart]:
    """The calls of an `assistant.message`."""
    return [
        ToolCallPart(
            fields.text(item, "name"),
            fields.arguments(item.get("arguments")),
            fields.text(item, "toolCallId") or fields.text(item, "id"),
        )
        for item in fields.objects(data.get("toolRequests"))
    ]


def result_text(data: JSON) -> str:
    """What the model saw of a tool's result: its text, or the error's."""
    return fields.plain_text(data.get("result")) or fields.text(fields.mapping(data, "error"), "message")


def _reasoning(data: JSON) -> tuple[Part, ...]:
    """Reasoning as far as it can be read; of what only its provider can read, its size."""
    opaque = fields.text(data, "reasoningOpaque") or fields.text(data, "encryptedContent")
    readable = fields.text(data, "reasoningText")
    if not opaque and not readable:
        return ()
    return (ReasoningPart(readable, opaque_bytes=fields.opaque_size(opaque) if opaque else 0),)


def _attachment(item: JSON) -> Part:
    """A file that was attached: its bytes, else where it is."""
    data = fields.text(item, "data") or fields.text(item, "content")
    if data:
        return fields.media(fields.text(item, "mimeType"), data)
    return MediaPart(mime=fields.text(item, "mimeType"), uri=fields.text(item, "path") or fields.text(item, "uri"))


def _binary(item: JSON) -> Part:
    """An image that a tool returned; newer versions write its bytes once, in `session.binary_asset`."""
    if fields.text(item, "data"):
        return fields.media(fields.text(item, "mimeType"), fields.text(item, "data"))
    return MediaPart(mime=fields.text(item, "mimeType"), size=fields.tokens(item, "byteLength") or 0)
