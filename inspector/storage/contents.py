"""What is stored and searched of an event, wherever it is read: its message, and the words in it."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import msgspec

from guard_core.events import (
    Event,
    MediaPart,
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


_EVENTS = msgspec.msgpack.Decoder(Event)


def packed(event: Event) -> bytes:
    """The bytes that are stored of an event's message, and whose SHA-256 is its key."""
    return encode(Content(role=event.role, parts=event.parts, author=event.author, meta=event.meta))


def key_of(text: bytes) -> bytes:
    """Under what a packed message is stored."""
    return hashlib.sha256(text).digest()


def unpacked(text: bytes, seconds: float = math.nan) -> Event:
    """The event of a message that was just packed, without its place; `seconds` since the epoch, nan: not known."""
    event = _EVENTS.decode(text)
    return event if math.isnan(seconds) else msgspec.structs.replace(event, timestamp=seconds)


def text_of(parts: tuple[Part, ...]) -> str:
    """What is searched of a message: all of it that is text, tool calls and results too."""
    pieces: list[str] = []
    for part in parts:
        if isinstance(part, TextPart | ReasoningPart):
            pieces.append(part.text)
        elif isinstance(part, ToolCallPart):
            pieces.append(part.name)
            pieces += leaves(part.arguments)
        elif isinstance(part, ToolResultPart):
            pieces.append(part.name)
            pieces += leaves(part.content)
        elif isinstance(part, MediaPart):
            pieces.append(part.uri[:2_000])
        else:
            pieces += leaves(part.value)
    return "\n".join(pieces)


def leaves(value: Any) -> list[str]:
    """The keys and values of a JSON value, in order. Not its JSON text, where a line break is a letter n."""
    if isinstance(value, str):
        return [value]
    found: list[str] = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, dict):
            for key, inner in reversed(item.items()):
                waiting += [inner, key]
        elif isinstance(item, list | tuple):
            waiting += reversed(item)
        elif item is not None:
            found.append(str(item))
    return found
