"""Columns of integers as bytes: deterministic, exact in the round trip; and in memory as narrow until they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guard_core.errors import GuardError

Packed = dict[str, tuple[str, bytes]]

_WIDTHS = ("<i1", "<i2", "<i4", "<i8")
_INT64 = np.dtype(np.int64)  # compared by identity first: columns are read at every step of a replay
_LIMITS = {width: (int(np.iinfo(width).min), int(np.iinfo(width).max)) for width in _WIDTHS}


class Columns(dict[str, NDArray[Any]]):
    """Columns by name. One is held in the narrowest integers that its values fit until it is read: from then on it is
    int64, until `narrow`. Most readers need few columns, and the others take an eighth to a half of the memory.
    A column of floats stays as it is. No column may be changed in place."""

    def __getitem__(self, name: str) -> NDArray[Any]:
        column = dict.__getitem__(self, name)
        if column.dtype is not _INT64 and column.dtype.kind == "i" and column.dtype != _INT64:
            self._widths[name] = column.dtype
            column = column.astype(np.int64)
            super().__setitem__(name, column)
        return column

    def __setitem__(self, name: str, column: NDArray[Any]) -> None:
        self._widths.pop(name, None)
        super().__setitem__(name, column)

    def narrow(self) -> None:
        """Hold what was read as before, until it is read again; who reads it now has a column of its own."""
        for name in tuple(self._widths):
            if (width := self._widths.pop(name, None)) is not None:  # threads share columns
                super().__setitem__(name, super().__getitem__(name).astype(width))

    @cached_property
    def _widths(self) -> dict[str, Any]:
        """The integers in which those columns were held that have been read."""
        return {}

    # A dictionary reads its values without __getitem__ in each of these; one with an __iter__ of its own is copied
    # name by name by {**columns} and dict(columns).

    def __iter__(self) -> Iterator[str]:
        return super().__iter__()

    def __or__(self, other: Any) -> Any:
        return {**self, **other}

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def values(self) -> Any:
        return [self[name] for name in self]

    def items(self) -> Any:
        return [(name, self[name]) for name in self]


def pack_columns(columns: Mapping[str, NDArray[np.int64]], names: tuple[str, ...]) -> Packed:
    """Each column in the narrowest little-endian integer that holds it, in the order of `names`."""
    widths = {name: _width_of(columns[name]) for name in names}
    return {name: (width, columns[name].astype(width).tobytes()) for name, width in widths.items()}


def unpack_columns(packed: Packed) -> Columns:
    """The columns again; GuardError where the bytes do not fill whole numbers."""
    try:
        return Columns({name: np.frombuffer(data, dtype=width).copy() for name, (width, data) in packed.items()})
    except (ValueError, TypeError) as error:
        raise GuardError(f"a stored column cannot be read ({error}): import the session again") from error


def join_columns(blocks: Iterable[dict[str, NDArray[np.int64]]], names: tuple[str, ...]) -> Columns:
    """The columns of these names over blocks of rows, each as wide as its widest block. GuardError where one is not in
    a block."""
    pieces: dict[str, list[NDArray[Any]]] = {name: [] for name in names}
    try:
        for block in blocks:
            for name in names:
                if len(column := dict.__getitem__(block, name)):
                    pieces[name].append(column)
    except KeyError as error:
        raise GuardError(f"a stored chunk has no column {error}: import the session again") from error
    return Columns({name: np.concatenate(some) if some else np.zeros(0, np.int64) for name, some in pieces.items()})


def narrow_columns(table: NDArray[np.int64], names: tuple[str, ...]) -> Columns:
    """The columns of a table of rows, at least one, each in the narrowest integers that hold it."""
    widths = map(_width, table.min(axis=0).tolist(), table.max(axis=0).tolist())
    return Columns({name: table[:, place].astype(width) for place, (name, width) in enumerate(zip(names, widths))})


def narrowed(columns: Mapping[str, NDArray[Any]]) -> Columns:
    """The same columns, those of integers in the narrowest that hold them."""
    return Columns(
        {
            name: column.astype(_width_of(column)) if column.dtype.kind == "i" else column
            for name, column in columns.items()
        }
    )


def replaced(columns: dict[str, NDArray[np.int64]], **others: NDArray[np.int64]) -> Columns:
    """The same columns but for some; the rest stay as wide as they are."""
    return Columns([*dict.items(columns), *others.items()])


def rows_of(columns: dict[str, NDArray[np.int64]], start: int, stop: int) -> Columns:
    """Some rows of the columns, as wide as these are."""
    return Columns({name: column[start:stop] for name, column in dict.items(columns)})


def bytes_of(columns: dict[str, NDArray[np.int64]]) -> int:
    """The bytes that columns hold now; none is read for it."""
    return sum(column.nbytes for column in dict.values(columns))


def _width_of(column: NDArray[np.int64]) -> str:
    return _width(int(column.min()), int(column.max())) if len(column) else _WIDTHS[0]


def _width(low: int, high: int) -> str:
    return next(width for width, (least, most) in _LIMITS.items() if least <= low and high <= most)
