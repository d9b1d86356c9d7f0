"""The context window as a person states it: for one session, or for all sessions of its model."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_POST

from guard_core.windows.window import parse_window
from inspector.models import Session
from inspector.pages.session.frame import Frame
from inspector.pages.shared import stated_windows as stating
from inspector.pages.shared.project import project_of
from inspector.pages.window import presenter as words

LONGEST = 60  # characters of what was typed that come back with the page


@require_POST
def session_window(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Set the window, or take the set one back with `reset` or an empty field. What is not a window comes back in the
    address of the page, which says beside the field what is wrong."""
    row = get_object_or_404(Session.objects.of(project_of(request)), pk=session_id, deleted=None)
    typed = "" if "reset" in request.POST else request.POST.get("window", "")[:LONGEST]
    if words.complaint(typed):
        return _to(row, {"window_typed": typed.replace("\x00", "\ufffd")}, "window-wrong")
    tokens = parse_window(typed) if typed.strip() else None
    if (request.POST.get("reset") or request.POST.get("for")) != "model" or not stating.is_of_model(row):
        stating.set_for_session(row, tokens)
        return HttpResponseRedirect(row.get_absolute_url())
    before = row.model_window
    stating.set_for_model(row, tokens)
    return _to(row, {"window_before": before or "none"}) if tokens else HttpResponseRedirect(row.get_absolute_url())


def _to(row: Session, query: dict[str, Any], place: str = "window-question") -> HttpResponse:
    return HttpResponseRedirect(f"{row.get_absolute_url()}?{urlencode(query, errors='replace')}#{place}")


def window_context(page: Frame) -> dict[str, Any]:
    """What the overview shows of the window: the question or what was just answered, and the form that changes it."""
    row, given = page.row, page.request.GET
    scopes = ("model", "session") if stating.is_of_model(row) else ("session",)
    typed, before = (given.get(name, "")[:LONGEST] for name in ("window_typed", "window_before"))
    asked = {}
    if page.count and not page.choice.window:
        asked = words.question(row, page.analysis.facts.window, scopes[0])
    done = {}
    if before and not asked:
        sharing = stating.of_model(row).filter(deleted=None).count()
        done = words.answered(row, sharing, before)
    return {
        "window_question": asked,
        "window_answered": done,
        "window_change": words.change(row, scopes),
        "window_typed": typed,
        "window_error": words.complaint(typed),
    }
