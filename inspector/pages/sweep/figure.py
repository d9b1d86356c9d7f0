"""The heat map of a sweep: a cell per setting with its figure, and the edge of the settings without overflow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.colors import sample_colorscale, unlabel_rgb

from inspector.figures import theme

COLORS = "Cividis"  # legible with every kind of colour vision, and in grey
ROW, LEAST, MOST = 34, 220, 900  # pixels of a row, and of a whole figure
MOST_PRINTED = 24  # columns whose values fit into their cells
EVEN = 0.179  # luminance on which black and white text have the same contrast, by the formula of WCAG 2.2


@dataclass(frozen=True)
class Heat:
    """A grid as a figure shows it: rows by columns, None where a value is not known. `over` says which cells overflow,
    `links` where a cell leads, `recommended` is (row, column)."""

    columns: tuple[str, ...]
    rows: tuple[str, ...]
    values: tuple[tuple[int | None, ...], ...]
    texts: tuple[tuple[str, ...], ...]
    over: tuple[tuple[bool, ...], ...]
    links: tuple[tuple[str, ...], ...]
    recommended: tuple[int, int]
    column_title: str
    row_title: str
    measure: str

    @property
    def shares(self) -> tuple[tuple[float | None, ...], ...]:
        """Each value's place between the least (0) and the largest (1)."""
        known = [value for row in self.values for value in row if value is not None]
        low, span = min(known, default=0), max(known, default=0) - min(known, default=0)
        return tuple(
            tuple(None if value is None else (value - low) / span if span else 0.0 for value in row)
            for row in self.values
        )


def colour(share: float) -> tuple[str, bool]:
    """The colour of a place on the scale, and whether text on it is black: by the larger contrast."""
    shade = sample_colorscale(COLORS, [share])[0]
    channels = [value / 255 for value in unlabel_rgb(shade)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return shade, 0.2126 * red + 0.7152 * green + 0.0722 * blue >= EVEN


def edges(over: Sequence[Sequence[bool]]) -> list[tuple[float, float, float, float]]:
    """The lines between cells of which one overflows and the other does not, as x0, y0, x1, y1 in cells."""
    lines = []
    for y, row in enumerate(over):
        for x, is_over in enumerate(row):
            if x and row[x - 1] != is_over:
                lines.append((x - 0.5, y - 0.5, x - 0.5, y + 0.5))
            if y and over[y - 1][x] != is_over:
                lines.append((x - 0.5, y - 0.5, x + 0.5, y - 0.5))
    return lines


def heat_map(heat: Heat) -> go.Figure:
    """The figure of a grid. `customdata` of a cell is the address of its replay."""
    row, column = heat.recommended
    shapes = [
        {"type": "line", "x0": x0, "y0": y0, "x1": x1, "y1": y1, "line": {"color": theme.OVERFLOW, "width": 3}}
        for x0, y0, x1, y1 in edges(heat.over)
    ]
    frame = {"type": "rect", "x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    shapes.append({**frame, "line": {"color": theme.COMPACTION, "width": 3, "dash": "dot"}})
    return go.Figure(
        data=[
            {
                "type": "heatmap",
                "z": [list(values) for values in heat.values],
                "text": [list(texts) for texts in heat.texts],
                "customdata": [list(links) for links in heat.links],
                "hovertemplate": f"{theme.label(heat.measure)}: %{{text}}<extra></extra>",
                "colorscale": COLORS,
                "showscale": False,
                "xgap": 1,
                "ygap": 1,
            },
            *([_printed(heat)] if len(heat.columns) <= MOST_PRINTED else []),
        ],
        layout=theme.layout(
            max(LEAST, min(MOST, 110 + ROW * len(heat.rows))),
            template=go.layout.Template(),
            hovermode="closest",
            dragmode=False,
            showlegend=False,
            margin={"l": 96, "r": 16, "t": 12, "b": 64},
            xaxis=_axis(heat.column_title, heat.columns),
            yaxis={**_axis(heat.row_title, heat.rows), "autorange": "reversed"},
            shapes=shapes,
        ),
    )


def _printed(heat: Heat) -> dict[str, object]:
    """The values in their cells, black or white by the larger contrast: plotly's own choice is grey on some."""
    cells = [
        (x, y, heat.texts[y][x], "#000" if colour(share)[1] else "#fff")
        for y, row in enumerate(heat.shares)
        for x, share in enumerate(row)
        if share is not None
    ]
    columns, rows, texts, colors = (list(values) for values in zip(*cells, strict=True)) if cells else ([], [], [], [])
    return {
        "type": "scatter",
        "mode": "text",
        "x": columns,
        "y": rows,
        "text": texts,
        "textfont": {"color": colors},
        "hoverinfo": "skip",
    }


def _axis(title: str, names: Sequence[str]) -> dict[str, object]:
    words = {"text": theme.label(title), "font": {"size": 12, "color": theme.MUTED}}
    every = max(1, len(names) // MOST_PRINTED)
    places = list(range(0, len(names), every))
    return theme.axis(
        title=words,
        tickvals=places,
        ticktext=[theme.label(names[at]) for at in places],
        showgrid=False,
        fixedrange=True,
    )
