"""Texts that a database keeps behind zstd."""

from __future__ import annotations

import io

import zstandard

from guard_core.errors import DamagedRecording, LimitExceeded
from guard_core.recordings.reading.source import ByteSource

MAGIC = b"\x28\xb5\x2f\xfd"  # how a zstd frame begins (RFC 8878, 3.1.1)
WINDOW = 2**27  # bytes; zstd's own limit without --long


def inflated(source: ByteSource, stored: bytes, what: str) -> bytes:
    """The bytes of a frame; `what` names it in messages. Raises DamagedRecording, and LimitExceeded above the limit of
    a line."""
    limit = source.limits.line_bytes
    try:
        with zstandard.ZstdDecompressor(max_window_size=WINDOW).stream_reader(io.BytesIO(stored)) as stream:
            content = stream.read(limit + 1)
    except zstandard.ZstdError as error:
        raise DamagedRecording(f"{what}: the zstd frame is damaged") from error
    if len(content) > limit:
        raise LimitExceeded(f"{what}: more than {limit} bytes when inflated")
    return content
