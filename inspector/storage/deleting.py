"""Deleting sessions: off the list at once, gone with their bytes after a day, brought back by one undo until then."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime, timedelta

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from inspector.ingest.uploads import drop_unused
from inspector.jobs import queue
from inspector.models import (
    Event,
    Import,
    Payload,
    Project,
    PurgedStream,
    Session,
    SpanBatch,
    Stream,
    Sweep,
    Tag,
    TextCount,
)
from inspector.replays import stored
from inspector.storage.search import forget

UNDO_FOR = timedelta(days=1)
SLICE_SECONDS = 1.0  # then other jobs go first
PRIORITY = -50  # below every import
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def delete(project: Project, sessions: QuerySet[Session]) -> str:
    """Take sessions of a project off its list; the key of the undo that brings all of them back, empty where there were
    none."""
    moment = timezone.now()
    wanted = sessions.filter(deleted=None).order_by().values("pk")
    with transaction.atomic():
        first = wanted.first()
        if first is None:
            return ""
        Session.objects.of(project).filter(pk__in=wanted).update(deleted=moment)
        purge_after(moment, str(first["pk"]))
    return key_of(moment)


def purge_after(moment: datetime, name: str) -> None:
    """Have what was deleted at a moment removed once nothing brings it back; `name` is the job's."""
    queue.enqueue("purge_deleted", name, run_after=moment + UNDO_FOR)


def key_of(moment: datetime) -> str:
    """The key of an undo."""
    return str((moment - _EPOCH) // timedelta(microseconds=1))


def moment_of(key: str) -> datetime | None:
    """The moment of a deletion; None where the key makes no sense."""
    if not (key.isascii() and key.isdigit() and len(key) <= 17):
        return None
    return _EPOCH + timedelta(microseconds=int(key))


def restore(project: Project, key: str) -> int:
    """Bring back what one deletion took off the project's list; how many sessions."""
    sessions = deleted_together(project, key)
    return sessions.update(deleted=None) if sessions is not None else 0


def deleted_together(project: Project, key: str) -> QuerySet[Session] | None:
    """The sessions of one deletion in a project that are still there; None where the key makes no sense."""
    moment = moment_of(key)
    return None if moment is None else Session.objects.of(project).filter(deleted=moment)


def purge(before: datetime, *, until: float = math.inf) -> int:
    """Remove for good what was deleted before a moment, and what imports that ended otherwise left: rows, texts nobody
    else uses, stored bytes. How many sessions. `until`: a moment of the monotonic clock after which it stops."""
    count = 0
    Sweep.unscoped.filter(deleted__lte=before).delete()
    due = _due(before)
    for key in list(due.values_list("pk", flat=True)):
        session = due.filter(pk=key).first()
        if session is None:
            continue
        forget(session, until=until)
        if session.indexed:
            break
        with transaction.atomic():
            stream = Stream.unscoped.select_for_update().filter(recording=session.recording_id).first()
            removed, _ = due.filter(pk=key).delete()
            if removed and stream is not None:
                _refuse_from_now_on(stream)
            if removed and session.ordinal >= 0:  # of a program that runs: its spans go with the last of its sessions
                SpanBatch.unscoped.filter(recording=session.recording_id, recording__sessions=None).delete()
        if removed:
            stored.drop(key)
        count += bool(removed)
        drop_unused(session.recording_id)
    if count:
        drop_texts()
        Tag.unscoped.filter(sessions=None).delete()
    return count


def _refuse_from_now_on(stream: Stream) -> None:
    """What the client of a stream still has, in its spool perhaps, makes no session again."""
    PurgedStream.objects.of(stream.project_id).get_or_create(
        digest=PurgedStream.digest_of(stream.name), defaults={"purged": Now()}
    )


def purge_slice(seconds: float = SLICE_SECONDS) -> None:
    """Purge what is due for a slice of time, then queue again: a long session takes several slices."""
    before = timezone.now() - UNDO_FOR
    if not purge(before, until=time.monotonic() + seconds):
        drop_texts()
    if _due(before).exists():
        purge_soon()


def _due(before: datetime) -> QuerySet[Session]:
    return Session.unscoped.filter(Q(deleted__lte=before) | Q(pk__in=unfinished().values("pk")))


def unfinished() -> QuerySet[Session]:
    """Rows of sessions that were being stored when their import ended: at no place in their file."""
    running = Import.unscoped.filter(recording=OuterRef("recording"), state=Import.State.RUNNING)
    return Session.unscoped.filter(~Exists(running), deleted__isnull=False, ordinal__lt=0)


def purge_unfinished() -> None:
    """Remove what an import that did not end well stored on its way."""
    if not purge(_EPOCH):
        drop_texts()


def ensure_purged() -> None:
    """Put a purge into the queue where something unfinished is left and none is at work."""
    purges = queue.entries("purge_deleted")
    if unfinished().exists() and not (purges.ready().exists() or purges.running().exists()):
        purge_soon()


def purge_soon() -> None:
    """Put a purge into the queue, behind imports."""
    queue.enqueue("purge_deleted", queue.NO_ROW, priority=PRIORITY)


def drop_texts() -> None:
    """One pass over each table: what no event names is unused, unless an import under way has just brought it; so are
    the counts of a project none of whose events names the text."""
    models = (Payload, Event, TextCount, Session)
    texts, events, counts, sessions = (connection.ops.quote_name(model._meta.db_table) for model in models)
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":  # an import under way may rely on a text that is otherwise unused
            cursor.execute(f"LOCK TABLE {texts} IN SHARE ROW EXCLUSIVE MODE")
        if Import.unscoped.filter(state=Import.State.RUNNING).exists():
            return  # it sweeps when it fails; else the next deletion does
        # EXCEPT is one pass on both; PostgreSQL looks through all of a long list again for each row of a NOT IN.
        nobodys = f"SELECT sha256 FROM {texts} EXCEPT SELECT payload_id FROM {events}"
        cursor.execute(f"DELETE FROM {texts} WHERE sha256 IN ({nobodys})")
        named = f"SELECT s.project_id, e.payload_id FROM {events} e JOIN {sessions} s ON s.id = e.session_id"
        unused = f"SELECT project_id, sha256 FROM {counts} EXCEPT {named}"
        cursor.execute(f"DELETE FROM {counts} WHERE (project_id, sha256) IN ({unused})")
