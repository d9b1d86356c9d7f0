"""What is stored and searched of an event, wherever it is read: its message, and the words in it."""

from __future__ import annotations

from collections.abc import Iterator
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
)
from guard_core.packing import encode


class Content(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is stored once however often it is said: an event without its place and time."""

    role: Role
    parts: tuple[Part, ...]
    author: str = ""
    meta: bool = False


def packed(event: Event) -> bytes:
    """The bytes that are stored of an event's message, and whose SHA-256 is its key."""
    return encode(Content(role=event.role, parts=event.parts, author=event.author, meta=event.meta))


def text_of(parts: tuple[Part, ...]) -> str:
    """What is searched of a message: all of it that is text, tool calls and results too."""
    return "\n".join(piece for part in parts for piece in _pieces(part))


def _pieces(part: Part) -> Iterator[str]:
    match part:
        case TextPart() | ReasoningPart():
            yield part.text
        case ToolCallPart():
            yield part.name
            yield from leaves(part.arguments)
        case ToolResultPart():
            yield part.name
            yield from leaves(part.content)
        case MediaPart():
            yield part.uri[:2_000]
        case OtherPart():
            yield from leaves(part.value)


def leaves(value: Any) -> Iterator[str]:
    """The keys and values of a JSON value, in order. Not its JSON text, where a line break is a letter n."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            for key, inner in reversed(item.items()):
                waiting += [inner, key]
        elif isinstance(item, list | tuple):
            waiting += reversed(item)
        elif item is not None:
            yield str(item)
