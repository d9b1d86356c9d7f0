"""By how much the heuristic estimates of a session's calls are off, in sums."""

from __future__ import annotations

from typing import NamedTuple

from guard_core.findings import Facts
from guard_core.trace import Trace


class Bias(NamedTuple):
    """The heuristic estimates of the counted calls beside the provider's counts, less what the file does not hold: that
    is not a fault of an estimator."""

    calls: int
    estimated: int  # tokens, all calls added
    recorded: int  # tokens, all calls added
    not_in_file: int  # tokens of the recorded sum that no message of the file explains

    @property
    def ratio(self) -> float:
        return self.estimated / (self.recorded - self.not_in_file) - 1


def bias(facts: Facts, observed: Trace) -> Bias | None:
    """The sums behind the bias of a session; None where no call has a count."""
    recorded, heuristic = observed.columns["recorded_prompt_tokens"], observed.columns["heuristic_sent"]
    known = (recorded > 0) & (recorded > facts.not_in_file) & (heuristic > 0)
    if not known.any():
        return None
    sums = (heuristic[known], recorded[known], facts.not_in_file[known])
    return Bias(int(known.sum()), *(int(values.sum()) for values in sums))
