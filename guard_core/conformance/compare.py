"""Comparing recorded figures with computed ones: exactly, and every difference is listed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from guard_core.conformance.vectors import VectorError

LISTED = 20  # differences of one profile, and of one file where they are printed; the others are counted


class UnequalFigure(NamedTuple):
    """One figure that is not equal."""

    where: str  # "step 12", "case 3", "result"
    column: str
    expected: Any
    got: Any

    def __str__(self) -> str:
        return f"{self.where}, {self.column}: expected {_short(self.expected)}, got {_short(self.got)}"


class ConformanceVerdict(NamedTuple):
    """The outcome for one profile of one file."""

    profile: str
    differences: tuple[UnequalFigure, ...]  # the first LISTED
    different: int  # figures that are not equal
    figures: int
    problem: str = ""  # why this profile could not be judged


class FigureComparison:
    """Counts figures, and collects those that are not equal."""

    def __init__(self) -> None:
        self.differences: list[UnequalFigure] = []
        self.different = 0
        self.figures = 0

    def equal(self, where: str, column: str, expected: Any, got: Any) -> None:
        """Compare one figure, or a list of figures."""
        self.figures += 1
        if same(expected, got):
            return
        self.different += 1
        if len(self.differences) < LISTED:
            self.differences.append(UnequalFigure(where, column, expected, got))

    def mapping(self, where: str, expected: Mapping[str, Any], got: Mapping[str, Any]) -> None:
        """Compare figures by name. A name that is not computed cannot be judged: VectorError."""
        for name, value in expected.items():
            if name not in got:
                raise VectorError(f"{where} has the figure {name[:40]!r}, which is not known here")
            self.equal(where, name, value, got[name])

    def rows(self, names: Sequence[str], expected: Sequence[Sequence[Any]], got: Iterable[Mapping[str, Any]]) -> None:
        """Compare step rows, column by column."""
        computed = list(got)
        for number, row in enumerate(expected):
            if len(row) != len(names):
                raise VectorError(f"row {number} has {len(row)} values for {len(names)} columns")
            if number < len(computed):
                self.mapping(f"step {number}", dict(zip(names, row, strict=True)), computed[number])
        self.equal("steps", "number of steps", len(expected), len(computed))

    def verdict(self, profile: str) -> ConformanceVerdict:
        """The outcome."""
        return ConformanceVerdict(profile, tuple(self.differences), self.different, self.figures)


def same(expected: Any, got: Any) -> bool:
    """Equal values: numbers by value, truth values and text only to their like, lists item by item."""
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    if isinstance(expected, list | tuple) and isinstance(got, list | tuple):
        return len(expected) == len(got) and all(map(same, expected, got))
    if isinstance(expected, dict) and isinstance(got, dict):
        return expected.keys() == got.keys() and all(same(expected[key], got[key]) for key in expected)
    return bool(expected == got)


def _short(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 160 else f"{text[:160]}…"
