"""A sweep as files, and as a report to share."""

from __future__ import annotations

from uuid import UUID

import msgspec
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from inspector.pages.shared.attachments import attachment, csv_file
from inspector.pages.shared.project import project_of
from inspector.pages.shared.share_fields import share_tables
from inspector.pages.sweep import presenter, runs
from inspector.pages.sweep.document import document_of
from inspector.pages.sweep.report import report_of


@require_safe
def sweep_csv(request: HttpRequest, pk: UUID) -> HttpResponse:
    """One line per setting."""
    header, *lines = presenter.sheet(_answer(request, pk))
    return csv_file("sweep.csv", [str(name) for name in header], lines)


@require_safe
def sweep_json(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The question, every setting over every session, and what follows."""
    body = document_of(_answer(request, pk))
    return attachment(HttpResponse(msgspec.json.encode(body), content_type="application/json"), "sweep.json")


@require_http_methods(["GET", "HEAD", "POST"])
def sweep_share(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Share the answer."""
    answer = _answer(request, pk)
    return share_tables(request, lambda level: report_of(answer, level), "this sweep", reverse("sweep", args=[pk]))


def _answer(request: HttpRequest, pk: UUID) -> runs.EndedSweep:
    row = get_object_or_404(runs.sweeps_of(project_of(request)), pk=pk)
    answer = runs.ended(row)
    if answer is None:
        raise Http404("this sweep has no answer")
    return answer
