"""Bringing sessions in: files, pasted text, bundled samples."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from guard_core.errors import GuardError, LimitExceeded
from guard_core.recordings import native
from guard_core.simulator.samples import SAMPLES
from inspector.models import Import
from inspector.services.importing import start_import
from inspector.services.uploads import Received, receive
from inspector.views.errors import plain

MAX_WINDOW = 100_000_000  # tokens


@require_POST
def upload(request: HttpRequest) -> HttpResponse:
    """Take files or pasted text; one import each. A file that is known already opens what is there."""
    strict = request.POST.get("mode") == "strict"
    try:
        window = _window(request.POST.get("window", ""))
        targets = [_address(received, strict, window) for received in _received(request)]
    except GuardError as error:
        return _refused(request, error)
    if not targets:
        return _refused(request, GuardError("choose a file, drop one, or paste a session"))
    if _wants_json(request):
        return JsonResponse({"imports": targets}, status=201)
    return HttpResponseRedirect(targets[0] if len(targets) == 1 else reverse("home"))


@require_POST
def open_sample(request: HttpRequest, name: str) -> HttpResponse:
    """Import one of the bundled sample sessions, or open it when it is there."""
    sample = SAMPLES.get(name)
    if sample is None:
        return plain(request, 404, "No such sample", f"The samples are: {', '.join(SAMPLES)}.")
    received = receive([native.write(sample.build())], f"{name}.jsonl")
    return redirect(_address(received, False, None))


def _received(request: HttpRequest) -> Iterator[Received]:
    for file in request.FILES.getlist("file"):
        yield receive(file.chunks(), file.name or "")
    if text := request.POST.get("text", "").strip():
        yield receive([text.encode("utf-8", "surrogatepass")], "pasted session")


def _address(received: Received, strict: bool, window: int | None) -> str:
    """Where to go: the sessions a known file already gave, an import under way, or a new import."""
    if not received.is_new and window is None:
        latest = received.recording.imports.order_by("-created").first()
        if latest and _stands(latest):
            return latest.get_absolute_url()
    return start_import(received.recording, strict=strict, window=window).get_absolute_url()


def _stands(latest: Import) -> bool:
    """Is there anything to show of this import: it is under way, or its sessions are still there."""
    if latest.state == Import.State.DONE:
        return latest.recording.sessions.filter(deleted=None).exists()
    return not latest.ended


def _window(text: str) -> int | None:
    text = text.strip().replace(",", "").replace("_", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and 0 < int(text[:12]) <= MAX_WINDOW):
        raise GuardError(f"the context window must be a whole number of tokens from 1 to {MAX_WINDOW:,}")
    return int(text)


def _refused(request: HttpRequest, error: GuardError) -> HttpResponse:
    status = 413 if isinstance(error, LimitExceeded) else 400
    if _wants_json(request):
        return JsonResponse({"error": str(error)}, status=status)
    return plain(request, status, "This cannot be imported", f"{str(error).capitalize()}. Nothing was stored.")


def _wants_json(request: HttpRequest) -> bool:
    return "application/json" in request.headers.get("Accept", "")
