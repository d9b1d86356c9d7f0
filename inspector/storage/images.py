"""Pictures of a session, read on demand from the line of the uploaded file that holds them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
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
