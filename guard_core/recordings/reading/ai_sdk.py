"""Messages of Vercel's AI SDK as a model is given them, as parts and events: `ModelMessage`, before version 5
`CoreMessage`.

Source: https://ai-sdk.dev/docs/reference/ai-sdk-core/model-message.
"""

from __future__ import annotations

from typing import Any

from guard_core.events import Event, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.reading import chat, fields
from guard_core.recordings.reading.fields import JSON

OWN_BLOCKS = frozenset({"tool-call", "tool-result"})  # types of content that only this SDK has
_WRAPPED = frozenset({"text", "json", "content", "error-text", "error-json", "execution-denied"})  # an output's types


def has_own_block(content: Any) -> bool:
    """Is there a block in a message's content that only this SDK has?"""
    return any(fields.text(block, "type") in OWN_BLOCKS for block in fields.objects(content))


def message_event(message: JSON, line: int | None = None) -> Event | None:
    """The event of one message; None for a role that no chat has."""
    role = chat.ROLES.get(fields.text(message, "role"))
    content = message.get("content")
    if role is None:
        return None
    if isinstance(content, str):
        return chat.chat_event(message, line=line)
    parts_ = tuple(part for item in fields.objects(content) for part in parts(item))
    return Event(role, parts_, source_id=fields.text(message, "id"), line=line)


def parts(item: JSON) -> tuple[Part, ...]:
    """One block of a message's content as parts."""
    kind = fields.text(item, "type")
    if kind == "tool-call":
        return (call_part(item),)
    if kind == "tool-result":
        return result_parts(item, item.get("output", item.get("result")), failed=item.get("isError") is True)
    if kind == "reasoning":
        return (ReasoningPart(fields.text(item, "text")),)
    if kind == "file":
        return (fields.media(_mime(item), fields.text(item, "data") or fields.text(item, "url")),)
    if kind == "image":
        return (fields.media(_mime(item) or "image", fields.text(item, "image")),)
    return fields.content_parts([item])


def _mime(item: JSON) -> str:
    return fields.text(item, "mediaType") or fields.text(item, "mimeType")


def call_part(item: JSON, name: str = "") -> ToolCallPart:
    """The call of a tool, with its input, which was called arguments before version 5; one that could not be parsed is
    under a name of its own."""
    given = next((item[key] for key in ("input", "args", "rawInput") if item.get(key) is not None), None)
    arguments = fields.arguments(given)
    return ToolCallPart(name or fields.text(item, "toolName"), arguments, fields.text(item, "toolCallId"))


def result_parts(item: JSON, output: Any, name: str = "", *, failed: bool = False) -> tuple[Part, ...]:
    """What a tool gave back, out of the object that says of which type it is, and the media in it."""
    kind = fields.text(output, "type")
    name, call_id = name or fields.text(item, "toolName"), fields.text(item, "toolCallId")
    if kind not in _WRAPPED or not ("value" in output or kind == "execution-denied"):
        return (ToolResultPart(name, output, call_id, failed),)
    value = output.get("value", output.get("reason"))
    failed = failed or kind.startswith("error") or kind == "execution-denied"
    if kind != "content":
        return (ToolResultPart(name, value, call_id, failed),)
    blocks: list[Part] = []
    for block in fields.objects(value):
        data = fields.text(block, "data")  # of media, which have it beside their type
        blocks += (fields.media(_mime(block), data),) if data else parts(block)
    texts = "\n".join(part.text for part in blocks if isinstance(part, TextPart))
    return (
        ToolResultPart(name, texts, call_id, failed),
        *(part for part in blocks if not isinstance(part, TextPart)),
    )
