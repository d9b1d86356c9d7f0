"""The rows and compactions as files, for the filters of the page."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from guard_core import cli
from guard_core.corpus import TriggerRow
from guard_core.corpus.report import COMPACTION_COLUMNS, compactions_of, report
from guard_core.rules.evidence import Cause
from inspector.pages.shared.attachments import attachment
from inspector.pages.shared.project import project_of
from inspector.pages.triggers.analysis import Analysis, Wanted

CAUSES = {
    Cause.AUTOMATIC: "automatic",
    Cause.UNSTATED: "trigger_not_recorded",
    Cause.MANUAL: "manual",
    Cause.REFUSED: "after_refused_request",
    Cause.UNPROVEN: "automatic_without_count",
}
ROW_COLUMNS = (
    *("agent", "version", "model", "window", "count", "relation", "sessions", *CAUSES.values()),
    *("above", "above_session", "above_step", "at_most", "at_most_session", "at_most_step", "contradiction"),
    *("inferred_formula", "inferred_threshold", "explained", "compactions_with_count", "other_formulas"),
)
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet computes what begins so


@require_safe
def rows_csv(request: HttpRequest) -> HttpResponse:
    """One line per row. Steps count from 0, figures are tokens."""
    return _csv("triggers.csv", ROW_COLUMNS, map(_row, _analysis(request).rows))


@require_safe
def compactions_csv(request: HttpRequest) -> HttpResponse:
    """One line per compaction."""
    return _csv("compactions.csv", COMPACTION_COLUMNS, compactions_of(_analysis(request).stretches))


@require_safe
def as_json(request: HttpRequest) -> HttpResponse:
    """Rows, change points and compactions, as the command `triggers --json` prints them."""
    known = _analysis(request)
    body = {"numbering": cli.NUMBERING, **report(known.rows, known.changes, known.stretches)}
    return attachment(HttpResponse(msgspec.json.encode(body), content_type="application/json"), "triggers.json")


def _analysis(request: HttpRequest) -> Analysis:
    return Analysis.of(project_of(request), Wanted.parse(request.GET))


def _row(row: TriggerRow) -> Iterator[Any]:
    key, formula = row.key, row.formula
    yield from (key.agent, key.version, key.model, key.window, key.counter, key.relation, len(row.sessions))
    yield from (row.compactions.get(cause, 0) for cause in CAUSES)
    for place in (row.above, row.at_most):
        yield from ("", "", "") if place is None else place[:3]
    yield "yes" if row.contradiction else ""
    yield from ("", "") if formula is None else (formula.formula, formula.threshold)
    yield from (row.explained, row.fired, row.others)


def _csv(name: str, header: Iterable[str], rows: Iterable[Iterable[Any]]) -> HttpResponse:
    response = attachment(HttpResponse(content_type="text/csv; charset=utf-8"), name)
    writer = csv.writer(response)
    writer.writerow(header)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return response


def _cell(value: Any) -> Any:
    """A value that a spreadsheet shows and does not compute."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_SIGNS) else value
