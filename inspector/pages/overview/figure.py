"""The main chart: prompt tokens against threshold and window, the correction factor, and the watermark, over steps."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guard_core.decimation import DENSE, MAX_MARKS, MAX_POINTS, crossings, edge_steps, kept_steps, thinned
from guard_core.estimation.forecast import Forecast
from inspector.figures import theme
from inspector.figures.timeline import NO_STEPS, Floats, Ints, Replayed, Timeline, Track
from inspector.pages.overview.uncertainty import share_off
from inspector.pages.shared.numbers import step_number

# Heights in pixels; that of the main row is its least: a page gives it more where the window is higher
# (static/js/fitting.js).
MAIN, FACTOR, TRACK, GAP = 160, 44, 18, 16
TOP, BOTTOM, LEFT, RIGHT = 12, 38, 48, 188
TRACK_POINTS = 150  # and as many compactions, in 18 pixels of height
FEW_MARKS = 60  # more marks than this are drawn small
MAX_BANDS = 60  # bands are nodes of the page
RECORDED_MARK = ("triangle-down", "line-ns")  # of a compaction: where they are few, and where they are many
REPLAYED_MARK = ("triangle-down-open", "line-ew")
NUMBERED = 30  # as many marks have their numbers beside them
LOW = 0.11  # of the axis: the number of a lower mark is above it
ROOM = 0.022  # of the axis of steps: a number of two digits; closer to another one it would be read as one with it
CARPET = 150  # compactions of one side: with more a cycle has less than four pixels of a chart 640 wide
EDGE_POINTS = 120  # of each edge of a dense line
CYCLES = 2  # compactions in each stretch of a dense line, so that it has both a peak and a foot
STRETCHES = 10  # of a dense view, each with the count of its compactions
HEADROOM = 1.3  # of the axis, for these counts
COUNT_PLACES = (0.97, 0.86)  # of the axis: the counts of the recording, and of the replay
AT_STEP = " at step %{x:,d}"
WINDOW_SHARE = 0.25  # a window that the session fills less than this is named at the edge, not drawn to scale


def context_timeline(
    data: Timeline,
    start: int = 0,
    stop: int | None = None,
    limit: int = MAX_POINTS,
    forecast: Forecast | None = None,
) -> dict[str, Any]:
    """The figure for the steps from `start` to `stop` (exclusive), with at most `limit` points a series: traces as
    `data`, and `layout`, in the words of plotly.js.

    Its x axis counts steps from 1, as people do; everything else here counts from 0. `forecast` gives the band around
    what is modelled.
    """
    stop = len(data) if stop is None else min(stop, len(data))
    start = max(0, min(start, stop))
    steps = drawn_steps(data, start, stop, limit)
    dense = is_dense(data, steps)
    top = y_top(data, start, stop) * (HEADROOM if dense else 1)
    traces = [
        *_band_traces(data, steps, forecast or {}),
        *_main_traces(data, steps, top),
        *_mark_traces(data, start, stop, top, dense),
        *_factor_traces(data, steps),
    ]
    for number, track in enumerate(data.tracks):
        traces += _track_traces(track, steps, f"y{number + 3}")
    layout = theme.layout(
        TOP + BOTTOM + _edges(data)[-1],
        margin={"l": LEFT, "r": RIGHT, "t": TOP, "b": BOTTOM},
        shapes=_bands(data, start, stop) + _factor_lines(data),
        annotations=_edge_labels(data, steps, top) + _row_titles(data),
        **_axes(data, start, stop, top),
    )
    return {"data": [_named(trace) for trace in traces], "layout": layout}


def _named(trace: dict[str, Any]) -> dict[str, Any]:
    """A trace whose name is part of what hovering says: plotly would write "name : value"."""
    if "hovertemplate" not in trace:
        return trace
    return {**trace, "hovertemplate": f"{trace['name']}: {trace['hovertemplate']}<extra></extra>"}


def rows_of(data: Timeline) -> str:
    """The rows in a word, by which static/css/overview.css knows the height before the figure is drawn."""
    return f"{2 + len(data.tracks)}" if _has_factor(data) else f"{1 + len(data.tracks)}-short"


def drawn_steps(data: Timeline, start: int, stop: int, limit: int = MAX_POINTS) -> Ints:
    """The steps that the chart and its table show."""
    series = [data.requests, data.calibrated]
    must = [data.compactions, data.overflows, data.near_misses]
    wish = [crossings(data.requests, data.threshold), crossings(data.calibrated, data.threshold)]
    if data.replayed is not None:
        first = data.replayed.divergence
        divergence = np.array([] if first is None else [first], dtype=np.int64)
        series.append(data.replayed.prompt_tokens)
        must += [data.replayed.compactions, data.replayed.overflows, divergence]
    return kept_steps(series, np.unique(np.concatenate(must)), np.unique(np.concatenate(wish)), start, stop, limit)


def y_top(data: Timeline, start: int, stop: int) -> float:
    """The upper end of the token axis: all series, and window and threshold unless they are far away."""
    part = slice(start, stop)
    columns = [data.requests[part], data.heuristic[part], data.calibrated[part]]
    if data.replayed is not None:
        columns.append(data.replayed.prompt_tokens[part])
    highest = max((float(np.nanmax(column)) for column in columns if not np.isnan(column).all()), default=1.0)
    lines = [float(data.window), *map(float, np.unique(data.threshold[part]))]
    if data.own is not None:
        lines += [*(float(level) for _, level in data.own.inferred), *map(float, np.unique(data.own.threshold[part]))]
        columns.append(data.own.counts[part])
    near = [value for value in lines if not np.isnan(value) and highest >= WINDOW_SHARE * value]
    return 1.06 * max([highest, *near, 1.0])


def _main_traces(data: Timeline, steps: Ints, top: float) -> list[dict[str, Any]]:
    """The lines of the main row, those that matter most last, so that they are drawn over the others. What has no
    value, or lies outside the axis, is neither a line nor an entry of the legend."""
    dense = is_dense(data, steps)
    ends = steps[[0, -1]] if len(steps) else steps
    window = np.full(len(ends), float(data.window))
    name = "context window of the replay" if data.is_replayed_in_another_window else "context window"
    traces = [_series(name, ends, window, theme.line(theme.WINDOW, "dot", 1), hoverinfo="skip")]
    traces += _threshold_traces(data, steps)
    for name, values, color, dash in (
        ("heuristic estimate", data.heuristic[steps], theme.HEURISTIC, "dash"),
        ("calibrated estimate", data.calibrated[steps], theme.CALIBRATED, "dashdot"),
    ):
        if shows_estimates(data, steps):
            traces.append(_series(name, steps, values, theme.line(color, dash, 1), **_reading(values, data.window)))
    if data.replayed is not None and data.replayed.divergence is not None:
        traces.append(_replayed(data, data.replayed, steps))
    if is_carpet(data.compactions, steps):  # instead of its line, lines through its peaks and its lowest counts
        low, high = edge_steps(data.requests, steps[0], steps[-1] + 1, _stretches(data.compactions, steps))
        traces += _recording(data, low, 0.75, ", lowest")
        traces += _recording(data, high, 2, ", peaks")
    else:
        traces += _recording(data, steps, 1.25 if dense else 2.5)
    return [trace for trace in traces if (trace["y"] <= top).any()]


def _recording(data: Timeline, steps: Ints, width: float, which: str = "") -> list[dict[str, Any]]:
    """The lines of the recording: what was counted, over what is estimated, dashed, where nothing was. `which`: what
    their names end with."""
    windows, side = data.windows[steps], data.side("recorded")
    is_one = len(steps) == 0 or bool((windows == windows[0]).all())
    traces = []
    for name, part, dash in (
        ("estimated prompt tokens", side.estimated(steps)[steps], "6px,3px"),
        ("recorded prompt tokens", side.counted[steps], "solid"),
    ):
        reading = _reading(part, int(windows[0]) if len(steps) else 0, AT_STEP) if is_one else _shares(part, windows)
        traces.append(_series(name + which, steps, part, theme.line(theme.RECORDED, dash, width), **reading))
    return traces


def _stretches(compactions: Ints, steps: Ints) -> int:
    """How many stretches a dense line is cut into."""
    return max(1, min(EDGE_POINTS, _count_inside(compactions, steps) // CYCLES))


def _threshold_traces(data: Timeline, steps: Ints) -> list[dict[str, Any]]:
    """The threshold, with the margin that was left below it; beside a policy's that of the agent's own rule; where that
    is not known, the bounds that the recording proves."""
    long_dash, own = theme.line(theme.THRESHOLD, "longdash", 1, "hv"), data.own
    if own is None or (data.shows_policy and not own.agent):
        values = data.threshold[steps]
        return [_series(data.threshold_name, steps, values, long_dash, **_reading(values, data.window))]
    traces = []
    if data.shows_policy:
        values = data.threshold[steps]
        traces.append(_series(data.threshold_name, steps, values, long_dash, **_reading(values, data.window)))
        long_dash = theme.line(theme.THRESHOLD, "dashdot", 1, "hv")
    if own.agent:
        values = own.threshold[steps]
        margin = (values - own.counts[steps]).astype(np.float32)
        reading = {"customdata": margin, "hovertemplate": "%{y:,.0f} tokens, margin %{customdata:,.0f}"}
        traces.append(_series(own.threshold_name, steps, values, long_dash, **reading))
    if own.agent and not data.shows_policy and not is_dense(data, steps):
        compared, name = theme.line(theme.CALIBRATED, "dashdot", 1), f"count that {own.agent} compares"
        traces.append(_series(name, steps, own.counts[steps], compared, hovertemplate="%{y:,.0f} tokens"))
    ends = steps[[0, -1]] if len(steps) else steps
    for name, level in own.inferred:
        line = theme.line(theme.THRESHOLD, "longdash", 1)
        traces.append(_series(name, ends, np.full(len(ends), float(level)), line, hoverinfo="skip"))
    return traces


def is_dense(data: Timeline, steps: Ints) -> bool:
    """Do so many compactions follow one another that they are counted instead of marked, with fewer lines beside."""
    sides = [data.compactions] if data.replayed is None else [data.compactions, data.replayed.compactions]
    return any(_count_inside(at, steps) > DENSE for at in sides)


def is_carpet(compactions: Ints, steps: Ints) -> bool:
    """Has one side so many compactions that its line could not be followed."""
    return _count_inside(compactions, steps) > CARPET


def has_carpet(data: Timeline, steps: Ints) -> bool:
    """Is a side drawn by its peaks."""
    others = [] if data.replayed is None else [data.replayed.compactions]
    return any(is_carpet(at, steps) for at in (data.compactions, *others))


def _count_inside(at: Ints, steps: Ints) -> int:
    return int(((at >= steps[0]) & (at <= steps[-1])).sum()) if len(steps) else 0


def shows_estimates(data: Timeline, steps: Ints) -> bool:
    """Estimates are a policy's: shown with its arithmetic, but not in a dense view."""
    return data.shows_policy and not is_dense(data, steps)


def _reading(values: Floats, window: int, place: str = "") -> dict[str, Any]:
    """What hovering says of a line: tokens and, as `customdata`, their share of a window in per cent; without one where
    the window is 0."""
    if not window:
        return {"hovertemplate": f"%{{y:.3~s}} tokens{place}"}
    share = _per_cent(100 * values / window)
    return {"customdata": share, "hovertemplate": f"%{{y:.3~s}} tokens (%{{customdata:.4~f}}\u00a0%){place}"}


def _shares(values: Floats, windows: Ints) -> dict[str, Any]:
    """The same where calls have models with different windows: each share is of its own call's, if that is known."""
    shares = _per_cent(100 * values / np.where(windows > 0, windows, np.nan)).tolist()
    words = ["" if math.isnan(share) else f" ({share:.6g}\u00a0%)" for share in shares]
    return {"customdata": words, "hovertemplate": f"%{{y:.3~s}} tokens%{{customdata}}{AT_STEP}"}


def _per_cent(exact: Floats) -> NDArray[np.float32]:
    """Rounded to whole per cent, but for what would then seem to be the whole."""
    return np.where((np.rint(exact) == 100) & (exact != 100), exact, np.rint(exact)).astype(np.float32)


def _series(name: str, steps: Ints, values: Floats | Ints, line: dict[str, Any], **more: Any) -> dict[str, Any]:
    known = np.concatenate([[False], ~np.isnan(values), [False]])
    # A line needs two points: it would not show a value whose neighbours are unknown.
    has_lone_values = (known[1:-1] & ~known[:-2] & ~known[2:]).any()
    return {
        "type": "scatter",
        "mode": "lines+markers" if has_lone_values else "lines",
        "name": name,
        "x": step_number(steps),
        "y": values.astype(np.float32),  # exact below 16.7 million, at half the bytes
        "line": line,
        "marker": {"size": 4},
        **more,
    }


def _band_traces(data: Timeline, steps: Ints, forecast: Forecast) -> list[dict[str, Any]]:
    """The band in which 95 % of this session's forecasts lie, around the modelled counts; none where it is dense."""
    if data.replayed is None or is_dense(data, steps) or (off := share_off(data.replayed, forecast)) is None:
        return []
    inside = steps[~np.isnan(off[steps])]
    values, size = data.replayed.prompt_tokens[inside], off[inside]
    edge: dict[str, Any] = {"line": theme.line(theme.MODELLED, width=0), "hoverinfo": "skip", "showlegend": False}
    low = _series("lower end of the forecasts", inside, values * (1 - size), **edge)
    high = _series("band of 95 % of forecasts", inside, values * (1 + size), **edge)
    return [low, {**high, "fill": "tonexty", "fillcolor": theme.MODELLED, "showlegend": True}]


def _replayed(data: Timeline, replayed: Replayed, steps: Ints) -> dict[str, Any]:
    """What the replay would have sent from the divergence on: thin and dashed, because it was never sent. Where it
    would be a carpet only its upper edge is drawn, and is called so."""
    name = f"{theme.label(replayed.name)} (modelled)"
    if is_carpet(replayed.compactions, steps):
        stretches = _stretches(replayed.compactions, steps)
        steps, name = edge_steps(replayed.prompt_tokens, steps[0], steps[-1] + 1, stretches)[1], f"{name}, peaks"
    values = np.where(steps >= max(0, (replayed.divergence or 0) - 1), replayed.prompt_tokens[steps], np.nan)
    return _series(name, steps, values, theme.line(theme.REPLAYED, "4px,2px", 1.25), **_reading(values, data.window))


def _mark_traces(data: Timeline, start: int, stop: int, top: float, dense: bool) -> list[dict[str, Any]]:
    """Compactions, overflows and near misses; in a dense view compactions are counted instead of marked."""
    traces = [
        _marks("overflow", data.overflows, data.requests, ("x", "line-ns"), theme.OVERFLOW, start, stop),
        _marks("near miss", data.near_misses, data.requests, ("circle-open", "line-ns"), theme.OVERFLOW, start, stop),
    ]
    sides = [("compaction", data.compactions, data.numbers, data.requests, RECORDED_MARK, theme.COMPACTION)]
    if data.replayed is not None:
        values = data.replayed.prompt_tokens
        fired = data.replayed.compactions if data.replayed.divergence is not None else NO_STEPS  # else those recorded
        numbers = np.arange(1, len(fired) + 1)
        sides.append(("compaction, replayed", fired, numbers, values, REPLAYED_MARK, theme.REPLAYED))
        name, shapes = "overflow, replayed", ("x-open", "x-thin")
        traces.append(_marks(name, data.replayed.overflows, values, shapes, theme.OVERFLOW, start, stop))
    taken: list[int] = []  # steps with a number; those of the recording come first
    for (name, at, numbers, values, symbols, color), place in zip(sides, COUNT_PLACES, strict=False):
        if dense:
            traces.append(_counts(name, at, place * top, symbols[0], color, start, stop))
        else:
            marks = _marks(name, at, values, symbols, color, start, stop)
            traces.append({**marks, **_numbered(marks["y"] < LOW * top, at, numbers, color, start, stop, taken)})
    return [trace for trace in traces if len(trace["x"])]


def _counts(name: str, at: Ints, height: float, symbol: str, color: str, start: int, stop: int) -> dict[str, Any]:
    """How many compactions of one side each tenth of a dense view has, in a row at the top of it."""
    edges = np.unique(np.linspace(start, stop, STRETCHES + 1).astype(np.int64))
    counts = np.histogram(at[(at >= start) & (at < stop)], edges)[0]
    some = counts > 0
    middles = step_number(edges[:-1] + np.diff(edges) // 2)
    ranges = [f"{step_number(low):,} to {high:,}" for low, high in pairwise(edges.tolist())]
    plural = name.replace("compaction", "compactions")
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": f"{plural} (count)",
        "cliponaxis": False,
        "x": middles[some],
        "y": np.full(int(some.sum()), height),
        "text": [f"{count:,}" for count in counts[some].tolist()],
        "textposition": "bottom center",
        "textfont": {"size": 10, "color": color},
        "marker": {"symbol": symbol, "size": 7, "color": color, "line": {"color": color, "width": 1}},
        "customdata": [words for words, has in zip(ranges, some.tolist(), strict=True) if has],
        "hovertemplate": "%{text} in steps %{customdata}",
    }


def _numbered(
    low: NDArray[np.bool_], at: Ints, numbers: Ints, color: str, start: int, stop: int, taken: list[int]
) -> dict[str, Any]:
    """The numbers of the compactions, where they are few: beside the marks as far as there is room, else when one is
    pointed at. `low`: which marks are near the axis; `taken`: steps that have a number, to which these are added."""
    inside = numbers[(at >= start) & (at < stop)] if len(numbers) == len(at) else numbers[:0]
    if not 0 < len(inside) <= NUMBERED:
        return {}
    words = [f"{number}" if number else "" for number in inside.tolist()]
    shown = []
    for step, word in zip(at[(at >= start) & (at < stop)].tolist(), words, strict=True):
        has_room = all(abs(step - other) >= ROOM * (stop - start) for other in taken)
        shown.append(word if has_room else "")
        taken += [step] if word and has_room else []
    return {
        "mode": "markers+text",
        "text": shown,
        "hovertext": words,
        "textposition": ["top right" if is_low else "bottom center" for is_low in low.tolist()],
        "textfont": {"size": 10, "color": color},
        "hovertemplate": "no. %{hovertext}, %{y:.3~s} tokens",
    }


def _marks(
    name: str, at: Ints, values: Floats, symbols: tuple[str, str], color: str, start: int, stop: int
) -> dict[str, Any]:
    """Marks of one kind; `symbols`: where they are few, and where they are many."""
    steps = thinned(at[(at >= start) & (at < stop)], MAX_MARKS)
    few = len(steps) <= FEW_MARKS
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": step_number(steps),
        "y": np.nan_to_num(values[steps]),
        "marker": {
            "symbol": symbols[0] if few else symbols[1],
            "size": 10 if few else 6,
            "color": color,
            "line": {"color": color, "width": 1.5},
        },
        "hovertemplate": "%{y:.3~s} tokens",
        "cliponaxis": False,
    }


def _factor_traces(data: Timeline, steps: Ints) -> list[dict[str, Any]]:
    if not _has_factor(data):
        return []
    more = {"yaxis": "y2", "hovertemplate": "%{y:.2f}", "showlegend": False}
    raw = theme.line(theme.HEURISTIC, "dash", 1)
    clamped = theme.line(theme.CALIBRATED, "solid", 1.5, "hv")
    return [
        _series("correction factor, raw", steps, data.factor_raw[steps], raw, **more),
        _series("correction factor, applied", steps, data.factor[steps], clamped, **more),
    ]


def _has_factor(data: Timeline) -> bool:
    """Does the policy calibrate at all; without factors there is no row for them."""
    return not np.isnan(data.factor).all()


def _track_traces(track: Track, drawn: Ints, axis: str) -> list[dict[str, Any]]:
    """A track changes at compactions and is straight in between, so that it needs few points."""
    turns = drawn[np.flatnonzero(np.diff(track.stripped[drawn], prepend=0)) if len(drawn) else drawn]
    steps = np.union1d(thinned(drawn, TRACK_POINTS), thinned(turns, TRACK_POINTS))
    more = {"yaxis": axis, "fill": "tozeroy", "showlegend": False, "hovertemplate": "%{y:,.0f}"}
    edge = theme.line(theme.LIVE, width=0, shape="hv")
    live = _series(f"messages in the log, {track.name}", steps, track.at[steps], edge)
    stripped = _series(
        f"messages no longer sent, {track.name}",
        steps,
        track.stripped[steps],
        theme.line(theme.COMPACTION, width=1.5, shape="hv"),
    )
    return [{**live, **more, "fillcolor": theme.LIVE}, {**stripped, **more, "fillcolor": theme.STRIPPED}]


def _heights(data: Timeline) -> list[int]:
    """The heights of the rows: the lines, the factor, a track for each side."""
    return [MAIN, FACTOR if _has_factor(data) else 0, *[TRACK] * len(data.tracks)]


def _edges(data: Timeline) -> list[int]:
    """The lower edge of each row in pixels from the top of the plot."""
    heights = _heights(data)
    gaps = [0, GAP if heights[1] else 0, *[GAP] * len(data.tracks)]
    return [int(edge) for edge in np.cumsum(np.add(heights, gaps))]


def _domain(row: int, data: Timeline) -> list[float]:
    edges, heights = _edges(data), _heights(data)
    return [round(1 - edges[row] / edges[-1], 5), round(1 - (edges[row] - heights[row]) / edges[-1], 5)]


def _axes(data: Timeline, start: int, stop: int, top: float) -> dict[str, Any]:
    tracks = len(data.tracks)
    # The margins hold every number, and to find that out costs plotly a tenth of a drawing.
    numbers = {"ticklabeloverflow": "allow"}
    axes = {
        "xaxis": theme.steps_axis(
            step_number(start),
            max(stop, step_number(start)),
            anchor=f"y{tracks + 2}",
            unifiedhovertitle={"text": "step %{x:,d}"},
            showspikes=True,
            spikemode="across",
            spikethickness=1,
            spikedash="solid",
            spikecolor=theme.MUTED,
            **numbers,
        ),
        "yaxis": theme.axis(
            range=[0, top], domain=_domain(0, data), tickformat="~s", nticks=7, fixedrange=True, **numbers
        ),
        "yaxis2": theme.axis(
            range=[0, factor_top(data)],
            domain=_domain(1, data),
            nticks=4,
            fixedrange=True,
            ticksuffix="×",
            visible=_has_factor(data),
            **numbers,
        ),
    }
    for number in range(tracks):
        axes[f"yaxis{number + 3}"] = theme.axis(
            domain=_domain(2 + number, data),
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
    if not _has_factor(data):
        return []
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
            "y0": _domain(0, data)[0],
            "y1": 1,
            "fillcolor": theme.BAND,
            "line": {"width": 0},
            "layer": "below",
        }
        for number, (low, high) in enumerate(pairwise(edges))
        if (before + number) % 2 == 1
    ]


def _edge_labels(data: Timeline, steps: Ints, top: float) -> list[dict[str, Any]]:
    """The name and last value of each line at the right edge, highest first. The page moves them apart."""
    ends = [
        ("replay window" if data.is_replayed_in_another_window else "window", theme.WINDOW, float(data.window)),
        (data.threshold_name, theme.THRESHOLD, _last(data.threshold, steps)),
        *_own_ends(data, steps),
        ("recorded", theme.RECORDED, _last(data.recorded, steps)),
        ("estimated", theme.RECORDED, _last(np.where(np.isnan(data.recorded), data.requests, np.nan), steps[-1:])),
    ]
    if shows_estimates(data, steps):
        ends.append(("heuristic", theme.HEURISTIC, _last(data.heuristic, steps)))
        ends.append(("calibrated", theme.CALIBRATED, _last(data.calibrated, steps)))
    replayed = data.replayed
    if replayed is not None and replayed.divergence is not None and not is_carpet(replayed.compactions, steps):
        ends.append(("replay", theme.REPLAYED, _last(replayed.prompt_tokens, steps)))
    known = sorted((end for end in ends if not np.isnan(end[2])), key=lambda end: -end[2])
    return [
        _label(f"{name} {theme.amount(value)}{' ↑' if value > top else ''}", color, min(1.0, value / top))
        for name, color, value in known
    ]


def _own_ends(data: Timeline, steps: Ints) -> list[tuple[str, str, float]]:
    """The labels of the agent's own threshold where a policy's is beside it, and of bounds that are inferred."""
    if data.own is None:
        return []
    ends = [(name, theme.THRESHOLD, float(level)) for name, level in data.own.inferred]
    if data.shows_policy and data.own.agent:
        ends.append((data.own.threshold_name, theme.THRESHOLD, _last(data.own.threshold, steps)))
    return ends


def _label(text: str, color: str, place: float) -> dict[str, Any]:
    """A label at a share of the height of the main row."""
    return {
        "xref": "paper",
        "yref": "y domain",
        "x": 1,
        "y": round(place, 4),
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
    rows = [("correction factor: applied ―, raw ╌", 1)] if _has_factor(data) else []
    rows += [(f"messages, {track.name}: no longer sent | sent", 2 + n) for n, track in enumerate(data.tracks)]
    titles = []
    for text, row in rows:
        domain = _domain(row, data)
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
