"""What was uploaded, byte for byte."""

from __future__ import annotations

from uuid import UUID

from django.http import FileResponse, Http404, HttpRequest
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from inspector.models import Recording
from inspector.pages.shared.attachments import sandboxed
from inspector.pages.shared.project import project_of


@require_safe
def raw(request: HttpRequest, pk: UUID) -> FileResponse:
    """The stored bytes as an attachment that no browser renders; with `?wal` those of the write-ahead log."""
    recording = get_object_or_404(Recording.objects.of(project_of(request)), pk=pk)
    wal = "wal" in request.GET
    if wal and not recording.wal_sha256:
        raise Http404("this recording has no write-ahead log")
    try:
        file = (recording.wal_path if wal else recording.path).open("rb")
    except FileNotFoundError as error:
        raise Http404("the bytes of this recording are missing") from error
    name = f"{recording.name}-wal" if wal else recording.name
    return sandboxed(FileResponse(file, as_attachment=True, filename=name, content_type="application/octet-stream"))
