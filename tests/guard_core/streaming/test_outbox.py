"""What waits for its acknowledgement."""

from __future__ import annotations

import pytest

from guard_core.streaming.outbox import Outbox, OutOfStep


def filled(*lines: bytes, first: int = 0) -> Outbox:
    outbox = Outbox(first)
    for line in lines:
        outbox.add(line)
    return outbox


def test_lines_are_sent_until_they_are_acknowledged():
    outbox = filled(b"a", b"b", b"c")
    assert outbox.batch() == (0, (b"a", b"b", b"c"))
    outbox.acknowledged(2)
    assert outbox.batch() == (2, (b"c",))


def test_a_late_acknowledgement_changes_nothing():
    outbox = filled(b"a", first=5)
    outbox.acknowledged(3)
    assert outbox.batch() == (5, (b"a",))


def test_a_batch_has_as_many_lines_as_fit_and_at_least_one():
    outbox = filled(b"a" * 10, b"b" * 10, b"c")
    assert outbox.batch(2)[1] == (b"a" * 10, b"b" * 10)
    assert outbox.batch(size=5)[1] == (b"a" * 10,)


def test_a_server_that_has_lost_lines_is_another_one():
    with pytest.raises(OutOfStep, match="0 lines of this stream, 5 were acknowledged"):
        filled(b"a", first=5).expected(0)
    with pytest.raises(OutOfStep, match="9 lines of this stream, which has 1"):
        filled(b"a").acknowledged(9)
