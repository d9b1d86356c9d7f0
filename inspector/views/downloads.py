"""What was uploaded, byte for byte."""

from __future__ import annotations

from uuid import UUID

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from inspector.models import Recording


@require_safe
def raw(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The stored bytes as an attachment that no browser renders."""
    recording = get_object_or_404(Recording, pk=pk)
    try:
        file = recording.path.open("rb")
    except FileNotFoundError as error:
        raise Http404("the bytes of this recording are gone") from error
    response = FileResponse(file, as_attachment=True, filename=recording.name, content_type="application/octet-stream")
    response.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
    return response
