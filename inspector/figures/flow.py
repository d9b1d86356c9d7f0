"""A flow of stages as a drawing: boxes in lanes, joined from left to right. Coordinates that a template draws."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

NODE_WIDTH, NODE_HEIGHT, GAP, LANE_HEIGHT, LEFT = 124, 52, 18, 76, 74
LEGIBLE = 0.8  # of its size: smaller, a drawing is scrolled
TOP = 14  # from the upper edge of a lane to its boxes


def drawing(stages: Sequence[dict[str, Any]], lanes: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The stages (`lane`, `node` for the head of its box, `short` below it) in their lanes, given as name and label,
    and a line from the last box back to the first."""
    places = {name: number for number, (name, _) in enumerate(lanes)}
    nodes = []
    for index, stage in enumerate(stages):
        x, y = LEFT + index * (NODE_WIDTH + GAP), TOP + places[stage["lane"]] * LANE_HEIGHT
        nodes.append({**stage, "x": x, "y": y, "tx": x + NODE_WIDTH // 2, "title_y": y + 21, "short_y": y + 39})
    width = LEFT + len(nodes) * (NODE_WIDTH + GAP)
    height = len(lanes) * LANE_HEIGHT + 26
    first, last = nodes[0], nodes[-1]
    back = f"M{last['tx']} {last['y'] + NODE_HEIGHT}V{height - 10}H{first['tx']}V{first['y'] + NODE_HEIGHT + 7}"
    return {
        "width": width,
        "least": round(LEGIBLE * width),
        "height": height,
        "node_width": NODE_WIDTH,
        "node_height": NODE_HEIGHT,
        "nodes": nodes,
        "joins": [_join(a, b) for a, b in pairwise(nodes)],
        "back": back,
        "lanes": [
            {"name": label, "y": 2 + y, "ty": TOP + y + NODE_HEIGHT // 2 + 4, "kind": kind}
            for y, (kind, label) in zip(range(0, len(lanes) * LANE_HEIGHT, LANE_HEIGHT), lanes, strict=True)
        ],
        "lane_height": LANE_HEIGHT,
    }


def _join(a: dict[str, Any], b: dict[str, Any]) -> str:
    """A line from the right side of one box to the left side of the next, with its corner halfway."""
    x, y, to_x, to_y = a["x"] + NODE_WIDTH, a["y"] + NODE_HEIGHT // 2, b["x"] - 5, b["y"] + NODE_HEIGHT // 2
    middle = (x + to_x + 5) // 2
    return f"M{x} {y}H{to_x}" if y == to_y else f"M{x} {y}H{middle}V{to_y}H{to_x}"
