"""The main chart as a plain picture."""

from __future__ import annotations

import numpy as np

from guard_core.decimation import DENSE, edge_steps, kept_steps, steps_inside
from inspector.figures import theme
from inspector.figures.paths import Box
from inspector.figures.picture import HEIGHT, POINTS, TOP, WIDTH, Picture, PicturePath, Word, axis_words, step_words
from inspector.figures.timeline import NO_STEPS, Floats, Ints, Timeline, TimelineSide
from inspector.pages.overview.figure import CARPET, y_top

LABEL = 5  # pixels between a line and the words above it
STRETCHES = 100  # of a dense line
TICK = 10  # units: the length of a mark where there are many
NAMED = 3  # values of one line that are written beside it
LETTERS = 13  # pixels that a line of words takes


def context_picture(data: Timeline, seen: range | None = None) -> Picture | None:
    """The picture of the steps `seen`, or of all: the recording, a replay that differs from it, window, threshold and
    marks."""
    if not len(data):
        return None
    seen = seen or range(len(data))
    top = y_top(data, seen.start, seen.stop)
    box = Box(WIDTH, HEIGHT, len(seen), top, seen.start)
    paths = [
        PicturePath("window", box.level(float(data.window)), "context window"),
        PicturePath("threshold", box.levels(data.threshold), data.threshold_name),
        *_replayed(data, box, seen),
        *_recorded(data, box, seen),
    ]
    named = [("window", float(data.window)), *_values(data.threshold_name, data.threshold, seen)]
    if data.own is not None:
        named += [(name, float(level)) for name, level in data.own.inferred]
        paths += [PicturePath("threshold", box.level(float(level)), name) for name, level in data.own.inferred]
    if data.own is not None and data.shows_policy and data.own.agent and len(data.own.threshold) > 0:
        named += _values(data.own.threshold_name, data.own.threshold, seen)
        paths.append(PicturePath("threshold", box.levels(data.own.threshold), data.own.threshold_name))
    levels = _levels(named, box)
    return Picture(tuple(path for path in paths if path.d), axis_words(box), levels, *step_words(seen))


def _values(name: str, values: Floats, seen: range) -> list[tuple[str, float]]:
    """A line that may change from step to step, with its first values."""
    own = values[seen.start : seen.stop]
    known = own[~np.isnan(own)]
    changed = known[np.diff(known, prepend=np.nan) != 0]
    return [(name, value) for value in list(dict.fromkeys(changed.tolist()))[:NAMED]]


def _recorded(data: Timeline, box: Box, seen: range) -> list[PicturePath]:
    side = data.side("recorded")
    compactions = steps_inside(side.compactions, seen)
    dots = PicturePath("overflows", box.dots(steps_inside(side.overflows, seen), side.tokens), "overflow")
    if len(compactions) > CARPET:
        low, high = edge_steps(side.tokens, seen.start, seen.stop, min(STRETCHES, len(seen)))
        many = f"{len(compactions):,} compactions"
        return [
            *_both(side, box, low, "-lowest", ", lowest"),
            *_both(side, box, high, "-peaks", ", peaks"),
            PicturePath("ticks", box.ticks(compactions, TICK), many),
            dots,
        ]
    steps = _steps(seen, side.tokens, compactions)
    if len(compactions) > DENSE:
        ticks = PicturePath("ticks", box.ticks(compactions, TICK), f"{len(compactions):,} compactions")
        return [*_both(side, box, steps, "-peaks"), ticks, dots]
    return [
        *_both(side, box, steps),
        PicturePath("compactions", box.dots(compactions, side.tokens), "compaction"),
        dots,
    ]


def _both(side: TimelineSide, box: Box, steps: Ints, kind: str = "", which: str = "") -> list[PicturePath]:
    """The line of what is estimated, and over it that of what was counted. `kind` and `which`: what their kinds and
    names end with."""
    return [
        PicturePath(f"estimated{kind}", box.line(steps, side.estimated(steps)), f"estimated prompt tokens{which}"),
        PicturePath(f"recorded{kind}", box.line(steps, side.counted), f"recorded prompt tokens{which}"),
    ]


def _replayed(data: Timeline, box: Box, seen: range) -> list[PicturePath]:
    if data.replayed is None or data.replayed.divergence is None:
        return []
    side = data.side("replayed")
    values = np.where(np.arange(len(data)) >= max(0, data.replayed.divergence - 1), side.tokens, np.nan)
    compactions = steps_inside(side.compactions, seen)
    if len(compactions) > CARPET:
        high = edge_steps(values, seen.start, seen.stop, min(STRETCHES, len(seen)))[1]
        return [PicturePath("replayed", box.line(high, values), f"{side.name}, peaks")]
    return [PicturePath("replayed", box.line(_steps(seen, values, compactions), values), side.name)]


def _steps(seen: range, values: Floats, compactions: Ints) -> Ints:
    return kept_steps([values], compactions, NO_STEPS, seen.start, seen.stop, POINTS)


def _levels(named: list[tuple[str, float]], box: Box) -> tuple[Word, ...]:
    """The name and value of each level above its line; below it where the one before is too near."""
    words: list[Word] = []
    last = -np.inf
    for name, value in sorted(named, key=lambda item: -item[1]):
        if not 0 < value <= box.top:
            continue
        line = TOP + float(box.y(value))
        place = line - LABEL if line - LABEL - last >= LETTERS else line + LETTERS
        words.append(Word(f"{place:.0f}", f"{name} {theme.amount(value)}"))
        last = place
    return tuple(words)
