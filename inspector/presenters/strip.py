"""The overview strip: a whole session in 56 pixels, as the paths of one small SVG."""

from __future__ import annotations

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


def _x(step: int, count: int) -> str:
    return f"{WIDTH * (step + 0.5) / count:.1f}".removesuffix(".0")


def _y(value: float, top: float) -> str:
    return f"{HEIGHT - (HEIGHT - PAD) * value / top:.1f}".removesuffix(".0")


def _points(steps: Ints, values: Floats, count: int, top: float) -> str:
    """A path that holds each value until the next step; unknown values break it."""
    path, broken = [], True
    for step in steps:
        value = float(values[step])
        if np.isnan(value):
            broken = True
            continue
        path.append(f"{'M' if broken else 'L'}{_x(int(step), count)} {_y(value, top)}")
        broken = False
    return "".join(path)


def _area(steps: Ints, values: Floats, count: int, top: float) -> str:
    known = [(int(step), float(values[step])) for step in steps if not np.isnan(values[step])]
    if not known:
        return ""
    line = "".join(f"L{_x(step, count)} {_y(value, top)}" for step, value in known)
    return f"M{_x(known[0][0], count)} {HEIGHT}{line}L{_x(known[-1][0], count)} {HEIGHT}Z"


def _level(value: float, top: float) -> str:
    return f"M0 {_y(value, top)}H{WIDTH}" if 0 < value <= top else ""
