"""Columns of integers as bytes: deterministic, exact in the round trip."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from guard_core.errors import GuardError

Packed = dict[str, tuple[str, bytes]]

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


def _pack(column: NDArray[np.int64]) -> tuple[str, bytes]:
    width = _width(column)
    return width, column.astype(width).tobytes()


def _width(column: NDArray[np.int64]) -> str:
    if not len(column):
        return _WIDTHS[0]
    low, high = int(column.min()), int(column.max())
    return next(width for width in _WIDTHS if np.iinfo(width).min <= low and high <= np.iinfo(width).max)
