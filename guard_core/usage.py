"""Usage: how many prompt tokens the provider counts for a request, and whether it tells.

A policy learns the provider's count after each step. In a replay it comes from here: the recorded figure while the
request is the one that was really sent, and a modelled figure from the first divergence on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from guard_core.attribution import Attribution, attribute
from guard_core.ledger import Ints, Ledger
from guard_core.views import Inserted, Segment, Span, View

# Indices into guard_core.trace.PROMPT_SOURCES.
PROVIDER, MODELLED, ASSUMED = 1, 2, 3


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

    Source: the simulator of ContextGuard's own tests.
    """

    ratio: float
    reported_from: int = 0

    def one(self, step: int, view: View, heuristic: int, epoch: int = -1) -> Counted:
        return Counted(int(heuristic * self.ratio), step >= self.reported_from, 2)

    def run(self, start: int, stop: int, head: View, kept_from: int, heuristics: Ints) -> CountedRun:
        tokens = (heuristics * self.ratio).astype(np.int64)
        source = np.full(stop - start, MODELLED, dtype=np.int64)
        return CountedRun(tokens, np.arange(start, stop) >= self.reported_from, source)


@dataclass(frozen=True)
class AttributedUsage:
    """The recorded provider: its own figure while the request is the one really sent, else overhead + attribution.

    A policy sees a count exactly at the steps where the recorded provider reported one.
    """

    ledger: Ledger
    attribution: Attribution

    def one(self, step: int, view: View, heuristic: int, epoch: int = -1) -> Counted:
        recorded = int(self.ledger.steps["prompt_tokens"][step])
        if recorded > 0 and self._same(step, view, epoch):
            return Counted(recorded, True, PROVIDER)
        return Counted(self.attribution.price(view, epoch), recorded > 0, self._source)

    def run(self, start: int, stop: int, head: View, kept_from: int, heuristics: Ints) -> CountedRun:
        """As `one`, step by step. Inserted messages in `head` are those of the epoch of step `start`."""
        at = self.ledger.steps["at"][start:stop]
        recorded = self.ledger.steps["prompt_tokens"][start:stop]
        prefix, epoch = self.attribution.prices.prefix, self._epoch(start, head)
        kept = self.attribution.price((*head, Span(kept_from, kept_from)), epoch)  # the prologue goes with event 0
        modelled = kept + np.maximum(prefix[at] - prefix[kept_from], 0)
        sent = self._sent(start, stop, head, kept_from, epoch) & (recorded > 0)
        source = np.where(sent, PROVIDER, self._source).astype(np.int64)
        return CountedRun(np.where(sent, recorded, modelled), recorded > 0, source)

    def _epoch(self, start: int, head: View) -> int:
        return int(self.ledger.steps["epoch"][start]) if any(isinstance(item, Inserted) for item in head) else -1

    def _sent(self, start: int, stop: int, head: View, kept_from: int, epoch: int) -> NDArray[np.bool_]:
        """At which steps the request is the one really sent.

        Within an epoch two requests whose last spans are both open differ at every step or at none, so one step
        answers for all later ones.
        """
        at, epochs = self.ledger.steps["at"][start:stop], self.ledger.steps["epoch"][start:stop]
        seen = np.minimum(at, np.maximum(self._bases[epochs + 1], kept_from) + 1)
        changed = np.flatnonzero((epochs[1:] != epochs[:-1]) | (seen[1:] != seen[:-1])) + 1
        rows = np.concatenate([np.zeros(min(stop - start, 1), dtype=np.int64), changed])
        same = [self._same(start + int(row), (*head, Span(kept_from, int(at[row]))), epoch) for row in rows]
        return np.repeat(np.array(same, dtype=np.bool_), np.diff(np.append(rows, stop - start)))

    @cached_property
    def _bases(self) -> Ints:
        """Where each recorded compaction stands, by epoch + 1."""
        return np.array([0, *(base.at for base in self.ledger.bases)], dtype=np.int64)

    def _same(self, step: int, view: View, epoch: int) -> bool:
        return same_request(view, epoch, *self.ledger.recorded_view(step))

    @property
    def _source(self) -> int:
        return MODELLED if self.attribution.measured else ASSUMED


def same_request(view: View, epoch: int, other: View, other_epoch: int) -> bool:
    """Do two views send the same messages. Inserted messages are those of the compaction that `epoch` names."""
    first, second = normal(view), normal(other)
    return first == second and (epoch == other_epoch or not any(isinstance(item, Inserted) for item in first))


def normal(view: View) -> View:
    """The same view with neighbouring spans joined and empty ones left out."""
    made: list[Segment] = []
    for segment in view:
        if not isinstance(segment, Span):
            made.append(segment)
        elif segment.start < segment.stop:
            last = made[-1] if made else None
            if isinstance(last, Span) and last.stop == segment.start:
                made[-1] = Span(last.start, segment.stop)
            else:
                made.append(segment)
    return tuple(made)


def usage_for(ledger: Ledger, attribution: Attribution | None) -> Usage:
    """The model of the provider that fits a session: simulated where it was simulated, attributed otherwise."""
    if ledger.usage_ratio is not None:
        return RatioUsage(ledger.usage_ratio, ledger.usage_reported_from)
    return AttributedUsage(ledger, attribution if attribution is not None else attribute(ledger))
