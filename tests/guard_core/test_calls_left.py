"""Calls left, worked out by hand."""

from __future__ import annotations

import pytest

from guard_core.calls_left import CallsLeft, calls_left


def test_even_growth_has_no_range() -> None:
    assert calls_left(10_000, [0, 2_000, 4_000, 6_000]) == CallsLeft(5, 5, 5)


def test_uneven_growth_spreads_and_never_below_one_call() -> None:
    left = calls_left(10_000, [0, 100, 5_900, 6_000])
    assert left is not None
    assert (left.number, left.least) == (5, 1)
    assert left.most > left.number
    assert left.words == f"about 5 calls left, 1 to {left.most}"


@pytest.mark.parametrize(
    ("room", "counts"), [(0, [1, 2, 3, 4]), (9, []), (9, [1, 2, 3]), (9, [5, 5, 5, 5]), (9, [9, 8, 7, 6])]
)
def test_nothing_is_said_without_room_or_growth(room: int, counts: list[int]) -> None:
    assert calls_left(room, counts) is None


def test_many_calls_have_no_number() -> None:
    left = calls_left(10_000_000, [0, 1, 2, 3])
    assert left is not None
    assert left.words == "more than 999 calls left"
