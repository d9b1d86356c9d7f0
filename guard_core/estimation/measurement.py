"""Interpolation: every recorded call predicted from the other calls, before and after it.

Nearly all such predictions lie between two known counts, so this measures how evenly a session grows and how its tokens
are shared out, not how well a replay is modelled: that is the forecast (guard_core.estimation.forecast).
Errors are relative to the recorded prompt tokens: +0.10 says that the prediction was ten percent too high.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np

from guard_core.estimation.attribution import attribute, attributed_steps, without
from guard_core.estimation.fitting import measure, weighed
from guard_core.estimation.intervals import Intervals
from guard_core.estimation.ratios import KINDS, STARTING, Floats, Start, content
from guard_core.ledger import Ints, Ledger

# How a left-out call was predicted; `how` of an interpolation holds an index into this.
METHODS = (
    "not predicted",
    "between two calls",
    "from the call before",
    "from the call after",
    "from other baselines",
)
NONE, BETWEEN, BEFORE, AFTER, ALONE = range(5)

MOST_CALLS = 2_000  # longer sessions are measured on so many calls, evenly spaced
MOST_STRETCHES = 6  # the first so many stretches between compactions are left out whole
MOST_FITS = 12  # ratios are fitted anew without each call, or without each group of calls far apart


class Errors(msgspec.Struct, frozen=True):
    """Relative errors over some calls: mean (bias), mean of sizes (MAPE), 95th percentile of sizes, the worst."""

    calls: int
    bias: float
    mape: float
    p95: float
    worst: float
    worst_step: int


@dataclass(frozen=True)
class Interpolation:
    """How well a session's calls are predicted from their neighbours.

    `predicted` (-1: none), `how` and `kind` (index into KINDS, -1) are per step.
    `kind` is the content that grew most since the call before. `overall` is None where nothing could be predicted.
    `stretches` is the harder test: all calls between two recorded compactions left out at once and predicted from the
    other stretches, as a counterfactual must (None without a recorded compaction).
    """

    predicted: Ints
    how: Ints
    kind: Ints
    overall: Errors | None
    by_kind: dict[str, Errors]
    by_method: dict[str, Errors]
    stretches: Errors | None

    @property
    def between(self) -> float | None:
        """The share of predictions that lie between two known counts; None where there are none."""
        inside = self.by_method.get(METHODS[BETWEEN])
        return None if self.overall is None else (inside.calls if inside else 0) / self.overall.calls


def interpolate(
    ledger: Ledger, weights: Ints | None = None, each: Callable[[], object] = lambda: None, *, stretches: bool = True
) -> Interpolation:
    """Predict every reported call from all the others, as if it alone had not been reported.

    `each` is called between the parts of the work, and may raise to break it off.
    """
    recorded = ledger.steps["prompt_tokens"]
    unit, start, _ = weighed(ledger, weights)
    amounts = content(ledger, unit)
    predicted = np.full(len(recorded), -1, dtype=np.int64)
    how = np.zeros(len(recorded), dtype=np.int64)
    # Calls are left out one at a time, or several far apart together in long sessions.
    steps = np.flatnonzero(recorded > 0)
    if len(steps) > MOST_CALLS:
        steps = steps[np.linspace(0, len(steps) - 1, MOST_CALLS).astype(np.int64)]
    fits = min(len(steps), MOST_FITS)
    for first in range(fits):
        each()
        _predict(ledger, weights, amounts, start, steps[first::fits], predicted, how)
    # The kind of content that grew most since the call before, -1: nothing did.
    at = ledger.steps["at"]
    prefix = np.concatenate([np.zeros((1, len(KINDS))), np.cumsum(amounts * STARTING.kinds, axis=0)])
    before = np.concatenate([[0], at[:-1]]) if len(at) else at
    grown = (prefix[at] - prefix[np.minimum(before, at)])[:, : KINDS.index("message")]
    kind = np.where(grown.sum(axis=1) > 0, np.argmax(grown, axis=1), -1).astype(np.int64)
    done = np.flatnonzero(how != NONE)
    return Interpolation(
        predicted=predicted,
        how=how,
        kind=kind,
        overall=errors(recorded, predicted, done),
        by_kind=_split(recorded, predicted, done, kind, KINDS),
        by_method=_split(recorded, predicted, done, how, METHODS),
        stretches=_measure_stretches(ledger, weights, each) if stretches else None,
    )


def errors(recorded: Ints, predicted: Ints, steps: Ints) -> Errors | None:
    """The errors of predictions at these steps; None where there are none."""
    if not len(steps):
        return None
    relative = predicted[steps] / recorded[steps] - 1.0
    size = np.abs(relative)
    worst = int(np.argmax(size))
    return Errors(
        calls=len(steps),
        bias=_rounded(relative.mean()),
        mape=_rounded(size.mean()),
        p95=_rounded(np.quantile(size, 0.95)),
        worst=_rounded(relative[worst]),
        worst_step=int(steps[worst]),
    )


def _rounded(value: float) -> float:
    return round(float(value), 6)


def _predict(
    ledger: Ledger,
    weights: Ints | None,
    amounts: Ints,
    start: Start | None,
    group: Ints,
    predicted: Ints,
    how: Ints,
) -> None:
    """Predict the calls of one group from the rest, in place."""
    rest = without(ledger, group)
    intervals, ratios, says = measure(rest, amounts, start)
    costs = np.concatenate([[0.0], np.cumsum(says.over(ratios.estimates(amounts, ledger.events["tool"])))])
    known = np.flatnonzero(rest.steps["prompt_tokens"] > 0)
    for step in group:
        tokens, way = _neighbours(rest, intervals, known, costs, int(step))
        if way == NONE and len(known):
            tokens, way = attribute(rest, weights).price(*rest.recorded_view(int(step))), ALONE
        predicted[step], how[step] = tokens, way


def _measure_stretches(ledger: Ledger, weights: Ints | None, each: Callable[[], object]) -> Errors | None:
    """Errors of the calls of whole stretches, each predicted from the others."""
    recorded, epoch = ledger.steps["prompt_tokens"], ledger.steps["epoch"]
    reported = recorded > 0
    stretches = np.unique(epoch[reported])[:MOST_STRETCHES]
    if len(stretches) < 2:
        return None
    predicted = np.full(len(recorded), -1, dtype=np.int64)
    for stretch in stretches:
        each()
        steps = np.flatnonzero(reported & (epoch == stretch))
        attribution = attribute(without(ledger, steps), weights)
        predicted[steps] = np.maximum(1, attributed_steps(ledger, attribution.overhead, attribution.prices)[steps])
    return errors(recorded, predicted, np.flatnonzero(predicted > 0))


def _neighbours(ledger: Ledger, intervals: Intervals, known: Ints, costs: Floats, step: int) -> tuple[int, int]:
    """The prediction from the reported calls beside a step, as far as they belong to the same baseline."""
    at, recorded, epoch = (ledger.steps[name] for name in ("at", "prompt_tokens", "epoch"))
    place = int(np.searchsorted(intervals.first, step)) - 1
    if place >= 0 and intervals.last[place] > step:
        first, last = int(intervals.first[place]), int(intervals.last[place])
        share = (costs[at[step]] - costs[at[first]]) / max(costs[at[last]] - costs[at[first]], 1e-9)
        return round(float(recorded[first] + intervals.tokens[place] * share)), BETWEEN
    before = int(np.searchsorted(known, step)) - 1
    if before >= 0 and epoch[known[before]] == epoch[step]:
        return round(float(recorded[known[before]] + costs[at[step]] - costs[at[known[before]]])), BEFORE
    after = before + 1
    if after < len(known) and epoch[known[after]] == epoch[step]:
        return max(1, round(float(recorded[known[after]] - costs[at[known[after]]] + costs[at[step]]))), AFTER
    return -1, NONE


def _split(recorded: Ints, predicted: Ints, steps: Ints, label: Ints, names: tuple[str, ...]) -> dict[str, Errors]:
    errors_by_name = {
        name: errors(recorded, predicted, steps[label[steps] == index]) for index, name in enumerate(names)
    }
    return {name: value for name, value in errors_by_name.items() if value is not None}
