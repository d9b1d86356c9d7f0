"""An import while it runs, and its report when it has ended."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Max, Sum
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from inspector.figures.first_look import picture
from inspector.ingest.importing import AWAITED_FOR
from inspector.ingest.submitting import cancel_import, only_session_of, report_of, sessions_of, start_import
from inspector.ingest.uploads import lacks_log
from inspector.models import Import
from inspector.pages.errors.views import plain
from inspector.pages.imports import choosing, members
from inspector.pages.shared.import_answer import answer_of, wants_json
from inspector.pages.shared.project import project_of
from inspector.pages.shared.undo import undo
from inspector.storage import deleting

ARCHIVE_PHASES = {"received": "received", "parsed": "unpacking", "indexed": "adding the files"}
PHASES = {"received": "received", "parsed": "reading", "counted": "counting tokens", "indexed": "storing"}
MAX_LISTED = 100  # sessions named on the report page; its script shows the others as one asks for them


@require_safe
def detail(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The page of one import. A clean import of one session redirects to it, unless the report was asked for."""
    job = _job(request, pk)
    if "report" not in request.GET and (session := only_session_of(job)):
        return redirect(session)
    return render(request, "inspector/imports/detail.html", {**_context(job), **undo(request)})


@require_safe
def status(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The part of the page that changes. Redirects the browser to the session when there is one.

    A script hears the same as in the answer to the upload.
    """
    job = _job(request, pk)
    if wants_json(request):
        return JsonResponse(answer_of(job))
    response = render(request, "inspector/imports/_status.html", _context(job))
    if session := only_session_of(job):
        response.headers["HX-Redirect"] = session.get_absolute_url()
    return response


@require_POST
def cancel(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Stop reading; nothing of the file is kept."""
    cancel_import(_job(request, pk))
    return redirect("import_detail", pk)


@require_POST
def again(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Read the kept bytes once more."""
    job = _job(request, pk)
    if job.recording is None:
        return plain(request, 409, "The file was not stored", "The import failed. Upload the file again.")
    return redirect(start_import(job.recording, strict=job.strict, window=job.window))


@require_POST
def choose(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Keep the chosen sessions of a file; the others go off the list, with an undo.

    `out` names them; without script it is those of `listed` that came without their tick (`id`).
    """
    job = _job(request, pk)
    out = _keys(request.POST.get("out", "")) | (_keys(request.POST.get("listed", "")) - set(request.POST.getlist("id")))
    mine = out & set(map(str, sessions_of(job).values_list("pk", flat=True)))
    undo = deleting.delete(project_of(request), sessions_of(job).filter(pk__in=mine))
    query = f"?report&undo={undo}" if undo else "?report"
    return HttpResponseRedirect(f"{job.get_absolute_url()}{query}")


def _keys(text: str) -> set[str]:
    return set(text.split(",")) - {""}


def _job(request: HttpRequest, pk: UUID) -> Import:
    return get_object_or_404(Import.objects.of(project_of(request)).select_related("recording"), pk=pk)


def _context(job: Import) -> dict[str, Any]:
    report = report_of(job)
    sessions = sessions_of(job).filter(deleted=None).order_by("ordinal", "pk")
    rows = [choosing.row(session, report) for session in sessions] if report else []
    phases = ARCHIVE_PHASES if job.unpacks else PHASES
    names = list(phases)
    read: dict[str, int] = {}
    if report:  # the figures of all sessions that the import brought, as their pages have them
        sums = ("events", "calls", "reported_calls", "tool_calls", "tool_results", "compactions", "prompt_tokens_sum")
        read = sessions_of(job).aggregate(
            **{name: Sum(name, default=0) for name in sums}, prompt_tokens_max=Max("prompt_tokens_max", default=0)
        )
    recording = job.recording
    reached = len(names) if job.state == Import.State.DONE else names.index(job.phase) if job.phase in names else 0
    places = [
        (word, "done" if n < reached else "now" if n == reached else "") for n, word in enumerate(phases.values())
    ]
    return {
        "job": job,
        "look": None if job.ended else picture(job.first_look),
        "awaited_for": AWAITED_FOR,
        "report": report,
        "sessions": rows[:MAX_LISTED],
        "all_sessions": rows if len(rows) > 1 else [],
        "known_words": choosing.known_words(report) if report else "",
        "listed": ",".join(row["id"] for row in rows[:MAX_LISTED]),
        "phases": places,
        "members": members.context_of(job) if job.unpacks else None,
        "wal_missing": report is not None and recording is not None and lacks_log(recording),
        "skipped": sorted(report.skipped.items(), key=lambda item: -item[1]) if report else [],
        "read": read,
        "share": round(100 * read["reported_calls"] / read["calls"]) if read.get("calls") else 0,
    }
