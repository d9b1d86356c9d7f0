"""Talking to a Python process of our own through pipes: framed messages, and the environment it starts in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

import inspector

_LENGTH = 4  # bytes before each frame
# So that glibc gives back what is free at the end of the heap (mallopt(3): a fixed value is not adjusted any more; by
# default it waits for more the larger the pieces were that a process had).
_MEMORY = {"MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": str(128 * 1024)}
_ROOT = Path(inspector.__file__).parents[1]


def environment() -> dict[str, str]:
    """The environment of a process that runs a module of this package."""
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, **_MEMORY}


def write_frame(out: IO[bytes], data: bytes) -> None:
    """Write one frame of bytes."""
    out.write(len(data).to_bytes(_LENGTH, "big"))
    out.write(data)
    out.flush()


def read_frame(source: IO[bytes]) -> bytes | None:
    """The next frame; None at the end of the pipe, which may be in the middle of one."""
    length = int.from_bytes(source.read(_LENGTH), "big")
    data = source.read(length) if length else b""
    return data if length and len(data) == length else None
