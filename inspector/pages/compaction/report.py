"""A comparison of compactions as files, and as a report of tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
from django.http import HttpResponse

from guard_core.facts.lanes import STATE_WORDS
from guard_core.outcomes.words import count_words, dollars
from guard_core.report import TableReport
from guard_core.report.tables import Value
from guard_core.shares import per_cent
from inspector.pages.compaction import facts
from inspector.pages.compaction.sides import DOLLARS, SAVED, SHARE, CompactionFigures, CompactionSide, figures_of
from inspector.pages.shared.attachments import attachment, csv_file
from inspector.pages.shared.compared import beside, compared
from inspector.pages.shared.numbers import step_number

FIGURES = "Tokens are prompt tokens: recorded, attributed to parts of a request, or modelled."
PRICES = (
    "Costs and savings are modelled: compared with the same calls without the compaction, up to the "
    "next one, at list prices."
)
MODELLED = "A replayed compaction is modelled: the same messages, with the recorded answers, under other rules."
COUNTED = "How many of those that a compaction made worse, or that were open. The texts are not in this report."


def as_csv(sides: Sequence[CompactionSide]) -> HttpResponse:
    """One line for each figure; money is in US dollars."""
    header = ["figure", *(f"{side.letter}: {_named(side)}" for side in sides)]
    lines = ([_name(row), *row.plain()] for row in figures_of(sides))
    return csv_file("compactions.csv", header, lines)


def as_json(sides: Sequence[CompactionSide]) -> HttpResponse:
    """Each compaction with its figures and what it left of instructions and open work."""
    figures = [(_name(row), row.plain()) for row in figures_of(sides)]
    body = {
        "numbering": "steps and compactions count from 0",
        "compactions": [
            {
                "letter": side.letter,
                "session": str(side.page.row.pk),
                "side": side.item.side,
                "compaction": side.item.index,
                "step": side.item.step if side.page.count else None,
                "settings": None if side.item.recorded else side.page.choice.pairs(),
                "counted_in": side.page.analysis.facts.counted_in or "tokens",
                "figures": {name: values[place] for name, values in figures},
                "instructions": [
                    {
                        "text": row.snippet.text,
                        "kind": row.snippet.kind,
                        "before": STATE_WORDS[row.before],
                        "given": None if row.given is None else STATE_WORDS[row.given],
                        "after": STATE_WORDS[row.after],
                    }
                    for row in facts.changes_of(side.page, side.item).shown
                ],
            }
            for place, side in enumerate(sides)
        ],
    }
    return attachment(HttpResponse(msgspec.json.encode(body), content_type="application/json"), "compactions.json")


def report_of(sides: Sequence[CompactionSide], level: str) -> TableReport:
    """The figures beside each other, and how many instructions each left in which state."""
    several = len({side.page.row.pk for side in sides}) > 1
    names = [f"{side.letter}: {_named(side, several and level == 'names')}" for side in sides]
    letters = [side.letter for side in sides]
    figures = [row for row in figures_of(sides) if any(row.values)]
    after = [Counter(row.after for row in facts.changes_of(side.page, side.item).shown) for side in sides]
    states = [state for state in STATE_WORDS if any(column[state] for column in after)]
    held: list[tuple[Value, ...]] = [(STATE_WORDS[state], *(column[state] for column in after)) for state in states]
    modelled = [] if all(side.item.recorded for side in sides) else [MODELLED]
    counts = [(side.letter, count_words(side.page.analysis.facts)) for side in sides]
    return compared(
        "compactions",
        level,
        names,
        [side.page.row.title for side in sides],
        [
            beside("Figures", "figure", letters, ((_name(row), *row.plain()) for row in figures)),
            *([beside("Instructions and open work after it", "state", letters, held, COUNTED)] if held else []),
        ],
        sentences=_sentences(sides, figures),
        assumptions=[FIGURES, PRICES, *modelled, *(f"{letter}: {words}" for letter, words in counts if words)],
    )


def _named(side: CompactionSide, with_title: bool = False) -> str:
    """A compaction in one line."""
    where = f"step {step_number(side.item.step):,}" if side.page.count else ""
    title = side.page.row.title if with_title else ""
    return ", ".join(filter(None, (side.name, where, side.settings, title)))


def _name(row: CompactionFigures) -> str:
    return f"{row.name}, {'US dollars' if row.unit == DOLLARS else 'as a share'}" if row.unit else row.name


def _sentences(sides: Sequence[CompactionSide], figures: Sequence[CompactionFigures]) -> list[str]:
    """How much each left, and what it saved where that is known of all."""
    letters = [side.letter for side in sides]
    left = next((row.values for row in figures if row.unit == SHARE), None)
    saved = next((row.values for row in figures if row.name == SAVED), None)
    sentences = []
    if left is not None and None not in left:
        shares = [f"{letter} {per_cent(value or 0, 1)} %" for letter, value in zip(letters, left, strict=True)]
        sentences.append(f"Remaining of the request without it: {', '.join(shares)}.")
    if saved is not None and None not in saved:
        amounts = [f"{letter} {dollars(int(value or 0))}" for letter, value in zip(letters, saved, strict=True)]
        sentences.append(f"Saved on later calls (modelled): {', '.join(amounts)}.")
    return sentences
