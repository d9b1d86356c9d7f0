"""One chat message, as OpenAI's Chat Completions and everything modelled on it write it, as an event."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from guard_core.events import Event, MediaPart, Part, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON
from guard_core.sessions import ToolDefinition

ROLES = {
    "user": Role.USER,
    "human": Role.USER,
    "assistant": Role.MODEL,
    "ai": Role.MODEL,
    "model": Role.MODEL,
    "gpt": Role.MODEL,
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "tool": Role.USER,
    "function": Role.USER,
}
RESULT_ROLES = frozenset({"tool", "function"})
_THOUGHTS = ("thinking", "text", "summary")  # of a block of reasoning: Anthropic's, OpenRouter's
_CALLED = ("function", "tool", "tool_name", "toolName")  # where a flat call may have its name
_RETURNED = ("result", "output", "response")
_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema")


def chat_event(message: JSON, **rest: Any) -> Event | None:
    """The event of one message (`rest`: fields of Event); None for a role that no chat has."""
    name = fields.text(message, "role").lower()
    role = ROLES.get(name)
    if role is None:
        return None
    parts = result_parts(message) if name in RESULT_ROLES else message_parts(message)
    rest.setdefault("source_id", fields.text(message, "id"))
    return Event(role=role, parts=parts, **rest)


def message_parts(message: JSON) -> tuple[Part, ...]:
    """Reasoning, content and tool calls of a message, in the order in which the model wrote them."""
    parts: list[Part] = _reasoning(message)
    parts.extend(fields.content_parts(message.get("content")))
    if refusal := fields.text(message, "refusal"):
        parts.append(TextPart(refusal))
    parts.extend(_spoken(fields.mapping(message, "audio")))
    parts.extend(tool_call(item) for item in fields.objects(message.get("tool_calls")))
    legacy = fields.mapping(message, "function_call")
    if legacy:
        parts.append(ToolCallPart(fields.text(legacy, "name"), fields.arguments(legacy.get("arguments"))))
    return tuple(parts)


def _reasoning(message: JSON) -> list[Part]:
    """Reasoning under the names that servers have for it; its signatures and what is encrypted of it by their size."""
    blocks = [*fields.objects(message.get("reasoning_details")), *fields.objects(message.get("thinking_blocks"))]
    text = (
        fields.text(message, "reasoning_content")
        or fields.text(message, "reasoning")
        or fields.plain_text(message.get("thinking"))
        or "\n".join(thought for block in blocks for key in _THOUGHTS if (thought := fields.text(block, key)))
    )
    sealed = (fields.text(block, key) for block in blocks for key in ("data", "signature"))
    size = sum(fields.opaque_size(data) for data in sealed if data)
    return [ReasoningPart(text, opaque_bytes=size)] if text or size else []


def _spoken(audio: JSON) -> tuple[Part, ...]:
    """An answer as sound: its words, and its data, or the id under which the provider keeps them."""
    if not audio:
        return ()
    words = fields.text(audio, "transcript")
    data = fields.text(audio, "data")
    sound = fields.media("audio", data) if data else MediaPart("audio", uri=fields.text(audio, "id"))
    return (TextPart(words), sound) if words else (sound,)


def tool_call(item: JSON) -> ToolCallPart:
    """A call in either spelling: `{id, function: {name, arguments}}` or flat, arguments as text or as an object."""
    function = fields.mapping(item, "function") or fields.mapping(item, "custom") or item
    names = (fields.text(function, "name"), *(fields.text(item, key) for key in _CALLED))
    arguments = function.get("arguments", function.get("args", function.get("input")))
    call_id = fields.text(item, "id") or fields.text(item, "call_id") or fields.text(item, "tool_call_id")
    return ToolCallPart(next(filter(None, names), ""), fields.arguments(arguments), call_id)


def results_within(message: JSON) -> tuple[Part, ...]:
    """What came back from the calls of a message, of logs that keep a result in its call."""
    calls = list(fields.objects(message.get("tool_calls")))
    returned = ((item, next((item[key] for key in _RETURNED if item.get(key) is not None), None)) for item in calls)
    return tuple(
        ToolResultPart(call.name, value, call.id)
        for call, value in ((tool_call(item), value) for item, value in returned)
        if value is not None
    )


def result_parts(message: JSON) -> tuple[Part, ...]:
    """A tool's message: its text as one result, and the media it holds beside it; or the value that it returned."""
    content = message.get("content")
    text = fields.plain_text(content)
    is_value = not text and _is_value(content)
    media = () if is_value else tuple(part for part in fields.content_parts(content) if not isinstance(part, TextPart))
    call_id = fields.text(message, "tool_call_id")
    if not call_id:
        call_id = next((item for item in fields.items(message, "tool_call_ids") if isinstance(item, str)), "")
    name = fields.text(message, "name") or fields.text(message, "tool_name")
    failed = message.get("is_error") is True or fields.text(message, "status") == "error"
    return (ToolResultPart(name, content if is_value else text, call_id, failed), *media)


def _is_value(content: Any) -> bool:
    """Is it what a tool returned as JSON, and no list of blocks, which have a type, or a text alone?"""
    values = content if isinstance(content, list) else [content]
    return bool(values) and all(
        isinstance(value, dict) and value and "type" not in value and value.keys() != {"text"} for value in values
    )


def tool_definitions(value: Any) -> tuple[ToolDefinition, ...] | None:
    """The tools of a request, in OpenAI's or Anthropic's or Google's spelling; None where there is no list of them."""
    if not isinstance(value, list):
        return None
    return tuple(_definitions(value))


def _definitions(value: list[Any]) -> Iterable[ToolDefinition]:
    for item in fields.objects(value):
        declarations = item.get("function_declarations", item.get("functionDeclarations"))
        if fields.text(item, "type") == "namespace":  # of the Responses API: tools under a common name
            declarations = item.get("tools")
        if isinstance(declarations, list):
            yield from _definitions(declarations)
            continue
        function = fields.mapping(item, "function") or fields.mapping(item, "custom") or item
        schema = next((function[key] for key in _SCHEMA_KEYS if key in function), None)
        name = fields.text(function, "name") or fields.text(function, "title")
        yield ToolDefinition(name, fields.text(function, "description"), schema)


def split_system(events: Iterable[Event]) -> tuple[tuple[Part, ...] | None, list[Event]]:
    """The system messages at the head as the system prompt (None where there is none), and the rest as the log."""
    rest = list(events)
    head = 0
    while head < len(rest) and rest[head].role is Role.SYSTEM:
        head += 1
    system = tuple(part for event in rest[:head] for part in event.parts)
    return (system if head else None), rest[head:]
