"""What a span says of a request and its answer, in each of the conventions for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

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
from guard_core.recordings.formats import anthropic_messages
from guard_core.recordings.formats.langchain import messages as langchain_messages
from guard_core.recordings.formats.openai import responses
from guard_core.recordings.formats.otlp.spans import TraceSpan
from guard_core.recordings.reading import ai_sdk, bedrock, chat, fields
from guard_core.recordings.reading.fields import JSON
from guard_core.sessions import ToolDefinition

_ELIDED = "<elided>"  # what ADK writes where content is not to be recorded
# Those of the convention, and of Pydantic AI before version 4 of its instrumentation.
_MEDIA = frozenset(("blob", "uri", "file", "binary", "image-url", "audio-url", "video-url", "document-url"))
_GOOGLE = frozenset(  # the keys of Google's parts
    ("text", "function_call", "functionCall", "function_response", "functionResponse", "inline_data", "inlineData")
)
_ANSWERS = frozenset({"assistant", "ai", "model"})
_INPUT = "gen_ai.input.messages"
# Attributes with a whole request and a whole response, by SDK: Logfire, Langfuse, MLflow, LangSmith.
_WHOLE = (
    ("request_data", "response_data"),
    ("langfuse.observation.input", "langfuse.observation.output"),
    ("mlflow.spanInputs", "mlflow.spanOutputs"),
    ("gen_ai.prompt", "gen_ai.completion"),
)


class RequestContent(msgspec.Struct):
    """A request as its span has it; `lost` is the number of messages that are missing at its head."""

    messages: list[Event]
    lost: int = 0
    system: tuple[Part, ...] | None = None
    tools: tuple[ToolDefinition, ...] | None = None


class RepeatedTexts:
    """The lists of messages of requests, each of which begins as the one before of its conversation does: what is
    repeated is read once, and is the same event in both."""

    def __init__(self) -> None:
        self._latest: dict[str, tuple[str, list[Event]]] = {}

    def read(self, conversation: str, text: str, decode: Callable[[str], list[Event] | None]) -> list[Event]:
        """The messages of a JSON array. `decode` reads those of a text; None where that is damaged."""
        known, events = self._latest.get(conversation, ("", []))
        start = len(known) - 1  # of the bracket at its end, in the place of which the next message follows
        more = None
        if events and known.endswith("]") and text.startswith(known[:-1]) and text[start : start + 1] == ",":
            more = decode(f"[{text[start + 1 :]}")
        events = [*events, *more] if more is not None else decode(text) or []
        self._latest[conversation] = text, events
        return events


def read_content(span: TraceSpan, texts: RepeatedTexts, conversation: str) -> RequestContent:
    """The request in the first of the conventions that is there. `texts`: of earlier spans of the `conversation`."""
    if (known := _gen_ai(span, texts, conversation)).messages:
        return known
    for read in (_open_inference, _open_llmetry, _adk_request, _vercel, _span_events, _whole_request):
        content = read(span)
        if content.messages:
            return content
    return known


def _json(span: TraceSpan, attributes: dict[str, Any], key: str) -> Any:
    """The JSON inside an attribute; where it is cut or otherwise none, the span says so."""
    given = attributes.get(key)
    value = fields.decoded(given)
    if isinstance(value, str) and value.strip() and key not in span.damaged:
        span.damaged.append(key)
    return value


# -- OpenTelemetry's GenAI conventions


def _gen_ai(span: TraceSpan, texts: RepeatedTexts, conversation: str) -> RequestContent:
    details = _details(span)

    def decode(text: str) -> list[Event] | None:
        value = _json(span, {_INPUT: text}, _INPUT)
        return None if isinstance(value, str) else _gen_ai_events(value)

    given = details.get(_INPUT)
    messages = texts.read(conversation, given, decode) if isinstance(given, str) else _gen_ai_events(given)
    system = fields.decoded(details.get("gen_ai.system_instructions"))
    parts = tuple(part for item in fields.objects(system) if (part := _gen_ai_part(item)) is not None)
    parts = (TextPart(system),) if isinstance(system, str) and system else parts
    tools = chat.tool_definitions(_json(span, details, "gen_ai.tool.definitions"))
    return RequestContent(messages, 0, parts or None, tools)


def _gen_ai_events(value: Any) -> list[Event]:
    return [event for item in fields.objects(value) if (event := _gen_ai_event(item)) is not None]


def _details(span: TraceSpan) -> dict[str, Any]:
    """The span's attributes, with those of the event that newer conventions put the content in: of several events,
    where each has a part of it (Strands)."""
    details = [attributes for name, attributes in span.events if name == "gen_ai.client.inference.operation.details"]
    if not details:
        return span.attributes
    return {key: value for attributes in (span.attributes, *details) for key, value in attributes.items()}


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
        return ToolCallPart(fields.text(item, "name"), fields.arguments(item.get("arguments")), _call_id(item))
    if kind == "tool_call_response":
        result = item.get("response", item.get("result", content))
        blocks = list(fields.objects(result))
        if blocks and all(block.keys() == {"text"} for block in blocks) and isinstance(result, list):
            result = fields.plain_text(result)  # of Bedrock, in which Strands keeps results
        return ToolResultPart(fields.text(item, "name"), result, _call_id(item))
    if kind in _MEDIA:
        mime = fields.text(item, "mime_type") or fields.text(item, "media_type")
        reference = fields.text(item, "uri") or fields.text(item, "file_id")
        data = content or item.get("data") or item.get("url")
        return MediaPart(mime, uri=reference) if reference else fields.media(mime, str(data or ""))
    if isinstance(content, str):
        return TextPart(content)
    return OtherPart(kind, item) if kind else None


def _call_id(item: JSON) -> str:
    """The id of a call: of Azure's agents it is a list, of the run and of the call, which is JSON or its value."""
    return fields.text(item, "id") or value_text(item.get("id") or "")


# -- OpenInference and OpenLLMetry: one attribute per field, numbered


def _numbered(attributes: dict[str, Any], prefix: str) -> dict[int, dict[str, Any]]:
    """Attributes under `prefix.<number>.`, by number."""
    groups: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if key.startswith(prefix) and len(key) > len(prefix) and key[len(prefix)] == ".":
            number, _, rest = key[len(prefix) + 1 :].partition(".")
            if number.isdecimal() and len(number) < 7 and rest:
                groups.setdefault(int(number), {})[rest] = value
    return dict(sorted(groups.items()))


def _open_inference(span: TraceSpan) -> RequestContent:
    numbered = _numbered(span.attributes, "llm.input_messages")
    lost = next((number for number, item in numbered.items() if "message.role" in item), len(numbered))
    messages = [_open_inference_event(item) for number, item in numbered.items() if number >= lost]
    tools = _open_inference_tools(span)
    if lost or not messages:
        whole = fields.decoded(span.attributes.get("input.value"))
        listed = fields.items(whole, "messages")
        if listed:
            events = [event for item in fields.objects(listed) if (event := _event(item))]
            system = anthropic_messages.block_parts(whole.get("system")) or None
            return RequestContent(events, 0, system, tools or chat.tool_definitions(whole.get("tools")))
    return RequestContent(_one_response_each([event for event in messages if event is not None]), lost, None, tools)


def _open_inference_answers(span: TraceSpan) -> list[Event | None]:
    """The output messages: several choices, or the items of one response, which follow each other."""
    numbered = _numbered(span.attributes, "llm.output_messages").values()
    events = [event for item in numbered if (event := _open_inference_event(item)) is not None]
    parameters = fields.decoded(span.attributes.get("llm.invocation_parameters"))
    return [*events] if (fields.tokens(parameters, "n") or 1) > 1 else [*_one_response_each(events)]


def _one_response_each(events: list[Event]) -> list[Event]:
    """Events with those of the model that follow each other, the items of one response, as one."""
    merged: list[Event] = []
    for event in events:
        if merged and event.role is Role.MODEL and merged[-1].role is Role.MODEL:
            merged[-1] = msgspec.structs.replace(merged[-1], parts=(*merged[-1].parts, *event.parts))
        else:
            merged.append(event)
    return merged


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
        thought = part.get("message_content.type") in {"reasoning", "thinking"}
        return (ReasoningPart(text) if thought else TextPart(text),)
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


def _open_llmetry(span: TraceSpan) -> RequestContent:
    prefix = "gen_ai.prompt" if "gen_ai.prompt.0.role" in span.attributes else "llm.prompts"
    numbered = _numbered(span.attributes, prefix)
    if not numbered:
        numbered = _numbered(span.attributes, "gen_ai.prompt")
    lost = next((number for number, item in numbered.items() if "role" in item), len(numbered))
    messages = [_open_llmetry_event(item) for number, item in numbered.items() if number >= lost]
    functions = _numbered(span.attributes, "llm.request.functions")
    tools = tuple(
        ToolDefinition(
            str(item.get("name") or ""),
            str(item.get("description") or ""),
            fields.decoded(item.get("parameters", item.get("input_schema"))),
        )
        for item in functions.values()
    )
    return RequestContent([event for event in messages if event is not None], lost, None, tools or None)


def _open_llmetry_event(item: dict[str, Any]) -> Event | None:
    calls = [
        {"id": call.get("id"), "name": call.get("name"), "arguments": call.get("arguments")}
        for call in _numbered(item, "tool_calls").values()
    ]
    content = fields.decoded(item.get("content"))
    if not isinstance(content, list):
        content = item.get("content")
    message = {"role": item.get("role"), "content": content, "tool_calls": calls}
    return _event(message | {"tool_call_id": item.get("tool_call_id")})


def _event(message: JSON) -> Event | None:
    """The event of a message as OpenAI's API or as Anthropic's writes it."""
    if anthropic_messages.has_own_block(message.get("content")):
        return anthropic_messages.message_event(message)
    return chat.chat_event(message)


# -- span events of the older conventions


def _span_events(span: TraceSpan) -> RequestContent:
    messages: list[Event] = []
    for name, attributes in _named_events(span):
        if name == "gen_ai.content.prompt":
            listed = fields.decoded(attributes.get("gen_ai.prompt"))
            messages.extend(event for item in fields.objects(listed) if (event := chat.chat_event(item)))
        elif name.startswith("gen_ai.") and name.endswith(".message"):
            message, kind = _event_body(attributes), name.removeprefix("gen_ai.").removesuffix(".message")
            message.setdefault("role", kind)
            if kind in ("system", "tool"):  # of whatever role: Vertex AI has the user's
                message["role"] = kind
            if kind == "tool" and "id" in message:
                message.setdefault("tool_call_id", message["id"])
            if (event := _event_of(message)) is not None:
                messages.append(event)
    return RequestContent(messages)


def _event_of(message: JSON) -> Event | None:
    """The event of a message, in OpenAI's words or Google's; None where its content was kept back."""
    content = message.get("content")
    if isinstance(content, dict) and "parts" in content:
        system = message["role"] == "system"
        return Event(Role.SYSTEM, _google_parts(content)) if system else _google_event(content)
    if (role := chat.ROLES.get(fields.text(message, "role").lower())) is not None:
        if isinstance(content, dict) and fields.text(message, "role") in chat.RESULT_ROLES:
            return Event(role, (ToolResultPart("", content, fields.text(message, "tool_call_id")),))
        if _is_google(content):
            return Event(role, tuple(map(_google_part, fields.objects(content))))
        if blocks := bedrock.blocks(content):
            return Event(role, tuple(part for block in blocks for part in bedrock.parts(block)))
    return None if _is_kept_back(message) else chat.chat_event(message)


def _is_google(content: Any) -> bool:
    """Is it a list of the parts of Google's API: objects of no type."""
    blocks = list(fields.objects(content)) if isinstance(content, list) else []
    return bool(blocks) and all(not _GOOGLE.isdisjoint(block) and "type" not in block for block in blocks)


def _is_kept_back(message: JSON) -> bool:
    """Is a message in OpenAI's words there without its content: with its role at most, and the names of its calls."""
    calls = list(fields.objects(message.get("tool_calls")))
    has_arguments = any("arguments" in (fields.mapping(call, "function") or call) for call in calls)
    has_more = chat.message_parts({**message, "content": None, "tool_calls": None})  # a refusal, reasoning, sound
    return message.get("content") in (None, _ELIDED) and not has_arguments and not has_more


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


# -- SDKs that put the whole request into one attribute as JSON, and the whole response into another


def _whole_request(span: TraceSpan) -> RequestContent:
    for key, _ in _WHOLE:
        value = fields.decoded(span.attributes.get(key))
        request = _with_tools_apart(value if isinstance(value, dict) else {"messages": value})
        if messages := sent_messages(request):
            system = system_prompt(request)
            return RequestContent(messages, 0, system, chat.tool_definitions(request.get("tools")))
    return RequestContent([])


def _with_tools_apart(request: JSON) -> JSON:
    """A request without the definitions of its tools at the end of its messages, where Langfuse's handler for LangChain
    puts them, each as the content of one: `__on_llm_action` of `CallbackHandler.py`, github langfuse/langfuse-python.
    """
    listed = fields.items(request, "messages")
    end = len(listed)
    while end and _is_definition(listed[end - 1]):
        end -= 1
    if not end or end == len(listed):
        return request
    return {"tools": [message["content"] for message in listed[end:]], **request, "messages": listed[:end]}


def _is_definition(message: Any) -> bool:
    """Is a message the definition of a tool: a result is no object, and names its call."""
    is_tools = fields.text(message, "role") == "tool" and not fields.text(message, "tool_call_id")
    return is_tools and isinstance(message.get("content"), dict)


def sent_messages(request: JSON) -> list[Event]:
    """What a request holds: messages, items of the Responses API, or Google's contents."""
    listed = request.get("messages", request.get("input", request.get("contents")))
    if isinstance(listed, str) and listed:
        return [Event(Role.USER, (TextPart(listed),))]
    if isinstance(listed, list) and listed and isinstance(listed[0], list):
        listed = listed[0]  # LangChain's calls are batches of one
    if responses.are_items(listed):
        return responses.grouped(fields.objects(listed))
    return [event for item in fields.objects(listed) if (event := any_event(item)) is not None]


def system_prompt(request: JSON) -> tuple[Part, ...] | None:
    """A system prompt beside the messages: Anthropic's, of the Responses API, Google's."""
    if instructions := fields.text(request, "instructions"):
        return (TextPart(instructions),)
    google = fields.mapping(request, "systemInstruction") or fields.mapping(request, "system_instruction")
    return anthropic_messages.block_parts(request.get("system")) or _google_parts(google) or None


def _whole_answer(span: TraceSpan) -> list[Event | None]:
    """The answer in the first attribute that holds one, as a list like those of the other conventions."""
    bodies = (fields.decoded(span.attributes.get(key)) for _, key in _WHOLE)
    return next(([event] for response in bodies if (event := answer_in(response)) is not None), [])


def answer_in(response: Any) -> Event | None:
    """The answer that a whole response holds, in the words of any API or library that is known here; None where it
    holds none."""
    if isinstance(response, str) and response:
        return Event(Role.MODEL, (TextPart(response),))
    if isinstance(response, list):
        if (parts := _of_one_response(response)) is not None:
            return Event(Role.MODEL, parts)
        response = {"output" if responses.are_items(response) else "messages": response}
    if not isinstance(response, dict):
        return None
    if responses.are_items(items := response.get("output")):
        parts = tuple(part for event in responses.grouped(fields.objects(items)) for part in event.parts)
        return Event(Role.MODEL, parts)
    message = _message_of(response)
    return any_event({"role": "assistant", **message}) if message else None


def _of_one_response(response: list[Any]) -> tuple[Part, ...] | None:
    """The parts of a response that has a message for each of its calls; None where its messages are something else:
    a history, or several choices, each of which has words of its own."""
    if len(response) < 2 or responses.are_items(response):
        return None
    events = [any_event(item) for item in fields.objects(response)]
    if any(event is None or event.role is not Role.MODEL for event in events):
        return None
    with_calls = [any(isinstance(part, ToolCallPart) for part in event.parts) for event in events if event is not None]
    parts = tuple(part for event in events if event is not None for part in event.parts)
    return parts if with_calls.count(False) <= 1 else None


def _message_of(response: JSON) -> JSON:
    """The message in a response: of Chat Completions, LangChain, Logfire (a streamed one by its text), or itself."""
    choices = next(fields.objects(response.get("choices")), {})
    generations = next((item for item in fields.items(response, "generations") if isinstance(item, list)), [])
    generated = next(fields.objects(generations), {})
    if "combined_chunk_content" in response:
        return {"content": response["combined_chunk_content"]}
    places = (fields.mapping(response, "message"), fields.mapping(choices, "message"))
    inner = next(filter(None, (*places, fields.mapping(generated, "message"))), {})
    candidate = fields.mapping(next(fields.objects(response.get("candidates")), {}), "content")  # Google's
    said = [item for item in fields.objects(response.get("messages")) if fields.text(item, "role") in _ANSWERS]
    inner = inner or candidate or fields.mapping(fields.mapping(response, "output"), "message")  # Bedrock's
    whole = any(key in response for key in ("content", "tool_calls", "parts"))
    return inner or (said[-1] if said else {}) or (response if whole else {})


def any_event(message: JSON) -> Event | None:
    """The event of a message in the words of any API or library that is known here."""
    content = message.get("content")
    if langchain_messages.is_message(message) or isinstance(message.get("additional_kwargs"), dict):
        return langchain_messages.event_of(message)
    if ai_sdk.has_own_block(content):
        return ai_sdk.message_event(message)
    if isinstance(message.get("parts"), list):
        typed = any("type" in part for part in fields.objects(message["parts"]))  # parts of Google's have no type
        return _gen_ai_event(message) if typed else _google_event(message)
    if _is_google(content) or (isinstance(content, dict) and "parts" in content) or bedrock.blocks(content):
        return _event_of(message)
    return _event(_with_calls_apart(message))


def _with_calls_apart(message: JSON) -> JSON:
    """A message whose calls of tools are its content (Koog's, also under the role of a tool), with these beside it."""
    blocks = list(fields.objects(message.get("content")))
    calls = [block for block in blocks if "arguments" in fields.mapping(block, "function")]
    if not calls:
        return message
    rest = [block for block in blocks if block not in calls]
    return {**message, "role": "assistant", "content": rest, "tool_calls": calls}


# -- ADK 1.x


def _adk_request(span: TraceSpan) -> RequestContent:
    request = _json(span, span.attributes, "gcp.vertex.agent.llm_request")
    if not isinstance(request, dict):
        return RequestContent([])
    config = fields.mapping(request, "config")
    messages = [_google_event(item) for item in fields.objects(request.get("contents"))]
    instruction = config.get("system_instruction")
    system = (TextPart(instruction),) if isinstance(instruction, str) else _google_parts(instruction)
    return RequestContent(messages, 0, system or None, chat.tool_definitions(config.get("tools")))


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


# -- Vercel's AI SDK


def _vercel(span: TraceSpan) -> RequestContent:
    """The messages are one JSON text, the system prompt among them; each tool is a JSON text of its own."""
    listed = _json(span, span.attributes, "ai.prompt.messages")
    messages = [ai_sdk.message_event(item) for item in fields.objects(listed)]
    tools = span.attributes.get("ai.prompt.tools")
    schemas = [fields.decoded(item) for item in tools] if isinstance(tools, list) else None
    return RequestContent([event for event in messages if event is not None], 0, None, chat.tool_definitions(schemas))


def _vercel_answer(attributes: dict[str, Any]) -> list[Event | None]:
    """The answer as Vercel's AI SDK has it: a text, and its calls as JSON."""
    text = attributes.get("ai.response.text")
    calls = fields.decoded(attributes.get("ai.response.toolCalls"))
    call_parts = [part for item in fields.objects(calls) for part in ai_sdk.parts({**item, "type": "tool-call"})]
    parts = (*fields.content_parts(text), *call_parts)
    return [Event(Role.MODEL, parts)] if parts else []


# -- the answer


def answer_of(span: TraceSpan) -> Event:
    """The answer as an event; without parts where it is not recorded."""
    details = _details(span)
    messages = list(fields.objects(_json(span, details, "gen_ai.output.messages")))
    finished = [item for item in messages if item.get("finish_reason")]
    if finished and len(finished) < len(messages):
        messages = finished[-1:]  # the pieces of a stream came before it
    listed = [_gen_ai_event(item) for item in messages]
    if not listed:
        listed = _open_inference_answers(span)
    if not listed:
        listed = [_open_llmetry_event(item) for item in _numbered(span.attributes, "gen_ai.completion").values()]
    if not listed:
        response = _json(span, span.attributes, "gcp.vertex.agent.llm_response")
        if isinstance(response, dict) and fields.mapping(response, "content"):
            listed = [_google_event(response["content"])]
    if not listed:
        listed = _vercel_answer(span.attributes)
    if not listed:
        listed = [_choice(attributes) for name, attributes in _named_events(span) if name == "gen_ai.choice"]
    if not listed:
        listed = _whole_answer(span)
    parts = tuple(part for event in listed[:1] if event is not None for part in event.parts)
    return Event(Role.MODEL, parts, timestamp=span.start, line=span.line, source_id=span.id)


def _choice(attributes: dict[str, Any]) -> Event | None:
    """The answer in an event `gen_ai.choice`, whose body is the message or has it under `message`."""
    body = _event_body(attributes)
    message = fields.decoded(body.get("message", body))
    if isinstance(message, list):
        message = {"content": message}
    return _event_of({"role": "assistant", **message}) if isinstance(message, dict) else None
