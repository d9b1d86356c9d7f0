"""What was uploaded, byte for byte; of a running agent's stream, its lines."""

from __future__ import annotations

from tempfile import SpooledTemporaryFile
from typing import IO, cast
from uuid import UUID

from django.conf import settings
from django.http import FileResponse, Http404, HttpRequest
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from inspector.ingest.live import lines_of
from inspector.models import Recording, Stream
from inspector.pages.shared.attachments import sandboxed
from inspector.pages.shared.project import project_of

MOST_HELD = 1 << 20  # bytes of a stream in memory; more goes to a file


@require_safe
def raw(request: HttpRequest, pk: UUID) -> FileResponse:
    """The stored bytes as an attachment that no browser renders; with `?wal` those of the write-ahead log. Of a stream,
    the lines that were received."""
    recording = get_object_or_404(Recording.objects.of(project_of(request)), pk=pk)
    if (stream := Stream.objects.of(project_of(request)).filter(recording=recording).first()) is not None:
        return _as_file(_lines(stream), f"{recording.name}.jsonl")
    wal = "wal" in request.GET
    if wal and not recording.wal_sha256:
        raise Http404("this recording has no write-ahead log")
    try:
        file = (recording.wal_path if wal else recording.path).open("rb")
    except FileNotFoundError as error:
        raise Http404("the bytes of this recording are missing") from error
    name = f"{recording.name}-wal" if wal else recording.name
    return _as_file(file, name)


def _lines(stream: Stream) -> IO[bytes]:
    """The lines that a running agent has sent up to now, as a file that can be imported."""
    file = SpooledTemporaryFile(MOST_HELD, dir=str(settings.INCOMING_DIR))  # noqa: SIM115 - the answer closes it
    file.writelines(line + b"\n" for line in lines_of(stream))
    file.seek(0)
    return cast("IO[bytes]", file)


def _as_file(file: IO[bytes], name: str) -> FileResponse:
    return sandboxed(FileResponse(file, as_attachment=True, filename=name, content_type="application/octet-stream"))
