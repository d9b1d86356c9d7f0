"""Bringing sessions in: files, pasted text, bundled samples."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from guard_core.errors import GuardError, LimitExceeded
from guard_core.recordings import native
from guard_core.simulator.samples import SAMPLES
from inspector.models import Import
from inspector.services.importing import submit
from inspector.services.uploads import Received, receive
from inspector.views.errors import plain
from inspector.views.imports import session_of

MAX_WINDOW = 100_000_000  # tokens
SMALL = 8 * 2**20  # bytes; such a file is read before the answer is due, so the answer can be the session itself
PATIENCE = 3.0  # seconds that the answer waits for a small file; after that the progress page takes over
LOOK_EVERY = 0.015


@require_POST
def upload(request: HttpRequest) -> HttpResponse:
    """Take files or pasted text; one import each. A file that is known already opens what is there.

    A damaged file is refused with its line and reason (422) unless `mode` is lenient; nothing of it is kept.
    """
    lenient = request.POST.get("mode") == "lenient"
    try:
        window = _window(request.POST.get("window", ""))
        jobs = [submit(received, strict=not lenient, window=window) for received in _received(request)]
    except GuardError as error:
        return _refused(request, error)
    if not jobs:
        return _refused(request, GuardError("choose a file, drop one, or paste a session"))
    jobs = _settled(jobs)
    if _wants_json(request):
        failed = any(job.state == Import.State.FAILED for job in jobs)
        return JsonResponse({"imports": [_answer(job) for job in jobs]}, status=422 if failed else 201)
    if len(jobs) > 1:
        return HttpResponseRedirect(reverse("home"))
    if jobs[0].state == Import.State.FAILED:
        return render(request, "inspector/imports/detail.html", {"job": jobs[0]}, status=422)
    return HttpResponseRedirect(_address(jobs[0]))


@require_POST
def open_sample(request: HttpRequest, name: str) -> HttpResponse:
    """Import one of the bundled sample sessions, or open it when it is there."""
    sample = SAMPLES.get(name)
    if sample is None:
        return plain(request, 404, "No such sample", f"The samples are: {', '.join(SAMPLES)}.")
    received = receive([native.write(sample.build())], f"{name}.jsonl")
    return redirect(_address(_settled([submit(received)])[0]))


def _received(request: HttpRequest) -> Iterator[Received]:
    for file in request.FILES.getlist("file"):
        yield receive(file.chunks(), file.name or "")
    if text := request.POST.get("text", "").strip():
        yield receive([text.encode("utf-8", "surrogatepass")], "pasted session")


def _settled(jobs: list[Import]) -> list[Import]:
    """The imports after a short wait for the small ones, so that most people never see a progress page."""
    end = time.monotonic() + PATIENCE
    for job in jobs:
        while not job.ended and job.total <= SMALL and time.monotonic() < end:
            time.sleep(LOOK_EVERY)
            job.refresh_from_db()
    return jobs


def _address(job: Import) -> str:
    session = session_of(job)
    return session.get_absolute_url() if session else job.get_absolute_url()


def _answer(job: Import) -> dict[str, Any]:
    failed = job.state == Import.State.FAILED
    return {
        "name": job.name,
        "state": job.state,
        "url": _address(job),
        "report": f"{job.get_absolute_url()}?report",
        "raw": reverse("recording_raw", args=[job.recording_id]) if job.recording_id else "",
        "error": job.message if failed else "",
        "line": job.line if failed else None,
        "column": job.column if failed else None,
        "mendable": job.mendable,
    }


def _window(text: str) -> int | None:
    text = text.strip().replace(",", "").replace("_", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and 0 < int(text[:12]) <= MAX_WINDOW):
        raise GuardError(f"the context window must be a whole number of tokens from 1 to {MAX_WINDOW:,}")
    return int(text)


def _refused(request: HttpRequest, error: GuardError) -> HttpResponse:
    status = 413 if isinstance(error, LimitExceeded) else 400
    text = str(error)
    sentence = f"{text[:1].upper()}{text[1:]}. Nothing was stored."
    if _wants_json(request):
        return JsonResponse({"error": sentence}, status=status)
    return plain(request, status, "This cannot be imported", sentence)


def _wants_json(request: HttpRequest) -> bool:
    return "application/json" in request.headers.get("Accept", "")
