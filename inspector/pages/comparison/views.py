"""Every policy on one session, side by side."""

from __future__ import annotations

import csv
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET

from guard_core.outcomes.words import forecast_words
from inspector.models import Session
from inspector.pages.comparison import presenter as present
from inspector.pages.session.frame import frame, number
from inspector.pages.shared.htmx import render_part
from inspector.pages.shared.paging import pager
from inspector.pages.shared.project import project_of
from inspector.replays.choice import parse_choice
from inspector.replays.comparing import PolicyComparison, comparison_of

ROWS = 30  # of policies that a page shows: under 1,000 elements
ALL = "all"  # of `profiles` in an address: each profile has a row


@require_GET
def session_policies(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The table; `?show=` its columns, `?sort=` one of them, `-` before it for the largest first, `?from=` its first
    row, `?profiles=all` for every profile, `?format=` csv or json for a download."""
    row = get_object_or_404(Session.objects.of(project_of(request)), pk=session_id, deleted=None)
    choice, _ = parse_choice({"window": request.GET.get("window", "")})
    every = request.GET.get("profiles") == ALL
    compared = comparison_of(row, choice, all_profiles=every)  # before the frame, whose replay may take long, too
    wanted = request.GET.get("format", "")
    if wanted in ("csv", "json"):
        return _download(compared, wanted)
    page = frame(request, session_id)
    sort = request.GET.get("sort", "")
    order = present.Order.of(sort)
    view = present.view_of(request.GET.get("show", ""), order)
    policies = present.ordered(compared, order)
    asked = {"profiles": ALL if every else "", "show": view, "sort": sort}

    def address(**changes: Any) -> str:
        return page.paths["policies"] + choice.query(**(asked | changes))

    first = number(request, "from", 1, 1, max(1, len(policies))) - 1
    shown = pager(len(policies), first, ROWS, lambda row: address(**{"from": row}) + "#policies")
    context: dict[str, Any] = {
        **page.context("policies"),
        "headline": present.headline(compared),
        "rows": present.rows(compared, policies[shown.shown], view, page),
        "headings": present.headings(view, order, lambda key: address(sort=key)),
        "pager": shown,
        "views": [
            {"label": label, "url": address(show=name, sort=""), "current": name == view}
            for name, (label, _) in present.VIEWS.items()
        ],
        "profiles": [
            {"label": label, "url": address(profiles=value), "current": (value == ALL) == every}
            for label, value in (("Default profiles", ""), ("All profiles", ALL))
        ],
        "assumptions": (*compared.assumptions, *filter(None, [forecast_words(page.analysis.forecast)])),
        "floor": present.floor(compared, page),
        "downloads": {kind: address(show="", sort="", format=kind) for kind in ("csv", "json")},
        "window": f"{compared.window:,}",
    }
    return render_part(
        request, "policies", "inspector/comparison/_policies.html", "inspector/comparison/index.html", context
    )


def _download(compared: PolicyComparison, wanted: str) -> HttpResponse:
    if wanted == "json":
        return JsonResponse(present.plain(compared))
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="policies.csv"'
    csv.writer(response).writerows(present.sheet(compared))
    return response
