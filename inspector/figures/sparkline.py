"""A trend picture for one row of a table: a few SVG coordinates that a template draws, no chart library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guard_core.shares import per_cent
from inspector.pages.shared.numbers import step_number

MOST_POINTS = 80  # of one line; a step that is the largest of its group is never lost
HEADROOM = 1.08  # the picture ends so far above the largest of window and peak


@dataclass(frozen=True)
class Trend:
    """What a trend picture shows: groups of steps, each with its largest request, and marks on them."""

    tokens: tuple[int, ...]
    compactions: tuple[int, ...] = ()  # groups in which the policy compacted
    overflows: tuple[int, ...] = ()  # groups in which a request was larger than the window
    threshold: int = 0  # tokens; 0: the policy has none
    window: int = 0  # tokens


@dataclass(frozen=True)
class Sparkline:
    """Coordinates in a box of `width` by `height` pixels."""

    width: int
    height: int
    line: str  # points of a polyline
    area: str  # points of the polygon below it
    threshold: str  # height of a horizontal line, "" for none
    window: str
    compactions: tuple[str, ...]
    overflows: tuple[tuple[str, str], ...]

    @property
    def context(self) -> dict[str, Any]:
        """What the template of a trend draws: the picture, and its marks as paths."""
        return {
            "drawn": self,
            "marks": " ".join(f"M{x} 1l-3 -5h6z" for x in self.compactions),
            "over": " ".join(f"M{x} {y}m-2.5 -2.5l5 5m0 -5l-5 5" for x, y in self.overflows),
        }


def trend(
    tokens: NDArray[np.int64],
    fired: NDArray[np.int64],
    overflow: NDArray[np.int64],
    *,
    threshold: int,
    window: int,
    points: int = MOST_POINTS,
) -> Trend:
    """A trend of at most `points` groups of neighbouring steps."""
    starts = np.unique(np.linspace(0, len(tokens), min(len(tokens), points), endpoint=False).astype(np.int64))
    if not len(starts):
        return Trend((), threshold=threshold, window=window)
    return Trend(
        tokens=tuple(np.maximum.reduceat(tokens, starts).tolist()),
        compactions=tuple(np.flatnonzero(np.maximum.reduceat(fired, starts)).tolist()),
        overflows=tuple(np.flatnonzero(np.maximum.reduceat(overflow, starts)).tolist()),
        threshold=max(0, threshold),
        window=window,
    )


def sparkline(shown: Trend, width: int = 168, height: int = 40) -> Sparkline:
    """The picture: requests from the left to the right, scaled so that window and peak are both in it."""
    top = max(shown.window, *shown.tokens, 1) * HEADROOM if shown.tokens else 1.0

    def y(value: float) -> str:
        return f"{height - 1 - (height - 2) * value / top:.1f}"

    last = len(shown.tokens) - 1
    xs = [f"{1 + (width - 2) * index / last if last else width / 2:.1f}" for index in range(len(shown.tokens))]
    points = [f"{x},{y(value)}" for x, value in zip(xs, shown.tokens, strict=True)]
    foot = height - 1
    return Sparkline(
        width=width,
        height=height,
        line=" ".join(points),
        area=" ".join([f"{xs[0]},{foot}", *points, f"{xs[-1]},{foot}"]) if points else "",
        threshold=y(shown.threshold) if 0 < shown.threshold <= top else "",
        window=y(shown.window) if shown.window else "",
        compactions=tuple(xs[index] for index in shown.compactions if index < len(xs)),
        overflows=tuple((xs[index], y(shown.tokens[index])) for index in shown.overflows if index < len(xs)),
    )


def words(shown: Trend, steps: int, peak: int, compactions: Sequence[int], window: int) -> str:
    """The picture in one sentence, for those who do not see it. `window` is that of the peak's call, 0 where it is not
    known: calls of other models have others than the one that is drawn."""
    if not shown.tokens:
        return "No model call."
    share = f", {per_cent(peak / window)} % of the window of {window:,}" if window else ""
    compacted = "no compaction"
    if compactions:
        places = ", ".join(f"{step_number(step):,}" for step in compactions[:6])
        compacted = f"compacted at step {places}{' and more' if len(compactions) > 6 else ''}"
    over = "; it overflows" if shown.overflows else ""
    return f"Prompt tokens over {steps:,} steps: peak {peak:,}{share}; {compacted}{over}."
