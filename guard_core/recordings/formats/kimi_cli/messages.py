"""Messages as Kimi CLI sends them: those of a context, and those that its wire shows in pieces."""

from __future__ import annotations

from typing import Any

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
from guard_core.recordings.reading import fields, summary_words
from guard_core.recordings.reading.fields import JSON

# How messages open that the software writes in the user's name: src/kimi_cli/soul/message.py and notifications.
_OWN_OPENINGS = ("<system>", "<system-reminder>", "<notification ")
_EMPTY, _NO_TEXT = "Tool output is empty.", "Tool returned non-text content."
_MEDIA = frozenset({"image_url", "audio_url", "video_url"})


def parts_of(content: Any) -> tuple[Part, ...]:
    """The parts of a content: a text, one part or a list of them."""
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    items = content if isinstance(content, list) else [content] if content else []
    return tuple(part for item in items if (part := _part(item)) is not None)


def _part(item: Any) -> Part | None:
    if isinstance(item, str):
        return TextPart(item) if item else None
    if not isinstance(item, dict):
        return OtherPart("unknown", item)
    kind = fields.text(item, "type")
    if kind == "text":
        text = item.get("text")
        return TextPart(text) if isinstance(text, str) else OtherPart("text", item)
    if kind == "think":
        sealed = fields.text(item, "encrypted")
        return ReasoningPart(fields.text(item, "think"), fields.opaque_size(sealed) if sealed else 0)
    if kind in _MEDIA:
        url = fields.text(fields.mapping(item, kind), "url")
        return fields.media("", url) if url else MediaPart()
    return OtherPart(kind or "unknown", item)


def tool_call(item: JSON) -> ToolCallPart:
    """A call, whose arguments are JSON in a text."""
    function = fields.mapping(item, "function")
    return ToolCallPart(
        fields.text(function, "name"), fields.arguments(function.get("arguments")), fields.text(item, "id")
    )


def event_of(message: JSON, **place: Any) -> Event:
    """A message of a context."""
    role, parts = fields.text(message, "role"), parts_of(message.get("content"))
    if role == "tool":
        return result_event(fields.text(message, "tool_call_id"), parts, **place)
    if role == "assistant":
        calls = (tool_call(item) for item in fields.objects(message.get("tool_calls")))
        return Event(Role.MODEL, (*parts, *calls), **place)
    return user_event(parts, **place)


def user_event(parts: tuple[Part, ...], **place: Any) -> Event:
    """A message in the user's name; the software's own are marked."""
    first = next((part.text for part in parts if isinstance(part, TextPart)), "")
    return Event(Role.USER, parts, meta=first.lstrip().startswith(_OWN_OPENINGS), **place)


def result_event(call_id: str, parts: tuple[Part, ...], *, failed: bool | None = None, **place: Any) -> Event:
    """The result of a call: its texts, which the model is sent one behind the other, then its pictures."""
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    if failed is None:
        failed = bool(texts) and texts[0].startswith("<system>ERROR: ")
    others = tuple(part for part in parts if not isinstance(part, TextPart))
    return Event(Role.USER, (ToolResultPart("", "".join(texts), call_id, failed), *others), **place)


def shown_result(payload: JSON, **place: Any) -> Event:
    """A result that the wire shows, as the message that is made of it: `tool_result_to_message` in soul/message.py. The
    sentence that is added after an unexpected error is not on the wire."""
    value = fields.mapping(payload, "return_value")
    failed, message = value.get("is_error") is True, fields.text(value, "message")
    parts = parts_of(value.get("output"))
    if failed:
        parts = (TextPart(f"<system>ERROR: {message}</system>"), *parts)
    elif message:
        parts = (TextPart(f"<system>{message}</system>"), *parts)
    if not parts:
        parts = (TextPart(f"<system>{_EMPTY}</system>"),)
    elif not any(isinstance(part, TextPart) for part in parts):
        parts = (TextPart(f"<system>{_NO_TEXT}</system>"), *parts)
    return result_event(fields.text(payload, "tool_call_id"), parts, failed=failed, **place)


def is_summary(event: Event) -> bool:
    """Is this the message in which a compaction put its summary."""
    first = next((part.text for part in event.parts if isinstance(part, TextPart)), "")
    return event.role is Role.USER and first.startswith(summary_words.KIMI_CLI)
