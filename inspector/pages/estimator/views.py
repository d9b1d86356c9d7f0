"""How good the estimates of a session are: read from what a job has measured, never computed here."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from inspector.jobs.estimating import TOKEN_COUNTS
from inspector.pages.estimator import presenter as present
from inspector.pages.estimator.figure import drawn_points, real_against_heuristic, scatter_picture
from inspector.pages.session.frame import Frame, frame, step_of
from inspector.pages.shared.bias import bias
from inspector.pages.shared.htmx import render_part, wants_part
from inspector.pages.shared.numbers import signed_percent, step_number
from inspector.storage.estimates import EstimationResult, Points, load_counts, load_result, progress


@require_GET
def session_estimator(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The forecast, the interpolation, other estimators, the attribution; asks again while it is counted."""
    page = frame(request, session_id)
    columns, result = load_counts(page.row), load_result(page.row)
    waiting = ""
    if result is None:
        TOKEN_COUNTS.ensure_prepared()
        waiting = "measuring: recorded calls are forecast from the past …"
        if columns is None:
            waiting = f"counting … {progress(page.row):,} of {page.row.events:,} events counted by both tokenizers"
    # The overview's figure, which is known before anything is measured; none of a session that was never sent.
    measured = None if page.analysis.simulated else bias(page.analysis.facts, page.analysis.observed)
    context = {
        **page.context("estimator"),
        "here": page.links["estimator"],
        "waiting": waiting,
        "counts": present.counts(columns, page.analysis.ledger),
        **_attribution(page),
        "bias": None
        if measured is None
        else {"value": signed_percent(measured.ratio), "sentence": present.bias_sentence(measured)},
        **(_measured(page, result) if result is not None else {}),
    }
    return render_part(
        request, "estimator", "inspector/estimator/_page.html", "inspector/estimator/index.html", context
    )


def _attribution(page: Frame) -> dict[str, Any]:
    attribution, ledger = page.analysis.attribution, page.analysis.ledger
    return {
        "facts": present.facts(ledger, attribution),
        "ratios": present.ratios(ledger, attribution),
        "sources": present.sources(attribution),
        "weights": attribution.weights,
    }


def _measured(page: Frame, result: EstimationResult) -> dict[str, Any]:
    steps, choice = page.paths["steps"], page.choice
    if result.error:
        return {"failed": result.error}
    if page.analysis.simulated:
        return {"nothing": present.SIMULATED}
    if not result.points.steps and result.interpolated is None:
        return {"nothing": present.NO_USAGE}
    return {
        "headline": present.headline(result),
        "histogram": present.histogram(result.points) if result.points.steps else None,
        "heads": present.HEADS,
        "forecast": _group(present.forecast_rows(result, steps, choice)),
        "interpolation": _group(present.interpolation_rows(result, steps, choice)),
        "between": present.between(result),
        "estimators": present.estimator_groups(result, steps, choice),
        **_figure(page, result.points),
    }


def _group(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"rows": rows}] if rows else []


def _figure(page: Frame, points: Points) -> dict[str, Any]:
    if not points.steps:
        return {}
    part = wants_part(page.request, "estimator")  # a fragment carries no script element; the chart fetches its points
    drawn = real_against_heuristic(points.steps, points.recorded, points.heuristic)
    shown = f"{len(drawn_points(len(points.steps))):,} of {page.row.reported_calls:,} reported calls"
    return {
        "figure": {
            "id": "scatter",
            "rows": "-scatter",
            "picture": scatter_picture(points.steps, points.recorded, points.heuristic),
            "data": None if part else json.loads(drawn.to_json()),
            "caption": f"{shown}: recorded prompt tokens (provider) over the heuristic estimate of the request that "
            "was sent (recomputed), on logarithmic axes. Lines: 1 (solid) to 5 recorded for one estimated.",
            "label": "Recorded prompt tokens over heuristic estimate.",
            "url": page.paths["estimator"] + "/figure.json",
            "step_url": page.links["steps"],
        },
        "table": _table(page, points),
    }


def _table(page: Frame, points: Points) -> dict[str, Any]:
    """The figure as a table; closed unless the address opens it with ?table=POINT."""
    path, choice, count = page.paths["estimator"], page.choice, len(points.steps)
    if not page.request.GET.get("table", ""):
        return {"url": path + choice.query(table=1), "rows": []}
    first = step_of(page.request, "table", count)
    stop, earlier = first + present.TABLE_ROWS, max(0, first - present.TABLE_ROWS)
    return {
        "close": path + choice.query(),
        "rows": present.points_table(points, first, page.paths["steps"], choice),
        "heads": present.POINT_HEADS,
        "caption": f"Points {first + 1:,} to {min(stop, count):,} of {count:,}; tokens.",
        "earlier": path + choice.query(table=step_number(earlier)) if first else "",
        "later": path + choice.query(table=step_number(stop)) if stop < count else "",
    }


@require_GET
def estimator_figure(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The points of the scatter figure, for a part that carries none."""
    page = frame(request, session_id)
    result = load_result(page.row)
    points = result.points if result is not None else Points([], [], [])
    drawn = real_against_heuristic(points.steps, points.recorded, points.heuristic)
    return HttpResponse(drawn.to_json(), content_type="application/json")
