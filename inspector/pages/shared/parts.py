"""One part of a message as a page shows it: a label, its text in pieces, and marks for characters that do not show."""

from __future__ import annotations

import json
import re
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
from inspector.pages.shared.numbers import counted, size
from inspector.storage.contents import Content

FIRST_CHARS = 900  # shown of a part in a list
PIECE_CHARS = 16_000  # of each "show more"

# Control characters, zero-width and bidirectional marks: a reader must see that they are there.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)


def visible(text: str) -> str:
    """The text with a mark in place of each character that does not show or that turns the reading order."""
    return _UNSEEN.sub(_mark, text)


_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")


def in_order(title: str) -> str:
    """A title with a mark in place of each character that turns the reading order of what follows it. Joiners, which
    scripts and emoji need, stay as they are."""
    return _TURNING.sub(_mark, title)


def _mark(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code == 0x0D:
        return ""
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"⟨U+{code:04X}⟩"


def piece(text: str, start: int, length: int) -> dict[str, Any]:
    """A piece of a text, and where the next one begins (None: that was all). A rest of less than a tenth of a piece
    belongs to it: to fold away a few words saves no room and costs a click."""
    stop = min(len(text), start + length)
    if len(text) - stop < length // 10:
        stop = len(text)
    return {"text": visible(text[start:stop]), "next": stop if stop < len(text) else None, "left": len(text) - stop}


def display_text(part: Part) -> str:
    """The text of a part as pages show it; JSON values are indented."""
    match part:
        case TextPart() | ReasoningPart():
            return part.text
        case ToolCallPart():
            return value_lines(part.arguments)
        case ToolResultPart():
            return value_lines(part.content)
        case OtherPart():
            return value_lines(part.value)
        case MediaPart():
            return part.uri


def value_lines(value: Any) -> str:
    """A JSON value for reading: strings as they are, an object of plain values as one line per key, else indented."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and all(isinstance(item, str | int | float | bool | None) for item in value.values()):
        plain = {
            key: item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for key, item in value.items()
        }
        return "\n".join(f"{key}: {text}" for key, text in plain.items())
    return json.dumps(value, ensure_ascii=False, indent=1, default=str)


def shown(part: Part, index: int, length: int = FIRST_CHARS) -> dict[str, Any]:
    """A part for the template: kind, label, notes, and the first piece of its text."""
    text = display_text(part)
    return {"index": index, "kind": _kind(part), "chars": len(text), **_label(part), **piece(text, 0, length)}


def _kind(part: Part) -> str:
    return type(part).__name__.removesuffix("Part").lower()


def _label(part: Part) -> dict[str, str]:
    match part:
        case TextPart():
            return {"label": "", "name": "", "note": ""}
        case ReasoningPart(opaque_bytes=opaque):
            rest = "a further " if part.text else ""
            note = f"{rest}{size(opaque)}, not readable (encrypted)" if opaque else ""
            return {"label": "reasoning", "name": "", "note": note}
        case ToolCallPart(name=name):
            return {"label": "call", "name": visible(name), "note": ""}
        case ToolResultPart(name=name, is_error=is_error):
            return {"label": "result", "name": visible(name), "note": "error" if is_error else ""}
        case MediaPart(mime=mime, size=bytes_):
            return {"label": "media", "name": visible(mime), "note": size(bytes_) if bytes_ else "by reference"}
        case OtherPart(kind=kind):
            return {"label": "other", "name": visible(kind), "note": ""}


def role_of(event: Event | Content) -> str:
    """The word for who speaks: tool results have one of their own although they are sent in user messages."""
    if event.parts and all(isinstance(part, ToolResultPart) for part in event.parts):
        return "tool"
    if event.role is Role.USER and event.meta:
        return "automatic"
    return {Role.USER: "user", Role.MODEL: "model", Role.SYSTEM: "system"}[event.role]


def summary_line(event: Event, length: int = 80) -> str:
    """An event in one line: the tools it calls and with what, or its first words."""
    calls = [part for part in event.parts if isinstance(part, ToolCallPart)]
    texts = [part.text for part in event.parts if isinstance(part, TextPart) and part.text.strip()]
    if event.role is Role.MODEL and len(calls) > 1:
        return _line(counted(len(calls), "call") + ": " + ", ".join(part.name for part in calls), length)
    if event.role is Role.MODEL and calls:
        return _line(f"{calls[0].name} {_gist(calls[0].arguments)}", length)
    if texts:
        return _line(texts[0], length)
    results = [part for part in event.parts if isinstance(part, ToolResultPart)]
    if results:
        return _line(f"{results[0].name or 'result'}: {display_text(results[0])}", length)
    return _kind(event.parts[0]) if event.parts else "empty"


def _gist(arguments: Any) -> str:
    """The first argument that says what a call is about."""
    if not isinstance(arguments, dict):
        return arguments if isinstance(arguments, str) else ""
    first = next((value for value in arguments.values() if isinstance(value, str) and value.strip()), "")
    is_path = first.startswith("/") and not any(char.isspace() for char in first[:200])
    return "…/" + "/".join(first.rstrip("/").split("/")[-2:]) if is_path and first.count("/") > 2 else first


def _line(text: str, length: int) -> str:
    return visible(" ".join(text[: length * 4].split())[:length])
