"""A JSON array, parted into its elements without being parsed as a whole: one element and a window are in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

import msgspec

from guard_core.recordings.reading import strict_json
from guard_core.recordings.reading.limits import MIB

WINDOW = MIB  # bytes read at once
_SKIPPER = msgspec.json.Decoder(msgspec.Raw)
# Where msgspec finds something behind the first value: the number, from 1, of the byte.
_BEHIND = re.compile(r"trailing characters \(byte (\d+)\)$")
_BLANK = b" \t\n\r"
_BLANKS = re.compile(rb"[ \t\n\r]*")


class NotParted(Exception):
    """The bytes are not an array whose elements can be separated."""


def elements(stream: IO[bytes], window_bytes: int = WINDOW) -> Iterator[tuple[int, bytes]]:
    """The offset and the bytes of each element of the array that a stream holds, and nothing else. Only where elements
    end is looked for: what is in them may still be damaged. Raises NotParted."""
    window = _Window(stream, window_bytes)
    if window.take() != b"[":
        raise NotParted
    if window.peek() == b"]":
        window.take()
    else:
        separator = b","
        while separator == b",":
            yield window.value()
            separator = window.take()
        if separator != b"]":
            raise NotParted
    if window.peek():
        raise NotParted


class _Window:
    """The part of a stream that is looked at, and a place in it."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream = stream
        self._size = size
        self._bytes = b""
        self._offset = 0  # of the first of them
        self._at = 0

    def peek(self) -> bytes:
        """The next character that is no blank; none at the end of the stream."""
        while True:
            blanks = _BLANKS.match(self._bytes, self._at)
            self._at = blanks.end() if blanks else self._at
            if self._at < len(self._bytes) or not self._grow():
                return self._bytes[self._at : self._at + 1]

    def take(self) -> bytes:
        """The same, and move behind it."""
        character = self.peek()
        self._at += len(character)
        return character

    def value(self) -> tuple[int, bytes]:
        """The offset and the bytes of the next value; move behind it."""
        self.peek()
        while (end := _end_of(self._bytes, self._at)) is None:
            if not self._grow():
                raise NotParted
        start, self._at = self._at, end
        return self._offset + start, self._bytes[start:end].rstrip(_BLANK)

    def _grow(self) -> bool:
        """Drop what is behind, and read more: as much as there is, since a long value is looked at again."""
        rest = self._bytes[self._at :]
        more = self._stream.read(max(self._size, len(rest)))
        self._bytes, self._offset, self._at = rest + more, self._offset + self._at, 0
        return bool(more)


def _end_of(raw: bytes, at: int) -> int | None:
    """Where the value ends that begins at a place; None where that is not in the bytes, or cannot be said."""
    try:
        _SKIPPER.decode(memoryview(raw)[at:])
    except msgspec.DecodeError as error:
        if behind := _BEHIND.search(str(error)):
            end = at + int(behind[1]) - 1
            return end if raw[end : end + 1] in (b",", b"]") else None
        return None if strict_json.is_cut(error) else strict_json.end_of(raw, at)
    except RecursionError:
        return None
    return None  # what follows may belong to it: the next digit of a number
