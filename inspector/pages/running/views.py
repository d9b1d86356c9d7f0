"""The agents that stream into this server now, and how full their windows are."""

from __future__ import annotations

from datetime import timedelta

from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from inspector.models import Session, Stream
from inspector.pages.running import presenter
from inspector.pages.shared.htmx import render_part
from inspector.pages.shared.project import project_of
from inspector.watching.offered import is_offered

QUIET = timedelta(minutes=10)  # without a line; an agent that waits for its user is quiet, too
SHOWN = 200


@require_safe
def running(request: HttpRequest) -> HttpResponse:
    """Streams that have not ended and sent lines lately, the fullest window first; asked again every two seconds."""
    project = project_of(request)
    streams = Stream.objects.of(project).filter(ended=None, heard__gt=Now() - QUIET).order_by("-heard")[:SHOWN]
    by_recording = {stream.recording_id: stream for stream in streams}
    sessions = Session.objects.of(project).filter(recording__in=by_recording, ordinal=0, deleted=None)
    rows = [presenter.row(session, by_recording[session.recording_id]) for session in sessions]
    rows.sort(key=lambda row: (-row.fill, row.title))
    context = {"rows": rows, "quiet": int(QUIET.total_seconds() // 60), "can_watch": is_offered()}
    return render_part(request, "running", "inspector/running/_rows.html", "inspector/running/list.html", context)
