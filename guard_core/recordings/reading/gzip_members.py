"""A gzip body in memory: a series of members (RFC 1952, section 2.2), most often one."""

from __future__ import annotations

import zlib
from typing import NamedTuple

from guard_core.recordings.reading.file_bytes import GZIP_MAGIC

# Bytes of a body that are unpacked at once, for at the end of each member the rest of a piece is copied; ours: a member
# may be one event of a stream.
PIECE = 4_096
_GZIP = zlib.MAX_WBITS | 16


class Gunzipped(NamedTuple):
    """The bytes of all members; whether they are all there is to unpack, and whether the body ends with a member."""

    plain: bytes
    is_all: bool
    is_whole: bool


def gunzip(data: bytes, most: int) -> Gunzipped:
    """Unpack a body to at most so many bytes. Raises zlib.error where it is no gzip."""
    out, at, unpacker = bytearray(), 0, zlib.decompressobj(_GZIP)
    while at < len(data) and len(out) <= most:
        piece = data[at : at + PIECE]
        out += unpacker.decompress(piece, most + 1 - len(out))
        at += len(piece) - len(unpacker.unused_data)
        if unpacker.eof and at < len(data):
            if not data.startswith(GZIP_MAGIC, at):
                break
            unpacker = zlib.decompressobj(_GZIP)
    return Gunzipped(bytes(memoryview(out)[:most]), len(out) <= most, unpacker.eof and at == len(data))
