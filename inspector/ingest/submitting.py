"""Putting imports into the queue, and what is known of them: submitted, under way, cancelled, ended with a report."""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from django.db import connection, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from guard_core import recordings
from guard_core.sessions import Sourced
from inspector.data_folder.uncertain import uncertain
from inspector.ingest.uploads import Received, cancelled, drop_unused, keep
from inspector.jobs import hints, queue
from inspector.jobs.leased import LeasedJob
from inspector.jobs.slices import SLICE_LEASE, SLICE_SECONDS
from inspector.models import Import, Project, Recording, Session
from inspector.storage import deleting

log = logging.getLogger(__name__)
LEASE = timedelta(seconds=9)  # a worker without a heartbeat for this long counts as dead
REMOVED_TOGETHER = 50  # files in one transaction: ours, so that no other writer waits for long
REMOVE_CANCELLED = "remove_cancelled"  # the kind of job that removes the files of cancelled members of archives
NOTHING_STORED = "Cancelled. Nothing was stored."


class Cancelled(Exception):
    """The user asked to stop, or another worker took the import over."""


class Inside(NamedTuple):
    """Where a file comes from that lay in a ZIP archive: the import that takes it out, as long as its worker holds
    this lease, and the folder."""

    archive: Import
    lease: str
    folder: str

    def check(self) -> None:
        """Until the end of the transaction the archive's import cannot be cancelled. Raises Cancelled where it was."""
        IMPORTS.hold(self.archive, self.lease)


class Member(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a file of an archive: its import, or why it is left aside or refused."""

    name: str
    folder: str
    job: str = ""  # primary key
    aside: str = ""
    refused: str = ""


class ImportReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an import reports to the user, apart from the sessions themselves."""

    format: str
    label: str
    facts: dict[str, int]
    lines: int
    folded: int
    skipped: dict[str, int]
    problem_count: int
    problems: tuple[recordings.FileProblem, ...] = ()
    sessions: tuple[str, ...] = ()
    known: tuple[str, ...] = ()  # sessions that were here already
    extended: tuple[str, ...] = ()  # those of them that are longer now
    steps: int = 0
    reported: int = 0
    window: Sourced | None = None
    left_out: int = 0  # sessions above the limit
    seconds: float = 0.0
    reading: int = 0  # READING of the version that read the file
    members: tuple[Member, ...] = ()  # of an archive that was unpacked


def submit(
    project: Project,
    received: Received,
    *,
    strict: bool = True,
    window: int | None = None,
    unpacks: bool = False,
    inside: Inside | None = None,
) -> Import:
    """The import of these bytes into a project: the one that brought their session, the one under way, or a new one.

    A session that was taken off the list comes back. `window`: tokens, by the user; then the file is read again.
    `unpacks`: it is a ZIP archive of files to import. Raises Cancelled where that of the archive it comes from was.
    """
    try:
        with uncertain(received.place), transaction.atomic():
            if inside is not None:
                inside.check()
            recording = keep(project, received, to_unpack=unpacks)
            if (job := _known(recording, window, unpacks)) is not None:
                return job
            return _enqueue(recording, received.name, inside, strict=strict, window=window, unpacks=unpacks)
    finally:
        received.path.unlink(missing_ok=True)


def sessions_of(job: Import) -> QuerySet[Session]:
    """The sessions that an import brought, those off the list too; a newer file may have continued them since."""
    report = report_of(job)
    return Session.objects.of(job.project_id).filter(pk__in=report.sessions if report else (), ordinal__gte=0)


def report_of(job: Import) -> ImportReport | None:
    """The report of an import that has ended; None before."""
    return msgspec.json.decode(job.report, type=ImportReport) if job.report else None


def only_session_of(job: Import) -> Session | None:
    """The session that an import brought, where it is the only one and nothing was left out."""
    report = report_of(job)
    if report is None or report.problem_count or len(report.sessions) != 1:
        return None
    return sessions_of(job).filter(pk=report.sessions[0], deleted=None).first()


def start_import(
    recording: Recording, *, strict: bool = False, window: int | None = None, inside: Inside | None = None
) -> Import:
    """Put another reading of a stored recording into the queue. Raises Cancelled as `submit`."""
    with transaction.atomic():
        if inside is not None:
            inside.check()
        return _enqueue(recording, recording.name, inside, strict=strict, window=window)


def _known(recording: Recording, window: int | None, unpacks: bool) -> Import | None:
    imports = recording.imports.filter(unpacks=unpacks).order_by("-created")
    if window is None and (under_way := imports.filter(state__in=Import.UNDER_WAY).first()):
        return under_way
    done = imports.filter(state=Import.State.DONE).first()
    restored = done is not None and sessions_of(done).update(deleted=None)
    return done if restored and window is None else None


def _enqueue(
    recording: Recording,
    name: str,
    inside: Inside | None,
    *,
    strict: bool,
    window: int | None,
    unpacks: bool = False,
) -> Import:
    """Job and queue entry in one transaction: neither can be there without the other."""
    archive, folder = (inside.archive, inside.folder) if inside is not None else (None, "")
    imports = Import.objects.of(recording.project_id)
    job = imports.create(
        recording=recording,
        name=name,
        total=recording.size,
        archive=archive,
        folder=folder,
        strict=strict,
        window=window,
        unpacks=unpacks,
    )
    IMPORTS.enqueue(job)
    return job


def cancel_import(job: Import) -> None:
    """End an import now, and what waits of an archive, also of one whose files are all added. A worker that is reading
    it notices at its next note, and cannot store anything any more."""
    mine = Import.objects.row(job).filter(state__in=Import.UNDER_WAY)
    if not end(mine, job, Import.State.CANCELLED, message=f"Cancelled. {job.what_stays}"):
        _end_members(job)
    hints.send(job.pk)


def end(mine: QuerySet[Import], job: Import, state: str, **more: Any) -> bool:
    """End an import without a session: who sees that it ended finds nothing of the file any more. What else of its
    archive waits ends with it; a job removes those files."""
    with transaction.atomic():
        if not mine.update(state=state, finished=timezone.now(), **more):
            return False
        _end_members(job)
        if job.recording_id is not None:
            drop_unused(job.recording_id)
    return True


def _end_members(job: Import) -> None:
    """Cancel what waits of an archive, in one statement however many files it has: to remove a file takes a hundred
    times as long as to end its import."""
    if not job.unpacks:
        return
    under_way = job.members.filter(state__in=Import.UNDER_WAY)
    with transaction.atomic():
        if under_way.update(state=Import.State.CANCELLED, finished=timezone.now(), message=NOTHING_STORED):
            queue.enqueue(REMOVE_CANCELLED, str(job.pk))


def remove_cancelled(asked_by: str, seconds: float = SLICE_SECONDS, together: int = REMOVED_TOGETHER) -> None:
    """Remove the files of cancelled imports for about this long, `together` in a transaction, then queue again behind
    whatever was added meanwhile, unless the system let go of none: then `resume_removing` does so later."""
    until, stuck, is_removing = time.monotonic() + seconds, set[UUID](), False
    while some := [*cancelled().exclude(pk__in=stuck).order_by("pk").values_list("pk", flat=True)[:together]]:
        try:
            is_removing |= drop_unused(*some)
        except OSError:
            remaining = _remove_each(some)
            stuck |= remaining
            is_removing |= len(remaining) < len(some)
        if time.monotonic() >= until:
            break
    if is_removing and cancelled().exclude(pk__in=stuck).exists():
        queue.enqueue(REMOVE_CANCELLED, asked_by)


def _remove_each(recordings: list[UUID]) -> set[UUID]:
    """Remove files one by one; those that the system does not let go, which a later job tries again."""
    stuck = set()
    for recording in recordings:
        try:
            drop_unused(recording)
        except OSError as error:
            log.warning("A file of a cancelled import cannot be removed, and is tried again later: %s", error)
            stuck.add(recording)
    return stuck


def resume_removing() -> None:
    """Queue `remove_cancelled` where files are left and no worker has it."""
    if cancelled().exists() and not queue.is_under_way(REMOVE_CANCELLED, SLICE_LEASE):
        queue.enqueue(REMOVE_CANCELLED, queue.NO_ROW)


class Imports(LeasedJob[Import]):
    """The jobs that read recordings."""

    kind = "import_recording"
    model = Import
    silence = LEASE
    fresh = {"phase": "received", "done": 0}
    begun = {"phase": "parsed", "done": 0}
    priority_again = 10  # a file that was begun before does not wait a second time

    def hold(self, row: Import, lease: str) -> None:
        """Keep an import from being ended until the end of the transaction. Before any row of its file is locked, in
        the order in which `end` locks them: else the two could wait for each other. Raises Cancelled where the import
        has ended, or its worker lost the lease."""
        if not self.held(row.pk, lease).update(heartbeat=Now()):
            raise Cancelled

    def give_up(self, row: Import, mine: QuerySet[Import]) -> bool:
        message = f"The worker died {row.attempts} times while it read this file. {row.what_stays}"
        failed = end(mine, row, Import.State.FAILED, message=message)
        deleting.ensure_purged()
        return failed

    def take_up(self) -> None:
        """Queue the imports that wait for a worker with their bytes, where this one has them: it looks next."""
        waiting = Import.unscoped.filter(state=Import.State.RECEIVED, phase=Import.ELSEWHERE)
        for job in waiting.select_related("recording"):
            if may_be_here(job):
                with transaction.atomic():
                    if waiting.filter(pk=job.pk).update(**self.fresh):
                        queue.enqueue(self.kind, str(job.pk), priority=self.priority_again)


IMPORTS = Imports()


def may_be_here(job: Import) -> bool:
    """Are the bytes in this data folder, or nowhere: on SQLite server and workers share one."""
    return job.recording is None or job.recording.path.is_file() or connection.vendor == "sqlite"
