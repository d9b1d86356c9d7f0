"""The overview strip: a whole session in 56 pixels, as the paths of one small SVG."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from guard_core.decimation import MAX_MARKS, Ints, edge_steps, kept_steps, steps_inside
from inspector.figures.paths import Box
from inspector.figures.timeline import NO_STEPS, Timeline
from inspector.pages.shared.numbers import counted, step_number

WIDTH, HEIGHT = 1000, 56
POINTS = 700
STRETCHES = 120  # of a line that is dense with compactions: its peaks
TICK = 5
MARK = 5  # of a step with comments: from the lower edge to its middle
MATCH = 14  # of a step with matches of a search: the same, above the comments
FULL_LINES = 80  # more compactions than this are ticks, or they would hide the curve


def strip(
    data: Timeline,
    at: int | None = None,
    side: str = "recorded",
    commented: Sequence[int] = (),
    matched: Ints = NO_STEPS,
    zoom: range | None = None,
) -> dict[str, Any]:
    """Paths for the prompt tokens of one side, its compactions and the threshold; `cursor` is a place in per cent,
    `commented` are steps with comments, `matched` those with matches of a search, ascending; `zoom`: the steps that are
    shown, or all."""
    count = len(data)
    if count == 0:
        return {"empty": True}
    shown = data.side(side)
    seen = zoom or range(count)
    inside = partial(steps_inside, seen=seen)
    values, window = shown.tokens[seen.start : seen.stop], float(data.window)
    highest = float(np.nanmax(values)) if not np.isnan(values).all() else 1.0
    top = 1.05 * max(highest, window if highest > 0.4 * window else 0.0, 1.0)
    box = Box(WIDTH, HEIGHT, len(seen), top, seen.start)
    compactions, comments = inside(shown.compactions), inside(np.array(commented, dtype=np.int64))
    matched = inside(matched)
    # The first match in each column: a single one far from many others keeps its mark.
    firsts = np.unique(matched * MAX_MARKS // count, return_index=True)[1]
    few = len(compactions) <= FULL_LINES
    if few:
        steps = kept_steps([shown.tokens], compactions, NO_STEPS, seen.start, seen.stop, POINTS)
    else:
        steps = edge_steps(shown.tokens, seen.start, seen.stop, min(STRETCHES, len(seen)))[1]
    return {
        "count": count,
        "first": step_number(seen.start),
        "last": seen.stop,
        "zoomed": len(seen) < count,
        "left": f"{100 * seen.start / count:.3f}",
        "width": f"{100 * len(seen) / count:.3f}",
        "area": box.area(steps, shown.tokens),
        "line": box.line(steps, shown.counted),
        "estimated": box.line(steps, shown.estimated(steps)),
        "threshold": box.levels(data.threshold),
        "window": box.level(float(data.window)),
        "compactions": box.ticks(compactions, HEIGHT if few else TICK),
        "overflows": box.ticks(inside(shown.overflows), TICK),
        "comments": box.marks(comments, HEIGHT - MARK),
        "matches": box.marks(matched[firsts], HEIGHT - MATCH),
        "at": None if at is None else step_number(at),
        "cursor": None if at is None or at not in seen else f"{100 * (at - seen.start + 0.5) / len(seen):.3f}",
        "modelled": shown.modelled,
        "label": f"{shown.name.capitalize()}{'' if few else ', peaks,'} over "
        + (f"steps {step_number(seen.start):,} to {seen.stop:,} of " if len(seen) < count else "")
        + f"{counted(count, 'step')}, {counted(len(compactions), 'compaction')} marked"
        + (f", {counted(len(commented), 'step')} with comments" if commented else "")
        + (f", {counted(len(matched), 'step')} with matches of the search" if len(matched) else ""),
    }
