"""Recorded prompt tokens over a policy's heuristic estimate, one point for each call, with lines of equal ratio."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from guard_core.decimation import thinned
from inspector.figures import theme
from inspector.figures.paths import Box
from inspector.figures.picture import HEIGHT as PICTURE_HEIGHT
from inspector.figures.picture import WIDTH, Picture, PicturePath, Word, height_of
from inspector.pages.shared.numbers import step_number

HEIGHT = 380
RATIOS = (1, 2, 3, 4, 5)
MOST_POINTS = 600  # each is an element of the page
MARGIN_SHARE = 1.25  # the axes go so far beyond the outermost points


def real_against_heuristic(steps: Sequence[int], recorded: Sequence[int], heuristic: Sequence[int]) -> go.Figure:
    """The figure of at most MOST_POINTS calls, log axes. Counts are above 0; `customdata`: the steps, from 1."""
    shown = drawn_points(len(steps))
    steps, recorded, heuristic = ([values[place] for place in shown] for values in (steps, recorded, heuristic))
    low, high = _range(heuristic)
    return go.Figure(
        data=[*(_guide(ratio, low, high) for ratio in RATIOS), _calls(steps, recorded, heuristic)],
        layout=theme.layout(
            HEIGHT,
            template=go.layout.Template(),
            hovermode="closest",
            margin={"l": 62, "r": 48, "t": 16, "b": 52},
            xaxis=_axis("heuristic estimate, tokens", (low, high)),
            yaxis=_axis("recorded prompt tokens", _range(recorded)),
            annotations=_labels(high, _range(recorded)),
        ),
    )


def scatter_picture(steps: Sequence[int], recorded: Sequence[int], heuristic: Sequence[int]) -> Picture:
    """The same points and lines as a plain picture."""
    shown = drawn_points(len(steps))
    (left, right), (low, high) = _range(heuristic), _range(recorded)

    def place(x: float, y: float) -> str:
        across, up = np.log(x / left) / np.log(right / left), np.log(y / low) / np.log(high / low)
        return f"{WIDTH * across:.1f} {PICTURE_HEIGHT * (1 - up):.1f}"

    guides = [
        PicturePath("equal" if ratio == 1 else "window", line, f"{ratio}×")
        for ratio in RATIOS
        if (line := _inside(ratio, (left, right), (low, high), place))
    ]
    dots = " ".join(f"M{place(heuristic[at], recorded[at])}h0" for at in shown)
    box = Box(WIDTH, PICTURE_HEIGHT, 1, 1.0)
    axis = tuple(Word(height_of(box, share), theme.amount(low * (high / low) ** share)) for share in (0.0, 0.5, 0.95))
    ends = (f"{theme.amount(left)} estimated", f"{theme.amount(right)} estimated")
    return Picture((*guides, PicturePath("recorded picture-points", dots, "recorded prompt tokens")), axis, (), *ends)


def _inside(
    ratio: int, across: tuple[float, float], up: tuple[float, float], place: Callable[[float, float], str]
) -> str:
    """The part of a line of equal ratio that is in the picture."""
    start, end = max(across[0], up[0] / ratio), min(across[1], up[1] / ratio)
    return f"M{place(start, ratio * start)}L{place(end, ratio * end)}" if start < end else ""


def drawn_points(count: int) -> list[int]:
    """Which of so many points are drawn: all, or MOST_POINTS spread evenly."""
    return [int(place) for place in thinned(np.arange(count), MOST_POINTS)]


def _range(values: Sequence[int]) -> tuple[float, float]:
    return min(values, default=1) / MARGIN_SHARE, max(values, default=1_000) * MARGIN_SHARE


def _axis(title: str, ends: tuple[float, float]) -> dict[str, Any]:
    words = {"text": title, "font": {"size": 12, "color": theme.MUTED}}
    span = [float(np.log10(end)) for end in ends]
    return theme.axis(type="log", range=span, title=words, tickformat="~s", dtick=1 if span[1] - span[0] > 2 else "D2")


def _guide(ratio: int, low: float, high: float) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{ratio} recorded for 1 estimated",
        "x": [low, high],
        "y": [ratio * low, ratio * high],
        "line": theme.line(theme.THRESHOLD, "solid", 1.5) if ratio == 1 else theme.line(theme.WINDOW, "dot", 1),
        "hoverinfo": "skip",
    }


def _calls(steps: list[int], recorded: list[int], heuristic: list[int]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "recorded prompt tokens",
        "x": heuristic,
        "y": recorded,
        "customdata": [step_number(step) for step in steps],
        "marker": {"color": theme.RECORDED, "size": 5 if len(steps) > 200 else 7, "opacity": 0.65},
        "hovertemplate": "step %{customdata}<br>recorded %{y:,.0f}<br>estimated %{x:,.0f}<extra></extra>",
    }


def _labels(high: float, ends: tuple[float, float]) -> list[dict[str, Any]]:
    """The ratio at the end of each line: at the right edge, or at the top where it leaves the figure there."""
    labels = []
    for ratio in RATIOS:
        x, y = (high, ratio * high) if ratio * high <= ends[1] else (ends[1] / ratio, ends[1])
        if ends[0] <= y and x > 0:
            right = y < ends[1]
            labels.append(
                {
                    "text": f"{ratio}×",
                    "x": float(np.log10(x)),
                    "y": float(np.log10(y)),
                    "xanchor": "left" if right else "center",
                    "yanchor": "middle" if right else "bottom",
                    "showarrow": False,
                    "font": {"size": 11, "color": theme.MUTED},
                }
            )
    return labels
