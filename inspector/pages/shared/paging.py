"""A long table, some rows at a time: which rows a page shows, and the addresses of the rows before and after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Pager:
    """Rows `start` to `stop` (exclusive, from 0) of a table; addresses are empty where no rows follow that way."""

    start: int
    stop: int
    words: str
    earlier: str
    later: str

    @property
    def shown(self) -> slice:
        """The rows of the page."""
        return slice(self.start, self.stop)


def pager(count: int, first: int, size: int, address: Callable[[int], str]) -> Pager:
    """The page of at most `size` rows of `count` that begins at row `first` (from 0; the last page where there is no
    such row). `address` gives the address for a row's number, from 1."""
    start = first if 0 <= first < count else max(0, count - 1) // size * size
    stop = min(start + size, count)
    return Pager(
        start,
        stop,
        f"{start + 1:,} to {stop:,} of {count:,}" if stop > start else "",
        address(max(0, start - size) + 1) if start else "",
        address(stop + 1) if stop < count else "",
    )
