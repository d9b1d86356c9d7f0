"""Spans of running programs on their way into sessions: stored and acknowledged first, then read as a recording is.

The spans of one program (one resource) are one recording that grows, which is imported like an uploaded file: the
import extends its sessions. Nothing is imported of a program that has no spans about a language model.

Texts of spans are in the database as long as a later recording may need them. They go with the last session that has
them, when their recording is full, and when the program has been silent for a day. Until that day is over a digest
stays, by which spans that an exporter sends again are recognised.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NamedTuple

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet
from django.utils import timezone

from guard_core.recordings.formats.otlp.kinds import MARKS
from guard_core.recordings.formats.otlp.spans import RESOURCES, spans_of
from guard_core.recordings.reading import fields
from inspector.ingest import uploads
from inspector.ingest.importing import submit
from inspector.jobs import queue
from inspector.models import Import, Project, Session, SpanBatch
from inspector.storage.compression import compressed, decompressed

KIND = "import_spans"
LATER = timedelta(seconds=1)  # in which further spans come, to be read together
LEFT = timedelta(seconds=30)  # after which spans that no job has taken were left by a dead process
SILENT = timedelta(days=1)  # after which no exporter sends spans again
NAME_CHARS = 80
SLICE = 500  # keys in one query
# Bytes of a program's recording for which one second more is waited before all of it is read again, so that programs
# that grow leave the worker time for other jobs. Ours: 16 MiB take 0.4 seconds of a processor to read where no session
# is new (tests.benchmarks.measure_traces).
READ_AGAIN = 16 * 2**20


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
        new = [line for line in lines if _keep(project, line)]
        for source in {line.source for line in new}:
            _queue(SpanBatch.objects.of(project).filter(source=source))
    return len(new)


def run(batch_id: str) -> None:
    """The job: bring all spans of a program as one recording, where some are new."""
    first = SpanBatch.unscoped.select_related("project").defer("body").filter(pk=batch_id).first()
    if first is None:
        return
    rows = SpanBatch.objects.of(first.project).filter(source=first.source)
    _forget(rows.filter(_was_deleted()))
    if not rows.filter(taken=False).exists():
        return
    lines = _Fitting(rows)
    received = uploads.receive(lines, f"{first.service[:NAME_CHARS] or 'spans'}-{first.source[:8]}.otlp.jsonl")
    if not lines.has_new:  # the recording is full: the program goes on in another one
        received.drop()
        if _forget(rows.filter(_is_recorded())):
            _queue(rows)
        return
    with transaction.atomic():
        job = submit(first.project, received, strict=False)
        for start in range(0, len(lines.keys), SLICE):
            rows.filter(pk__in=lines.keys[start : start + SLICE]).update(taken=True, recording=job.recording)


def resume() -> None:
    """Queue the programs of which dead processes left spans."""
    left = SpanBatch.unscoped.filter(taken=False, created__lt=timezone.now() - LEFT)
    for project, source in left.values_list("project", "source").distinct()[:100]:
        _queue(SpanBatch.objects.of(project).filter(source=source))


def forget_silent() -> None:
    """Drop what no recording will need: rows without texts, spans of programs that have sent none for a day and are in
    a recording, and all of such a program that has nothing about a language model."""
    old = SpanBatch.unscoped.filter(created__lt=timezone.now() - SILENT)
    old.filter(body=b"").delete()
    programs = SpanBatch.unscoped.values_list("project", "source").annotate(
        heard=Max("created"), calls=Count("pk", filter=Q(has_calls=True))
    )
    for project, source, _, calls in programs.filter(heard__lt=timezone.now() - SILENT):
        rows = old.filter(project=project, source=source)
        (rows.filter(_is_recorded()) if calls else rows).delete()


def _forget(rows: QuerySet[SpanBatch]) -> int:
    """Drop the texts of spans; the digest of each stays for a while. How many rows."""
    return rows.update(body=b"", has_calls=False, taken=True)


class _Fitting:
    """The lines of a program, as many as one recording may have; the keys of those that were read, and whether one of
    them is in no recording yet."""

    def __init__(self, rows: QuerySet[SpanBatch]) -> None:
        self._rows = rows
        self.keys: list[int] = []
        self.has_new = False

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for key, taken in list(self._rows.exclude(body=b"").order_by("pk").values_list("pk", "taken")):
            line = decompressed(self._rows.values_list("body", flat=True).get(pk=key)) + b"\n"
            size += len(line)
            if self.keys and size > settings.MAX_UPLOAD_BYTES:
                return
            self.keys.append(key)
            self.has_new |= not taken
            yield line


def _queue(rows: QuerySet[SpanBatch]) -> None:
    """Queue the job of a program with these rows, where one is about a language model and no job waits. The more there
    is to be read, the later."""
    first = rows.filter(has_calls=True).select_related("recording").defer("body").first()
    if first is None or _waits(first):
        return
    read = first.recording.size if first.recording else 0
    queue.enqueue(KIND, str(first.pk), run_after=timezone.now() + LATER * (1 + read / READ_AGAIN))


def _is_recorded() -> Exists:
    """Was the recording that has the spans read to its end: it holds them now."""
    return Exists(Import.unscoped.filter(recording=OuterRef("recording"), state=Import.State.DONE))


def _was_deleted() -> Q:
    """Were all sessions deleted that the spans are in."""
    sessions = Session.unscoped.filter(recording=OuterRef("recording"), ordinal__gte=0)
    return Q(Exists(sessions.exclude(deleted=None))) & ~Q(Exists(sessions.filter(deleted=None)))


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
