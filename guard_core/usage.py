"""Usage: how many prompt tokens the provider counts for a request, and whether it tells.

A policy learns the provider's count after each step. In a replay it comes from here: the recorded figure while the
request is the one that was really sent, and a modelled figure from the first divergence on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from guard_core.ledger import Ints
from guard_core.views import View


class Counted(NamedTuple):
    """The provider's count of one request. `reported`: does the agent (and its policy) get to see it."""

    tokens: int  # -1: not known
    reported: bool
    source: int  # index into guard_core.trace.PROMPT_SOURCES


class CountedRun(NamedTuple):
    """The same for a run of steps, as arrays."""

    tokens: Ints
    reported: NDArray[np.bool_]
    source: Ints


class Usage(Protocol):
    """A model of the provider for one session."""

    def one(self, step: int, view: View, heuristic: int, epoch: int = -1) -> Counted:
        """The count of the request `view` sent at `step`, whose heuristic estimate (all of it) is `heuristic`."""
        ...

    def run(self, start: int, stop: int, head: View, kept_from: int, heuristics: Ints) -> CountedRun:
        """The counts of steps `start` to `stop`, where step k sends `head` and the events `kept_from` to `at[k]`."""
        ...


@dataclass(frozen=True)
class RatioUsage:
    """A simulated provider: prompt tokens = trunc(heuristic x ratio), reported from a given step on.

    Source: the simulator of ContextGuard's own tests (spec/contextguard.md section 13.1).
    """

    ratio: float
    reported_from: int = 0

    def one(self, step: int, view: View, heuristic: int, epoch: int = -1) -> Counted:
        return Counted(int(heuristic * self.ratio), step >= self.reported_from, 2)

    def run(self, start: int, stop: int, head: View, kept_from: int, heuristics: Ints) -> CountedRun:
        tokens = (heuristics * self.ratio).astype(np.int64)
        return CountedRun(tokens, np.arange(start, stop) >= self.reported_from, np.full(stop - start, 2, dtype=np.int64))
