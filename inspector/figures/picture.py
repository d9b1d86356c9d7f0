"""A chart as a plain picture: what a page shows without JavaScript, in print, and until the chart is drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inspector.figures import theme
from inspector.figures.paths import Box
from inspector.pages.shared.numbers import step_number

WIDTH, HEIGHT = 1000, 220  # of the lines, which are stretched to the page; texts are not
TOP = 8  # pixels above them
POINTS = 300  # a series: a third of a chart's, because they are in the page itself
TICKS = (1, 2, 5, 10)  # steps of the token axis, times a power of ten
MOST_TICKS = 5


@dataclass(frozen=True)
class PicturePath:
    """A line or a row of marks: path data, the class that gives its colour, and its name in the key."""

    kind: str
    d: str
    name: str

    @property
    def is_dots(self) -> bool:
        """Is it a row of dots and no line."""
        return "h0" in self.d


@dataclass(frozen=True)
class Word:
    """A text at a height in pixels."""

    y: str
    text: str


@dataclass(frozen=True)
class Picture:
    """A drawing whose lines are in units of WIDTH by HEIGHT; `left` and `right` are the words below its edges."""

    paths: tuple[PicturePath, ...]
    axis: tuple[Word, ...]
    levels: tuple[Word, ...]
    left: str
    right: str


def step_words(seen: range) -> tuple[str, str]:
    """The words below the edges of a picture over steps; one for a single step."""
    last = f"step {seen.stop:,}" if len(seen) > 1 else ""
    return f"step {step_number(seen.start):,}", last


def axis_words(box: Box) -> tuple[Word, ...]:
    """Round values of the token axis, from 0 to its top."""
    power = 10.0 ** np.floor(np.log10(box.top / MOST_TICKS))
    width = next(factor * power for factor in TICKS if box.top / (factor * power) <= MOST_TICKS)
    ticks = [float(value) for value in np.arange(0, box.top, width)]
    return tuple(Word(height_of(box, value), theme.amount(value)) for value in ticks)


def height_of(box: Box, value: float) -> str:
    """Where the word for a value is, in pixels."""
    return f"{TOP + float(box.y(value)) + 4:.0f}"  # 4: a text is placed by its foot
