"""The documented limits of every recording that is read."""

from __future__ import annotations

import msgspec

MIB = 1024 * 1024


class Limits(msgspec.Struct, frozen=True):
    """What a recording may hold. Sizes are bytes; passing one raises LimitExceeded, or skips the line where lenient."""

    request_bytes: int = 256 * MIB  # the file as it was sent
    inflated_bytes: int = 256 * MIB  # a gzip stream or a zip member, unpacked
    inflation_ratio: int = 200  # unpacked / packed
    line_bytes: int = 32 * MIB
    depth: int = 128  # nested arrays and objects
    digits: int = 20  # of an integer
    integers: int = 2**63  # whole numbers are from minus this one on, and below it
    keys: int = 10_000  # of one object
    parts: int = 10_000  # of one message
    events: int = 1_000_000  # of one session
    compactions: int = 1_000  # of one session
    sessions: int = 10_000  # of one file
    head_bytes: int = 8 * MIB  # looked at to find out the format
    database_seconds: float = 60.0  # one query of a SQLite file
