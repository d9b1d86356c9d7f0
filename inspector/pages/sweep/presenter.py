"""A sweep in words, cells and links; no ORM, no request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.urls import reverse

from guard_core.outcomes.words import dollars
from guard_core.sweep import LOSSES, MEASURES, GridCell, Measure, fold_words, words
from guard_core.windows.prices import UNIT
from inspector.pages.shared.numbers import counted, grouped, short, tokens
from inspector.pages.shared.parts import in_order
from inspector.pages.sweep.heat import Heat, colour
from inspector.pages.sweep.runs import EndedSweep
from inspector.replays.choice import sentence_of

Value = int | float | str | None
SHOWN_TRADE_OFFS, SHOWN_LEFT_OUT, SHOWN_SESSIONS = 30, 20, 60
EQUAL_SHOWN = 5  # settings with the recommended result that are named; the others are counted
NOT_CHECKED = (
    "All sessions come from one recording, so the recommendation cannot be checked on others: halves of one "
    "recording's calls are not independent of each other."
)
ORDER = (
    "Settings are ordered by overflows (requests over the window of their call, or as large as one that the provider "
    "refused in the recording), then loops, then the chosen figure, then compactions, then total prompt tokens."
)


def shown(measure: Measure, cell: GridCell, *, exact: bool = False) -> str:
    """A figure of a cell as text."""
    value = measure.value(cell)
    if value is None:
        return "unknown"
    if measure.name == "cost":
        return dollars(value)
    return tokens(value) if exact or measure.unit != "tokens" else short(value)


def measures_of(answer: EndedSweep) -> list[Measure]:
    """The figures that this sweep has."""
    cells = answer.result.cells
    return [
        item for item in MEASURES.values() if not item.priced or any(item.value(cell) is not None for cell in cells)
    ]


def heat(answer: EndedSweep, measure: Measure) -> Heat:
    """The grid: the first axis from left to right, the second from top to bottom."""
    result = answer.result
    names = list(result.axes)
    columns = result.axes[names[0]]
    rows = result.axes[names[1]] if len(names) > 1 else ("",)

    def place(row: int, column: int) -> int:
        return column * len(rows) + row

    def table(of: Any) -> Any:
        return tuple(
            tuple(of(result.cells[place(row, column)]) for column in range(len(columns))) for row in range(len(rows))
        )

    at = result.recommended
    return Heat(
        columns=tuple(grouped(str(value)) for value in columns),
        rows=tuple(grouped(str(value)) for value in rows),
        values=table(measure.value),
        texts=table(lambda cell: shown(measure, cell)),
        over=table(lambda cell: cell.overflow_steps > 0),
        links=table(lambda cell: link(answer, cell)),
        recommended=(at % len(rows), at // len(rows)),
        column_title=answer.question.label(names[0]),
        row_title=answer.question.label(names[1]) if len(names) > 1 else "",
    )


def link(answer: EndedSweep, cell: GridCell, at: int | None = None) -> str:
    """The replay of a setting: of the session that it fits worst, or of session `at`."""
    if at is None:
        at = max(range(len(cell.figures)), key=lambda place: (cell.figures[place].overflow_steps, -place))
        at = at if cell.figures[at].overflow_steps else cell.fullest
    return reverse("session_overview", args=[answer.sessions[at][0]]) + answer.question.choice(cell.values).query()


def rows(drawn: Heat) -> list[dict[str, Any]]:
    """The rows of the heat map: every cell with its colour and the edges of the settings without overflow."""
    return [
        {"name": name, "cells": [_cell(drawn, row, column) for column in range(len(drawn.columns))]}
        for row, name in enumerate(drawn.rows)
    ]


def _cell(drawn: Heat, row: int, column: int) -> dict[str, Any]:
    share, over = drawn.shares[row][column], drawn.over
    shade, is_light = ("", True) if share is None else colour(share)
    classes = [
        *(["is-light"] if is_light else ["is-dark"]),
        *(["edge-left"] if column and over[row][column - 1] != over[row][column] else []),
        *(["edge-top"] if row and over[row - 1][column] != over[row][column] else []),
        *(["is-recommended"] if (row, column) == drawn.recommended else []),
    ]
    return {
        "text": drawn.texts[row][column],
        "over": over[row][column],
        "url": drawn.links[row][column],
        "shade": shade,
        "classes": " ".join(classes),
        "recommended": (row, column) == drawn.recommended,
    }


def recommendation(answer: EndedSweep) -> dict[str, Any]:
    """The sentence to quote, the cross-over, and settings that come to the same."""
    result = answer.result
    equal = [words(result.cells[index].values) for index in result.equal]
    more = len(equal) - EQUAL_SHOWN
    listed = "; ".join([*equal[:EQUAL_SHOWN], *([f"and {more:,} more"] if more > 0 else [])])
    return {
        "sentence": sentence_of(f"{answer.question.words().partition(':')[0]}: {result.evidence}"),
        "url": link(answer, result.cells[result.recommended]),
        "order": f"{ORDER} The chosen figure: {answer.question.measure.title}.",
        "folds": [sentence_of(fold_words(result, fold)) for fold in result.folds],
        "not_checked": "" if result.folds else NOT_CHECKED,
        "equal": f"{counted(len(equal), 'other setting')} with the same result: {listed}." if equal else "",
    }


def trade_offs(answer: EndedSweep) -> dict[str, Any]:
    """The settings that no other beats, with their three figures."""
    result = answer.result
    cells = [result.cells[index] for index in result.trade_offs]
    priced = all(cell.cost is not None for cell in result.cells)
    lossy = all(cell.requests_dropped is not None for cell in result.cells)
    heads = [
        MEASURES["overflows"],
        MEASURES["cost" if priced else "tokens"],
        MEASURES["requests" if lossy else "compactions"],
    ]
    return {
        "heads": [head.title for head in heads],
        "rows": [
            {
                "name": words(cell.values),
                "url": link(answer, cell),
                "cells": [{"head": head.title, "value": shown(head, cell, exact=True)} for head in heads],
                "recommended": index == result.recommended,
            }
            for index, cell in list(zip(result.trade_offs, cells, strict=True))[:SHOWN_TRADE_OFFS]
        ],
        "more": max(0, len(cells) - SHOWN_TRADE_OFFS),
    }


def sessions(answer: EndedSweep, abouts: Mapping[str, str]) -> dict[str, Any]:
    """How the recommended setting does in each session. `abouts`: what distinguishes those of one title, by key."""
    cell = answer.result.cells[answer.result.recommended]
    listed = [
        {
            "title": in_order(title) or "untitled",
            "about": abouts.get(key, ""),
            "url": link(answer, cell, at),
            "steps": tokens(answer.result.steps[at]),
            "overflows": tokens(cell.figures[at].overflow_steps),
            "bad": cell.figures[at].overflow_steps > 0,
            "compactions": tokens(cell.figures[at].compactions),
            "peak": tokens(cell.figures[at].peak),
            "window": tokens(cell.windows[at]),
        }
        for at, (key, title) in enumerate(answer.sessions)
    ]
    return {
        "rows": listed[:SHOWN_SESSIONS],
        "more": max(0, len(listed) - SHOWN_SESSIONS),
        "left_out": [{"title": title, "reason": reason} for title, reason in answer.left_out[:SHOWN_LEFT_OUT]],
        "left_out_more": max(0, len(answer.left_out) - SHOWN_LEFT_OUT),
    }


COLUMNS = ("overflow_steps", "compactions", "longest_loop", "peak", "tokens_sent", "cost_usd", *LOSSES)


def sheet(answer: EndedSweep) -> Iterator[list[Value]]:
    """The cells for a spreadsheet, one line each; money in US dollars."""
    result = answer.result
    yield [*result.axes, "sessions", "smallest_window", *COLUMNS, "recommended", "trade_off"]
    for index, cell in enumerate(result.cells):
        cost = None if cell.cost is None else cell.cost / UNIT / 1_000_000
        figures: list[Value] = [cell.overflow_steps, cell.compactions, cell.longest_loop, cell.peak, cell.tokens_sent]
        losses: list[Value] = [getattr(cell, name) for name in LOSSES]
        marks = ["yes" if index == result.recommended else "", "yes" if index in result.trade_offs else ""]
        values = [value if isinstance(value, int | float) else str(value) for value in cell.values.values()]
        yield [*values, len(cell.figures), cell.window, *figures, cost, *losses, *marks]
