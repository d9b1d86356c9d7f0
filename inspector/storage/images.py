"""Pictures of a session, read on demand from the line of the uploaded file that holds them."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import msgspec

from guard_core.events import Event, MediaPart
from guard_core.recordings.reading.fields import base64_size
from inspector.models import Session

LONGEST_LINE = 64_000_000  # bytes of a line that is read for a picture
# What a browser draws and cannot run; SVG is a document, and is not among them. Source: each format's specification.
SIGNATURES = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}

# Frames of JPEG whose header has the size: all of C0 to CF but those that hold tables. Source: ITU-T T.81, table B.1.
FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
EXIF = 0xE1  # the segment that may say that the picture is turned


def image_of(row: Session, event: Event, index: int) -> tuple[str, bytes] | None:
    """Type and bytes of a picture; None where the line of the message does not hold one of that size, or more than one
    could be meant. Works for recordings whose messages are lines of JSON."""
    part = event.parts[index] if index < len(event.parts) else None
    if not isinstance(part, MediaPart) or not part.size or event.line is None:
        return None
    before = sum(isinstance(other, MediaPart) and other.size == part.size for other in event.parts[:index])
    alike = sum(isinstance(other, MediaPart) and other.size == part.size for other in event.parts)
    pictures = list(dict.fromkeys(_pictures(_line(row, event.line), part.size)))
    if not pictures or (len(pictures) > 1 and len(pictures) != alike):
        return None
    return pictures[min(before, len(pictures) - 1)]


def _line(row: Session, number: int) -> Any:
    try:
        with row.recording.path.open("rb") as file:
            line = next(islice(file, number - 1, None), b"")
    except FileNotFoundError:
        return None
    if len(line) > LONGEST_LINE:
        return None
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _pictures(value: Any, size: int) -> Iterator[tuple[str, bytes]]:
    """The pictures of a size in a JSON value, in its order."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict | list):
            waiting.extend(reversed(list(item.values()) if isinstance(item, dict) else item))
        elif isinstance(item, str) and len(item) > size:
            data = item.partition(",")[2] if item.startswith("data:") else item
            if base64_size(data) == size and (picture := _picture(data)):
                yield picture


def _picture(data: str) -> tuple[str, bytes] | None:
    try:
        content = base64.b64decode(data.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        return None
    for mime, signatures in SIGNATURES.items():
        if content.startswith(signatures) and (mime != "image/webp" or content[8:12] == b"WEBP"):
            return mime, content
    return None


def size_of(mime: str, content: bytes) -> tuple[int, int] | None:
    """Width and height of a picture as its header says, in pixels; None where it does not, or may be turned."""
    try:
        width, height = _SIZES[mime](content)
    except (KeyError, ValueError, struct.error):
        return None
    return (width, height) if width and height else None


def _webp(content: bytes) -> tuple[int, int]:
    """Of its three kinds: lossy, lossless, extended. Source: RFC 9649, section 2."""
    kind = content[12:16]
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", content, 26)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", content, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        width, more_width, height, more_height = struct.unpack_from("<HBHB", content, 24)  # of 24 bits each
        return (width | more_width << 16) + 1, (height | more_height << 16) + 1
    raise ValueError(kind)


def _jpeg(content: bytes) -> tuple[int, int]:
    at = 2
    while True:
        sign, marker, length = struct.unpack_from(">BBH", content, at)
        if sign != 0xFF or marker == EXIF:
            raise ValueError(marker)
        if marker in FRAMES:
            height, width = struct.unpack_from(">HH", content, at + 5)
            return width, height
        at += 2 + length


_SIZES: dict[str, Callable[[bytes], tuple[int, ...]]] = {
    "image/png": lambda content: struct.unpack_from(">II", content, 16),
    "image/jpeg": _jpeg,
    "image/gif": lambda content: struct.unpack_from("<HH", content, 6),
    "image/webp": _webp,
}
