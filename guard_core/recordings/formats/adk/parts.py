"""Fields and contents as the Agent Development Kit (ADK) and the Gemini API spell them: camelCase or snake_case."""

from __future__ import annotations

import re
from typing import Any

from guard_core.events import MediaPart, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.reading import fields

_OTHER_PARTS = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")
_BEFORE_CAPITAL = re.compile(r"(?=[A-Z])")
_SNAKE: dict[str, str] = {}


def pick(value: Any, camel: str) -> Any:
    """A field by its camelCase name, or by its snake_case name."""
    if not isinstance(value, dict):
        return None
    item = value.get(camel)
    if item is not None:
        return item
    snake = _SNAKE.get(camel)
    if snake is None:
        snake = _SNAKE[camel] = _BEFORE_CAPITAL.sub("_", camel).lower()
    return value.get(snake)


def pick_text(value: Any, camel: str) -> str:
    """The same where it is text, else ""."""
    item = pick(value, camel)
    return item if isinstance(item, str) else ""


def pick_object(value: Any, camel: str) -> dict[str, Any]:
    """The same where it is an object, else an empty one."""
    item = pick(value, camel)
    return item if isinstance(item, dict) else {}


def content_parts(content: Any) -> tuple[Part, ...]:
    """The parts of a Gemini content, in either spelling; parts that hold nothing are left out.

    A signature on something else than a thought (a call, an answer) is reasoning that is not readable (encrypted).
    """
    parts: list[Part] = []
    for item in fields.objects(pick(content, "parts")):
        part = _part(item)
        if part is None:
            continue
        signature = pick_text(item, "thoughtSignature")
        if signature and not isinstance(part, ReasoningPart):
            parts.append(ReasoningPart(opaque_bytes=fields.opaque_size(signature)))
        parts.append(part)
    return tuple(parts)


def _part(item: dict[str, Any]) -> Part | None:
    metadata = pick_object(item, "partMetadata") or None
    text = pick_text(item, "text")
    if text and item.get("thought") is not True:  # a part holds one thing; most hold text
        return TextPart(text, metadata)
    if call := pick_object(item, "functionCall"):
        return ToolCallPart(pick_text(call, "name"), pick(call, "args"), pick_text(call, "id"), metadata)
    if result := pick_object(item, "functionResponse"):
        response = pick(result, "response")
        failed = isinstance(response, dict) and "error" in response and len(response) == 1
        return ToolResultPart(pick_text(result, "name"), response, pick_text(result, "id"), failed, metadata)
    if data := pick_object(item, "inlineData"):
        size = fields.base64_size(pick_text(data, "data"))
        return MediaPart(mime=pick_text(data, "mimeType"), size=size, metadata=metadata)
    if file := pick_object(item, "fileData"):
        return MediaPart(mime=pick_text(file, "mimeType"), uri=pick_text(file, "fileUri"), metadata=metadata)
    for kind in _OTHER_PARTS:
        if value := pick_object(item, kind):
            return OtherPart(kind, value, metadata)
    if item.get("thought") is True:
        signature = pick_text(item, "thoughtSignature")
        return ReasoningPart(text, fields.opaque_size(signature) if signature else 0, metadata)
    return None
