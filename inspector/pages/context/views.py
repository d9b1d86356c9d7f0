"""The page of what fills the context at a step."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from inspector.pages.context import presenter as present
from inspector.pages.context.prepared import prepared
from inspector.pages.session.frame import frame, other_step_note, step_of
from inspector.pages.shared.numbers import step_number


@require_GET
def session_context(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The request of a step by class, message and tool, what changed since the call before, and the whole session."""
    page = frame(request, session_id)
    at = step_of(request, "at", page.count, page.count - 1)
    context: dict[str, Any] = page.context("context", at if page.count else None)
    if page.count:
        value = prepared(page)
        context |= {
            "at": step_number(at),
            "count": page.count,
            "note": other_step_note(request, at, page.count),
            "sides": present.sides(page, at),
            "nav": present.navigation(page, at),
            "hidden": present.hidden(page),
            "areas": present.areas(page, value, at),
            "treemap": present.treemap(page, value, at),
            "figures": present.figures(page, value, at),
            "changes": present.changes(page, value, at),
            "repeats": present.repeats(page, value, at),
            "tools": present.tools(page, value),
            "unused": present.unused(page, value),
        }
    return render(request, "inspector/context/index.html", context)


@require_GET
def session_difference(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The requests of two steps, `?a=` and `?b=`: which messages were added, removed and rewritten between them."""
    page = frame(request, session_id)
    first, second = step_of(request, "a", page.count), step_of(request, "b", page.count, page.count - 1)
    context: dict[str, Any] = page.context("steps", second if page.count else None)
    if page.count:
        context |= {
            "count": page.count,
            "a": step_number(first),
            "b": step_number(second),
            "swapped": request.path
            + page.choice.query(side=page.shown_side, a=step_number(second), b=step_number(first)),
            "hidden": present.hidden(page),
            "difference": present.two_requests(page, prepared(page), first, second),
        }
    return render(request, "inspector/context/difference.html", context)
