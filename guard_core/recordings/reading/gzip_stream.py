"""One gzip stream, inflated with counted output, so that a bomb is stopped while it is small."""

from __future__ import annotations

import zlib
from typing import IO

from guard_core.errors import DamagedRecording, LimitExceeded
from guard_core.recordings.reading.limits import MIB, Limits

_GZIP = 16 + zlib.MAX_WBITS


def inflate(packed: IO[bytes], unpacked: IO[bytes], size: int, limits: Limits) -> None:
    """Write what the stream of `size` bytes holds. Raises LimitExceeded or DamagedRecording (broken, cut, two)."""
    inflater = zlib.decompressobj(_GZIP)
    allowed = min(limits.inflated_bytes, max(size * limits.inflation_ratio, MIB))
    written = 0
    pending = packed.read(MIB)
    while pending and not inflater.eof:
        try:
            block = inflater.decompress(pending, MIB)
        except zlib.error as error:
            raise DamagedRecording(f"the gzip stream is broken after {written} unpacked bytes") from error
        written += len(block)
        if written > allowed:
            raise LimitExceeded(f"the gzip stream unpacks to more than {allowed} bytes")
        unpacked.write(block)
        pending = inflater.unconsumed_tail or packed.read(MIB)
    if not inflater.eof:
        raise DamagedRecording(f"the gzip stream ends too early, after {written} unpacked bytes")
    if inflater.unused_data.strip(b"\x00") or packed.read(1):
        raise DamagedRecording("the file continues after its gzip stream: only a single one is unpacked")
