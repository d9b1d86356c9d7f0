"""The strip of a session alone, as a zoom asks for it."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from inspector.pages.session.frame import frame, step_of


@require_safe
def session_strip(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The strip for the parameters of a page; its links lead to that page, whose address they complete."""
    page = frame(request, session_id)
    at = step_of(request, "at", page.count) if request.GET.get("at") and page.count else None
    context = {**page.strip_row(at), "urls": page.links}
    return render(request, "inspector/session/_strip_row.html", context)
