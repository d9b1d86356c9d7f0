"""A list of values of one class that holds them packed, but for the newest: a tenth of the memory, or less."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSequence
from itertools import chain, islice
from typing import Any, Generic, TypeVar, overload

import msgspec
import zstandard

T = TypeVar("T")

BLOCK = 128  # values that are packed together
RECENT = 4  # blocks whose values stay in memory after they were asked for
_LEVEL = 1  # of zstd: the fastest


class PackedList(MutableSequence[T], Generic[T]):
    """Behaves like a list of msgspec structs. What it gives out is a copy: to change a value, set it again.

    To append, to change one of the newest, and to go through them in order is cheap; any other access unpacks a block,
    and a change before the newest packs all that follow again.
    """

    def __init__(self, kind: type[T], values: Iterable[T] = ()) -> None:
        self._kind = kind
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(list[kind]).decode  # type: ignore[valid-type]
        self._blocks: list[bytes] = []  # of BLOCK values each
        self._newest: list[T] = []
        self._recent: dict[int, list[T]] = {}  # by block, last used last
        self.extend(values)

    def __len__(self) -> int:
        return len(self._blocks) * BLOCK + len(self._newest)

    def __iter__(self) -> Iterator[T]:
        return self._from(0)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return [*islice(self._from(start), max(stop - start, 0))]
            return [self[number] for number in range(start, stop, step)]
        index = self._checked(index)
        packed = len(self._blocks) * BLOCK
        return self._newest[index - packed] if index >= packed else self._block(index // BLOCK)[index % BLOCK]

    def _from(self, start: int) -> Iterator[T]:
        """The values from an index on, also those that are appended meanwhile."""
        while start < len(self._blocks) * BLOCK:
            yield from self._block(start // BLOCK)[start % BLOCK :]
            start += BLOCK - start % BLOCK
        while start < len(self):
            yield self[start]
            start += 1

    def __setitem__(self, index: Any, value: Any) -> None:
        """Replace one value, or a stretch of them."""
        if isinstance(index, slice):
            stretch = self._opened(index)  # before the newest are looked up: it may change which they are
            self._newest[stretch] = value
            self._pack()
            return
        index = self._checked(index)
        packed = len(self._blocks) * BLOCK
        if index >= packed:
            self._newest[index - packed] = value
            return
        values = self._block(index // BLOCK)
        values[index % BLOCK] = value
        self._blocks[index // BLOCK] = self._packed(values)

    def __delitem__(self, index: int | slice) -> None:
        if isinstance(index, int):
            index = self._checked(index)
            index = slice(index, index + 1)
        stretch = self._opened(index)
        del self._newest[stretch]
        self._pack()

    def insert(self, index: int, value: T) -> None:
        if index >= len(self):
            self.append(value)
        else:
            self[index:index] = [value]

    def append(self, value: T) -> None:
        self._newest.append(value)
        if len(self._newest) >= 2 * BLOCK:
            self._pack()

    def replace_all(self, values: Iterable[T]) -> None:
        """Hold these values instead, which may come from this list itself: never are all of them in memory."""
        fresh = PackedList(self._kind, values)
        self._blocks, self._newest = fresh._blocks, fresh._newest
        self._recent.clear()

    def _checked(self, index: int) -> int:
        size = len(self)
        if not -size <= index < size:
            raise IndexError(index)
        return index + size if index < 0 else index

    def _block(self, number: int) -> list[T]:
        values = self._recent.pop(number, None)
        if values is None:
            values = self._decode(zstandard.decompress(self._blocks[number]))
            if len(self._recent) >= RECENT:
                del self._recent[next(iter(self._recent))]
        self._recent[number] = values
        return values

    def _packed(self, values: list[T]) -> bytes:
        packed = memoryview(zstandard.compress(self._encode(values), _LEVEL))
        return bytes(packed)  # the library's own object holds room for the worst case

    def _pack(self) -> None:
        """Pack what is no longer among the newest."""
        packed = len(self._newest) // BLOCK * BLOCK - BLOCK
        for start in range(0, packed, BLOCK):
            self._blocks.append(self._packed(self._newest[start : start + BLOCK]))
        if packed > 0:
            del self._newest[:packed]

    def _opened(self, index: slice) -> slice:
        """The place of a stretch among the newest values, to which all from its first on belong now."""
        if index.step not in (None, 1):
            self._unpack(0)
            return index
        start, stop, _ = index.indices(len(self))
        self._unpack(start)
        packed = len(self._blocks) * BLOCK
        return slice(start - packed, max(start, stop) - packed)

    def _unpack(self, start: int) -> None:
        """From this index on values are among the newest."""
        first = start // BLOCK
        if first < len(self._blocks):
            blocks = map(self._block, range(first, len(self._blocks)))
            self._newest = [*chain.from_iterable(blocks), *self._newest]
            del self._blocks[first:]
            self._recent.clear()
