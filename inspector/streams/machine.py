"""What becomes of a batch of numbered lines: one function over a store, without network, clock or database.

    receive(store, LineBatch(12, lines))

A client numbers its lines from 0 and sends them again until they are acknowledged. A line is stored once: the same
line under a known number is a repeat, another one a conflict, and a number behind the next one a gap. A batch is stored
whole or not at all, and what is answered holds once the transaction of the store is committed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple, Protocol

DIGEST_BYTES = 16  # of a line; enough to distinguish the lines of one stream


class LineBatch(NamedTuple):
    """Lines as they came, without newlines; `first` is the number of the first one."""

    first: int
    lines: tuple[bytes, ...]


class Acknowledgement(NamedTuple):
    """`acknowledged` lines are stored: those with the numbers below it. Of the batch so many were `stored` now, and so
    many `repeated`."""

    acknowledged: int
    stored: int
    repeated: int


class BatchRefused(Exception):
    """A batch that is not taken; nothing of it is stored. `expected` is the number of the next line."""

    def __init__(self, sentence: str, expected: int) -> None:
        super().__init__(sentence)
        self.expected = expected


class LineConflict(BatchRefused):
    """Another line is stored under a number of the batch, `number`."""

    def __init__(self, number: int, expected: int) -> None:
        sentence = (
            f"line {number:,} is already stored with different content: use a stream's name for one run of one program"
        )
        super().__init__(sentence, expected)
        self.number = number


class Misfit(BatchRefused):
    """The line `number` of the batch does not fit those before it, for a reason in words."""

    def __init__(self, number: int, expected: int, reason: str) -> None:
        super().__init__(f"line {number:,} of the stream: {reason}", expected)
        self.number = number


class Gap(BatchRefused):
    """Lines between those stored and those of the batch are missing."""

    def __init__(self, first: int, expected: int) -> None:
        super().__init__(f"the batch begins with line {first:,}; the next one is {expected:,}", expected)


class Store(Protocol):
    """The lines of one stream, inside of a transaction that no other batch of the stream shares."""

    def received(self) -> int:
        """How many lines are stored: the number of the next one."""

    def digests(self, start: int, stop: int) -> Sequence[bytes]:
        """The digests of the stored lines `start` to `stop` (exclusive)."""

    def add(self, first: int, lines: Sequence[bytes]) -> None:
        """Store lines behind those that are there. May raise Misfit."""


def digest(line: bytes) -> bytes:
    """What distinguishes a line from any other one."""
    return hashlib.blake2b(line, digest_size=DIGEST_BYTES).digest()


def receive(store: Store, batch: LineBatch) -> Acknowledgement:
    """Store what is new of a batch. Raises BatchRefused."""
    expected = store.received()
    if batch.first > expected:
        raise Gap(batch.first, expected)
    repeated = min(len(batch.lines), expected - batch.first)
    stored = store.digests(batch.first, batch.first + repeated) if repeated else ()
    for number, (line, known) in enumerate(zip(batch.lines[:repeated], stored, strict=True), batch.first):
        if digest(line) != known:
            raise LineConflict(number, expected)
    new = batch.lines[repeated:]
    if new:
        store.add(expected, new)
    return Acknowledgement(expected + len(new), len(new), repeated)
