"""Which sessions have grown lately, however what was added came: by a stream, in a longer file, or as spans."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from inspector.ingest.submitting import report_of
from inspector.models import Import, Project, Recording, Session, SpanBatch, Stream

QUIET = timedelta(minutes=10)  # in which nothing was added; an agent that waits for its user is quiet, too
SHOWN = 200
# Ours: of the imports that extended sessions, the latest that are looked at; one file that is watched every second has
# 600 in ten minutes.
IMPORTS = 2_000


class GrowingSession(NamedTuple):
    """A session that has grown lately: when it last did. `stream`: its own, where it has one."""

    session: Session
    heard: datetime
    stream: Stream | None = None


def is_growing(row: Session) -> bool:
    """Was something added to a session less than QUIET ago, and its agent has not said that it has ended: does
    `growing` list it."""
    spans = SpanBatch.objects.of(row.project_id).filter(recording=OuterRef("pk"), created__gt=Now() - QUIET)
    streamed = Q(stream__ended=None, stream__heard__gt=Now() - QUIET)
    extended = Q(created__gt=Now() - QUIET) & Q(created__gt=row.created)  # a longer file is a recording of its own
    recordings = Recording.objects.of(row.project_id).filter(pk=row.recording_id)
    return recordings.filter(streamed | extended | Exists(spans)).exists()


def growing(project: Project, quiet: timedelta) -> list[GrowingSession]:
    """The sessions of a project that something was added to less than `quiet` ago, the latest first, SHOWN at most;
    not those whose agent said that it has ended. A session of spans counts from its first ones on, one of a file from
    when a longer file has extended it: a file alone may be an old one."""
    sessions = Session.objects.of(project).filter(deleted=None)
    streams = Stream.objects.of(project).filter(ended=None, heard__gt=Now() - quiet).order_by("-heard")[:SHOWN]
    by_recording = {stream.recording_id: stream for stream in streams}
    extended = _extended(project, quiet)
    spans = SpanBatch.objects.of(project).filter(recording=OuterRef("recording"), created__gt=Now() - quiet)
    begun = sessions.filter(created__gt=Now() - quiet, ordinal__gte=0).filter(Exists(spans)).order_by("-created")
    rows = [
        *(GrowingSession(row, row.created) for row in begun[:SHOWN]),
        *(GrowingSession(row, extended[row.pk]) for row in sessions.filter(pk__in=extended, ordinal__gte=0)),
    ]
    for row in sessions.filter(recording__in=by_recording, ordinal=0):
        stream = by_recording[row.recording_id]
        rows.append(GrowingSession(row, stream.heard, stream))
    each = {one.session.pk: one for one in rows}  # what was extended is newer than its beginning
    return sorted(each.values(), key=lambda one: one.heard, reverse=True)[:SHOWN]


def _extended(project: Project, quiet: timedelta) -> dict[UUID, datetime]:
    """When imports extended sessions last, the latest SHOWN by their keys."""
    done = Import.objects.of(project).filter(state=Import.State.DONE, heartbeat__gt=Now() - quiet)  # has an index
    grown = done.filter(report__contains='"extended":').order_by("-heartbeat")  # the report has it where one is longer
    times: dict[UUID, datetime] = {}
    for job in grown.only("report", "finished", "created")[:IMPORTS]:
        report = report_of(job)
        for key in report.extended if report else ():
            times.setdefault(UUID(key), job.finished or job.created)
        if len(times) >= SHOWN:
            break
    return times
