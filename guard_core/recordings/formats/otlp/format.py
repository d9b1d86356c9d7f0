"""Traces: OTLP/JSON with OpenTelemetry's GenAI conventions (new and old), OpenInference, OpenLLMetry, ADK, Vercel.

Definitions: https://opentelemetry.io/docs/specs/semconv/gen-ai/ and https://arize-ai.github.io/openinference/spec/.
A file is one export, or one object per line; Jaeger, Phoenix (flat `attributes.` keys) and console exports are read,
too, and log records (`resourceLogs`) that hold the messages of spans. A session is a conversation
(`gen_ai.conversation.id`, `session.id`), else the traces that continue each other (see `joining`). Only leaf
model spans are calls: an `invoke_agent` span, or a model span around another, may carry sums; of two spans about
one response (SDK and instrumentation) the one that says more is the call. The log is rebuilt from the requests
(see `requests`); requests that share no history (sub-agents) are sessions of their own.
Prompt tokens include cached ones by the convention; where an instrumentation reports more cached than input tokens,
it leaves them out, and they are added for all its calls. The SDK keeps 128 attributes per span and drops the oldest:
long prompts lose their first messages. They are put back from earlier calls, else a note states the gap; a message that
lost its role is taken as lost, and `input.value` (the whole request), where it is there, is read instead. A call whose
messages were cut or left out altogether follows the history so far. ADK's call ids are positions in a message
(`tool_0`) and pair by order; its streamed pieces before the final output message are left out, and so is its extra span
`execute_tool (merged)`. Without message content (the default of most) the log holds empty answers and tool results, and
a note says so. A span without tokens whose status or exception says that the request was too long is a refused
request and no call. Facts count leaf calls and tool spans, not messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from guard_core.errors import DamagedRecording
from guard_core.events import (
    Event,
    Part,
    Role,
    ToolCallPart,
    ToolResultPart,
)
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.otlp import kinds as trace_kinds
from guard_core.recordings.formats.otlp import look as trace_look
from guard_core.recordings.formats.otlp.content import RepeatedTexts, answer_of, read_content
from guard_core.recordings.formats.otlp.joining import joined
from guard_core.recordings.formats.otlp.kinds import first, first_value
from guard_core.recordings.formats.otlp.known_names import NAMES
from guard_core.recordings.formats.otlp.spans import (
    LOGS,
    RESOURCES,
    SCOPES,
    LoggedEvent,
    TraceSpan,
    is_flat_span,
    logged_events,
    named,
    spans_of,
)
from guard_core.recordings.reading import chat, fields, looks
from guard_core.recordings.reading.answer_limits import answer_limit
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.conversations import threads_of
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.refusals import names_length
from guard_core.recordings.reading.requests import UNKNOWN, Request
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.recordings.reading.threads import Thread
from guard_core.sessions import ANSWERS_ONLY, NO_CONTENT, ModelCall, Session
from guard_core.titles import first_words

_KNOWN_AS = "under the names that are known here (GenAI, OpenInference, OpenLLMetry and those of some SDKs)"
_POSITION = re.compile(r"(.+)_\d+")


class OtlpFormat:
    name = "otel"
    label = "OpenTelemetry traces (OTLP)"
    place = "OTLP JSON with GenAI or OpenInference spans"
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.JSON:
            value = source.json_head(allow_nan=True)
            head = list(fields.objects(value))[:50] if isinstance(value, list) else [value]
        else:
            head = [line.obj for line in source.head_lines()]
        return any(isinstance(item, dict) and _is_trace(item) for item in head)

    def read(self, source: ByteSource) -> Recording:
        logged: list[LoggedEvent] = []
        spans = list(_all_spans(source, logged))
        content_note = f"Message content is looked for {_KNOWN_AS}."
        recording = read_spans(source, self.name, _with_logged(spans, logged), content_note)
        if not recording.sessions:
            raise DamagedRecording(f"the traces hold no calls of a language model {_KNOWN_AS}")
        return recording

    def first_look(self, source: ByteSource) -> FirstLook | None:
        return (
            _FileSpans(source, self.name, _distinct(source, trace_look.spans(source))).look()
            if source.shape is SourceShape.LINES
            else None
        )


FORMAT = OtlpFormat()


def read_spans(source: ByteSource, name: str, spans: Iterable[TraceSpan], content_note: str = "") -> Recording:
    """The conversations in the spans of a file, in whatever order, as a recording of the format of this name.
    `content_note`: for a conversation without the content of messages."""
    facts = FactCounter(name)
    sessions = _FileSpans(source, name, _distinct(source, spans), content_note).sessions(facts)
    return Recording(name, tuple(sessions), facts.facts(), source.notes)


def _is_trace(value: JSON) -> bool:
    if any(key in value for key in (*RESOURCES[:2], *SCOPES[:2], *LOGS)):
        return True
    if "batches" in value or "data" in value or "trace" in value:
        return next(spans_of(value), None) is not None
    if is_flat_span(value):
        return any(key.startswith(trace_kinds.MARKS) for span in spans_of(value) for key in span.attributes)
    return "spanId" in value and "traceId" in value and "startTimeUnixNano" in value


def _all_spans(source: ByteSource, logged: list[LoggedEvent]) -> Iterator[TraceSpan]:
    """Every span of the file; `logged` takes the events that are in log records of their own."""
    records: Iterator[tuple[int | None, JSON]]
    if source.shape is SourceShape.LINES:
        records = ((line.number, line.obj) for line in source.lines())
    else:
        records = ((None, item) for item in fields.objects(source.elements(allow_nan=True)))
    for number, record in records:
        logged.extend(logged_events(record))
        count = 0
        for span in spans_of(record, number):
            count += 1
            if source.watch is not None:
                own = {key: span.attributes[key] for key in span.attributes if not key.startswith(trace_kinds.REPEATED)}
                source.watch.check_flat(own, number)
            yield span
        if not count and not any(key in record for key in LOGS):
            source.notes.skip("record without spans")


def _with_logged(spans: list[TraceSpan], logged: list[LoggedEvent]) -> list[TraceSpan]:
    """Spans with the events that were sent as log records."""
    events: dict[tuple[str, str], list[tuple[str, dict[str, Any]]]] = {}
    for event in logged:
        events.setdefault((event.trace, event.span), []).append((event.name, event.attributes))
    if not events:
        return spans
    return [
        msgspec.structs.replace(span, events=(*span.events, *events.get((span.trace, span.id), ()))) for span in spans
    ]


def _distinct(source: ByteSource, spans: Iterable[TraceSpan]) -> list[TraceSpan]:
    """Spans in the order of their starts, repeats of one id merged."""
    spans_by_id: dict[tuple[str, str], TraceSpan] = {}
    anonymous: list[TraceSpan] = []
    for span in spans:
        if not span.id:
            anonymous.append(span)
        elif (span.trace, span.id) in spans_by_id:
            source.notes.folded += 1
        else:
            spans_by_id[span.trace, span.id] = span
    return sorted((*spans_by_id.values(), *anonymous), key=lambda span: span.start or 0.0)


class _FileSpans:
    """All spans of the file: which are calls, which are tools, and which conversation each belongs to."""

    def __init__(self, source: ByteSource, name: str, spans: list[TraceSpan], content_note: str = "") -> None:
        self._source, self._name = source, name
        self._content_notes = (content_note,) if content_note else ()
        self._by_id = {(span.trace, span.id): span for span in spans if span.id}
        self._tools = [span for span in spans if trace_kinds.is_tool(span)]
        models = [span for span in spans if trace_kinds.is_model(span)]
        around = self._around(models)
        leaves = [span for span in models if (span.trace, span.id) not in around]
        self._calls = _once(leaves)
        for span in spans:
            if not trace_kinds.is_tool(span) and not trace_kinds.is_model(span):
                source.notes.skip(f"{trace_kinds.kind_of(span)} span")
        for _ in range(len(models) - len(leaves)):
            source.notes.skip("model span around another")
        for _ in range(len(leaves) - len(self._calls)):
            source.notes.skip("second model span of one response")
        self._conversations: dict[str, str] = {}
        for span in spans:
            if (own := first(span.attributes, trace_kinds.CONVERSATION_KEYS)) and span.trace not in self._conversations:
                self._conversations[span.trace] = own
        self._exclusive = trace_kinds.exclusive_scopes(self._calls)

    def sessions(self, facts: FactCounter) -> list[Session]:
        groups = self._groups()
        self._check(groups)
        self._count(facts, groups)
        return [session for group in self._joined(groups) for session in self._read(group)]

    def look(self) -> FirstLook:
        """The calls in the order of their starts, whatever conversation they belong to."""
        calls = looks.CallsInOrder()
        for span in self._calls:
            calls.call(self._usage(span)["prompt_tokens"], model=first(span.attributes, trace_kinds.MODEL_KEYS))
        return calls.look()

    def _groups(self) -> list[_CallGroup]:
        """The calls and tools of each conversation that has a name, and of each trace without one."""
        groups: dict[str, _CallGroup] = {}
        texts = RepeatedTexts()
        for span in self._calls:
            named = self._named(span)
            group = groups.setdefault(named or span.trace, _CallGroup(named or span.trace, bool(named)))
            parent = self._by_id.get((span.trace, span.parent))
            # Some instrumentations keep the messages in the model span around a leaf one.
            outer = parent if parent is not None and trace_kinds.is_model(parent) else None
            group.contents.append(_SpanContent(span, outer, texts, group.key))
        for span in self._tools:
            if (known := groups.get(self._named(span) or span.trace)) is not None:
                known.tools.append(span)
        return list(groups.values())

    def _joined(self, groups: list[_CallGroup]) -> list[_CallGroup]:
        """Groups in the order of their times, traces that are one conversation as one."""
        loose = {group.key: group for group in groups if not group.named}
        with_requests = [group for group in loose.values() if group.has_requests]
        sets = joined((group.key, self._requests(group.contents)) for group in with_requests)
        silent: dict[str, list[str]] = {}
        for group in loose.values():
            if not group.has_requests:
                silent.setdefault(group.service, []).append(group.key)
        for keys in (*sets, *silent.values()):
            for key in keys[1:]:
                loose[keys[0]].take(loose.pop(key))
        remaining = {group.key for group in loose.values()}
        return [group for group in groups if group.named or group.key in remaining]

    def _check(self, groups: list[_CallGroup]) -> None:
        """What cannot be read of a span is a damaged place: an attribute's JSON that was cut, a count that is none."""
        for group in groups:
            for content in group.contents:
                for span in content.spans:
                    reasons = [f"the JSON in {key} is cut or damaged" for key in span.damaged]
                    if span is content.span and (reason := trace_kinds.uncountable(span)):
                        reasons.append(reason)
                    for reason in reasons:
                        with self._source.tolerate(span.line):
                            raise DamagedRecording(f"span {span.id[:32]}: {reason}")

    def _count(self, facts: FactCounter, groups: list[_CallGroup]) -> None:
        for group in groups:
            facts.session()
            for content in group.contents:
                prompt = self._usage(content.span)["prompt_tokens"]
                if prompt is not None:
                    facts.call(prompt)
                if not self._tools:
                    for part in content.answer.parts:
                        if isinstance(part, ToolCallPart):
                            facts.tool_call(part.id)
        tools: dict[str, list[TraceSpan]] = {}
        for span in self._tools:
            tools.setdefault(self._named(span) or span.trace, []).append(span)
        for spans in tools.values():
            facts.session()
            for span in spans:
                call_id = first(span.attributes, trace_kinds.CALL_ID_KEYS)
                result = first_value(span.attributes, trace_kinds.RESULT_KEYS)
                facts.tool_call(call_id)
                facts.tool_result(call_id, len(result) if isinstance(result, str) else 0)

    def _around(self, models: list[TraceSpan]) -> set[tuple[str, str]]:
        """The ids of all spans with a model span inside and no agent in between: ADK hands over within a call."""
        surrounding: set[tuple[str, str]] = set()
        for span in models:
            parent = self._by_id.get((span.trace, span.parent))
            while (
                parent is not None and (parent.trace, parent.id) not in surrounding and not trace_kinds.is_agent(parent)
            ):
                surrounding.add((parent.trace, parent.id))
                parent = self._by_id.get((parent.trace, parent.parent))
        return surrounding

    def _named(self, span: TraceSpan) -> str:
        """The conversation that a span or its trace names."""
        return first(span.attributes, trace_kinds.CONVERSATION_KEYS) or self._conversations.get(span.trace, "")

    def _usage(self, span: TraceSpan) -> dict[str, int | None]:
        return trace_kinds.usage_of(span, exclusive=trace_kinds.scope_of(span) in self._exclusive)

    def _read(self, group: _CallGroup) -> Iterator[Session]:
        calls = [content.span for content in group.contents]
        about = {"source_id": group.key, "title": named(calls[0].service) or calls[0].name}
        dropped = sum(span.dropped for content in group.contents for span in content.spans)
        notes = [f"The recorder dropped {dropped} attributes of the spans, the oldest first."] if dropped else []
        if group.traces > 1:
            notes.append(f"{group.traces} traces were put together as one conversation, which none of them names.")
        if not group.has_content:
            yield self._without_content(calls, group.tools, {**about, "notes": tuple(notes)})
            return
        if not group.has_requests:
            notes.append(ANSWERS_ONLY)
        for number, thread in enumerate(threads_of(self._requests(group.contents))):
            if number == 0:
                _add_last_results(thread, group.tools)
            name = about["title"] if number == 0 else f"{about['title']} · context {number + 1}"
            more = {"title": first_words(thread.events) or name, "agent": thread.agent or self._agent_around(calls[0])}
            yield thread.session(self._name, self._source.limits, **{**about, **more, "notes": tuple(notes)})

    def _agent_around(self, call: TraceSpan) -> str:
        """The agent that a call or the nearest span around it names; else the service that sent the spans."""
        seen: set[str] = set()
        span: TraceSpan | None = call
        while span is not None and span.id not in seen:
            if name := first(span.attributes, trace_kinds.AGENT_KEYS):
                return name
            seen.add(span.id)
            span = self._by_id.get((span.trace, span.parent))
        return named(call.service)

    def _requests(self, contents: list[_SpanContent]) -> list[Request]:
        requests: list[Request] = []
        heads = 0  # system messages before the log, which lost positions count, too
        for content in contents:
            system, messages = chat.split_system(content.messages)
            if content.lost == 0 and content.messages:
                heads = len(content.messages) - len(messages)
            requests.append(
                Request(
                    messages=tuple(_without_positions(messages)),
                    call=self._call(content.span),
                    response=next(iter(_without_positions([content.answer])), None) if content.answer.parts else None,
                    lost=max(0, content.lost - heads) if content.messages else UNKNOWN,
                    system=content.system or system,
                    tools=content.tools,
                    agent=first(content.span.attributes, trace_kinds.AGENT_KEYS),
                    refusal=content.span.error if self._is_refused(content.span) else "",
                    answer_limit=_answer_limit(content.span),
                )
            )
        return requests

    def _is_refused(self, span: TraceSpan) -> bool:
        """Did the provider answer that the request is too long, and count nothing."""
        return names_length(span.error) and not self._usage(span)["prompt_tokens"]

    def _call(self, span: TraceSpan, at: int = 0, response: int | None = None) -> ModelCall:
        return ModelCall(
            at=at,
            response=response,
            **self._usage(span),
            model=first(span.attributes, trace_kinds.MODEL_KEYS),
            timestamp=span.start,
            line=span.line,
            source_id=span.id,
        )

    def _without_content(self, calls: list[TraceSpan], tools: list[TraceSpan], about: dict[str, Any]) -> Session:
        builder = SessionBuilder(self._name, self._source)
        for span in sorted((*calls, *tools), key=lambda span: span.start or 0.0):
            if trace_kinds.is_tool(span):
                builder.event(
                    Role.USER, (trace_kinds.tool_result(span),), timestamp=span.start, line=span.line, source_id=span.id
                )
            elif self._is_refused(span):
                builder.refuse(span.error)
            else:
                at = len(builder.events)
                index = builder.event(Role.MODEL, (), timestamp=span.start, line=span.line, source_id=span.id)
                builder.calls.append(self._call(span, at, index))
        builder.notes += (NO_CONTENT, *self._content_notes)
        return builder.session(agent=self._agent_around(calls[0]), **about)


class _SpanContent:
    """What one model span says of its request and its answer; `outer` is the model span around it."""

    def __init__(self, span: TraceSpan, outer: TraceSpan | None, texts: RepeatedTexts, conversation: str) -> None:
        self.span = span
        self.spans = [span] if outer is None else [span, outer]
        own = read_content(span, texts, conversation)
        around = read_content(outer, texts, conversation) if outer is not None else own
        content = own if own.messages else around
        self.messages, self.lost = content.messages, content.lost
        self.system, self.tools = content.system, content.tools if content.tools is not None else around.tools
        answer = answer_of(span)
        self.answer = answer if answer.parts or outer is None else answer_of(outer)


@dataclass
class _CallGroup:
    """Calls and tools of one conversation, or of one trace; `named`: do the spans name the conversation?"""

    key: str
    named: bool
    contents: list[_SpanContent] = field(default_factory=list)
    tools: list[TraceSpan] = field(default_factory=list)
    traces: int = 1

    @property
    def has_requests(self) -> bool:
        """Is anything that was sent in the file? Instrumentations may lose it and keep the answers."""
        return any(content.messages for content in self.contents)

    @property
    def has_content(self) -> bool:
        return self.has_requests or any(content.answer.parts for content in self.contents)

    @property
    def service(self) -> str:
        return self.contents[0].span.service

    def take(self, other: _CallGroup) -> None:
        """A later trace that continues this one."""
        self.contents += other.contents
        self.tools += other.tools
        self.traces += 1


def _once(calls: list[TraceSpan]) -> list[TraceSpan]:
    """Calls without those that a second instrumentation records of the same response: the one that says more stays."""
    by_response: dict[str, list[TraceSpan]] = {}
    for span in calls:
        if response := trace_kinds.response_id(span):
            by_response.setdefault(response, []).append(span)
    dropped: set[int] = set()
    for spans in by_response.values():
        if len({(span.scope, span.name) for span in spans}) < len(spans):
            continue  # one instrumentation saw the id more than once: a server that gives every response the same
        best = max(spans, key=lambda span: sum(len(str(value)) for value in span.attributes.values()))
        dropped.update(id(span) for span in spans if span is not best)
    return [span for span in calls if id(span) not in dropped]


def _answer_limit(span: TraceSpan) -> int:
    """The most tokens that a request allows its answer, 0 where its span does not say."""
    stated = fields.first_tokens(span.attributes, *trace_kinds.LIMIT_KEYS)
    parameters = fields.decoded(span.attributes.get("llm.invocation_parameters"))
    return stated or (answer_limit(parameters) if isinstance(parameters, dict) else 0)


def _without_positions(events: Iterable[Event]) -> list[Event]:
    """Events whose call ids that are only a tool's name and a position are taken out, so that calls pair by order."""
    events = list(events)
    names = {part.name for event in events for part in event.parts if isinstance(part, ToolCallPart)}
    if not names:
        return events

    def is_position(call_id: str) -> bool:
        match = _POSITION.fullmatch(call_id)
        return match is not None and match[1] in names

    def plain(part: Part) -> Part:
        if isinstance(part, ToolCallPart) and is_position(part.id):
            return msgspec.structs.replace(part, id="")
        if isinstance(part, ToolResultPart) and is_position(part.call_id):
            return msgspec.structs.replace(part, call_id="")
        return part

    def without(event: Event) -> Event:
        parts = tuple(map(plain, event.parts))
        return event if parts == event.parts else msgspec.structs.replace(event, parts=parts)

    return list(map(without, events))


def _add_last_results(thread: Thread, tools: list[TraceSpan]) -> None:
    """The results that came after the last call, which no request shows any more."""
    if not thread.calls:
        return
    last = thread.calls[-1]
    asked = thread.events[-1].parts if thread.events else ()
    names = [part.name for part in asked if isinstance(part, ToolCallPart)]
    for span in tools:
        result = trace_kinds.tool_result(span)
        if last.timestamp is not None and (span.start or 0.0) > last.timestamp and result.name in names:
            names.remove(result.name)
            part = msgspec.structs.replace(result, call_id="")
            thread.events.append(Event(Role.USER, (part,), timestamp=span.start, line=span.line, source_id=span.id))
