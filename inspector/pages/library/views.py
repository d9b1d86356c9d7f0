"""The front page: all sessions with search, filters and sums, or the ways to begin when there are none."""

from __future__ import annotations

from typing import Any, cast
from urllib.parse import urlsplit

from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from guard_core.simulator.samples import SAMPLES
from inspector.models import Import, Project, Session
from inspector.pages.library import presenter
from inspector.pages.library.dismissing import COOKIE, Dismissed, failed_lately
from inspector.pages.shared import parameters, saved_views
from inspector.pages.shared.htmx import wants_part
from inspector.pages.shared.listing import DAYS, NUMBERS, PAGE_SIZE, Listing, rows_of, totals
from inspector.pages.shared.project import project_of
from inspector.pages.shared.undo import undo
from inspector.watching.offered import is_offered

IMPORTS_SHOWN = 8
FILTERS = "filters"  # the form of the list
ASIDE_NAMED = 4  # files of a folder that are not sessions


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The list, one part of it for htmx, or the empty state. Every state is in the address."""
    if wants_part(request, "imports"):
        return _imports_part(request)
    listing = Listing.parse(request.GET)
    is_empty = not Session.objects.of(project_of(request)).filter(deleted=None).exists()
    context = {**bringing_in(), **undo(request), **imports(request)}
    if is_empty and not listing.filtered:
        return render(request, "inspector/library/empty.html", context)
    context.update(listed(project_of(request), listing, request.GET.get("rename", "")))
    context["unread"] = parameters.unread(request.GET, days=DAYS, numbers=NUMBERS)
    context["saved"] = saved_views.menu(request, saved_views.SESSIONS, listing.address())
    context["is_unread"] = any(context["unread"].values())
    context["is_part"] = wants_part(request, "sessions")
    template = "_list.html" if context["is_part"] else "list.html"
    response = render(request, f"inspector/library/{template}", context)
    if request.headers.get("HX-Trigger") == FILTERS:  # a form names its empty fields, too
        response["HX-Push-Url"] = reverse("home") + listing.address().removesuffix("?")
    return response


def listed(project: Project, listing: Listing, renaming: str = "") -> dict[str, Any]:
    """What the list shows: one page of rows, heads, sums, filters."""
    sessions = listing.sessions(project)
    sums = totals(sessions)
    paginator = Paginator(sessions, PAGE_SIZE)
    paginator.count = sums["sessions"]  # known already
    page = paginator.get_page(listing.page)
    shown = cast("QuerySet[Session]", page.object_list)  # a slice of `found`
    return {
        "listing": listing,
        "rows": [presenter.row(session) for session in rows_of(project, shown)],
        "heads": presenter.heads(listing),
        "totals": presenter.totals_line(sums),
        "pages": presenter.pages(listing, page),
        "filters": presenter.filters(project, listing),
        "address": listing.address(page=page.number),
        "first_page": listing.address(),
        "renaming": renaming,
    }


def bringing_in() -> dict[str, Any]:
    """The upload panel."""
    return {"samples": SAMPLES.values(), "formats": presenter.formats(), "can_watch": is_offered()}


def imports(request: HttpRequest) -> dict[str, Any]:
    """Files being read, and those of the last minutes that could not be and were not dismissed."""
    recent, dismissed = failed_lately(project_of(request)), Dismissed.parse(request.COOKIES.get(COOKIE, ""))
    failed = dismissed.shown(recent)
    aside = failed.filter(Import.are_left_aside())
    wanted = Q(state__in=Import.UNDER_WAY) | Q(pk__in=failed.exclude(pk__in=aside.values("pk")).values("pk"))
    mine = Import.objects.of(project_of(request))
    matching = mine.filter(wanted).order_by("-created")
    shown = list(matching[:IMPORTS_SHOWN])
    earlier = request.GET.get("dismissed", "")
    return {
        "imports": shown,
        "imports_more": max(0, matching.count() - len(shown)),
        "imports_waiting": mine.filter(state__in=Import.UNDER_WAY).count(),
        "imports_aside": aside.count(),
        "imports_failed": failed.count(),
        "aside_names": list(aside.order_by("name").values_list("name", flat=True).distinct()[:ASIDE_NAMED]),
        "dismissed_before": earlier,
        "dismissed_count": Dismissed.parse(earlier).shown(recent).count() - failed.count() if earlier else 0,
    }


def _imports_part(request: HttpRequest) -> HttpResponse:
    """Asked for once a second while files are read; reloads the list when there is another one."""
    shown = QueryDict(urlsplit(request.htmx.current_url or "").query)  # type: ignore[attr-defined]
    listing = Listing.parse(shown)
    context = {**imports(request), "address": listing.address(page=listing.page)}
    response = render(request, "inspector/library/_imports.html", context)
    if request.GET.get("waiting", "") != str(context["imports_waiting"]):
        response["HX-Trigger"] = "sessions-changed"
    return response
