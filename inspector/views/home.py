"""The front page: all sessions, or the three ways to begin."""

from __future__ import annotations

from uuid import UUID

from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from guard_core.recordings import FORMATS
from guard_core.simulator.samples import SAMPLES
from inspector.models import Import, Session

PAGE_SIZE = 50
SORTS = {
    "new": ("-created", "ordinal"),
    "peak": ("-prompt_tokens_max",),
    "calls": ("-calls",),
    "compactions": ("-compactions",),
    "title": ("title",),
}
HAS = {
    "compaction": Q(compactions__gt=0),
    "overflow": Q(overflows__gt=0),
    "near-miss": Q(near_misses__gt=0),
    "no-usage": Q(reported_calls=0),
}


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The list with search, filter and sort in the URL; the empty state when nothing is stored."""
    found = _filtered(request)
    page = Paginator(found, PAGE_SIZE).get_page(request.GET.get("page"))
    everything = Session.objects.filter(deleted=None)
    context = {
        "page": page,
        "q": request.GET.get("q", "")[:200],
        "has": request.GET.get("has", ""),
        "sort": request.GET.get("sort", "new"),
        "choices": list(HAS),
        "sorts": list(SORTS),
        "samples": SAMPLES.values(),
        "formats": [item.label for item in FORMATS],
        "is_empty": not everything.exists(),
        "running": Import.objects.filter(state__in=["received", "running"]).select_related("recording")[:5],
        "undo": _undoable(request),
    }
    is_part = request.headers.get("HX-Request") and not request.headers.get("HX-Boosted")
    return render(request, "inspector/sessions/_list.html" if is_part else "inspector/sessions/list.html", context)


@require_POST
def rename(request: HttpRequest, pk: UUID) -> HttpResponse:
    session = get_object_or_404(Session, pk=pk, deleted=None)
    title = " ".join(request.POST.get("title", "").replace("\x00", "").split())[:200]
    if title:
        Session.objects.filter(pk=pk).update(title=title)
    return redirect(request.POST.get("next") or "home") if _is_own(request) else redirect(session)


@require_POST
def delete(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Take a session off the list; it can be brought back until the next start of the server."""
    session = get_object_or_404(Session, pk=pk, deleted=None)
    Session.objects.filter(pk=pk).update(deleted=timezone.now())
    response = redirect("home")
    response["Location"] += f"?undo={session.pk}"
    return response


@require_POST
def restore(request: HttpRequest, pk: UUID) -> HttpResponse:
    Session.objects.filter(pk=pk).update(deleted=None)
    return redirect("home")


def _is_own(request: HttpRequest) -> bool:
    return request.POST.get("next", "") == "/"


def _filtered(request: HttpRequest):
    sessions = Session.objects.filter(deleted=None).select_related("recording")
    if q := request.GET.get("q", "").replace("\x00", "").strip()[:200]:
        matches = Q(title__icontains=q) | Q(model__icontains=q) | Q(agent__icontains=q) | Q(format__icontains=q)
        sessions = sessions.filter(matches)
    if (has := request.GET.get("has", "")) in HAS:
        sessions = sessions.filter(HAS[has])
    return sessions.order_by(*SORTS.get(request.GET.get("sort", ""), SORTS["new"]))


def _undoable(request: HttpRequest) -> Session | None:
    try:
        return Session.objects.filter(pk=UUID(request.GET.get("undo", ""))).exclude(deleted=None).first()
    except ValueError:
        return None
