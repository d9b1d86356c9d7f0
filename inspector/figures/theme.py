"""The only styling of figures: colours by meaning, line styles, fonts, axes.

Figures are built with the light colours. `layout.meta.palette` says which custom property of `static/css/tokens.css`
each colour means; the browser puts in what that property is in the theme of the page, so a theme change needs no
new figure. Each colour therefore occurs once here.
"""

from __future__ import annotations

from typing import Any

RECORDED = "#0072b2"
HEURISTIC = "#b34700"
CALIBRATED = "#7a3e9d"
THRESHOLD = "#1a1a1a"
WINDOW = "#5c6670"
COMPACTION = "#00795a"
OVERFLOW = "#b3261e"
REPLAYED = "#a3226e"
TEXT = "#17202a"
MUTED = "#54606c"
SURFACE = "#ffffff"
GRID = "#e8ebef"
BAND = "#eef6f3"
STRIPPED = "#b9c2cb"
LIVE = "#cfe4f2"
MODELLED = "#f5dfeb"
LINE = "#dde2e8"

PALETTE: dict[str, str] = {
    RECORDED: "--c-recorded",
    HEURISTIC: "--c-heuristic",
    CALIBRATED: "--c-calibrated",
    THRESHOLD: "--c-threshold",
    WINDOW: "--c-window",
    COMPACTION: "--c-compaction",
    OVERFLOW: "--c-overflow",
    REPLAYED: "--c-replayed",
    TEXT: "--text",
    MUTED: "--muted",
    SURFACE: "--surface",
    GRID: "--g-grid",
    BAND: "--g-band",
    STRIPPED: "--g-stripped",
    LIVE: "--g-live",
    MODELLED: "--g-modelled",
    LINE: "--line",
}

FONT = "system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, DejaVu Sans, sans-serif"
CLEAR = "rgba(0,0,0,0)"
STEP_TICKS = 12  # on an axis of steps, at most


def line(color: str, dash: str = "solid", width: float = 2, shape: str = "linear") -> dict[str, Any]:
    """A line style; `shape` is "hv" for a value that holds until the next step."""
    return {"color": color, "dash": dash, "width": width, "shape": shape}


def axis(**more: Any) -> dict[str, Any]:
    """A quiet axis: hairline grid, muted ticks, no zero line."""
    return {
        "gridcolor": GRID,
        "gridwidth": 1,
        "zeroline": False,
        "linecolor": LINE,
        "tickfont": {"color": MUTED, "size": 11},
        "automargin": False,
        **more,
    }


def steps_axis(first: float, last: float, **more: Any) -> dict[str, Any]:
    """An axis that counts steps from one to another: where they are few each has its tick, for there is nothing between
    two steps that a tick could mean."""
    ticks = {"tick0": 1, "dtick": 1} if last - first < STEP_TICKS else {"nticks": STEP_TICKS}
    title = {"text": "step (model call)", "font": {"size": 11, "color": MUTED}, "standoff": 6}
    return axis(range=[first - 0.5, last + 0.5], title=title, tickformat=",d", **ticks, **more)


def layout(height: int, **more: Any) -> dict[str, Any]:
    """What all figures share. A legend is no part of the drawing (`legend.py`)."""
    return {
        "height": height,
        "showlegend": False,
        "font": {"family": FONT, "size": 12, "color": TEXT},
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "hovermode": "x unified",
        "hoverlabel": {"bgcolor": SURFACE, "bordercolor": LINE, "font": {"color": TEXT, "size": 12}, "namelength": -1},
        "dragmode": "zoom",
        "uirevision": "kept",
        "meta": {"palette": PALETTE},
        **more,
    }


def label(text: str) -> str:
    """Text for a label of a figure: plotly obeys tags and %{...}, so text that we did not write loses both."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("%{", "%\u200b{")


def amount(tokens: float) -> str:
    """Tokens for a label with little room: 950, 8.7k, 180k, 1.05M."""
    if abs(tokens) < 1000:
        return f"{tokens:.0f}"
    if abs(tokens) < 99_950:
        return f"{tokens / 1000:.1f}k".replace(".0k", "k")
    if abs(tokens) < 999_500:
        return f"{tokens / 1000:.0f}k"
    return f"{tokens / 1_000_000:.2f}M".replace(".00M", "M")
