"""The counts at which agents compacted, over time: one strip per row as a few SVG coordinates, no chart library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guard_core.corpus import TriggerRow
from guard_core.corpus.words import day
from guard_core.decimation import thinned
from guard_core.rules.evidence import Cause
from inspector.figures.theme import amount

WIDTH, HEIGHT = 1000, 100  # of the box in which coordinates are; it is stretched to its place
DOTS = 6_000  # in all strips of a page; of those closer together one is drawn
LINKS = 240  # dots of a page that are links of their own
MOST = 1_200  # dots of one strip
PAD = 0.12  # of the range of counts, above and below
TICKS = 4  # days along the axis: a column of 320 pixels has room for four of 70
COLUMNS = 500  # cells of the finest grid, from left to right; a sixth of them from top to bottom
ORDER = {cause: number for number, cause in enumerate(Cause)}


class Dot(NamedTuple):
    """A compaction: when (seconds since the epoch), its count in tokens, why, and where."""

    time: float
    tokens: int
    cause: Cause
    session: str
    step: int


class Link(NamedTuple):
    """A dot that opens its step; places in per cent of the strip."""

    x: str
    y: str
    dot: Dot


@dataclass(frozen=True)
class Times:
    """The time axis that all strips share."""

    first: float
    last: float

    @classmethod
    def of(cls, times: Sequence[float]) -> Times | None:
        """From the first moment to the last; None without any."""
        return cls(min(times), max(times)) if times else None

    def share(self, time: NDArray[np.float64]) -> NDArray[np.float64]:
        """Places from 0 to 1, a little away from the edges."""
        span = self.last - self.first
        middle = np.full(len(time), 0.5)
        return middle if not span else np.asarray(0.02 + 0.96 * (time - self.first) / span)

    @property
    def ticks(self) -> list[dict[str, str]]:
        """Days along the axis, each once."""
        if self.first == self.last:
            return [{"x": "50", "day": day(self.first)}]
        moments = np.linspace(self.first, self.last, TICKS)
        days = {day(float(moment)): share for moment, share in zip(moments, self.share(moments), strict=True)}
        return [{"x": _short(100 * share), "day": words} for words, share in days.items()]


@dataclass(frozen=True)
class Strip:
    """Coordinates of one row. `paths` by cause, `shown` of `count` dots; lines and labels in per cent of the height."""

    paths: Mapping[Cause, str]
    links: Sequence[Link]
    count: int
    shown: int
    band: tuple[str, str] | None
    rule: str
    formula: str
    changes: Sequence[str]
    top: str
    bottom: str
    words: str


def strip(row: TriggerRow, dots: Sequence[Dot], times: Times, changes: Sequence[float], rows: int) -> Strip:
    """The strip of a row, one of `rows` on the page. `changes`: when its threshold became another one."""
    lines = [tally.threshold for tally in row.rules if tally.threshold is not None]
    named = ([row.formula.threshold] if row.formula else []) + [
        place.tokens for place in (row.above, row.at_most) if place
    ]
    counts = [dot.tokens for dot in dots] or named or lines or [0]
    near = [value for value in lines if 0.5 * min(counts) <= value <= 2 * max(counts)]
    low, high = min(*counts, *named, *near, counts[0]), max(*counts, *named, *near, counts[0])
    pad = PAD * (high - low) or 0.02 * high or 1
    scale = _StripScale(low - pad, high + pad)
    drawn = _kept(dots, times, scale, max(40, min(MOST, DOTS // rows)))
    xs, ys = _places(drawn, times, scale)
    paths: dict[Cause, str] = {}
    for x, y, dot in zip(xs, ys, drawn, strict=True):
        paths[dot.cause] = paths.get(dot.cause, "") + f"M{_short(WIDTH * x)} {_short(HEIGHT * y)}h0"
    linked = thinned(np.arange(len(drawn)), max(3, LINKS // rows))
    rule = near[0] if near else None
    return Strip(
        paths=paths,
        links=[Link(_short(100 * xs[at]), _short(100 * ys[at]), drawn[at]) for at in map(int, linked)],
        count=len(dots),
        shown=len(drawn),
        band=_band(row, scale),
        rule="" if rule is None else scale.percent(rule),
        formula="" if row.formula is None or row.formula.threshold == rule else scale.percent(row.formula.threshold),
        changes=[_short(100 * x) for x in times.share(np.array(changes, dtype=np.float64))],
        top=amount(high),
        bottom=amount(low),
        words=_words(dots),
    )


class _StripScale(NamedTuple):
    low: float
    high: float

    def share(self, tokens: NDArray[np.float64]) -> NDArray[np.float64]:
        """Places from the top (0) to the bottom (1)."""
        return np.asarray((self.high - tokens) / (self.high - self.low))

    def percent(self, tokens: int) -> str:
        return _short(100 * float(self.share(np.array([tokens], dtype=np.float64))[0]))


def _places(dots: Sequence[Dot], times: Times, scale: _StripScale) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    moments = np.array([dot.time for dot in dots], dtype=np.float64)
    return times.share(moments), scale.share(np.array([dot.tokens for dot in dots], dtype=np.float64))


def _kept(dots: Sequence[Dot], times: Times, scale: _StripScale, limit: int) -> list[Dot]:
    """At most `limit` of the dots: of those in one cell of a grid and of one cause the first, in ever larger cells. The
    least and the largest are always among them."""
    if len(dots) <= limit:
        return list(dots)
    xs, ys = _places(dots, times, scale)
    causes = np.array([ORDER[dot.cause] for dot in dots])
    tokens = np.array([dot.tokens for dot in dots])
    ends = {int(tokens.argmin()), int(tokens.argmax())}
    columns = COLUMNS
    while True:
        places = (xs * columns).astype(np.int64) * COLUMNS + (ys * columns / 6).astype(np.int64)
        _, first = np.unique(places * len(ORDER) + causes, return_index=True)
        chosen = ends.union(first.tolist())
        if len(chosen) <= limit or columns < 2:
            return [dots[at] for at in sorted(chosen)]
        columns = columns * 2 // 3


def _band(row: TriggerRow, scale: _StripScale) -> tuple[str, str] | None:
    """The interval of the threshold: its upper edge and its height."""
    if row.contradiction or row.above is None or row.at_most is None:
        return None
    upper, lower = (float(scale.percent(place.tokens)) for place in (row.at_most, row.above))
    return _short(upper), _short(max(lower - upper, 0.5))


def _words(dots: Sequence[Dot]) -> str:
    """The picture in one sentence, for those who do not see it."""
    if not dots:
        return "No compaction with a time and a count."
    low, high = min(dot.tokens for dot in dots), max(dot.tokens for dot in dots)
    first, last = min(dot.time for dot in dots), max(dot.time for dot in dots)
    when = f"on {day(first)}" if day(first) == day(last) else f"from {day(first)} to {day(last)}"
    noun = "compaction" if len(dots) == 1 else "compactions"
    return f"{len(dots):,} {noun} at {low:,} to {high:,} tokens, {when}."


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
