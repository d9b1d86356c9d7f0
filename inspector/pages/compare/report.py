"""A comparison as a report of tables."""

from __future__ import annotations

import numpy as np

from guard_core.decimation import kept_steps
from guard_core.outcomes.words import count_words
from guard_core.report import ChartLine, TableReport
from guard_core.report.tables import Value
from inspector.pages.compare.sides import ComparedSide, parting
from inspector.pages.shared.compared import beside, compared
from inspector.pages.shared.numbers import step_number

MOST_POINTS = 600  # of one line: as many as a picture of 1,000 pixels shows
MODELLED = "Figures of a replay are modelled: the same messages, with the recorded answers, under other rules."
RECORDED = "Figures of a recording are those of its provider where it counted, else modelled."


def report_of(sides: list[ComparedSide], level: str) -> TableReport:
    """Where the sides part, their figures beside each other, and their lines."""
    how = [side.wanted.choice.words() if side.is_replay else "recording" for side in sides]
    names = [
        side.name if level == "names" else f"{side.letter}: {words}" for side, words in zip(sides, how, strict=True)
    ]
    columns = [side.figures() for side in sides]
    sentences = []
    for side in sides[1:]:
        at = parting(sides[0], side)
        where = "send the same requests" if at is None else f"diverge at step {step_number(at):,}"
        sentences.append(f"A and {side.letter} {where}.")
    modelled = [MODELLED] if any(side.is_replay for side in sides) else []
    rows: list[tuple[Value, ...]] = [(name, *(column[name] for column in columns)) for name in columns[0]]
    return compared(
        "comparison",
        level,
        names,
        [side.wanted.row.title for side in sides],
        [beside("Figures", "figure", [side.letter for side in sides], rows, "Tokens are prompt tokens.")],
        sentences=sentences,
        lines=[_line(side, name) for side, name in zip(sides, names, strict=True)],
        assumptions=[RECORDED, *modelled, *side_sentences(sides)],
    )


def side_sentences(sides: list[ComparedSide]) -> list[str]:
    """For each side whose calls have several windows, which of them judges what; whose figures are no tokens, that;
    whose compactions are not all at a step, how many are not."""
    words = (
        (side.letter, sentence)
        for side in sides
        for sentence in (side.unfollowed, count_words(side.analysis.facts) if side.steps else "", side.windows)
    )
    return [f"{letter}: {sentence}" for letter, sentence in words if sentence]


def _line(side: ComparedSide, name: str) -> ChartLine:
    """The prompt tokens of a side, thinned to `MOST_POINTS` steps, with its compactions."""
    tokens = side.case.tokens
    none = np.array([], dtype=np.int64)
    steps = kept_steps([tokens], side.fired, none, 0, len(tokens), MOST_POINTS)
    return ChartLine(name, tuple(steps.tolist()), tuple(tokens[steps].tolist()), tuple(side.fired.tolist()))
