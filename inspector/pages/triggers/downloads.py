"""The rows and compactions as files, and as a report to share, for the filters of the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from guard_core import cli
from guard_core.corpus import TriggerRow
from guard_core.corpus.report import COMPACTION_COLUMNS, compactions_of, report
from guard_core.rules.evidence import Cause
from inspector.pages.shared.attachments import attachment, csv_file
from inspector.pages.shared.project import project_of
from inspector.pages.shared.share_fields import share_tables
from inspector.pages.triggers.analysis import TriggersAnalysis, TriggersFilter
from inspector.pages.triggers.report import report_of

CAUSES = {
    Cause.AUTOMATIC: "automatic",
    Cause.UNSTATED: "trigger_not_recorded",
    Cause.MANUAL: "manual",
    Cause.REFUSED: "after_refused_request",
    Cause.UNPROVEN: "automatic_without_count",
    Cause.UNKNOWN: "trigger_not_recorded_without_count",
    Cause.SLIDING: "of_sliding_window",
}
ROW_COLUMNS = (
    *("agent", "version", "model", "window", "count", "relation", "sessions", *CAUSES.values()),
    *("above", "above_session", "above_step", "at_most", "at_most_session", "at_most_step", "contradiction"),
    *("inferred_formula", "inferred_threshold", "explained", "compactions_with_count", "other_formulas"),
)


@require_safe
def rows_csv(request: HttpRequest) -> HttpResponse:
    """One line per row. Steps count from 0, figures are tokens."""
    return csv_file("triggers.csv", ROW_COLUMNS, map(_row, _analysis(request).rows))


@require_safe
def compactions_csv(request: HttpRequest) -> HttpResponse:
    """One line per compaction."""
    return csv_file("compactions.csv", COMPACTION_COLUMNS, compactions_of(_analysis(request).stretches))


@require_safe
def as_json(request: HttpRequest) -> HttpResponse:
    """Rows, change points and compactions, as the command `triggers --json` prints them."""
    known = _analysis(request)
    body = {"numbering": cli.NUMBERING, **report(known.rows, known.changes, known.stretches)}
    return attachment(HttpResponse(msgspec.json.encode(body), content_type="application/json"), "triggers.json")


@require_http_methods(["GET", "HEAD", "POST"])
def triggers_share(request: HttpRequest) -> HttpResponse:
    """Share the rows."""
    analysis = _analysis(request)
    back = reverse("triggers") + analysis.wanted.query()
    return share_tables(request, lambda level: report_of(analysis, level), "these thresholds", back)


def _analysis(request: HttpRequest) -> TriggersAnalysis:
    return TriggersAnalysis.of(project_of(request), TriggersFilter.parse(request.GET))


def _row(row: TriggerRow) -> Iterator[Any]:
    key, formula = row.key, row.formula
    yield from (key.agent, key.version, key.model, key.window, key.counter, key.relation, len(row.sessions))
    yield from (row.compactions.get(cause, 0) for cause in CAUSES)
    for place in (row.above, row.at_most):
        yield from ("", "", "") if place is None else place[:3]
    yield "yes" if row.contradiction else ""
    yield from ("", "") if formula is None else (formula.formula, formula.threshold)
    yield from (row.explained, row.fired, row.others)
