"""Traces: OTLP/JSON with OpenTelemetry's GenAI conventions (new and old), OpenInference, OpenLLMetry or ADK's own keys.

Definitions: https://opentelemetry.io/docs/specs/semconv/gen-ai/ and https://arize-ai.github.io/openinference/spec/.
A file is one export, or one object per line; Jaeger, Phoenix (flat `attributes.` keys) and console exports are read,
too. A session is a conversation (`gen_ai.conversation.id`, `session.id`) or else a trace. Only leaf model spans are
calls: an `invoke_agent` span, or a model span around another, may carry sums. The log is rebuilt from the requests
(see `requests`); requests that share no history (sub-agents) are sessions of their own.
Prompt tokens include cached ones by the convention; where an instrumentation reports more cached than input tokens,
it leaves them out, and they are added for all its calls. The SDK keeps 128 attributes per span and drops the oldest:
long prompts lose their first messages. They are put back from earlier calls, else the gap is told; a message that lost
its role is taken as lost, and `input.value` (the whole request), where it is there, is read instead. ADK's call ids are
positions in a message (`tool_0`) and pair by order; its streamed pieces before the final output message are left out,
and so is its extra span `execute_tool (merged)`. Without message content (the default of most) the log holds empty
answers and tool results, and a note says so. Facts count leaf calls and tool spans, not messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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
)
from guard_core.recordings import chat, fields
from guard_core.recordings.base import Recording
from guard_core.recordings.build import FactCounter, SessionBuilder
from guard_core.recordings.fields import JSON
from guard_core.recordings.requests import Request, Thread, threads_of
from guard_core.recordings.source import Shape, Source
from guard_core.recordings.trace_spans import RESOURCES, SCOPES, TraceSpan, is_flat_span, spans_of
from guard_core.sessions import ModelCall, Session, ToolDefinition

MODEL_OPERATIONS = frozenset({"chat", "generate_content", "text_completion", "completion", "message"})
PROMPT_KEYS = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
    "llm.usage.prompt_tokens",
)
CACHED_KEYS = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read_tokens",
    "gen_ai.usage.cached_tokens",
    "llm.token_count.prompt_details.cache_read",
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
RESULT_KEYS = ("gen_ai.tool.call.result", "output.value", "gcp.vertex.agent.tool_response", "traceloop.entity.output")
CALL_ID_KEYS = ("gen_ai.tool.call.id", "tool_call.id", "tool.call_id")
TOOL_NAME_KEYS = ("gen_ai.tool.name", "tool.name", "traceloop.entity.name")
MARKS = ("gen_ai.", "llm.", "openinference.", "gcp.vertex.agent.", "traceloop.")
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
                for part in _answer(span).parts:
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
                    lost=max(0, content.lost - heads),
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
        builder = SessionBuilder("otel", self._source.limits)
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
        found = _read_content(span)
        if not found.messages and outer is not None:
            found = _read_content(outer)
        self.messages, self.lost = found.messages, found.lost
        self.system, self.tools = found.system, found.tools
        answer = _answer(span)
        self.answer = answer if answer.parts or outer is None else _answer(outer)


class _Found(msgspec.Struct):
    messages: list[Event]
    lost: int = 0
    system: tuple[Part, ...] | None = None
    tools: tuple[ToolDefinition, ...] | None = None


def _read_content(span: TraceSpan) -> _Found:
    """The request in the first of the conventions that is there."""
    for read in (_gen_ai, _open_inference, _open_llmetry, _adk_request, _span_events):
        found = read(span)
        if found.messages:
            return found
    return _Found([])


# -- OpenTelemetry's GenAI conventions


def _gen_ai(span: TraceSpan) -> _Found:
    details = _details(span)
    messages = [_gen_ai_event(item) for item in fields.objects(fields.decoded(details.get("gen_ai.input.messages")))]
    system = fields.decoded(details.get("gen_ai.system_instructions"))
    parts = tuple(part for item in fields.objects(system) if (part := _gen_ai_part(item)) is not None)
    tools = chat.tool_definitions(fields.decoded(details.get("gen_ai.tool.definitions")))
    return _Found([event for event in messages if event is not None], 0, parts or None, tools)


def _details(span: TraceSpan) -> dict[str, Any]:
    """The span's attributes, or those of the event that newer conventions put the content in."""
    for name, attributes in span.events:
        if name == "gen_ai.client.inference.operation.details":
            return {**span.attributes, **attributes}
    return span.attributes


def _gen_ai_event(message: JSON) -> Event | None:
    if not isinstance(message.get("parts"), list):
        return chat.chat_event(message)
    role = chat.ROLES.get(fields.text(message, "role").lower())
    if role is None:
        return None
    parts = tuple(part for item in fields.objects(message["parts"]) if (part := _gen_ai_part(item)) is not None)
    return Event(role, parts)


def _gen_ai_part(item: JSON) -> Part | None:
    kind = fields.text(item, "type")
    content = item.get("content")
    if kind in {"reasoning", "thinking"}:
        return ReasoningPart(fields.plain_text(content))
    if kind == "tool_call":
        return ToolCallPart(fields.text(item, "name"), fields.arguments(item.get("arguments")), fields.text(item, "id"))
    if kind == "tool_call_response":
        result = item.get("response", item.get("result", content))
        return ToolResultPart(fields.text(item, "name"), result, fields.text(item, "id"))
    if kind in {"blob", "uri", "file"}:
        mime = fields.text(item, "mime_type")
        reference = fields.text(item, "uri") or fields.text(item, "file_id")
        return (
            MediaPart(mime, uri=reference) if reference else fields.media(mime, str(content or item.get("data") or ""))
        )
    if isinstance(content, str):
        return TextPart(content)
    return OtherPart(kind, item) if kind else None


# -- OpenInference and OpenLLMetry: one attribute per field, numbered


def _numbered(attributes: dict[str, Any], prefix: str) -> dict[int, dict[str, Any]]:
    """Attributes under `prefix.<number>.`, by number."""
    found: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if key.startswith(prefix) and len(key) > len(prefix) and key[len(prefix)] == ".":
            number, _, rest = key[len(prefix) + 1 :].partition(".")
            if number.isdecimal() and len(number) < 7 and rest:
                found.setdefault(int(number), {})[rest] = value
    return dict(sorted(found.items()))


def _open_inference(span: TraceSpan) -> _Found:
    numbered = _numbered(span.attributes, "llm.input_messages")
    lost = next((number for number, item in numbered.items() if "message.role" in item), len(numbered))
    messages = [_open_inference_event(item) for number, item in numbered.items() if number >= lost]
    tools = _open_inference_tools(span)
    if lost or not messages:
        whole = fields.decoded(span.attributes.get("input.value"))
        listed = fields.items(whole, "messages")
        if listed:
            events = [event for item in fields.objects(listed) if (event := chat.chat_event(item))]
            return _Found(
                events, 0, None, tools or chat.tool_definitions(fields.mapping({"_": whole}, "_").get("tools"))
            )
    return _Found([event for event in messages if event is not None], lost, None, tools)


def _open_inference_event(item: dict[str, Any]) -> Event | None:
    role = chat.ROLES.get(str(item.get("message.role", "")).lower())
    if role is None:
        return None
    content = item.get("message.content")
    name = str(item.get("message.name") or "")
    if str(item.get("message.role")) in chat.RESULT_ROLES:
        call_id = str(item.get("message.tool_call_id") or "")
        return Event(role, (ToolResultPart(name, content if content is not None else "", call_id),))
    parts: list[Part] = list(fields.content_parts(content))
    for part in _numbered(item, "message.contents").values():
        parts.extend(_open_inference_content(part))
    for call in _numbered(item, "message.tool_calls").values():
        arguments = fields.arguments(call.get("tool_call.function.arguments"))
        call_id = str(call.get("tool_call.id") or "")
        parts.append(ToolCallPart(str(call.get("tool_call.function.name") or ""), arguments, call_id))
    return Event(role, tuple(parts))


def _open_inference_content(part: dict[str, Any]) -> tuple[Part, ...]:
    text = part.get("message_content.text")
    if isinstance(text, str):
        return (TextPart(text),)
    url = part.get("message_content.image.image.url")
    return (fields.media("", url),) if isinstance(url, str) else ()


def _open_inference_tools(span: TraceSpan) -> tuple[ToolDefinition, ...] | None:
    schemas = [
        fields.decoded(item.get("tool.json_schema")) for item in _numbered(span.attributes, "llm.tools").values()
    ]
    if schemas:
        return chat.tool_definitions(schemas)
    parameters = fields.decoded(span.attributes.get("llm.invocation_parameters"))
    return chat.tool_definitions(parameters.get("tools")) if isinstance(parameters, dict) else None


def _open_llmetry(span: TraceSpan) -> _Found:
    prefix = "gen_ai.prompt" if "gen_ai.prompt.0.role" in span.attributes else "llm.prompts"
    numbered = _numbered(span.attributes, prefix)
    if not numbered:
        numbered = _numbered(span.attributes, "gen_ai.prompt")
    lost = next((number for number, item in numbered.items() if "role" in item), len(numbered))
    messages = [_open_llmetry_event(item) for number, item in numbered.items() if number >= lost]
    functions = _numbered(span.attributes, "llm.request.functions")
    tools = tuple(
        ToolDefinition(
            str(item.get("name") or ""), str(item.get("description") or ""), fields.decoded(item.get("parameters"))
        )
        for item in functions.values()
    )
    return _Found([event for event in messages if event is not None], lost, None, tools or None)


def _open_llmetry_event(item: dict[str, Any]) -> Event | None:
    calls = [
        {"id": call.get("id"), "name": call.get("name"), "arguments": call.get("arguments")}
        for call in _numbered(item, "tool_calls").values()
    ]
    content = fields.decoded(item.get("content"))
    if not isinstance(content, list):
        content = item.get("content")
    message = {"role": item.get("role"), "content": content, "tool_calls": calls}
    return chat.chat_event(message | {"tool_call_id": item.get("tool_call_id")})


# -- span events of the older conventions


def _span_events(span: TraceSpan) -> _Found:
    messages: list[Event] = []
    for name, attributes in _named_events(span):
        if name == "gen_ai.content.prompt":
            listed = fields.decoded(attributes.get("gen_ai.prompt"))
            messages.extend(event for item in fields.objects(listed) if (event := chat.chat_event(item)))
        elif name.startswith("gen_ai.") and name.endswith(".message"):
            message = _event_body(attributes)
            message.setdefault("role", name.removeprefix("gen_ai.").removesuffix(".message"))
            if name == "gen_ai.tool.message" and "id" in message:
                message.setdefault("tool_call_id", message["id"])
            if (event := chat.chat_event(message)) is not None:
                messages.append(event)
    return _Found(messages)


def _named_events(span: TraceSpan) -> Iterator[tuple[str, dict[str, Any]]]:
    """The span's events, and those that some SDKs write as JSON into an attribute (Pydantic AI)."""
    yield from span.events
    for item in fields.objects(fields.decoded(span.attributes.get("events"))):
        yield fields.text(item, "event.name"), item


def _event_body(attributes: dict[str, Any]) -> JSON:
    body = fields.decoded(attributes.get("gen_ai.event.content", attributes.get("event.body")))
    if isinstance(body, dict):
        return dict(body)
    return {key: fields.decoded(value) if key == "tool_calls" else value for key, value in attributes.items()}


# -- ADK 1.x


def _adk_request(span: TraceSpan) -> _Found:
    request = fields.decoded(span.attributes.get("gcp.vertex.agent.llm_request"))
    if not isinstance(request, dict):
        return _Found([])
    config = fields.mapping(request, "config")
    messages = [_google_event(item) for item in fields.objects(request.get("contents"))]
    instruction = config.get("system_instruction")
    system = (TextPart(instruction),) if isinstance(instruction, str) else _google_parts(instruction)
    return _Found(messages, 0, system or None, chat.tool_definitions(config.get("tools")))


def _google_event(content: JSON) -> Event:
    role = Role.MODEL if fields.text(content, "role") == "model" else Role.USER
    return Event(role, _google_parts(content))


def _google_parts(content: Any) -> tuple[Part, ...]:
    return tuple(_google_part(item) for item in fields.objects(fields.mapping({"_": content}, "_").get("parts")))


def _google_part(item: JSON) -> Part:
    call = fields.mapping(item, "function_call") or fields.mapping(item, "functionCall")
    if call:
        return ToolCallPart(fields.text(call, "name"), call.get("args"), fields.text(call, "id"))
    result = fields.mapping(item, "function_response") or fields.mapping(item, "functionResponse")
    if result:
        return ToolResultPart(fields.text(result, "name"), result.get("response"), fields.text(result, "id"))
    data = fields.mapping(item, "inline_data") or fields.mapping(item, "inlineData")
    if data:
        return fields.media(fields.text(data, "mime_type") or fields.text(data, "mimeType"), fields.text(data, "data"))
    text = fields.text(item, "text")
    return ReasoningPart(text) if item.get("thought") is True else TextPart(text)


# -- the answer


def _answer(span: TraceSpan) -> Event:
    """The answer as an event; without parts where it is not recorded."""
    details = _details(span)
    listed = [_gen_ai_event(item) for item in _final(fields.decoded(details.get("gen_ai.output.messages")))]
    if not listed:
        listed = [_open_inference_event(item) for item in _numbered(span.attributes, "llm.output_messages").values()]
    if not listed:
        listed = [_open_llmetry_event(item) for item in _numbered(span.attributes, "gen_ai.completion").values()]
    if not listed:
        response = fields.decoded(span.attributes.get("gcp.vertex.agent.llm_response"))
        if isinstance(response, dict) and fields.mapping(response, "content"):
            listed = [_google_event(response["content"])]
    if not listed:
        listed = [_choice(attributes) for name, attributes in _named_events(span) if name == "gen_ai.choice"]
    parts = tuple(part for event in listed[:1] if event is not None for part in event.parts)
    return Event(Role.MODEL, parts, timestamp=span.start, line=span.line, source_id=span.id)


def _final(messages: Any) -> list[JSON]:
    """The output messages without the pieces of a stream that came before the final one."""
    listed = list(fields.objects(messages))
    finished = [item for item in listed if item.get("finish_reason")]
    return finished[-1:] if finished and len(finished) < len(listed) else listed


def _choice(attributes: dict[str, Any]) -> Event | None:
    body = _event_body(attributes)
    message = fields.decoded(body.get("message", body))
    return chat.chat_event({"role": "assistant", **message}) if isinstance(message, dict) else None


# -- spans and their numbers


def _kind(span: TraceSpan) -> str:
    kind = span.attributes.get("openinference.span.kind") or span.attributes.get("gen_ai.operation.name")
    return str(kind or span.attributes.get("traceloop.span.kind") or "other")[:40]


def _is_model(span: TraceSpan) -> bool:
    attributes = span.attributes
    kind = attributes.get("openinference.span.kind")
    if kind is not None:
        return str(kind).upper() == "LLM"
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
