"""Messages as Mistral Vibe's harness (3.0) sends them, as events."""

from __future__ import annotations

from typing import Any

from guard_core.events import Event, OtherPart, Part, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.reading import chat, fields
from guard_core.recordings.reading.fields import JSON

FAILURES = frozenset({"error", "failure", "failed", "cancelled", "denied"})  # outcomes of a tool
ENVELOPE = "<previous_user_messages>"  # ends the first message of a compacted context
SUMMARY_END = "</compaction_summary>"  # ends the last one


def message_event(message: JSON, line: int | None = None) -> Event | None:
    """One message of a request; None for a role that it does not have."""
    role = chat.ROLES.get(fields.text(message, "role"))
    if role is None:
        return None
    parts = _parts(message.get("content"))
    if fields.text(message, "role") == "tool":
        text = "".join(part.text for part in parts if isinstance(part, TextPart))
        media = (part for part in parts if not isinstance(part, TextPart))
        failed = fields.text(message, "outcome") in FAILURES
        name, call_id = fields.text(message, "name"), fields.text(message, "tool_call_id")
        parts = (ToolResultPart(name, text, call_id, failed), *media)
    meta = role is Role.USER and any(isinstance(part, TextPart) and is_envelope(part.text) for part in parts)
    return Event(role, parts, line=line, meta=meta)


def is_envelope(text: str) -> bool:
    """Is it one of the two messages that a compaction puts round the user's."""
    return text.rstrip().endswith((ENVELOPE, SUMMARY_END))


def answer_parts(parts: Any) -> tuple[Part, ...]:
    """Text and tool calls of an answer."""
    return _parts(parts)


def _parts(content: Any) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    return tuple(part for item in fields.objects(content) if (part := _part(item)) is not None)


def _part(item: JSON) -> Part | None:
    kind = fields.text(item, "type")
    if kind == "tool_call":
        arguments = item.get("arguments")
        raw = fields.text(arguments, "raw") if isinstance(arguments, dict) else item.get("arguments_json", arguments)
        value = arguments.get("value") if isinstance(arguments, dict) else None
        return ToolCallPart(fields.text(item, "name"), fields.arguments(raw or value), fields.text(item, "id"))
    if kind in ("reasoning", "thinking"):
        sealed = fields.text(item, "signature") or fields.text(item, "encrypted_content")
        text = fields.text(item, "text") or fields.plain_text(item.get("content"))
        return ReasoningPart(text, opaque_bytes=fields.opaque_size(sealed) if sealed else 0)
    parts = fields.content_parts([item])
    return parts[0] if parts else OtherPart(kind or "unknown", item)


def compacted_length(sent: tuple[Event, ...]) -> int | None:
    """How many messages at the head of a request a compaction left or made: up to the one that ends its summary. None
    where there is no such message."""
    for place, event in enumerate(sent):
        texts = (part.text for part in event.parts if isinstance(part, TextPart))
        if event.meta and any(text.rstrip().endswith(SUMMARY_END) for text in texts):
            return place + 1
    return None
