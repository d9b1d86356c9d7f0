"""Line and column of a byte, both from 1; columns are characters."""

from __future__ import annotations

from typing import IO

from guard_core.recordings.reading.limits import MIB

_BEGINNINGS = bytes(byte for byte in range(256) if byte & 0xC0 != 0x80)  # every byte that begins a character of UTF-8


def position(raw: bytes, offset: int) -> tuple[int, int]:
    """Line and column of a byte offset."""
    start = raw.rfind(b"\n", 0, offset) + 1
    return raw.count(b"\n", 0, offset) + 1, len(raw[start:offset].decode("utf-8", "replace")) + 1


def stream_position(stream: IO[bytes], offset: int) -> tuple[int, int]:
    """The same of an offset in a stream that is at its beginning, without the whole in memory."""
    line, column = 1, 1
    while offset > 0 and (block := stream.read(min(offset, MIB))):
        offset -= len(block)
        last = block.rfind(b"\n")
        line += block.count(b"\n")
        rest = block[last + 1 :]
        characters = len(rest) - len(rest.translate(None, _BEGINNINGS))  # that begin in it
        column = (column if last < 0 else 1) + characters
    return line, column
