"""The model calls of a long session as they are stored: decoded when they are asked for, and not kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import overload

from guard_core.packing import decode
from guard_core.sessions import ModelCall
from inspector.storage.compression import decompressed


class StoredCalls(Sequence[ModelCall]):
    """Compressed chunks of a number of calls each, the last of fewer. As values they take 450 bytes a call, like this a
    thirtieth. A pass over all of them takes a microsecond a call; single ones are found in the chunk decoded last."""

    def __init__(self, bodies: Sequence[bytes], rows: int) -> None:
        """`bodies`: the compressed chunks in order; `rows`: calls of each."""
        self._bodies, self._rows = tuple(bodies), rows
        self._last: tuple[int, tuple[ModelCall, ...]] = (-1, ())
        self._length = rows * (len(bodies) - 1) + len(self._chunk(len(bodies) - 1)) if bodies else 0

    @property
    def nbytes(self) -> int:
        """Bytes of the chunks."""
        return sum(map(len, self._bodies))

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[ModelCall]:
        return chain.from_iterable(map(self._chunk, range(len(self._bodies))))

    def __reversed__(self) -> Iterator[ModelCall]:
        return chain.from_iterable(reversed(self._chunk(number)) for number in reversed(range(len(self._bodies))))

    @overload
    def __getitem__(self, index: int) -> ModelCall: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[ModelCall, ...]: ...

    def __getitem__(self, index: int | slice) -> ModelCall | tuple[ModelCall, ...]:
        chosen = range(len(self))[index]
        return self._at(chosen) if isinstance(chosen, int) else tuple(map(self._at, chosen))

    def _at(self, index: int) -> ModelCall:
        number, row = divmod(index, self._rows)
        last, calls = self._last
        if last != number:
            calls = self._chunk(number)
            self._last = (number, calls)  # one assignment: threads share a session
        return calls[row]

    def _chunk(self, number: int) -> tuple[ModelCall, ...]:
        return decode(decompressed(self._bodies[number]), tuple[ModelCall, ...], "calls")
