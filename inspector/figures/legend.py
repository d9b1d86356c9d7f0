"""The legend of a figure: names that a page has beside the drawing, where static/js/legend.js draws the marks."""

from __future__ import annotations

from html import unescape
from typing import Any


def legend_names(figure: dict[str, Any]) -> list[str]:
    """The names of what a figure shows, in its order, as text: names in a figure are escaped (`theme.label`)."""
    shown = (trace for trace in figure["data"] if trace.get("showlegend", True) and len(trace["x"]))
    return [unescape(trace["name"]) for trace in shown]
