"""An import while it runs, and its report when it has ended."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from inspector.models import Import, Session
from inspector.services.importing import Report, cancel_import, start_import

PHASES = ("received", "parsed", "counted", "indexed")


@require_safe
def detail(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The page of one import. A clean import of one session goes on to it, unless the report was asked for."""
    job = get_object_or_404(Import.objects.select_related("recording"), pk=pk)
    context = _context(job)
    if context["forward"] and "report" not in request.GET:
        return redirect(context["forward"])
    return render(request, "inspector/imports/detail.html", context)


@require_safe
def status(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The part of the page that changes. Tells the browser to go on to the session when there is one."""
    job = get_object_or_404(Import.objects.select_related("recording"), pk=pk)
    context = _context(job)
    response = render(request, "inspector/imports/_status.html", context)
    if context["forward"] and "report" not in request.GET:
        response.headers["HX-Redirect"] = context["forward"]
    return response


@require_POST
def cancel(request: HttpRequest, pk: UUID) -> HttpResponse:
    job = get_object_or_404(Import, pk=pk)
    cancel_import(job)
    return redirect(job)


@require_POST
def again(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Read the same bytes once more, in the other mode when asked."""
    job = get_object_or_404(Import.objects.select_related("recording"), pk=pk)
    return redirect(start_import(job.recording, strict=request.POST.get("mode") == "strict", window=job.window))


def _context(job: Import) -> dict[str, Any]:
    report = msgspec.json.decode(job.report, type=Report) if job.report else None
    sessions = list(Session.objects.filter(recording=job.recording, deleted=None)) if report else []
    reached = PHASES.index(job.phase) if job.phase in PHASES else 0
    steps = [(name, index < reached or job.state == "done", index == reached) for index, name in enumerate(PHASES)]
    clean = report is not None and not report.problem_count and len(sessions) == 1
    return {
        "job": job,
        "report": report,
        "sessions": sessions,
        "phases": steps,
        "share": round(100 * report.reported / report.steps) if report and report.steps else 0,
        "forward": sessions[0].get_absolute_url() if clean else "",
    }
