"""The main chart: prompt tokens against threshold and window, the correction factor, and the watermark, over steps."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go

from inspector.figures import theme
from inspector.figures.decimate import MAX_MARKS, MAX_POINTS, crossings, kept_steps, thinned
from inspector.figures.timeline import Floats, Ints, Timeline, Track
from inspector.presenters.numbers import step_number

MAIN, FACTOR, TRACK, GAP = 300, 90, 24, 26  # heights in pixels
TOP, BOTTOM, LEFT, RIGHT = 34, 40, 62, 128
TRACK_POINTS = 150  # and as many compactions, in 24 pixels of height
LABEL_GAP = 15  # pixels between two labels at the right edge
FEW_MARKS = 60  # more marks than this are drawn small
MAX_BANDS = 60  # bands are nodes of the page
WINDOW_SHARE = 0.25  # a window that the session fills less than this is named at the edge, not drawn to scale


def context_timeline(data: Timeline, start: int = 0, stop: int | None = None, limit: int = MAX_POINTS) -> go.Figure:
    """The figure for the steps from `start` to `stop` (exclusive), with at most `limit` points a series.

    Its x axis counts steps from 1, as people do; everything else here counts from 0.
    """
    stop = len(data) if stop is None else min(stop, len(data))
    start = max(0, min(start, stop))
    steps = drawn_steps(data, start, stop, limit)
    top = y_top(data, start, stop)
    rows = _rows(len(data.tracks))
    traces = [*_main_traces(data, steps), *_mark_traces(data, start, stop), *_factor_traces(data, steps)]
    for number, track in enumerate(data.tracks):
        traces += _track_traces(track, steps, f"y{number + 3}")
    height = TOP + BOTTOM + rows[-1]
    layout = theme.layout(
        height,
        template=go.layout.Template(),
        margin={"l": LEFT, "r": RIGHT, "t": TOP, "b": BOTTOM},
        legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "font": {"size": 11, "color": theme.MUTED}},
        shapes=_bands(data, start, stop) + _factor_lines(data),
        annotations=_edge_labels(data, steps, top) + _row_titles(data),
        **_axes(data, start, stop, top),
    )
    return go.Figure(data=traces, layout=layout)


def drawn_steps(data: Timeline, start: int, stop: int, limit: int = MAX_POINTS) -> Ints:
    """The steps that the chart and its table show."""
    series = [data.recorded, data.calibrated]
    must = [data.compactions, data.overflows, data.near_misses]
    wish = [crossings(data.recorded, data.threshold), crossings(data.calibrated, data.threshold)]
    if data.replayed is not None:
        series.append(data.replayed.prompt_tokens)
        must += [data.replayed.compactions, data.replayed.overflows, _divergence(data)]
    return kept_steps(series, np.unique(np.concatenate(must)), np.unique(np.concatenate(wish)), start, stop, limit)


def y_top(data: Timeline, start: int, stop: int) -> float:
    """The upper end of the token axis: all series, and window and threshold unless they are far away."""
    part = slice(start, stop)
    columns = [data.recorded[part], data.heuristic[part], data.calibrated[part]]
    if data.replayed is not None:
        columns.append(data.replayed.prompt_tokens[part])
    highest = max((float(np.nanmax(column)) for column in columns if not np.isnan(column).all()), default=1.0)
    lines = [float(data.window), *(float(x) for x in data.threshold[start:stop][:1])]
    near = [value for value in lines if not np.isnan(value) and highest >= WINDOW_SHARE * value]
    return 1.06 * max([highest, *near, 1.0])


def _main_traces(data: Timeline, steps: Ints) -> list[dict[str, Any]]:
    ends = steps[[0, -1]] if len(steps) else steps
    window = np.full(len(ends), float(data.window))
    traces = [_series("context window", ends, window, theme.line(theme.WINDOW, "dot", 1.5), hoverinfo="skip")]
    long_dash = theme.line(theme.THRESHOLD, "longdash", 1.5, "hv")
    traces.append(_series("threshold", steps, data.threshold[steps], long_dash))
    if data.replayed is not None and data.replayed.divergence is not None:
        traces.append(_replayed(data, steps))
    traces.append(_series("heuristic estimate", steps, data.heuristic[steps], theme.line(theme.HEURISTIC, "dash", 1.5)))
    traces.append(
        _series("calibrated estimate", steps, data.calibrated[steps], theme.line(theme.CALIBRATED, "dashdot", 1.5))
    )
    traces.append(_series("recorded prompt tokens", steps, data.recorded[steps], theme.line(theme.RECORDED)))
    return traces


def _series(name: str, steps: Ints, values: Floats, line: dict[str, Any], **more: Any) -> dict[str, Any]:
    alone = len(steps) - np.isnan(values).sum() <= 1  # a line needs two points
    return {
        "type": "scatter",
        "mode": "lines+markers" if alone else "lines",
        "name": name,
        "x": step_number(steps),
        "y": values.astype(np.float32),  # exact below 16.7 million, at half the bytes
        "line": line,
        **({} if "hoverinfo" in more else {"hovertemplate": "%{y:,.0f}"}),
        **more,
    }


def _replayed(data: Timeline, steps: Ints) -> dict[str, Any]:
    """What the replay sent from the divergence on: hatched, because nobody ever sent it."""
    assert data.replayed is not None
    first = data.replayed.divergence or 0
    values = np.where(steps >= max(0, first - 1), data.replayed.prompt_tokens[steps], np.nan)
    pattern = {"shape": "/", "fgcolor": theme.MODELLED, "bgcolor": theme.CLEAR, "size": 6, "solidity": 0.35}
    line = theme.line(theme.REPLAYED, "2px,2px", 1.5)
    name = f"{theme.label(data.replayed.name)} (modelled)"
    return _series(name, steps, values, line, fill="tozeroy", fillcolor=theme.CLEAR, fillpattern=pattern)


def _mark_traces(data: Timeline, start: int, stop: int) -> list[dict[str, Any]]:
    traces = [
        _marks("compaction", data.compactions, data.recorded, "triangle-down", theme.COMPACTION, start, stop),
        _marks("overflow", data.overflows, data.recorded, "x", theme.OVERFLOW, start, stop),
        _marks("near miss", data.near_misses, data.recorded, "circle-open", theme.OVERFLOW, start, stop),
    ]
    if data.replayed is not None:
        values = data.replayed.prompt_tokens
        name = "compaction, replayed"
        shape = "triangle-down-open"
        traces.append(_marks(name, data.replayed.compactions, values, shape, theme.COMPACTION, start, stop))
        name = "overflow, replayed"
        traces.append(_marks(name, data.replayed.overflows, values, "x-open", theme.OVERFLOW, start, stop))
    return [trace for trace in traces if len(trace["x"])]


def _marks(name: str, at: Ints, values: Floats, symbol: str, color: str, start: int, stop: int) -> dict[str, Any]:
    steps = thinned(at[(at >= start) & (at < stop)], MAX_MARKS)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": step_number(steps),
        "y": np.nan_to_num(values[steps]),
        "marker": {
            "symbol": symbol,
            "size": 10 if len(steps) <= FEW_MARKS else 6,
            "color": color,
            "line": {"color": color, "width": 1.5},
        },
        "hovertemplate": "%{y:,.0f}",
        "cliponaxis": False,
    }


def _factor_traces(data: Timeline, steps: Ints) -> list[dict[str, Any]]:
    more = {"yaxis": "y2", "hovertemplate": "%{y:.2f}", "showlegend": False}
    raw = theme.line(theme.HEURISTIC, "dash", 1)
    clamped = theme.line(theme.CALIBRATED, "solid", 1.5, "hv")
    return [
        _series("correction factor, raw", steps, data.factor_raw[steps], raw, **more),
        _series("correction factor, applied", steps, data.factor[steps], clamped, **more),
    ]


def _track_traces(track: Track, drawn: Ints, axis: str) -> list[dict[str, Any]]:
    """A track changes at compactions and is straight in between, so that it needs few points."""
    turns = drawn[np.flatnonzero(np.diff(track.stripped[drawn], prepend=0)) if len(drawn) else drawn]
    steps = np.union1d(thinned(drawn, TRACK_POINTS), thinned(turns, TRACK_POINTS))
    more = {"yaxis": axis, "fill": "tozeroy", "showlegend": False, "hovertemplate": "%{y:,.0f}"}
    edge = theme.line(theme.LIVE, width=0, shape="hv")
    live = _series(f"events in the log, {track.name}", steps, track.at[steps], edge)
    gone = _series(
        f"events behind the watermark, {track.name}",
        steps,
        track.stripped[steps],
        theme.line(theme.COMPACTION, width=1.5, shape="hv"),
    )
    return [{**live, **more, "fillcolor": theme.LIVE}, {**gone, **more, "fillcolor": theme.STRIPPED}]


def _rows(tracks: int) -> list[int]:
    """The lower edge of each row in pixels from the top of the plot."""
    edges = [MAIN, MAIN + GAP + FACTOR]
    for _ in range(tracks):
        edges.append(edges[-1] + GAP - 8 + TRACK)
    return edges


def _domain(row: int, tracks: int) -> list[float]:
    edges = _rows(tracks)
    height = [MAIN, FACTOR, *[TRACK] * tracks][row]
    return [round(1 - edges[row] / edges[-1], 5), round(1 - (edges[row] - height) / edges[-1], 5)]


def _axes(data: Timeline, start: int, stop: int, top: float) -> dict[str, Any]:
    tracks = len(data.tracks)
    axes = {
        "xaxis": theme.axis(
            range=[step_number(start) - 0.5, max(stop, step_number(start)) + 0.5],
            title={"text": "step (model call)", "font": {"size": 11, "color": theme.MUTED}, "standoff": 6},
            anchor=f"y{tracks + 2}",
            hoverformat=",d",
            showspikes=True,
            spikemode="across",
            spikethickness=1,
            spikedash="solid",
            spikecolor=theme.MUTED,
            tickformat=",d",
            nticks=12,
        ),
        "yaxis": theme.axis(range=[0, top], domain=_domain(0, tracks), tickformat="~s", nticks=7, fixedrange=True),
        "yaxis2": theme.axis(
            range=[0, factor_top(data)], domain=_domain(1, tracks), nticks=4, fixedrange=True, ticksuffix="×"
        ),
    }
    for number in range(tracks):
        axes[f"yaxis{number + 3}"] = theme.axis(
            domain=_domain(2 + number, tracks),
            showticklabels=False,
            showgrid=False,
            fixedrange=True,
            rangemode="tozero",
        )
    return axes


def factor_top(data: Timeline) -> float:
    """The upper end of the factor axis: the applied factors and the cap if they come near it; raw ones may leave it."""
    applied = data.factor[~np.isnan(data.factor)]
    highest = float(applied.max()) if len(applied) else 1.0
    if data.factor_cap is not None and highest > 0.5 * data.factor_cap:
        highest = max(highest, data.factor_cap)
    return max(1.5, 1.15 * highest)


def _factor_lines(data: Timeline) -> list[dict[str, Any]]:
    levels = [1.0] if data.factor_cap is None else [1.0, data.factor_cap]
    return [
        {
            "type": "line",
            "xref": "paper",
            "yref": "y2",
            "x0": 0,
            "x1": 1,
            "y0": level,
            "y1": level,
            "line": {"color": theme.WINDOW, "width": 1, "dash": "dot"},
        }
        for level in levels
        if level <= factor_top(data)
    ]


def _bands(data: Timeline, start: int, stop: int) -> list[dict[str, Any]]:
    """A quiet band behind every second stretch between recorded compactions."""
    inside = data.compactions[(data.compactions > start) & (data.compactions < stop)]
    if len(inside) > MAX_BANDS:
        return []
    before = int(np.count_nonzero(data.compactions <= start))
    edges = [step_number(step) - 0.5 for step in (start, *map(int, inside), stop)]
    return [
        {
            "type": "rect",
            "xref": "x",
            "yref": "paper",
            "x0": low,
            "x1": high,
            "y0": _domain(0, len(data.tracks))[0],
            "y1": 1,
            "fillcolor": theme.BAND,
            "line": {"width": 0},
            "layer": "below",
        }
        for number, (low, high) in enumerate(pairwise(edges))
        if (before + number) % 2 == 1
    ]


def _edge_labels(data: Timeline, steps: Ints, top: float) -> list[dict[str, Any]]:
    """The name and last value of each line at the right edge, moved apart so that none covers another."""
    ends = [
        ("window", theme.WINDOW, float(data.window)),
        ("threshold", theme.THRESHOLD, _last(data.threshold, steps)),
        ("recorded", theme.RECORDED, _last(data.recorded, steps)),
        ("heuristic", theme.HEURISTIC, _last(data.heuristic, steps)),
        ("calibrated", theme.CALIBRATED, _last(data.calibrated, steps)),
    ]
    if data.replayed is not None and data.replayed.divergence is not None:
        ends.append(("modelled", theme.REPLAYED, _last(data.replayed.prompt_tokens, steps)))
    known = sorted((end for end in ends if not np.isnan(end[2])), key=lambda end: -end[2])
    wanted = [MAIN * min(1.0, value / top) for _, _, value in known]
    places = spread(wanted, LABEL_GAP, MAIN)
    return [
        _label(f"{name} {theme.amount(value)}{' ↑' if value > top else ''}", color, place)
        for (name, color, value), place in zip(known, places, strict=True)
    ]


def spread(wanted: list[float], gap: float, height: float) -> list[float]:
    """Places for labels, highest first, each near where it wants to be and at least `gap` below the one before."""
    places: list[float] = []
    for place in wanted:
        places.append(min(place, places[-1] - gap) if places else min(place, height))
    floor = 0.0
    for index in range(len(places) - 1, -1, -1):
        places[index] = max(places[index], floor)
        floor = places[index] + gap
    return places


def _label(text: str, color: str, pixels: float) -> dict[str, Any]:
    return {
        "xref": "paper",
        "yref": "y domain",
        "x": 1,
        "y": round(pixels / MAIN, 4),
        "xanchor": "left",
        "yanchor": "middle",
        "xshift": 6,
        "text": text,
        "showarrow": False,
        "align": "left",
        "font": {"size": 11, "color": color},
        "name": "edge",
    }


def _row_titles(data: Timeline) -> list[dict[str, Any]]:
    rows = [("correction factor: applied ― raw ╌", 1)]
    rows += [(f"watermark, {track.name}: stripped | live events", 2 + n) for n, track in enumerate(data.tracks)]
    titles = []
    for text, row in rows:
        domain = _domain(row, len(data.tracks))
        titles.append(
            {
                "xref": "paper",
                "yref": "paper",
                "x": 0,
                "y": domain[1],
                "xanchor": "left",
                "yanchor": "bottom",
                "text": text,
                "showarrow": False,
                "font": {"size": 11, "color": theme.MUTED},
                "name": "row",
            }
        )
    return titles


def _last(values: Floats, steps: Ints) -> float:
    shown = values[steps]
    shown = shown[~np.isnan(shown)]
    return float(shown[-1]) if len(shown) else float("nan")


def _divergence(data: Timeline) -> Ints:
    first = None if data.replayed is None else data.replayed.divergence
    return np.array([] if first is None else [first], dtype=np.int64)
