"""Baselines: where a recorded count does not continue the one before it although the log only grew.

A provider or an agent may leave older content out of a request and say nothing: the recorded prompt falls while the log
grows. Reasoning of an earlier turn that is not sent again is usual and not meant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from guard_core.ledger import Ints, Ledger, prefix_sums

# What is missing must be this much of the request before (one part in LEAST_SHARE) and this many tokens; a smaller fall
# may be cleared reasoning, or the error of what was added.
LEAST_SHARE, LEAST_TOKENS = 10, 2_000


@dataclass(frozen=True)
class Truncation:
    """A request smaller than the one before it, in tokens; `added` is an estimate of what the log grew by."""

    step: int
    before: int
    after: int
    added: int

    @property
    def missing(self) -> int:
        """Tokens that the request would have had more."""
        return self.before + self.added - self.after


def silent_truncations(ledger: Ledger) -> tuple[Truncation, ...]:
    """The steps at which the recorded prompt falls while the log grew and no compaction is recorded."""
    first, last = continued(ledger)
    recorded, at = ledger.steps["prompt_tokens"], ledger.steps["at"]
    lexical = ledger.prefix("lexical_tokens")
    added = lexical[at[last]] - lexical[at[first]]
    missing = recorded[first] + added - recorded[last]
    least = np.maximum(LEAST_TOKENS, recorded[first] // LEAST_SHARE)
    same_model = ledger.steps["model"][first] == ledger.steps["model"][last]
    fallen = (recorded[last] < recorded[first]) & (missing >= least) & (missing > _reasoning(ledger, first, last))
    return tuple(
        Truncation(int(last[row]), int(recorded[first[row]]), int(recorded[last[row]]), int(added[row]))
        for row in np.flatnonzero(fallen & same_model)
    )


def model_changes(ledger: Ledger) -> tuple[int, ...]:
    """The reported steps that another model answered than the one before them."""
    model = ledger.steps["model"]
    known = np.flatnonzero((ledger.steps["prompt_tokens"] > 0) & (model >= 0))
    return tuple(int(step) for step in known[1:][model[known[1:]] != model[known[:-1]]])


def continued(ledger: Ledger) -> tuple[Ints, Ints]:
    """Neighbouring reported steps between which no compaction is recorded and the log did not shrink."""
    steps = ledger.steps
    reported = np.flatnonzero(steps["prompt_tokens"] > 0)
    first, last = reported[:-1], reported[1:]
    grown = (steps["epoch"][first] == steps["epoch"][last]) & (steps["at"][last] >= steps["at"][first])
    return first[grown], last[grown]


def _reasoning(ledger: Ledger, first: Ints, last: Ints) -> Ints:
    """The most that reasoning of the turn before can have been, where a new turn begins: all that the model wrote."""
    turn, output = ledger.steps["turn"], np.maximum(ledger.steps["output_tokens"], 0)
    written = prefix_sums(output)
    begin = np.searchsorted(turn, turn[first], side="left")  # turns do not go back
    return np.where(turn[first] == turn[last], 0, written[last] - written[begin])
