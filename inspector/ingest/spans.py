"""Spans of running programs on their way into sessions: stored and acknowledged first, then read as a recording is.

The spans of one program (one resource) are one recording that grows, which is imported like an uploaded file: the
import extends its sessions. Nothing is imported of a program that has no spans about a language model.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any, NamedTuple

import msgspec
from django.db import transaction
from django.utils import timezone

from guard_core.recordings.formats.otlp.kinds import MARKS
from guard_core.recordings.formats.otlp.spans import RESOURCES, spans_of
from guard_core.recordings.reading import fields
from inspector.ingest import uploads
from inspector.ingest.importing import submit
from inspector.jobs import queue
from inspector.models import Project, SpanBatch
from inspector.storage.compression import compressed, decompressed

KIND = "import_spans"
LATER = timedelta(seconds=1)  # in which further spans come, to be read together
LEFT = timedelta(seconds=30)  # after which spans that no job has taken were left by a dead process
NAME_CHARS = 80


class _Line(NamedTuple):
    source: str
    service: str
    body: bytes
    has_calls: bool


def store(project: Project, request: dict[str, Any]) -> int:
    """Store what an export request holds, all of it or nothing; how many resources of it are new. Committed when it
    returns."""
    lines = list(map(_line, (item for key in RESOURCES for item in fields.objects(request.get(key)))))
    with transaction.atomic():
        rows = SpanBatch.objects.of(project)
        new = [line for line in lines if _keep(project, line)]
        for source in {line.source for line in new}:
            first = rows.filter(source=source, has_calls=True).first()
            if first is not None and not _waits(first):
                queue.enqueue(KIND, str(first.pk), run_after=timezone.now() + LATER)
    return len(new)


def run(batch_id: str) -> None:
    """The job: bring all spans of a program as one recording, where some are new."""
    first = SpanBatch.unscoped.select_related("project").filter(pk=batch_id).first()
    if first is None:
        return
    rows = SpanBatch.objects.of(first.project).filter(source=first.source)
    keys = list(rows.order_by("pk").values_list("pk", flat=True))
    if not rows.filter(pk__in=keys, taken=False).exists():
        return
    name = f"{first.service[:NAME_CHARS] or 'spans'}-{first.source[:8]}.otlp.jsonl"
    lines = (decompressed(rows.values_list("body", flat=True).get(pk=key)) + b"\n" for key in keys)
    received = uploads.receive(lines, name)
    with transaction.atomic():
        submit(first.project, received, strict=False)
        rows.filter(pk__lte=keys[-1]).update(taken=True)


def resume() -> None:
    """Queue the programs of which dead processes left spans."""
    left = SpanBatch.unscoped.filter(taken=False, created__lt=timezone.now() - LEFT)
    for project, source in left.values_list("project", "source").distinct()[:100]:
        first = SpanBatch.objects.of(project).filter(source=source, has_calls=True).first()
        if first is not None and not _waits(first):
            queue.enqueue(KIND, str(first.pk))


def _line(resource: dict[str, Any]) -> _Line:
    about = fields.mapping(resource, "resource")
    source = hashlib.sha256(msgspec.json.encode(about, order="deterministic")).hexdigest()
    value = {"resourceSpans": [resource]}
    some = list(spans_of(value))
    has_calls = any(key.startswith(MARKS) for span in some for key in span.attributes)
    service = next((span.service for span in some if span.service), "")
    return _Line(source, service[:200], msgspec.json.encode(value, order="deterministic"), has_calls)


def _keep(project: Project, line: _Line) -> bool:
    """Store a line that is new."""
    values = {"service": line.service, "body": compressed(line.body), "has_calls": line.has_calls}
    digest = hashlib.sha256(line.body).digest()
    rows = SpanBatch.objects.of(project)
    _, is_new = rows.get_or_create(source=line.source, digest=digest, defaults=values)
    return is_new


def _waits(first: SpanBatch) -> bool:
    """Is the job of a program in the queue, not begun."""
    return bool(queue.entries(KIND).filter(args_kwargs__args__0=str(first.pk), status="READY").exists())
