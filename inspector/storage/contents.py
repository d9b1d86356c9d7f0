"""What is stored of an event, wherever it is read: its message, and the key of it."""

from __future__ import annotations

import hashlib
import math

import msgspec

from guard_core.events import Event, Part, Role
from guard_core.packing import encode


class Content(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is stored once however often it is said: an event without its place and time."""

    role: Role
    parts: tuple[Part, ...]
    author: str = ""
    meta: bool = False
    joined: bool = False


_EVENTS = msgspec.msgpack.Decoder(Event)


def packed(event: Event) -> bytes:
    """The bytes that are stored of an event's message, and whose SHA-256 is its key."""
    return encode(
        Content(role=event.role, parts=event.parts, author=event.author, meta=event.meta, joined=event.joined)
    )


def key_of(text: bytes) -> bytes:
    """Under what a packed message is stored."""
    return hashlib.sha256(text).digest()


def unpacked(text: bytes, seconds: float = math.nan) -> Event:
    """The event of a message that was just packed, without its place; `seconds` since the epoch, nan: not known."""
    event = _EVENTS.decode(text)
    return event if math.isnan(seconds) else msgspec.structs.replace(event, timestamp=seconds)
