"""Lines of a drawing box as SVG path data: what small pictures without a chart library are drawn with."""

from __future__ import annotations

from collections.abc import Iterator
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
        return "".join(f"M{'L'.join(self._points(run, values))}" for run in _runs(steps, values))

    def area(self, steps: Ints, values: Floats) -> str:
        """The area below the line, unknown values bridged."""
        known = [int(step) for step in steps if not np.isnan(values[step])]
        if not known:
            return ""
        line = "L".join(self._points(known, values))
        return f"M{self.x(known[0] - 0.5)} {self.height}L{line}L{self.x(known[-1] + 0.5)} {self.height}Z"

    def band(self, low: Ints, high: Ints, values: Floats) -> str:
        """The area between two edges of a dense line; "" where no value is known."""
        above = [int(step) for step in high if not np.isnan(values[step])]
        below = [int(step) for step in low if not np.isnan(values[step])]
        if not above:
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
        return " ".join(f"M{self.x(int(step))} 0V{length}" for step in thinned(steps, MAX_TICKS))

    def marks(self, steps: Ints, y: float) -> str:
        """A dot at one height for each step: a line without length."""
        return " ".join(f"M{self.x(int(step))} {y}h0" for step in thinned(steps, MAX_TICKS))

    def dots(self, steps: Ints, values: Floats) -> str:
        """A point for each step with a known value: lines without length, which round ends make dots."""
        known = steps[~np.isnan(values[steps])]
        return " ".join(f"M{self.x(int(step))} {self.y(float(values[step]))}h0" for step in thinned(known, MAX_TICKS))

    def _points(self, steps: list[int], values: Floats) -> list[str]:
        """The points of a line from the left edge of the first step to the right edge of the last."""
        places = [steps[0] - 0.5, *steps, steps[-1] + 0.5]
        levels = (self.y(float(values[step])) for step in (steps[0], *steps, steps[-1]))
        return [f"{self.x(place)} {level}" for place, level in zip(places, levels, strict=True)]


def _runs(steps: Ints, values: Floats) -> Iterator[list[int]]:
    """Steps without an unknown value among them."""
    run: list[int] = []
    for step in map(int, steps):
        if not np.isnan(values[step]):
            run.append(step)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
