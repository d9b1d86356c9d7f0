"""The agents whose sessions grow on this server now, and how full their windows are."""

from __future__ import annotations

from datetime import timedelta

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from inspector.pages.running import presenter
from inspector.pages.running.lately import growing
from inspector.pages.shared.htmx import render_part
from inspector.pages.shared.project import project_of
from inspector.watching.offered import is_offered

QUIET = timedelta(minutes=10)  # in which nothing was added; an agent that waits for its user is quiet, too


@require_safe
def running(request: HttpRequest) -> HttpResponse:
    """Sessions that have grown lately and not ended, the fullest window first; asked again every two seconds."""
    now = timezone.now()
    rows = [presenter.row(one, now) for one in growing(project_of(request), QUIET)]
    rows.sort(key=lambda row: (-row.fill, row.title))
    context = {"rows": rows, "quiet": int(QUIET.total_seconds() // 60), "can_watch": is_offered()}
    return render_part(request, "running", "inspector/running/_rows.html", "inspector/running/list.html", context)
