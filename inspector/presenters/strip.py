"""The overview strip: a whole session in 56 pixels, as the paths of one small SVG."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from inspector.figures.decimate import kept_steps, thinned
from inspector.figures.timeline import NO_STEPS, Floats, Ints, Timeline
from inspector.presenters.numbers import counted

WIDTH, HEIGHT, PAD = 1000, 56, 6
POINTS = 700
TICK, MAX_TICKS = 5, 400
FULL_LINES = 80  # more compactions than this are ticks, or they would hide the curve


def strip(data: Timeline, at: int | None = None) -> dict[str, Any]:
    """Paths for the area of prompt tokens, the threshold and the compactions; `cursor` is a place in per cent."""
    count = len(data)
    if count == 0:
        return {"empty": True}
    values = np.where(np.isnan(data.recorded), data.heuristic, data.recorded)
    top = _top(data, values)
    few = len(data.compactions) <= FULL_LINES
    steps = kept_steps([values], data.compactions if few else NO_STEPS, NO_STEPS, 0, count, POINTS)
    return {
        "count": count,
        "area": _area(steps, values, count, top),
        "line": _points(steps, values, count, top),
        "threshold": _level(float(np.nan_to_num(data.threshold[0])), top),
        "window": _level(float(data.window), top),
        "compactions": _ticks(data.compactions, count, HEIGHT if few else TICK),
        "overflows": _ticks(data.overflows, count, TICK),
        "cursor": None if at is None else f"{100 * (at + 0.5) / count:.3f}",
        "label": f"Prompt tokens over {counted(count, 'step')}, {counted(len(data.compactions), 'compaction')} marked",
    }


def _top(data: Timeline, values: Floats) -> float:
    highest = float(np.nanmax(values)) if not np.isnan(values).all() else 1.0
    window = float(data.window)
    return 1.05 * max(highest, window if highest > 0.4 * window else 0.0, 1.0)


def _ticks(steps: Ints, count: int, length: int) -> str:
    return " ".join(f"M{_x(int(step), count)} 0V{length}" for step in thinned(steps, MAX_TICKS))


def _x(step: float, count: int) -> str:
    """The middle of a step; half a step from it are its edges."""
    return f"{WIDTH * (step + 0.5) / count:.1f}".removesuffix(".0")


def _y(value: float, top: float) -> str:
    return f"{HEIGHT - (HEIGHT - PAD) * value / top:.1f}".removesuffix(".0")


def _points(steps: Ints, values: Floats, count: int, top: float) -> str:
    """A path from middle to middle, and to the edges where it begins and ends; unknown values break it."""
    return "".join(f"M{'L'.join(_run(run, values, count, top))}" for run in _runs(steps, values))


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


def _run(steps: list[int], values: Floats, count: int, top: float) -> list[str]:
    """The points of a line from the left edge of the first step to the right edge of the last."""
    places = [steps[0] - 0.5, *steps, steps[-1] + 0.5]
    levels = (_y(float(values[step]), top) for step in (steps[0], *steps, steps[-1]))
    return [f"{_x(place, count)} {level}" for place, level in zip(places, levels, strict=True)]


def _area(steps: Ints, values: Floats, count: int, top: float) -> str:
    known = [int(step) for step in steps if not np.isnan(values[step])]
    if not known:
        return ""
    line = "L".join(_run(known, values, count, top))
    return f"M{_x(known[0] - 0.5, count)} {HEIGHT}L{line}L{_x(known[-1] + 0.5, count)} {HEIGHT}Z"


def _level(value: float, top: float) -> str:
    return f"M0 {_y(value, top)}H{WIDTH}" if 0 < value <= top else ""
