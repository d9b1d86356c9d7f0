"""Builds what msgspec knows of every struct before there are threads.

msgspec (0.22) describes a type when it is first decoded, and lets other threads see the description while it is not
complete: two first decodings at once can end the process (a null pointer in `mpack_decode`). What is described already
is only read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec


def describe_all() -> None:
    """Describe every struct that is loaded; some milliseconds. Call it before the first thread, and when more modules
    are loaded."""
    for kind in _below(msgspec.Struct):
        with suppress(TypeError, NameError):  # one that cannot be decoded never is
            msgspec.msgpack.Decoder(kind)


def _below(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for child in kind.__subclasses__():
        yield child
        yield from _below(child)
