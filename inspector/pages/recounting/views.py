"""What the pages of a session show while its columns, stored by an earlier version, are made again."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render

from guard_core.recordings import LABELS
from inspector.jobs.recounting import RecountingState, ensure_recounted
from inspector.models import Session
from inspector.pages.shared.project import project_of

RETRY_SECONDS = "2"


def page_recounting(request: HttpRequest, session_id: str) -> HttpResponse:
    """How far it is, and what is known of the session without its columns. The page looks again by itself."""
    row = get_object_or_404(Session.objects.of(project_of(request)), pk=session_id, deleted=None)
    failed = ensure_recounted(row) is RecountingState.FAILED
    if request.path.endswith(".json"):
        answer = JsonResponse({"state": "failed" if failed else "recounting"}, status=503 if failed else 202)
        answer["Retry-After"] = RETRY_SECONDS
        return answer
    if getattr(request, "htmx", None):  # a part of a page that was opened under the earlier version
        return HttpResponse(headers={"HX-Refresh": "true"})
    context = {"session": row, "format": LABELS.get(row.format, row.format), "failed": failed}
    response = render(request, "inspector/recounting/detail.html", context)
    if not failed:
        response["Refresh"] = RETRY_SECONDS
    return response
