"""A client, a network and a server in one thread, with every fault that dice can choose.

Messages are dropped, delayed, repeated and reordered; the server is killed before and after each commit; a client is
started again from what it had noted. After each step what is stored must be the beginning of what was written, and hold
all that was acknowledged.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from guard_core.streaming.outbox import Outbox
from inspector.streams.machine import Acknowledgement, Gap, LineBatch, LineConflict, digest, receive


class Killed(Exception):
    """The server ends here."""


@dataclass
class Memory:
    """A store in which nothing counts before its transaction is committed."""

    lines: list[bytes] = field(default_factory=list)

    def received(self) -> int:
        return len(self.lines)

    def digests(self, start: int, stop: int) -> Sequence[bytes]:
        return [digest(line) for line in self.lines[start:stop]]

    def add(self, first: int, lines: Sequence[bytes]) -> None:
        assert first == len(self.lines)
        self.lines += lines


class Simulation:
    """One run, chosen by its seed alone."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.written = [f"line {number} {self.dice.random()}".encode() for number in range(self.dice.randint(1, 30))]
        self.stored = Memory()
        self.outbox = Outbox()
        self.noted = 0  # acknowledged, as the client noted it
        self.given = 0  # lines that the agent has written so far
        self.to_server: list[LineBatch] = []
        self.to_client: list[Acknowledgement | Gap] = []
        self.faults = self.dice.choice((0.0, 0.1, 0.4, 0.7))

    def run(self) -> None:
        """To the end, which comes: the dice let a message through now and then."""
        while self.noted < len(self.written):
            step = self.dice.choice(
                (self.write, self.send, self.serve, self.serve, self.answer, self.answer, self.crash)
            )
            step()
            self.check()
        assert self.stored.lines == self.written
        self.check_conflict()

    def check(self) -> None:
        assert self.stored.lines == self.written[: len(self.stored.lines)], "stored twice, or out of order"
        assert self.noted <= len(self.stored.lines), "acknowledged and not stored"

    def fails(self) -> bool:
        return self.dice.random() < self.faults

    def write(self) -> None:
        if self.given < len(self.written):
            self.outbox.add(self.written[self.given])
            self.given += 1

    def send(self) -> None:
        if len(self.outbox) and len(self.to_server) < 5:
            self.to_server.append(LineBatch(*self.outbox.batch(self.dice.randint(1, 8))))

    def serve(self) -> None:
        """Any message on the way, not the oldest; perhaps again later; perhaps never answered."""
        if not self.to_server:
            return
        batch = self.dice.choice(self.to_server)
        if not self.fails():
            self.to_server.remove(batch)
        if self.fails():
            return
        try:
            self.to_client.append(self.transaction(batch))
        except Gap as gap:
            self.to_client.append(gap)
        except Killed:
            self.to_server.clear()

    def transaction(self, batch: LineBatch) -> Acknowledgement:
        under_way = Memory(list(self.stored.lines))
        answer = receive(under_way, batch)
        if self.fails():
            raise Killed  # before the commit
        self.stored = under_way
        if self.fails():
            raise Killed  # behind it, before the answer
        return answer

    def answer(self) -> None:
        if not self.to_client:
            return
        message = self.dice.choice(self.to_client)
        if not self.fails():
            self.to_client.remove(message)
        if isinstance(message, Acknowledgement):
            self.outbox.acknowledged(message.acknowledged)
        elif message.expected >= self.outbox.first:  # else it is older than what was acknowledged since
            self.outbox.expected(message.expected)
        self.noted = self.outbox.first

    def crash(self) -> None:
        """The client is started again: it has what it had noted and what the agent had written."""
        if self.fails() and self.fails():
            self.outbox = Outbox(self.noted)
            for line in self.written[self.noted : self.given]:
                self.outbox.add(line)

    def check_conflict(self) -> None:
        """Other content under a number that is stored is refused, by its number, and nothing changes."""
        place = self.dice.randrange(len(self.written))
        first = self.dice.randint(0, place)
        lines = (*self.written[first:place], b"another line", *self.written[place + 1 :], b"more")
        with pytest.raises(LineConflict) as refused:
            receive(self.stored, LineBatch(first, lines))
        assert refused.value.number == place
        assert self.stored.lines == self.written
