"""Columns of integers as bytes: deterministic, versioned, exact in the round trip."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.errors import GuardError

Packed = dict[str, tuple[str, bytes]]
T = TypeVar("T")

_WIDTHS = ("<i1", "<i2", "<i4", "<i8")


def pack_columns(columns: Mapping[str, NDArray[np.int64]], names: tuple[str, ...]) -> Packed:
    """Each column in the narrowest little-endian integer that holds it, in the order of `names`."""
    return {name: _pack(columns[name]) for name in names}


def unpack_columns(packed: Packed) -> dict[str, NDArray[np.int64]]:
    """The int64 columns again; GuardError where the bytes do not fill whole numbers."""
    try:
        return {name: np.frombuffer(data, dtype=width).astype(np.int64) for name, (width, data) in packed.items()}
    except (ValueError, TypeError) as error:
        raise GuardError(f"a stored column cannot be read ({error}): import the session again") from error


def encode(value: object) -> bytes:
    """A value as MessagePack; equal values give equal bytes."""
    return msgspec.msgpack.encode(value, order="deterministic")


def decode(data: bytes, kind: type[T], what: str) -> T:
    """The value again; bytes that are something else raise GuardError with a sentence."""
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise GuardError(f"the stored {what} cannot be read ({error}): import the session again") from error


def check_version(found: int, expected: int, what: str) -> None:
    """Stored bytes of another version are not guessed at."""
    if found != expected:
        raise GuardError(f"the stored {what} has version {found}, not {expected}: import the session again")


def _pack(column: NDArray[np.int64]) -> tuple[str, bytes]:
    width = _width(column)
    return width, column.astype(width).tobytes()


def _width(column: NDArray[np.int64]) -> str:
    if not len(column):
        return _WIDTHS[0]
    low, high = int(column.min()), int(column.max())
    return next(width for width in _WIDTHS if np.iinfo(width).min <= low and high <= np.iinfo(width).max)
