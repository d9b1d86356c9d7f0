"""Two to four compactions compared: what each removed, kept and inserted, its price, and what became of
instructions. On a page, as a file, and as a report to share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from guard_core.outcomes.words import dollars
from inspector.pages.compaction import facts, presenter
from inspector.pages.compaction.report import as_csv, as_json, report_of
from inspector.pages.compaction.sides import DOLLARS, SHARE, CompactionFigures, CompactionSide, figures_of, sides_of
from inspector.pages.compaction.views import count_of, item_of, no_such, texts_of
from inspector.pages.errors.views import plain
from inspector.pages.session.frame import SIDES, Frame, frame
from inspector.pages.shared.numbers import (
    DASH,
    compaction_index,
    compaction_number,
    percent,
    points,
    signed,
    step_number,
)
from inspector.pages.shared.parts import in_order
from inspector.pages.shared.share_fields import share_tables

OFFERED = 200  # compactions of the session in the form
MOST_TEXTS = 60  # instructions and open work on the page


@require_GET
def compactions_together(request: HttpRequest, session_id: UUID, number: int) -> HttpResponse:
    """A compaction beside those that `?with=` names, up to three; without any, the form that picks them. `?format=csv`
    or `json` is a download."""
    page = frame(request, session_id)
    side, count = _counted(request, page)
    if not 1 <= number <= count:
        return plain(request, 404, "There is no such compaction", no_such(side, count), page.paths["overview"])
    first = CompactionSide("A", page, item_of(page, side, compaction_index(number)))
    sides, errors = sides_of(request, first)
    form = {"csv": as_csv, "json": as_json}.get(request.GET.get("format", ""))
    if form is not None and len(sides) > 1:
        return form(sides)
    return render(request, "inspector/compaction/together.html", _context(first, sides, errors))


@require_http_methods(["GET", "HEAD", "POST"])
def compactions_share(request: HttpRequest, session_id: UUID, number: int) -> HttpResponse:
    """Share the comparison of an address: `?with=` as above."""
    page = frame(request, session_id)
    side, count = _counted(request, page)
    if not 1 <= number <= count:
        raise Http404("There is no such compaction.")
    first = CompactionSide("A", page, item_of(page, side, compaction_index(number)))
    sides, errors = sides_of(request, first)
    if errors or len(sides) < 2:
        raise Http404("There is no such comparison.")
    return share_tables(request, lambda level: report_of(sides, level), "this comparison", _address(first, sides))


def _counted(request: HttpRequest, page: Frame) -> tuple[str, int]:
    """The side that an address means, and how many compactions it has."""
    side = request.GET.get("side", "")
    side = side if side in SIDES else page.side
    return side, count_of(page, side)


def _address(first: CompactionSide, sides: Sequence[CompactionSide], name: str = "compactions_together") -> str:
    """Where sides are compared: the first one's session and compaction in the path, the others one by one behind it."""
    pairs = [*_settings(first), *(("with", _value(first, side)) for side in sides[1:])]
    path = reverse(name, args=[first.page.row.pk, compaction_number(first.item.index)])
    return f"{path}?{urlencode(pairs)}" if pairs else path


def _settings(first: CompactionSide) -> list[tuple[str, str]]:
    """What the address of the first says besides its number."""
    side = [] if first.item.recorded else [("side", first.item.side)]
    return [*first.page.choice.pairs().items(), *side]


def _context(first: CompactionSide, sides: Sequence[CompactionSide], errors: list[str]) -> dict[str, Any]:
    page, item = first.page, first.item
    several = len({side.page.row.pk for side in sides}) > 1
    is_compared = len(sides) > 1
    address = _address(first, sides)
    texts = _texts(sides) if is_compared else []
    letters = [side.letter for side in sides]
    figures = [row for row in figures_of(sides) if any(row.values) or row.unit == SHARE] if is_compared else []
    return {
        **page.context(item.side, item.step),
        "errors": errors,
        "name": f"{first.name} of {count_of(page, item.side):,}",
        "back": first.url,
        "sides": [_about(side, several) for side in sides],
        "rows": [_row(row, letters) for row in figures],
        "open": texts[:MOST_TEXTS],
        "more": max(0, len(texts) - MOST_TEXTS),
        "texts": [{"letter": side.letter, "texts": texts_of(side.page, side.item)} for side in sides if is_compared],
        "letters": letters,
        "compared": ", ".join(side.name for side in sides) if is_compared else "compactions",
        "is_compared": is_compared,
        "action": reverse("compactions_together", args=[page.row.pk, compaction_number(item.index)]),
        "hidden": _settings(first),
        "choices": _choices(first, sides),
        "share": _address(first, sides, "compactions_share"),
        "csv": f"{address}&format=csv",
        "json": f"{address}&format=json",
    }


def _choices(first: CompactionSide, sides: Sequence[CompactionSide]) -> list[dict[str, Any]]:
    """The compactions of this session that may be picked, each field with the one that is shown there."""
    page = first.page
    options = [
        {"value": f"{side}/{compaction_number(index)}", "title": f"{title} {compaction_number(index):,}"}
        for side, title in (("recorded", "Compaction"), ("replayed", "Replayed compaction"))
        if side == "recorded" or page.analysis.diverges
        for index in range(min(OFFERED, count_of(page, side)))
        if (side, index) != (first.item.side, first.item.index)
    ]
    elsewhere = [
        {
            "value": _value(first, side),
            "title": f"{side.name} of {'other settings' if side.page.row == first.page.row else 'another session'}",
        }
        for side in sides
        if side.page is not first.page
    ]
    chosen = [_value(first, side) for side in sides[1:]]
    return [
        {"letter": letter, "options": [*options, *elsewhere], "chosen": chosen[place] if place < len(chosen) else ""}
        for place, letter in enumerate("BCD")
    ]


def _value(first: CompactionSide, side: CompactionSide) -> str:
    """How the form names a compaction."""
    number = compaction_number(side.item.index)
    if side.page is first.page:
        return f"{side.item.side}/{number}"
    replay = "" if side.item.recorded else side.page.choice.query(side="replayed")
    return f"{side.page.row.pk}/{number}{replay}"


def _about(side: CompactionSide, several: bool) -> dict[str, Any]:
    page, item = side.page, side.item
    where = f"step {step_number(item.step):,}" if page.count else ""
    words = [where, side.settings, in_order(page.row.title) if several else ""]
    return {
        "letter": side.letter,
        "name": side.name,
        "url": side.url,
        "about": ", ".join(filter(None, words)),
        "badges": presenter.badges(item),
    }


def _row(row: CompactionFigures, letters: Sequence[str]) -> dict[str, Any]:
    first, *others = row.values
    return {
        "name": row.name,
        "first": _shown(row.unit, first),
        "others": [
            {"letter": letter, "value": _shown(row.unit, value), "difference": _difference(row, value)}
            for letter, value in zip(letters[1:], others, strict=True)
        ],
    }


def _shown(unit: str, value: float | None) -> str:
    if value is None:
        return DASH
    if unit == SHARE:
        return percent(value, 1, 1)
    return ("−" if value < 0 else "") + (dollars(int(abs(value))) if unit == DOLLARS else f"{abs(value):,}")


def _difference(row: CompactionFigures, value: float | None) -> str:
    first = row.values[0]
    if value is None or first is None:
        return ""
    if row.unit == SHARE:
        return points(first, value)
    if row.unit == DOLLARS:
        return f"{'−' if value < first else '+'}{dollars(int(abs(value - first)))}" if value != first else "±0"
    return signed(value - first)


def _texts(sides: Sequence[CompactionSide]) -> list[dict[str, Any]]:
    """Instructions and open work that a compaction made worse, or that were open, and what each left of them."""
    columns = [
        {row.snippet.text: facts.row_of(row) for row in facts.changes_of(side.page, side.item).shown} for side in sides
    ]
    every = dict.fromkeys(text for column in columns for text in column)
    rows = [[column.get(text) for column in columns] for text in every]
    letters = [side.letter for side in sides]
    return [
        {"text": next(filter(None, cells))["text"], "cells": list(zip(letters, cells, strict=True))} for cells in rows
    ]
