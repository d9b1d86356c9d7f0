"""Messages of gptme as they are in its files: their roles, their texts, and the calls of tools in these."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import Any

from guard_core.errors import DamagedRecording
from guard_core.events import Event, Part, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import Line

ROLES = frozenset({"system", "user", "assistant"})
# What marks the messages that a compaction put at the beginning.
_MADE = ("compaction_artifact", "anthropic_compaction_block")
_CALL = re.compile(r"^@([^\r\n]{1,300}?)\(([\w\-:.]{1,300})\):\s*+(?=\{)", re.MULTILINE)
_FENCE = re.compile(r"^(`{3,})([^\n`]*)$", re.MULTILINE)
_DECODER = json.JSONDecoder(strict=False)


def checked(line: Line) -> tuple[str, str]:
    """Role and content of a message. Raises DamagedRecording."""
    role, content = fields.text(line.obj, "role"), line.obj.get("content")
    if role not in ROLES or not isinstance(content, str):
        wrong = "role" if role not in ROLES else "content"
        raise DamagedRecording(f"{wrong} of a message is missing or none that gptme writes", line=line.number)
    return role, content


def is_shown_only(message: JSON) -> bool:
    """Is it only displayed, and never sent."""
    return message.get("ui_only") is True


def is_made(message: JSON) -> bool:
    """Did a compaction put it at the beginning."""
    metadata = fields.mapping(message, "metadata")
    return any(key in metadata for key in _MADE)


def is_prompt(message: JSON, role: str) -> bool:
    """Is a message at the head of a file a part of the system prompt."""
    return role == "system" and not is_made(message) and not message.get("call_id")


def event_of(line: Line) -> Event:
    """A message as an event: an answer, a result, or a message of the user or in the user's name. Raises
    DamagedRecording."""
    role, content = checked(line)
    about: dict[str, Any] = {"line": line.number, "timestamp": fields.timestamp(line.obj, "timestamp")}
    if role == "assistant":
        return Event(Role.MODEL, answer_parts(content), **about)
    call_id = fields.text(line.obj, "call_id")
    if role == "system" and call_id:
        name = fields.text(fields.mapping(line.obj, "metadata"), "tool")
        return Event(Role.USER, (ToolResultPart(name, content, call_id),), **about)
    return Event(Role.USER, (TextPart(content),), meta=role == "system", **about)


def answer_parts(content: str) -> tuple[Part, ...]:
    """The words of an answer, and the calls of tools in them."""
    parts: list[Part] = []
    at = 0
    fenced = _fenced(content) if "```" in content else []
    fences = [start for start, _ in fenced]
    for match in _CALL.finditer(content):
        fence = bisect_right(fences, match.start()) - 1  # the last one that begins before it
        if match.start() < at or (fence >= 0 and match.start() < fenced[fence][1]):
            continue
        try:
            _, end = _DECODER.raw_decode(content, match.end())
        except (ValueError, RecursionError):
            break  # as gptme does: what is not finished runs to the end
        arguments: Any = fields.decoded(content[match.end() : end])
        if not isinstance(arguments, dict):
            continue
        if words_before := content[at : match.start()].strip():
            parts.append(TextPart(words_before))
        parts.append(ToolCallPart(match[1], arguments, match[2]))
        at = end
    rest = content[at:].strip() if parts else content
    return (*parts, TextPart(rest)) if rest else tuple(parts)


def _fenced(content: str) -> list[tuple[int, int]]:
    """Where fenced blocks begin and end. One that does not end runs to the end."""
    ranges: list[tuple[int, int]] = []
    opened: tuple[int, int] | None = None  # its place and the length of its fence
    for match in _FENCE.finditer(content):
        if opened is None:
            opened = match.start(), len(match[1])
        elif len(match[1]) >= opened[1] and not match[2].strip():
            ranges.append((opened[0], match.end()))
            opened = None
    return [*ranges, (opened[0], len(content))] if opened else ranges
