"""Whole numbers by name, for the ids of long recordings: 16 bytes a slot, at most 46 a name, however long it is."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

_SMALLEST = 256  # slots, a power of two
_FEW = 4_096  # names
_BITS = (1 << 64) - 1
_FILLED = 0.7  # of the slots, before there are twice as many


class NumbersByName:
    """A dictionary of whole numbers by text that holds 64 bits of each text's hash in its place.

    Two of a million different names have the same with a probability of 3 in 100,000,000; which, nobody who writes a
    file can know, since Python's hash has another key in each process.
    """

    def __init__(self) -> None:
        self._count = 0
        self._make_room(_SMALLEST)

    def __len__(self) -> int:
        return self._count

    def __contains__(self, name: str) -> bool:
        return self._digests[self._slot(_digest(name))] != 0

    def get(self, name: str) -> int | None:
        """The number of a name; None where it has none."""
        slot = self._slot(_digest(name))
        return self._numbers[slot] if self._digests[slot] else None

    def __getitem__(self, name: str) -> int:
        number = self.get(name)
        if number is None:
            raise KeyError(name)
        return number

    def __setitem__(self, name: str, number: int) -> None:
        slot = self._slot(digest := _digest(name))
        self._numbers[slot] = number
        if not self._digests[slot]:
            self._add(slot, digest)

    def setdefault(self, name: str, number: int) -> int:
        """The number of a name, which is this one where it had none."""
        slot = self._slot(digest := _digest(name))
        if not self._digests[slot]:
            self._numbers[slot] = number
            self._add(slot, digest)
            return number
        return self._numbers[slot]

    def values(self) -> Iterator[int]:
        """The numbers, in no order."""
        return (number for digest, number in zip(self._digests, self._numbers, strict=True) if digest)

    def clear(self) -> None:
        """Forget all names."""
        self._count = 0
        self._make_room(_SMALLEST)

    def _slot(self, digest: int) -> int:
        """Where a digest is, or would be."""
        digests, last = self._digests, len(self._digests) - 1
        slot = digest & last
        while (present := digests[slot]) and present != digest:
            slot = (slot + 1) & last
        return slot

    def _add(self, slot: int, digest: int) -> None:
        self._digests[slot] = digest
        self._count += 1
        if self._count > _FILLED * len(self._digests):
            self._grow()

    def _grow(self) -> None:
        digests, numbers = self._digests, self._numbers
        self._make_room(2 * len(digests))
        for digest, number in zip(digests, numbers, strict=True):
            if digest:
                slot = self._slot(digest)
                self._digests[slot], self._numbers[slot] = digest, number

    def _make_room(self, slots: int) -> None:
        self._digests = array("Q", bytes(8 * slots))  # 0: free
        self._numbers = array("q", bytes(8 * slots))


def numbers_for(count: int) -> NumbersByName | dict[str, int]:
    """What holds whole numbers by so many names: a dictionary, which is faster, where they take little memory."""
    return {} if count <= _FEW else NumbersByName()


def _digest(name: str) -> int:
    """64 bits that are not all 0."""
    return hash(name) & _BITS or 1
