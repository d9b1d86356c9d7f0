"""The chart of a comparison: the requests of every side over one axis of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from guard_core.decimation import kept_steps, thinned
from guard_core.ledger import Ints
from inspector.figures import theme
from inspector.figures.paths import Box
from inspector.figures.picture import HEIGHT as PICTURE_HEIGHT
from inspector.figures.picture import POINTS, WIDTH, Picture, PicturePath, axis_words, step_words
from inspector.figures.timeline import NO_STEPS
from inspector.pages.shared.numbers import step_number

HEIGHT = 360
STYLES = (
    (theme.RECORDED, "solid", "triangle-down"),
    (theme.REPLAYED, "dash", "square"),
    (theme.HEURISTIC, "dot", "diamond"),
    (theme.CALIBRATED, "dashdot", "cross"),
)
KINDS = ("recorded", "replayed", "heuristic", "calibrated")  # of a picture, in the colours of STYLES
MOST_MARKS = 200  # compactions of a side that are marked


class SideLine(NamedTuple):
    """One side: prompt tokens of every step and the steps that follow a compaction."""

    name: str
    tokens: Ints
    fired: Ints


def comparison_figure(lines: Sequence[SideLine], parts_at: int | None) -> dict[str, Any]:
    """A line for each side, a mark for each compaction, and where the first two part, in the words of plotly.js."""
    data = []
    for line, (colour, dash, symbol) in zip(lines, STYLES, strict=False):
        nothing = np.array([], dtype=np.int64)
        shown = kept_steps([line.tokens], line.fired, nothing, 0, len(line.tokens)) if len(line.tokens) else nothing
        marked = thinned(line.fired, MOST_MARKS) if len(line.fired) else nothing
        name = theme.label(line.name)
        data.append(_trace(name, line, shown, {"mode": "lines", "line": theme.line(colour, dash)}))
        mark = {"color": colour, "symbol": symbol, "size": 10}
        data.append(_trace(f"{name[:1]}: compaction", line, marked, {"mode": "markers", "marker": mark}))
    shapes = []
    if parts_at is not None:
        x = step_number(parts_at)
        edge = {"color": theme.MUTED, "dash": "dot", "width": 1}
        shapes = [{"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "line": edge}]
    layout = theme.layout(
        HEIGHT,
        margin={"l": 56, "r": 16, "t": 12, "b": 44},
        xaxis=theme.steps_axis(1, max((len(line.tokens) for line in lines), default=1)),
        yaxis=theme.axis(rangemode="tozero", tickformat="~s"),
        shapes=shapes,
    )
    return {"data": data, "layout": layout}


def comparison_picture(lines: Sequence[SideLine], parts_at: int | None) -> Picture | None:
    """The same as a plain picture; None without steps."""
    count = max((len(line.tokens) for line in lines), default=0)
    if not count:
        return None
    known = [line for line in lines if len(line.tokens)]
    top = 1.06 * max(1.0, *(float(np.nanmax(np.nan_to_num(line.tokens))) for line in known))
    box = Box(WIDTH, PICTURE_HEIGHT, count, top)
    paths = []
    for line, kind in zip(lines, KINDS, strict=False):
        if not len(line.tokens):
            continue
        tokens = line.tokens.astype(np.float64)
        shown = kept_steps([tokens], line.fired, NO_STEPS, 0, len(tokens), POINTS)
        paths.append(PicturePath(kind, box.line(shown, tokens), line.name))
        paths.append(PicturePath(f"{kind} picture-marks", box.dots(line.fired, tokens), f"{line.name[:1]}: compaction"))
    parting = PicturePath(
        "window", "" if parts_at is None else f"M{box.x(parts_at)} 0V{PICTURE_HEIGHT}", "where A and B diverge"
    )
    drawn = tuple(path for path in (*paths, parting) if path.d)
    return Picture(drawn, axis_words(box), (), *step_words(range(count)))


def _trace(name: str, line: SideLine, steps: Ints, style: dict[str, Any]) -> dict[str, Any]:
    return {"type": "scatter", "name": name, "x": step_number(steps), "y": line.tokens[steps], **style}
