"""Each finding of a session with the settings under which a replay lacks it."""

from __future__ import annotations

from uuid import UUID

import msgspec
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from guard_core.avoiding import nothing_words
from guard_core.findings import conclusions
from guard_core.outcomes.words import forecast_words
from inspector.models import Session
from inspector.pages.session.frame import frame
from inspector.pages.shared.project import project_of
from inspector.pages.shared.remedies import answer_rows
from inspector.replays.avoiding import answers_of


@require_GET
def session_avoid(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The page; `?format=json` is a download, in which steps, messages and compactions count from 0."""
    row = get_object_or_404(Session.objects.of(project_of(request)), pk=session_id, deleted=None)
    answers = answers_of(row)  # before the frame, whose replay may take long, too
    if request.GET.get("format") == "json":
        body = msgspec.json.format(msgspec.json.encode(answers))
        response = HttpResponse(body, content_type="application/json")
        response["Content-Disposition"] = 'attachment; filename="avoided.json"'
        return response
    page = frame(request, session_id)
    findings, _ = conclusions(page.analysis.facts)
    context = {
        **page.context("overview"),
        "answers": answer_rows(answers, findings, page.analysis, page.paths["overview"]),
        "nothing": nothing_words(findings),
        "replays": max((item.tried for item in answers.answers), default=0),
        "error": forecast_words(page.analysis.forecast),
        "json": page.paths["avoid"] + "?format=json",
    }
    return render(request, "inspector/avoid/index.html", context)
