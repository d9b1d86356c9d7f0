"""Traces: OTLP/JSON with OpenTelemetry's GenAI conventions (new and old), OpenInference, OpenLLMetry, ADK, Vercel.

Definitions: https://opentelemetry.io/docs/specs/semconv/gen-ai/ and https://arize-ai.github.io/openinference/spec/.
A file is one export, or one object per line; Jaeger, Phoenix (flat `attributes.` keys) and console exports are read,
too. A session is a conversation (`gen_ai.conversation.id`, `session.id`) or else a trace. Only leaf model spans are
calls: an `invoke_agent` span, or a model span around another, may carry sums. The log is rebuilt from the requests
(see `requests`); requests that share no history (sub-agents) are sessions of their own.
Prompt tokens include cached ones by the convention; where an instrumentation reports more cached than input tokens,
it leaves them out, and they are added for all its calls. The SDK keeps 128 attributes per span and drops the oldest:
long prompts lose their first messages. They are put back from earlier calls, else the gap is told; a message that lost
its role is taken as lost, and `input.value` (the whole request), where it is there, is read instead. A call whose
messages were cut or left out altogether stands behind the history so far. ADK's call ids are positions in a message
(`tool_0`) and pair by order; its streamed pieces before the final output message are left out, and so is its extra span
`execute_tool (merged)`. Without message content (the default of most) the log holds empty answers and tool results, and
a note says so. Facts count leaf calls and tool spans, not messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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
from guard_core.recordings import chat, fields
from guard_core.recordings.base import Recording
from guard_core.recordings.build import FactCounter, SessionBuilder
from guard_core.recordings.fields import JSON
from guard_core.recordings.requests import UNKNOWN, Request, Thread, threads_of
from guard_core.recordings.source import Shape, Source
from guard_core.recordings.trace_content import answer_of, read_content
from guard_core.recordings.trace_spans import RESOURCES, SCOPES, TraceSpan, is_flat_span, spans_of
from guard_core.sessions import ModelCall, Session

MODEL_OPERATIONS = frozenset({"chat", "generate_content", "text_completion", "completion", "message"})
PROMPT_KEYS = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
    "llm.usage.prompt_tokens",
    "ai.usage.inputTokens",
    "ai.usage.promptTokens",
)
CACHED_KEYS = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read_tokens",
    "gen_ai.usage.cached_tokens",
    "llm.token_count.prompt_details.cache_read",
    "ai.usage.cachedInputTokens",
)
WRITTEN_KEYS = (
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.details.cache_write_tokens",
    "llm.token_count.prompt_details.cache_write",
)
OUTPUT_KEYS: tuple[str, ...] = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
)
OUTPUT_KEYS += ("llm.usage.completion_tokens",)
MODEL_KEYS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "llm.request.model")
CONVERSATION_KEYS = (
    "gen_ai.conversation.id",
    "session.id",
    "gcp.vertex.agent.session_id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
)
RESULT_KEYS: tuple[str, ...] = (
    "gen_ai.tool.call.result",
    "output.value",
    "gcp.vertex.agent.tool_response",
    "traceloop.entity.output",
)
RESULT_KEYS += ("ai.toolCall.result",)
CALL_ID_KEYS = ("gen_ai.tool.call.id", "tool_call.id", "tool.call_id", "ai.toolCall.id")
TOOL_NAME_KEYS = ("gen_ai.tool.name", "tool.name", "traceloop.entity.name", "ai.toolCall.name")
MARKS = ("ai.", "gen_ai.", "llm.", "openinference.", "gcp.vertex.agent.", "traceloop.")
_POSITION = re.compile(r"(.+)_\d+")


class OtlpFormat:
    name = "otel"
    label = "OpenTelemetry traces (OTLP)"

    def matches(self, source: Source) -> bool:
        if source.shape is Shape.JSON:
            value = source.json(allow_nan=True)
            head = list(fields.objects(value))[:50] if isinstance(value, list) else [value]
        else:
            head = [line.obj for line in source.head_lines()]
        return any(isinstance(item, dict) and _is_trace(item) for item in head)

    def read(self, source: Source) -> Recording:
        spans = _distinct(source, _all_spans(source))
        facts = FactCounter(self.name)
        traces = _Traces(source, spans)
        sessions = traces.sessions(facts)
        if not sessions:
            raise DamagedRecording("the traces hold no calls of a language model")
        return Recording(self.name, tuple(sessions), facts.facts(), source.notes)


FORMAT = OtlpFormat()


def _is_trace(value: JSON) -> bool:
    if any(key in value for key in (*RESOURCES[:2], *SCOPES[:2])):
        return True
    if "batches" in value or "data" in value or "trace" in value:
        return next(spans_of(value), None) is not None
    if is_flat_span(value):
        return any(key.startswith(MARKS) for span in spans_of(value) for key in span.attributes)
    return "spanId" in value and "traceId" in value and "startTimeUnixNano" in value


def _all_spans(source: Source) -> Iterator[TraceSpan]:
    if source.shape is Shape.JSON:
        value = source.json(allow_nan=True)
        for item in fields.objects(value if isinstance(value, list) else [value]):
            yield from spans_of(item)
        return
    for line in source.lines():
        found = 0
        for span in spans_of(line.obj, line.number):
            found += 1
            yield span
        if not found:
            source.notes.skip("line without spans")


def _distinct(source: Source, spans: Iterable[TraceSpan]) -> list[TraceSpan]:
    """Spans in the order of their starts, repeats of one id merged."""
    found: dict[tuple[str, str], TraceSpan] = {}
    anonymous: list[TraceSpan] = []
    for span in spans:
        if not span.id:
            anonymous.append(span)
        elif (span.trace, span.id) in found:
            source.notes.folded += 1
        else:
            found[span.trace, span.id] = span
    return sorted((*found.values(), *anonymous), key=lambda span: span.start or 0.0)


class _Traces:
    """All spans of the file: which are calls, which are tools, and which conversation each belongs to."""

    def __init__(self, source: Source, spans: list[TraceSpan]) -> None:
        self._source = source
        self._by_id = {(span.trace, span.id): span for span in spans if span.id}
        self._tools = [span for span in spans if _is_tool(span)]
        models = [span for span in spans if _is_model(span)]
        around = self._around(models)
        self._calls = [span for span in models if (span.trace, span.id) not in around]
        for span in spans:
            if not _is_tool(span) and not _is_model(span):
                source.notes.skip(f"{_kind(span)} span")
        for _ in range(len(models) - len(self._calls)):
            source.notes.skip("model span around another")
        self._conversations: dict[str, str] = {}
        for span in spans:
            if (own := _first(span.attributes, CONVERSATION_KEYS)) and span.trace not in self._conversations:
                self._conversations[span.trace] = own
        self._exclusive = _exclusive_scopes(self._calls)

    def sessions(self, facts: FactCounter) -> list[Session]:
        self._count(facts)
        groups: dict[str, tuple[list[TraceSpan], list[TraceSpan]]] = {}
        for span in self._calls:
            groups.setdefault(self._conversation(span), ([], []))[0].append(span)
        for span in self._tools:
            if (group := groups.get(self._conversation(span))) is not None:
                group[1].append(span)
        return [session for key, (calls, tools) in groups.items() for session in self._read(key, calls, tools)]

    def _count(self, facts: FactCounter) -> None:
        for span in self._calls:
            prompt = self._usage(span)["prompt_tokens"]
            if prompt is not None:
                facts.call(prompt)
            if not self._tools:
                for part in answer_of(span).parts:
                    if isinstance(part, ToolCallPart):
                        facts.tool_call(part.id)
        for span in self._tools:
            call_id = _first(span.attributes, CALL_ID_KEYS)
            result = _first_value(span.attributes, RESULT_KEYS)
            facts.tool_call(call_id)
            facts.tool_result(call_id, len(result) if isinstance(result, str) else 0)

    def _around(self, models: list[TraceSpan]) -> set[tuple[str, str]]:
        """The ids of all spans that have a model span inside."""
        found: set[tuple[str, str]] = set()
        for span in models:
            parent = self._by_id.get((span.trace, span.parent))
            while parent is not None and (parent.trace, parent.id) not in found:
                found.add((parent.trace, parent.id))
                parent = self._by_id.get((parent.trace, parent.parent))
        return found

    def _conversation(self, span: TraceSpan) -> str:
        return _first(span.attributes, CONVERSATION_KEYS) or self._conversations.get(span.trace) or span.trace

    def _usage(self, span: TraceSpan) -> dict[str, int | None]:
        return _usage(span, exclusive=_scope(span) in self._exclusive)

    def _read(self, key: str, calls: list[TraceSpan], tools: list[TraceSpan]) -> Iterator[Session]:
        contents = [_Content(span, self._outer(span)) for span in calls]
        about = {"source_id": key, "title": calls[0].service or calls[0].name}
        if not any(content.messages or content.answer.parts for content in contents):
            yield self._without_content(calls, tools, about)
            return
        requests = self._requests(contents)
        for number, thread in enumerate(threads_of(requests)):
            if number == 0:
                _add_last_results(thread, tools)
            title = about["title"] if number == 0 else f"{about['title']} · context {number + 1}"
            yield thread.session("otel", self._source.limits, **{**about, "title": title})

    def _outer(self, span: TraceSpan) -> TraceSpan | None:
        """The model span around a leaf one: some instrumentations keep the messages there."""
        parent = self._by_id.get((span.trace, span.parent))
        return parent if parent is not None and _is_model(parent) else None

    def _requests(self, contents: list[_Content]) -> list[Request]:
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
                    agent=_first(content.span.attributes, ("gen_ai.agent.name", "agent.name")),
                )
            )
        return requests

    def _call(self, span: TraceSpan, at: int = 0, response: int | None = None) -> ModelCall:
        return ModelCall(
            at=at,
            response=response,
            **self._usage(span),
            model=_first(span.attributes, MODEL_KEYS),
            timestamp=span.start,
            line=span.line,
            source_id=span.id,
        )

    def _without_content(self, calls: list[TraceSpan], tools: list[TraceSpan], about: dict[str, Any]) -> Session:
        builder = SessionBuilder("otel", self._source)
        for span in sorted((*calls, *tools), key=lambda span: span.start or 0.0):
            if _is_tool(span):
                builder.event(Role.USER, (_tool_result(span),), timestamp=span.start, line=span.line, source_id=span.id)
            else:
                at = len(builder.events)
                index = builder.event(Role.MODEL, (), timestamp=span.start, line=span.line, source_id=span.id)
                builder.calls.append(self._call(span, at, index))
        builder.notes.append("The spans hold no message content: only the tokens of each call are known.")
        return builder.session(agent=_first(calls[0].attributes, ("gen_ai.agent.name",)), **about)


class _Content:
    """What one model span tells of its request and its answer."""

    def __init__(self, span: TraceSpan, outer: TraceSpan | None) -> None:
        self.span = span
        found = read_content(span)
        if not found.messages and outer is not None:
            found = read_content(outer)
        self.messages, self.lost = found.messages, found.lost
        self.system, self.tools = found.system, found.tools
        answer = answer_of(span)
        self.answer = answer if answer.parts or outer is None else answer_of(outer)


# -- spans and their numbers


def _kind(span: TraceSpan) -> str:
    kind = span.attributes.get("openinference.span.kind") or span.attributes.get("gen_ai.operation.name")
    return str(kind or span.attributes.get("traceloop.span.kind") or "other")[:40]


def _is_model(span: TraceSpan) -> bool:
    attributes = span.attributes
    kind = attributes.get("openinference.span.kind")
    if kind is not None:
        return str(kind).upper() == "LLM"
    if "ai.operationId" in attributes:
        return str(attributes["ai.operationId"]).endswith((".doGenerate", ".doStream"))
    operation = attributes.get("gen_ai.operation.name")
    if operation is not None:
        return str(operation) in MODEL_OPERATIONS
    if "llm.request.type" in attributes:
        return str(attributes["llm.request.type"]) in {"chat", "completion"}
    if "traceloop.span.kind" in attributes:
        return False
    return any(key in attributes for key in PROMPT_KEYS) or "gcp.vertex.agent.llm_request" in attributes


def _is_tool(span: TraceSpan) -> bool:
    if "(merged" in span.name:
        return False
    attributes = span.attributes
    if attributes.get("ai.operationId") == "ai.toolCall":
        return True
    kinds = (attributes.get("openinference.span.kind"), attributes.get("traceloop.span.kind"))
    return attributes.get("gen_ai.operation.name") == "execute_tool" or "TOOL" in {str(kind).upper() for kind in kinds}


def _tool_result(span: TraceSpan) -> ToolResultPart:
    result = _first_value(span.attributes, RESULT_KEYS)
    name = _first(span.attributes, TOOL_NAME_KEYS) or span.name
    return ToolResultPart(name, result, _first(span.attributes, CALL_ID_KEYS))


def _first_value(attributes: dict[str, Any], keys: Iterable[str]) -> Any:
    return next((attributes[key] for key in keys if attributes.get(key) not in (None, "")), None)


def _first(attributes: dict[str, Any], keys: Iterable[str]) -> str:
    found = _first_value(attributes, keys)
    return found if isinstance(found, str) else ""


def _scope(span: TraceSpan) -> tuple[str, str]:
    provider = span.attributes.get("gen_ai.provider.name") or span.attributes.get("gen_ai.system")
    return span.scope, str(provider or span.attributes.get("llm.provider") or "")


def _exclusive_scopes(calls: list[TraceSpan]) -> set[tuple[str, str]]:
    """The instrumentations that report cached tokens beside the input tokens instead of within them."""
    found = set()
    for span in calls:
        prompt = fields.first_tokens(span.attributes, *PROMPT_KEYS)
        cached = fields.first_tokens(span.attributes, *CACHED_KEYS) or 0
        written = fields.first_tokens(span.attributes, *WRITTEN_KEYS) or 0
        if prompt is not None and cached + written > prompt:
            found.add(_scope(span))
    return found


def _usage(span: TraceSpan, *, exclusive: bool) -> dict[str, int | None]:
    prompt = fields.first_tokens(span.attributes, *PROMPT_KEYS)
    cached = fields.first_tokens(span.attributes, *CACHED_KEYS)
    written = fields.first_tokens(span.attributes, *WRITTEN_KEYS)
    if prompt is not None and exclusive:
        prompt += (cached or 0) + (written or 0)
    output = fields.first_tokens(span.attributes, *OUTPUT_KEYS)
    return {"prompt_tokens": prompt, "cached_tokens": cached, "cache_write_tokens": written, "output_tokens": output}


def _without_positions(events: Iterable[Event]) -> list[Event]:
    """Events whose call ids that are only a tool's name and a position are taken out, so that calls pair by order."""
    events = list(events)
    names = {part.name for event in events for part in event.parts if isinstance(part, ToolCallPart)}

    def is_position(call_id: str) -> bool:
        found = _POSITION.fullmatch(call_id)
        return found is not None and found[1] in names

    def plain(part: Part) -> Part:
        if isinstance(part, ToolCallPart) and is_position(part.id):
            return msgspec.structs.replace(part, id="")
        if isinstance(part, ToolResultPart) and is_position(part.call_id):
            return msgspec.structs.replace(part, call_id="")
        return part

    return [msgspec.structs.replace(event, parts=tuple(plain(part) for part in event.parts)) for event in events]


def _add_last_results(thread: Thread, tools: list[TraceSpan]) -> None:
    """The results that came after the last call, which no request shows any more."""
    last = thread.calls[-1]
    asked = thread.events[-1].parts if thread.events else ()
    names = [part.name for part in asked if isinstance(part, ToolCallPart)]
    for span in tools:
        result = _tool_result(span)
        if last.timestamp is not None and (span.start or 0.0) > last.timestamp and result.name in names:
            names.remove(result.name)
            part = msgspec.structs.replace(result, call_id="")
            thread.events.append(Event(Role.USER, (part,), timestamp=span.start, line=span.line, source_id=span.id))
