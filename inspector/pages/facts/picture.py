"""A lane as a small picture: one path for each state, as high as the request still has of the words."""

from __future__ import annotations

from guard_core.facts.lanes import Lane, SnippetState

WIDTH, HEIGHT = 400, 18
COLUMNS = 400  # of a lane with more runs than this; each shows the worst state in it
# Height and name of a state in the picture; the others are empty.
BARS = {
    SnippetState.VERBATIM: (16, "verbatim"),
    SnippetState.QUOTED: (11, "quoted"),
    SnippetState.PARAPHRASED: (7, "paraphrased"),
}
_NAMES = {
    **BARS,
    SnippetState.TRANSLATED: (4, "translated"),
    SnippetState.UNKNOWN: (3, "unknown"),
    SnippetState.GONE: (1, "gone"),
}


def picture(lane: Lane) -> list[dict[str, str]]:
    """The paths of a lane, those of states that it has."""
    paths: dict[SnippetState, list[str]] = {}
    for start, stop, state in _drawn(lane):
        if state in _NAMES:
            height, _ = _NAMES[state]
            left, right = _x(start, lane), _x(stop, lane)
            paths.setdefault(state, []).append(f"M{left} {HEIGHT}V{HEIGHT - height}H{right}V{HEIGHT}Z")
    marks = [
        f"M{_x(change.step, lane)} 0l4 6h-8z"
        for change in lane.changes[: 2 * COLUMNS]
        if change.event in lane.read_again and change.after is SnippetState.VERBATIM
    ]
    shapes = [{"name": _NAMES[state][1], "path": "".join(parts)} for state, parts in sorted(paths.items())]
    return [*shapes, *([{"name": "again", "path": "".join(marks)}] if marks else [])]


def _x(step: int, lane: Lane) -> str:
    return f"{WIDTH * step / lane.steps:.1f}".removesuffix(".0")


def _drawn(lane: Lane) -> list[tuple[int, int, SnippetState]]:
    """The runs, or those of columns of steps where there are too many."""
    runs = list(lane.runs())
    if len(runs) <= COLUMNS:
        return runs
    worst = [SnippetState.NOT_YET] * COLUMNS
    for start, stop, state in runs:
        for column in range(start * COLUMNS // lane.steps, (stop - 1) * COLUMNS // lane.steps + 1):
            worst[column] = max(worst[column], state)
    edges = [column * lane.steps // COLUMNS for column in range(COLUMNS + 1)]
    return [(edges[column], edges[column + 1], worst[column]) for column in range(COLUMNS)]
