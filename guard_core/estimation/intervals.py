"""Intervals: the stretches of a log between two counted prompts, and how much the prompt grew over each."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from guard_core.estimation.baselines import continued
from guard_core.estimation.ratios import Floats
from guard_core.ledger import Ints, Ledger, prefix_sums

# A difference below a quarter of the estimate (of at least 400 tokens) means that older content was cut away at
# the same call: the request did not only grow, and a new baseline begins.
EDIT_SHARE, EDIT_FLOOR = 4, 400


@dataclass(frozen=True)
class Intervals:
    """Neighbouring reported calls of one model with no compaction between them, one entry each."""

    first: Ints  # step before
    last: Ints  # step after
    start: Ints  # events from here
    stop: Ints  # to here
    tokens: Ints  # difference of prompt tokens, without reasoning that was not sent again

    @classmethod
    def of(cls, ledger: Ledger) -> Intervals:
        """All of a session, also those in which the prompt fell."""
        steps = ledger.steps
        first, last = continued(ledger)
        tokens = steps["prompt_tokens"][last] - steps["prompt_tokens"][first]
        highest = np.maximum.accumulate(steps["at"])
        same = (steps["at"][first] == highest[first]) & (steps["model"][first] == steps["model"][last])
        return cls(first, last, steps["at"][first], steps["at"][last], tokens).pick(same)

    def pick(self, keep: NDArray[np.bool_]) -> Intervals:
        """The intervals that `keep` is true of."""
        names = ("first", "last", "start", "stop", "tokens")
        return Intervals(*(getattr(self, name)[keep] for name in names))

    def grown(self, dropped: Ints | None = None) -> Intervals:
        """Those in which the prompt did not fall. `dropped`: what is known to have been left out, to be added again."""
        intervals = self if dropped is None else replace(self, tokens=self.tokens + dropped)
        return intervals.pick(np.asarray(intervals.tokens >= 0))

    def sums(self, column: Ints) -> Ints:
        """The sum of an event column over each."""
        prefix = prefix_sums(column[: self._end])
        return prefix[self.stop] - prefix[self.start]

    def totals(self, column: Floats) -> Floats:
        """The same for a column of fractions."""
        prefix = np.concatenate([[0.0], np.cumsum(column[: self._end])])
        return np.asarray(prefix[self.stop] - prefix[self.start])

    def amounts(self, amounts: Ints) -> Ints:
        """The same for rows of amounts."""
        before = np.zeros((1, amounts.shape[1]), dtype=np.int64)
        prefix = np.concatenate([before, np.cumsum(amounts[: self._end], axis=0)])
        return np.asarray(prefix[self.stop] - prefix[self.start])

    @property
    def _end(self) -> int:
        """Where the events end that they have."""
        return int(self.stop.max(initial=0))

    def edited(self, estimate: Floats) -> NDArray[np.bool_]:
        """Which look as if older content had been cut away at the same call."""
        return np.asarray((estimate > EDIT_FLOOR) & (self.tokens * EDIT_SHARE < estimate))
