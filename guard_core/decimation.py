"""Which steps of a long session a figure shows: few enough to draw, with nothing lost that a decision turns on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_POINTS = 1200  # a series: about one a pixel of a wide screen; a zoom fetches the points between
MAX_MARKS = 400  # of one kind; markers are nodes of the page, unlike points of a line
DENSE = 60  # more compactions than this are one carpet: the lowest and highest of each stretch say more than a line

Ints = NDArray[np.int64]


def kept_steps(
    series: Sequence[NDArray[Any]], must: Ints, wish: Ints, start: int, stop: int, limit: int = MAX_POINTS
) -> Ints:
    """Step numbers in [start, stop) to draw, ascending: all if they fit, else `must` (compactions, overflows), as much
    of `wish` (crossings) as fits, both ends, and the minimum and maximum of each series in each of equal buckets.
    NaN counts as no value."""
    if stop - start <= limit:
        return np.arange(start, stop, dtype=np.int64)
    forced = [np.array([start, stop - 1]), thinned(steps_inside(must, range(start, stop)), limit // 2)]
    forced.append(thinned(steps_inside(wish, range(start, stop)), limit // 5))
    count = sum(len(part) for part in forced)
    buckets = max(1, (limit - count) // (2 * max(1, len(series))))
    edges = np.linspace(start, stop, buckets + 1).astype(np.int64)
    extremes = [_extremes(values, edges) for values in series]
    return np.unique(np.concatenate([*forced, *extremes])).astype(np.int64)


def steps_inside(steps: Ints, seen: range) -> Ints:
    """Those of the steps that are seen."""
    return steps[(steps >= seen.start) & (steps < seen.stop)]


def thinned(steps: Ints, limit: int) -> Ints:
    """At most `limit` of the steps, spread evenly, first and last among them."""
    if len(steps) <= limit:
        return steps
    return steps[np.linspace(0, len(steps) - 1, limit).astype(np.int64)]


def crossings(values: NDArray[Any], level: NDArray[Any]) -> Ints:
    """The steps on both sides of every place where `values` passes `level`; unknown values (NaN) end a run."""
    above = values >= level
    known = ~np.isnan(values)
    turn = np.flatnonzero((above[1:] != above[:-1]) & known[1:] & known[:-1])
    return np.unique(np.concatenate([turn, turn + 1])).astype(np.int64)


def edge_steps(values: NDArray[Any], start: int, stop: int, buckets: int) -> tuple[Ints, Ints]:
    """The steps with the lowest and with the highest value of each of equal buckets of [start, stop), both with the
    first step and the last: the two edges of a dense line. NaN counts as no value."""
    edges = np.unique(np.linspace(start, stop, buckets + 1).astype(np.int64))
    both, ends = _extremes(values, edges), np.array([start, stop - 1])
    return np.union1d(both[: len(edges) - 1], ends), np.union1d(both[len(edges) - 1 :], ends)


def _extremes(values: NDArray[Any], edges: Ints) -> Ints:
    """Where the minimum and maximum of each bucket are; a bucket of NaN gives its first step."""
    part = values[edges[0] : edges[-1]].astype(np.float64)
    at = (edges[:-1] - edges[0]).astype(np.int64)
    low = np.where(np.isnan(part), np.inf, part)
    high = np.where(np.isnan(part), -np.inf, part)
    lowest = _first_equal(low, np.minimum.reduceat(low, at), edges)
    return np.concatenate([lowest, _first_equal(high, np.maximum.reduceat(high, at), edges)])


def _first_equal(part: NDArray[Any], best: NDArray[Any], edges: Ints) -> Ints:
    """For each bucket the first step whose value is the bucket's best."""
    hits = np.flatnonzero(part == np.repeat(best, np.diff(edges)))
    first = hits[np.searchsorted(hits, edges[:-1] - edges[0])]
    return np.asarray(first + edges[0], dtype=np.int64)
