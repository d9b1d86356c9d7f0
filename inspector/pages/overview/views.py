"""The overview of a session, its what-if and the points of its chart."""

from __future__ import annotations

import json
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from guard_core.estimation.forecast import Forecast
from guard_core.rules.words import headline
from inspector.figures.legend import legend_names
from inspector.figures.plain import plain_figure
from inspector.pages.overview import presenter, presets, without_calls
from inspector.pages.overview.answers import answers
from inspector.pages.overview.beside_fields import beside_fields
from inspector.pages.overview.figure import context_timeline, rows_of
from inspector.pages.overview.picture import context_picture
from inspector.pages.session import reread
from inspector.pages.session.following import SharedHtml, followed, rendered
from inspector.pages.session.frame import Frame, frame, number, step_of
from inspector.pages.shared.htmx import GROWN, render_part, wants_part
from inspector.pages.shared.numbers import step_number
from inspector.pages.window.views import window_context
from inspector.replays.choice import NAMES, form, plain
from inspector.storage import loading

SMALLEST_RANGE = 4  # steps: a zoom below this shows nothing new
SHAPE_HEADER = "Form-Shape"  # of a request from a page with a form: that of its fields (static/js/overview.js)


@require_GET
def session_overview(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Verdict, figures, chart, settings, findings, comparison.

    A changed setting swaps the chart and what follows from it. One that is not allowed changes only the line beside its
    field, in a whole page too: the page then shows the session without it.
    """
    if (answer := followed(request, session_id, _grown)) is not None:
        return answer
    page = frame(request, session_id)
    if wants_part(request, "table"):
        return render(request, "inspector/overview/_table.html", {"table": _table(page)})
    context = {**page.context("overview"), **_overview(page), "not_used": ()}  # the fields say it
    if wants_part(request, "overview"):  # the settings are reset
        return render(request, "inspector/overview/_reset.html", context)
    is_swap = wants_part(request, "chart")
    if is_swap and page.count and request.headers.get(SHAPE_HEADER) == context["form"]["shape"]:
        context["beside"] = json.dumps(beside_fields(context["form"], context["saved"]))
    response = render_part(request, "chart", "inspector/overview/_swap.html", "inspector/overview/detail.html", context)
    if is_swap:
        response["HX-Push-Url"] = "false" if page.errors else page.links["overview"]
        if page.errors:
            response["HX-Reswap"] = "none"
    return response


@require_GET
def session_figure(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The chart's points from a step to another, for a zoom, or under changed settings; none under settings that are
    not allowed. Like every address this one counts steps from 1."""
    page = frame(request, session_id)
    if page.errors:
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    analysis = page.analysis
    start = step_of(request, "from", page.count - SMALLEST_RANGE + 1)
    stop = number(request, "to", page.count, start + SMALLEST_RANGE, max(page.count, SMALLEST_RANGE))
    return JsonResponse(plain_figure(context_timeline(analysis.data, start, stop, forecast=analysis.forecast)))


def _grown(request: HttpRequest, session_id: UUID) -> SharedHtml:
    """What a page that follows a growing session gets, rendered once for all that follow it with the same choice."""
    page = frame(request, session_id)
    context = {**page.context("overview"), **_overview(page), "not_used": ()}
    return SharedHtml(rendered("inspector/overview/_grown.html", context, request))


def _overview(page: Frame) -> dict[str, Any]:
    analysis, row = page.analysis, page.row
    name = page.choice.words()
    recorded = {str(item.evidence.value) for item in analysis.head.compactions}
    if not page.count:
        load = partial(loading.load_events, row)
        return {
            "errors": page.errors,
            "verdict": "",
            "nothing": without_calls.known(analysis.ledger, analysis.window, load),
            **_facts(page),
        }
    replayed, forecast = analysis.facts.replay(analysis.replayed), analysis.forecast
    compared = presenter.comparison(analysis.data, analysis.facts.recording, replayed, forecast)
    replay = page.choice.query() or f"?policy={page.choice.kind.name}"
    side_by_side = urlencode([("side", row.pk), ("side", f"{row.pk}{replay}")])
    settings = {}
    if not wants_part(page.request, GROWN):  # the form of what-if, and the settings that were saved
        typed = {key: page.request.GET.get(key, "") for key in NAMES}
        settings = {"form": form(page.choice, typed, page.errors, in_use(page)), "saved": presets.menu(page)}
    return {
        "errors": page.errors,
        "answers": answers(page, "" if analysis.facts.is_contextguards else headline(analysis.facts.explanation)),
        "verdict": f"Simulated under {name}: {analysis.verdict.sentence}"
        if analysis.simulated
        else analysis.verdict.sentence,
        "kpis": presenter.simulated_kpis(analysis.replayed)
        if analysis.simulated
        else presenter.kpis(analysis.facts, analysis.observed, "/".join(sorted(recorded))),
        "figure": _figure(page, forecast),
        "table": _table(page),
        "findings": presenter.finding_rows(
            analysis.recorded_findings, analysis.shown_replayed_findings, page.paths, page.choice
        ),
        "decisions": {
            **presenter.decisions(
                analysis.facts.recording,
                replayed,
                analysis.data.replayed.divergence if analysis.data.replayed else None,
                page.paths["steps"],
                page.choice,
            ),
            "compare": f"{reverse('compare')}?{side_by_side}",
        },
        "comparison": {**compared, "name": name, "notes": analysis.replayed.notes if analysis.diverges else ()},
        "in_use": " ".join(in_use(page).values()),
        **settings,
        **_facts(page),
    }


def _facts(page: Frame) -> dict[str, Any]:
    analysis, row = page.analysis, page.row
    return {
        "read_again": reread.offer(row, page.reading),
        "facts": presenter.facts(
            analysis.facts, loading.window_in_use(row), page.format_label, row, analysis.window.value
        ),
        "missing": presenter.missing(analysis.facts),
        **window_context(page),
    }


def in_use(page: Frame) -> dict[str, str]:
    """The values that apply where nothing was typed, for the form's placeholders."""
    settings = page.analysis.replayed.settings
    kind = page.choice.kind
    shown = {item.key: plain(settings[item.name]) for item in kind.settings if item.name in settings}
    return {**shown, "window": f"{page.analysis.window.value:,}"}


def _figure(page: Frame, forecast: Forecast) -> dict[str, Any]:
    analysis = page.analysis
    # A fragment carries no script element: its chart fetches the points. That of a followed page brings them as text.
    part, grown = bool(getattr(page.request, "htmx", None)), wants_part(page.request, GROWN)
    seen = page.zoom
    points = (
        plain_figure(context_timeline(analysis.data, seen.start, seen.stop, forecast=forecast))
        if grown or not part
        else None
    )
    return {
        "id": "timeline",
        "rows": rows_of(analysis.data),
        "picture": context_picture(analysis.data, seen),
        "zoomed": len(seen) < page.count,
        "data": None if part else points,
        "legend": legend_names(points) if points else [],  # that of the chart that is replaced stays until then
        "text": json.dumps(points, cls=DjangoJSONEncoder) if grown else "",
        "caption": presenter.caption(analysis.data, analysis.facts, page.choice.words()),
        "label": "Prompt tokens over steps against threshold and window.",
        "url": page.paths["overview"] + "figure.json" + page.choice.query(),
        "step_url": page.links["steps"],
    }


def _table(page: Frame) -> dict[str, Any]:
    """The chart as a table; closed unless the address opens it with ?table=STEP."""
    path, choice, count = page.paths["overview"], page.choice, page.count
    opened = page.request.GET.get("table", "")
    if not opened:
        return {"url": path + choice.query(table=1), "rows": []}
    first = step_of(page.request, "table", count)
    rows, stop = presenter.table(page.analysis.data, first, page.paths["steps"], choice)
    earlier = max(0, first - presenter.TABLE_ROWS)
    return {
        "url": path + choice.query(table=1),
        "close": path + choice.query(),
        "rows": rows,
        "heads": presenter.table_heads(page.analysis.data),
        "focus": wants_part(page.request, "table"),
        "first": opened,
        "caption": f"Steps {step_number(first):,} to {stop:,} of {count:,}; tokens.",
        "earlier": path + choice.query(table=step_number(earlier)) if first else "",
        "later": path + choice.query(table=step_number(stop)) if stop < count else "",
    }
