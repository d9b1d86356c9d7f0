"""How many calls are left until a count of tokens reaches a threshold, if the calls to come grow as the last ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

FEWEST = 3  # calls whose growth is known before calls left are named; ours
ENOUGH = 20  # calls whose growth says how many are left; ours
# Standard deviations to either side. Growth is not normal, where 1.28 would hold 80 % of the cases: over 17 recordings
# with counts, and limits at 50 to 100 % of their peaks, this held the number of calls left in 85 % of the cases on
# average, in 78 and 89 % of two halves of the recordings.
SPREADS = 1.7
MOST_CALLS = 999  # more are "more than"


class CallsLeft(NamedTuple):
    """A number of calls with its range."""

    number: int
    least: int
    most: int

    @property
    def words(self) -> str:
        """The number and its range, as the status line and pages say it."""
        if self.number > MOST_CALLS:
            return f"more than {MOST_CALLS} calls left"
        least_to_most = f", {self.least} to {self.most}" if self.least != self.most else ""
        return f"about {self.number} {'call' if self.number == 1 else 'calls'} left{least_to_most}"


def calls_left(room: int, counts: Sequence[int]) -> CallsLeft | None:
    """Until `room` tokens, more than none, are used up; `counts` are those of the last calls, oldest first. The spread
    of the time at which a sum of independent steps passes a limit, and the error of the mean of few steps. None where
    fewer than FEWEST steps are known, or the counts do not grow."""
    growth = [later - earlier for earlier, later in pairwise(counts)]
    mean = sum(growth) / len(growth) if growth else 0.0
    if room <= 0 or len(growth) < FEWEST or mean <= 0:
        return None
    calls = room / mean
    variance = sum((step - mean) ** 2 for step in growth) / (len(growth) - 1)
    spread = SPREADS * calls * (variance**0.5 / mean) * (1 / calls + 1 / len(growth)) ** 0.5
    number, least, most = (max(1, round(value)) for value in (calls, calls - spread, calls + spread))
    return CallsLeft(number, least, most)
