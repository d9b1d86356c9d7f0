"""The lines that a client has not had acknowledged yet: what to send next, whatever came of what was sent before."""

from __future__ import annotations

from collections import deque
from itertools import islice

MOST_LINES = 1_000  # of one batch, as a server takes them
MOST_BYTES = 1_000_000  # of one batch; a larger line is sent alone


class OutOfStep(Exception):
    """A server knows less of the stream than it had acknowledged, or more than was ever written: it is another one."""


class Outbox:
    """Numbered lines in their order, from the first that waits. Not for two threads at once."""

    def __init__(self, first: int = 0) -> None:
        self.first = first  # number of the first line that waits
        self._lines: deque[bytes] = deque()

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def end(self) -> int:
        """The number that the next line will have."""
        return self.first + len(self._lines)

    def add(self, line: bytes) -> None:
        """A line to send, without its newline."""
        self._lines.append(line)

    def batch(self, lines: int = MOST_LINES, size: int = MOST_BYTES) -> tuple[int, tuple[bytes, ...]]:
        """The number of the first line that waits, and as many lines from there on as one batch may have."""
        some: list[bytes] = []
        total = 0
        for line in islice(self._lines, lines):
            total += len(line) + 1
            if some and total > size:
                break
            some.append(line)
        return self.first, tuple(some)

    def acknowledged(self, through: int) -> None:
        """The server has the lines below this number. One that is late says less than is known, and changes nothing.
        Raises OutOfStep."""
        if through > self.end:
            raise OutOfStep(f"the server has {through:,} lines of this stream, which has {self.end:,}")
        while self.first < through:
            self._lines.popleft()
            self.first += 1

    def expected(self, number: int) -> None:
        """The server waits for this line. Raises OutOfStep where that one was acknowledged."""
        if number < self.first:
            raise OutOfStep(f"the server has {number:,} lines of this stream, {self.first:,} were acknowledged")
        self.acknowledged(number)
