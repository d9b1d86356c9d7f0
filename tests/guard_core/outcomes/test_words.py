"""Amounts of money as people read them."""

from guard_core.outcomes.words import dollars
from guard_core.windows.prices import UNIT


def test_small_amounts_are_not_rounded_down_to_nothing():
    million = UNIT * 1_000_000
    assert [dollars(round(value * million)) for value in (0.00002, -0.00002, 0.00006, 0.5, 12.345, 0, -0.25)] == [
        "under $0.0001", "under $0.0001", "$0.0001", "$0.5000", "$12.35", "$0.0000", "−$0.2500"
    ]  # fmt: skip
