"""Lines of a drawing box as SVG path data: what small pictures without a chart library are drawn with."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from guard_core.decimation import thinned
from inspector.figures.timeline import Floats, Ints

PAD = 6  # units left free above the highest value
MAX_TICKS = 400


@dataclass(frozen=True)
class Box:
    """A box of `width` by `height` units that holds `count` steps from `first` on side by side and values from 0 to
    `top`."""

    width: int
    height: int
    count: int
    top: float
    first: int = 0

    def x(self, step: float) -> str:
        """The middle of a step; half a step from it are its edges."""
        return _short(self.width * (step - self.first + 0.5) / self.count)

    def y(self, value: float) -> str:
        return _short(self.height - (self.height - PAD) * value / self.top)

    def line(self, steps: Ints, values: Floats) -> str:
        """A line from middle to middle, and to the edges where it begins and ends; unknown values (NaN) break it."""
        known = np.flatnonzero(~np.isnan(values[steps]))
        breaks = np.flatnonzero(np.diff(known) > 1) + 1
        runs = [steps[run] for run in np.split(known, breaks) if len(run)]
        return "".join(f"M{'L'.join(self._points(run, values))}" for run in runs)

    def area(self, steps: Ints, values: Floats) -> str:
        """The area below the line, unknown values bridged."""
        known = _known(steps, values)
        if not len(known):
            return ""
        line = "L".join(self._points(known, values))
        return f"M{self.x(known[0] - 0.5)} {self.height}L{line}L{self.x(known[-1] + 0.5)} {self.height}Z"

    def band(self, low: Ints, high: Ints, values: Floats) -> str:
        """The area between two edges of a dense line; "" where no value is known."""
        above, below = _known(high, values), _known(low, values)
        if not len(above):
            return ""
        return f"M{'L'.join(self._points(above, values) + self._points(below, values)[::-1])}Z"

    def level(self, value: float) -> str:
        """A horizontal line; "" where it would lie outside."""
        return f"M0 {self.y(value)}H{self.width}" if 0 < value <= self.top else ""

    def levels(self, values: Floats) -> str:
        """A horizontal line for each stretch of steps with one value; none where it is unknown or would lie outside. Of
        very many stretches some."""
        own = values[self.first : self.first + self.count]
        edges = np.flatnonzero(np.nan_to_num(own[1:]) != np.nan_to_num(own[:-1])) + 1
        starts = [0, *map(int, thinned(edges, MAX_TICKS))]
        paths = []
        for start, stop in pairwise([*starts, len(own)]):
            if 0 < own[start] <= self.top:
                left, right = (self.x(self.first + place - 0.5) for place in (start, stop))
                paths.append(f"M{left} {self.y(float(own[start]))}H{right}")
        return "".join(paths)

    def ticks(self, steps: Ints, length: int) -> str:
        """A vertical line from the upper edge for each step."""
        return " ".join(f"M{x} 0V{length}" for x in self._across(thinned(steps, MAX_TICKS)))

    def marks(self, steps: Ints, y: float) -> str:
        """A dot at one height for each step: a line without length."""
        return " ".join(f"M{x} {y}h0" for x in self._across(thinned(steps, MAX_TICKS)))

    def dots(self, steps: Ints, values: Floats) -> str:
        """A point for each step with a known value: lines without length, which round ends make dots."""
        known = thinned(_known(steps, values), MAX_TICKS)
        places = zip(self._across(known), self._up(values[known]), strict=True)
        return " ".join(f"M{x} {y}h0" for x, y in places)

    def _points(self, steps: Ints, values: Floats) -> list[str]:
        """The points of a line from the left edge of the first step to the right edge of the last."""
        places = np.concatenate([steps[:1] - 0.5, steps, steps[-1:] + 0.5])
        levels = self._up(values[np.concatenate([steps[:1], steps, steps[-1:]])])
        return [f"{x} {y}" for x, y in zip(self._across(places), levels, strict=True)]

    def _across(self, steps: Ints | Floats) -> list[str]:
        """As `x`, for many steps."""
        return _shortened(self.width * (steps - self.first + 0.5) / self.count)

    def _up(self, values: Floats) -> list[str]:
        """As `y`, for many values."""
        return _shortened(self.height - (self.height - PAD) * values / self.top)


def _known(steps: Ints, values: Floats) -> Ints:
    """The steps whose value is known."""
    return steps[~np.isnan(values[steps])]


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _shortened(values: Floats) -> list[str]:
    return [f"{value:.1f}".removesuffix(".0") for value in values.tolist()]
