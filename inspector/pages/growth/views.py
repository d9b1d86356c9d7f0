"""How far a session has grown: one small row, asked by pages that show it."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from inspector.models import Session
from inspector.pages.shared.project import project_of


@require_safe
def growth(request: HttpRequest, session_id: UUID) -> JsonResponse:
    """`steps`: model calls of the session now; `revision`: a number that rises with each change of what is stored."""
    sessions = Session.objects.of(project_of(request)).filter(pk=session_id, deleted=None)
    row = sessions.values("calls", "revision").first()
    if row is None:
        raise Http404("There is no such session.")
    response = JsonResponse({"steps": row["calls"], "revision": row["revision"]})
    response.headers["Cache-Control"] = "no-store"
    return response
