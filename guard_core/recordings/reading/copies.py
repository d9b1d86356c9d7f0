"""Copies of a recording within its file: lines that repeat it from its first line on."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO

from guard_core.recordings.reading.limits import MIB

MOST_TRIES = 20  # ours: a first line that is repeated more often, and no copy follows, begins none
LEAST_COPIED = 500  # ours, in bytes: lines that are repeated by chance ("continue") are shorter


class Copies:
    """Lines that repeat a file from its first line on. Such a copy is whole, or ends with the file or where the next
    one begins, and it has two lines and LEAST_COPIED bytes at least."""

    def __init__(self, size: int, stream: Callable[[], IO[bytes]]) -> None:
        """`size`: bytes of the file; `stream` opens it anew."""
        self._file_size, self._stream = size, stream
        self._first, self._raw = 0, b""  # where the first line begins that is not blank, and what it is
        self._end = 0  # of what is no copy, as far as lines were asked for
        self._stop = 0  # of the latest copy
        self._lines = 0  # that are not blank and in no copy
        self._tries = MOST_TRIES  # left

    def have(self, offset: int, raw: bytes) -> bool:
        """Is a line in a copy. Asked for all lines in their order."""
        if offset < self._stop:
            return True
        if not raw.strip():
            return False
        if raw == self._raw and self._lines == 1:
            self._raw = b""  # lines that are all alike are no copies
        if self._raw and raw == self._raw:
            end = self._end if offset == self._stop else offset
            if size := self._size(end - self._first, offset):
                self._stop = self._end = offset + size
                if size < end - self._first:
                    self._end = end
                else:  # what follows may continue this one
                    self._first = offset
                return True
            self._tries -= 1
            self._raw = self._raw if self._tries else b""
        if not self._lines:
            self._first, self._raw = offset, raw
        self._lines += 1
        return False

    def _size(self, whole: int, at: int) -> int:
        """How many bytes of a copy of so many, or of their beginning, begin at a place; 0: none does."""
        same, size, count = 0, 0, 0
        with self._stream() as stream:
            while same < whole:
                blocks = []
                for place in (self._first, at):
                    stream.seek(place + same)
                    blocks.append(stream.read(min(MIB, whole - same)))
                equal = _common(*blocks)
                if last := blocks[0].rfind(b"\n", 0, equal) + 1:
                    size, count = same + last, count + blocks[0].count(b"\n", 0, equal)
                same += equal
                if equal < len(blocks[0]):
                    break
            if at + same == self._file_size > at + size:  # a last line without an end
                size, count = same, count + 1
            stream.seek(at + size)
            is_over = size == whole or stream.read(len(self._raw) + 1) in (b"", self._raw + b"\n")
        return size if is_over and count > 1 and size >= LEAST_COPIED else 0


def _common(one: bytes, other: bytes) -> int:
    """How many bytes two blocks have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low
