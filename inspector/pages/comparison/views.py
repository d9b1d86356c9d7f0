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
from inspector.pages.session.frame import frame
from inspector.pages.shared.htmx import render_part
from inspector.pages.shared.project import project_of
from inspector.replays.choice import Choice, parse_choice
from inspector.replays.comparing import Comparison, comparison_of

ALL = "all"  # of `profiles` in an address: each profile has a row


@require_GET
def session_policies(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The table; `?sort=` a column, `-` before it for the largest first, `?profiles=all` for every profile, `?format=`
    csv or json for a download."""
    row = get_object_or_404(Session.objects.of(project_of(request)), pk=session_id, deleted=None)
    choice, _ = parse_choice({"window": request.GET.get("window", "")})
    every = request.GET.get("profiles") == ALL
    found = comparison_of(row, choice, all_profiles=every)  # before the frame, whose replay may take long, too
    wanted = request.GET.get("format", "")
    if wanted in ("csv", "json"):
        return _download(found, wanted)
    page = frame(request, session_id)
    order = present.Order.of(request.GET.get("sort", ""))
    context: dict[str, Any] = {
        **page.context("policies"),
        "headline": present.headline(found),
        "rows": present.rows(found, order, page),
        "headings": present.headings(order, lambda sort: _address(page.paths["policies"], choice, every, sort)),
        "profiles": _switch(page.paths["policies"], choice, every, request.GET.get("sort", "")),
        "assumptions": (*found.assumptions, *filter(None, [forecast_words(page.analysis.forecast)])),
        "floor": present.floor(found, page),
        "downloads": {
            kind: _address(page.paths["policies"], choice, every, "", format=kind) for kind in ("csv", "json")
        },
        "window": f"{found.window:,}",
    }
    return render_part(
        request, "policies", "inspector/comparison/_policies.html", "inspector/comparison/index.html", context
    )


def _address(path: str, choice: Choice, every: bool, sort: str, **more: str) -> str:
    return path + choice.query(profiles=ALL if every else "", sort=sort, **more)


def _switch(path: str, choice: Choice, every: bool, sort: str) -> list[dict[str, Any]]:
    return [
        {"label": label, "url": _address(path, choice, value, sort), "current": value == every}
        for label, value in (("Default profiles", False), ("All profiles", True))
    ]


def _download(found: Comparison, wanted: str) -> HttpResponse:
    if wanted == "json":
        return JsonResponse(present.plain(found))
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="policies.csv"'
    csv.writer(response).writerows(present.sheet(found))
    return response
