"""Bringing sessions in: files, pasted text, bundled samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from guard_core.errors import GuardError, LimitExceeded
from guard_core.recordings.formats import native
from guard_core.simulator.samples import SAMPLES
from guard_core.windows.window import parse_window
from inspector.ingest.companions import ImportOutcome, add, arranged, bring, placed
from inspector.ingest.submitting import submit
from inspector.ingest.unpacking import outcomes_of
from inspector.ingest.uploads import Received, receive, safe_folder, safe_name, take
from inspector.ingest.waiting import Wait, settled
from inspector.models import Import, Project
from inspector.pages.errors.views import plain
from inspector.pages.shared.import_answer import address_of, answer_of_all, wants_json
from inspector.pages.shared.listing import Listing
from inspector.pages.shared.project import project_of


@require_POST
def upload(request: HttpRequest, wait: Wait = settled) -> HttpResponse:
    """Take files or pasted text; one import each. A file that is known already opens what is there.

    A database and its `-wal` are one import. A ZIP archive that is no recording is one, too, until a worker has
    unpacked it; then its files are imports. `path` says for each file where it lay in a dropped folder: what is no
    session there is left aside. A damaged file is refused with its line and reason (422) unless `mode` is lenient;
    nothing of it is kept. `wait` gives the imports as they are when the answer is due.
    """
    lenient = request.POST.get("mode") == "lenient"
    try:
        window = parse_window(typed) if (typed := request.POST.get("window", "")).strip() else None
    except GuardError as error:
        return _refused(request, error)
    outcomes, refused = _outcomes(request, strict=not lenient, window=window)
    if all(outcome.job is None and not outcome.folder for outcome in outcomes):
        return _refused(request, refused)
    outcomes = _awaited(outcomes, wait)
    jobs = [outcome.job for outcome in outcomes if outcome.job is not None]
    if wants_json(request):
        failed = any(job.state == Import.State.FAILED and not job.left_aside for job in jobs)
        return JsonResponse(answer_of_all(outcomes), status=422 if failed else 201)
    if len(jobs) != 1:
        return HttpResponseRedirect(reverse("home") + Listing(sort="-added").address())
    if jobs[0].state == Import.State.FAILED:
        return render(request, "inspector/imports/detail.html", {"job": jobs[0]}, status=422)
    return HttpResponseRedirect(address_of(jobs[0]))


@require_POST
def open_sample(request: HttpRequest, name: str, wait: Wait = settled) -> HttpResponse:
    """Import one of the bundled sample sessions, or open it when it is there."""
    sample = SAMPLES.get(name)
    if sample is None:
        return plain(request, 404, "No such sample", f"The samples are: {', '.join(SAMPLES)}.")
    received = receive([native.write(sample.build())], f"{name}.jsonl")
    return redirect(address_of(wait([submit(project_of(request), received)])[0]))


class UploadItem(NamedTuple):
    """One recording of a request, or a file that is left aside."""

    name: str
    folder: str = ""  # within the folder that was dropped
    file: UploadedFile[Any] | None = None
    wal: UploadedFile[Any] | None = None
    text: str = ""
    aside: str = ""


def _given(request: HttpRequest) -> Iterator[UploadItem]:
    files = request.FILES.getlist("file")
    paths = request.POST.getlist("path")
    named = paths if len(paths) == len(files) else [""] * len(files)
    folders = [safe_folder(path) for path in named]
    names = [file.name or "" for file in files]
    for unit in arranged(list(zip(folders, names, strict=True))):
        file, folder = files[unit.file], folders[unit.file]
        if file.size or not folder:  # an empty file of a folder is nothing
            wal = None if unit.wal is None else files[unit.wal]
            yield UploadItem(safe_name(names[unit.file]), folder, file, wal, aside=unit.aside)
    if text := request.POST.get("text", "").strip():
        yield UploadItem("pasted session", text=text)


def _outcomes(request: HttpRequest, *, strict: bool, window: int | None) -> tuple[list[ImportOutcome], GuardError]:
    """What becomes of each file of a request, and the last error."""
    outcomes: list[ImportOutcome] = []
    refused = GuardError("choose a file, drop one, or paste a session")
    for item in _given(request):
        try:
            if item.aside:
                raise GuardError(f"{item.name} is {item.aside}")
            job = _import_of(project_of(request), item, strict=strict, window=window)
            outcomes.append(ImportOutcome(item.name, item.folder, job))
        except GuardError as error:
            refused = error
            outcomes.append(ImportOutcome(item.name, item.folder, aside=item.aside, refused=str(error)))
    return outcomes, refused


def _import_of(project: Project, item: UploadItem, *, strict: bool, window: int | None) -> Import:
    """The import of one file, with its place where it lay in a dropped folder."""
    received = _received(item)
    if item.folder:
        return placed(add(project, received, strict=strict, window=window), item.folder)
    return bring(project, received, strict=strict, window=window)


def _awaited(outcomes: list[ImportOutcome], wait: Wait) -> list[ImportOutcome]:
    """The outcomes when the answer is due; of an archive that has been taken apart by then, those of its files, which
    are waited for in their turn."""
    outcomes = _settled(outcomes, wait)
    files = [one for outcome in outcomes for one in (outcome.job and outcomes_of(outcome.job)) or [outcome]]
    return outcomes if files == outcomes else _settled(files, wait)


def _settled(outcomes: list[ImportOutcome], wait: Wait) -> list[ImportOutcome]:
    jobs = {job.pk: job for job in wait([outcome.job for outcome in outcomes if outcome.job is not None])}
    return [outcome if outcome.job is None else outcome._replace(job=jobs[outcome.job.pk]) for outcome in outcomes]


def _received(item: UploadItem) -> Received:
    if item.file is not None:
        received = take(item.file, item.name)
    else:
        received = receive([item.text.encode("utf-8", "surrogatepass")], item.name)
    if item.wal is not None and item.wal.size:  # an empty log is as good as none
        try:
            received = received._replace(wal=take(item.wal, f"{item.name}-wal"))
        except BaseException:
            received.drop()
            raise
    return received


def _refused(request: HttpRequest, error: GuardError) -> HttpResponse:
    status = 413 if isinstance(error, LimitExceeded) else 400
    text = str(error)
    sentence = f"{text[:1].upper()}{text[1:]}. Nothing was stored."
    if wants_json(request):
        return JsonResponse({"error": sentence}, status=status)
    return plain(request, status, "This cannot be imported", sentence)
