"""Treemaps: areas in proportion to values, as near to squares as they get.

Source of the layout: Bruls, Huizing, van Wijk, "Squarified Treemaps", 2000.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Rect(NamedTuple):
    """A rectangle in any unit."""

    x: float
    y: float
    width: float
    height: float


def squarified(values: Sequence[float], box: Rect) -> list[Rect]:
    """A rectangle for each value, which must be more than 0 and in descending order; together they fill the box."""
    total = sum(values)
    if not values or total <= 0 or box.width <= 0 or box.height <= 0:
        return [Rect(box.x, box.y, 0.0, 0.0) for _ in values]
    scale = box.width * box.height / total
    areas, rects = [value * scale for value in values], []
    start = 0
    while start < len(areas):
        side = min(box.width, box.height)
        stop = start + 1
        while stop < len(areas) and _worst(areas[start : stop + 1], side) <= _worst(areas[start:stop], side):
            stop += 1
        row, box = _row(areas[start:stop], box)
        rects += row
        start = stop
    return rects


def _worst(areas: Sequence[float], side: float) -> float:
    """The ratio of the longer to the shorter side of the least square rectangle of a row along `side`."""
    total = sum(areas)
    if side <= 0 or total <= 0:
        return float("inf")
    thickness = total / side
    return max(max(thickness * thickness / area, area / (thickness * thickness)) for area in areas)


def _row(areas: Sequence[float], box: Rect) -> tuple[list[Rect], Rect]:
    """A row of rectangles along the shorter side of a box, and what it leaves of the box."""
    total, rects = sum(areas), []
    if box.width >= box.height:
        thickness, place = total / box.height if box.height > 0 else 0.0, box.y
        for area in areas:
            length = box.height * area / total
            rects.append(Rect(box.x, place, thickness, length))
            place += length
        return rects, Rect(box.x + thickness, box.y, max(0.0, box.width - thickness), box.height)
    thickness, place = total / box.width, box.x
    for area in areas:
        length = box.width * area / total
        rects.append(Rect(place, box.y, length, thickness))
        place += length
    return rects, Rect(box.x, box.y + thickness, box.width, max(0.0, box.height - thickness))
