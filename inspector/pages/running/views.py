"""The agents whose sessions grow on this server now, and how full their windows are."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from inspector.pages.running import presenter
from inspector.pages.shared import lately
from inspector.pages.shared.htmx import render_part
from inspector.pages.shared.lately import QUIET, growing
from inspector.pages.shared.project import project_of
from inspector.watching.offered import is_offered


@require_safe
def running(request: HttpRequest) -> HttpResponse:
    """Sessions that have grown lately and not ended, the fullest window first; asked again every two seconds."""
    now = timezone.now()
    rows = [presenter.row(one, now) for one in growing(project_of(request), QUIET)]
    rows.sort(key=lambda row: (-row.fill, row.title))
    context = {
        "rows": rows,
        "quiet": int(QUIET.total_seconds() // 60),
        "most": lately.SHOWN if len(rows) == lately.SHOWN else 0,
        "can_watch": is_offered(),
    }
    return render_part(request, "running", "inspector/running/_rows.html", "inspector/running/list.html", context)
