"""Counters: the provider's last count of a run of steps, as a policy remembers it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from guard_core.ledger import Ints
from guard_core.policies.base import Run
from guard_core.trace import Head
from guard_core.usage import CountedRun


class LastCounts(NamedTuple):
    """The provider's counts of a run, and what is remembered before each step and, as last entry, after the last one:
    `tokens` (prompt tokens) measured at step `as_of` (-1: none)."""

    counted: CountedRun
    tokens: Ints
    as_of: Ints

    def first(self, size: int) -> CountedRun:
        """The counts of the first steps."""
        tokens, reported, source = self.counted
        return CountedRun(tokens[:size], reported[:size], source[:size])


def last_counts(run: Run, start: int, stop: int, head: Head, heuristics: Ints, tokens: int, as_of: int) -> LastCounts:
    """What the provider counts at steps `start` to `stop`, which send `head`; `tokens` and `as_of` are remembered
    before the first. Only a positive count is remembered, a missing one leaves the old."""
    counted = run.usage.run(start, stop, head.view, head.kept_from, heuristics, head.form)
    size = stop - start
    known = counted.reported & (counted.tokens > 0)
    if known.all():
        last, since = counted.tokens, np.arange(start, stop)
    else:
        place = np.maximum.accumulate(np.where(known, np.arange(size), -1))
        last = np.where(place >= 0, counted.tokens[place], tokens)
        since = np.where(place >= 0, place + start, as_of)
    return LastCounts(counted, np.append(tokens, last), np.append(as_of, since))


def recorded_counts(recorded: Ints) -> tuple[Ints, Ints]:
    """The last recorded count before each step and the step it belongs to (-1: none)."""
    size = len(recorded)
    known = np.maximum.accumulate(np.where(recorded > 0, np.arange(size), -1)) if size else np.zeros(0, dtype=np.int64)
    as_of = np.append(np.full(min(size, 1), -1, dtype=np.int64), known[:-1])
    return np.where(as_of >= 0, recorded[as_of], 0), as_of
