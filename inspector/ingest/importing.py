"""Importing: from stored bytes to sessions, as one job with progress, a lease, and all of it or nothing."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

import msgspec
from django.db import Error, transaction
from django.db.models.functions import Now
from django.utils import timezone

from guard_core import recordings
from guard_core.errors import GuardError, RecordingError, UnknownFormat
from guard_core.sessions import Session as CoreSession
from guard_core.windows.models import window_of
from inspector.data_folder.durable import synced_commits
from inspector.figures.first_look import look_of
from inspector.ingest import archives
from inspector.ingest.continuation import Continuation
from inspector.ingest.counting import OWN_PROCESS_FROM, LongerSession, ReadSession, SameSession, count_file
from inspector.ingest.reading.messages import Done
from inspector.ingest.reading.reader import BATCH, ReadingOptions
from inspector.ingest.submitting import IMPORTS, Cancelled, ImportReport, end, may_be_here
from inspector.ingest.unpacking import add_all, own_folder
from inspector.ingest.uploads import drop_unused
from inspector.jobs import hints
from inspector.models import Import, Recording, Session, SpanBatch
from inspector.models.windows import stated_window
from inspector.project.trouble import DISK_FULL, trouble_of
from inspector.storage import deleting
from inspector.webhooks import arising

log = logging.getLogger(__name__)

ELSEWHERE_PAUSE = timedelta(hours=1)  # ours: a worker that has the bytes takes the import up before (`take_up`)
AWAITED_FOR = timedelta(days=7)  # ours: a server that is down for longer is taken not to come back
BYTES_MISSING = "the bytes of this file are not in the data folder (DATA_DIR)"
NO_WORKER = (
    f"for {AWAITED_FOR.days} days no worker had this file in its data folder (DATA_DIR): the server that received it "
    "was down, or its folder is gone. Nothing was stored; send the file again"
)


ARCHIVE = "zip"  # the format of an archive that is none itself
READING = 25  # of what readers take over from a file; raise it when sessions that are stored would gain by another one


class ImportPace(NamedTuple):
    """What an import does at a time, and from what size on it is a long one."""

    report_every: float = 0.1  # seconds between two notes of progress
    look_first_from: int = 4 * 2**20  # bytes; a smaller file is read as fast as it is looked at
    own_process_from: int = OWN_PROCESS_FROM  # bytes from which a process of its own reads the file
    batch: int = BATCH  # events of one transaction
    purged_at_once: int = 2_000  # events; a fraction of a second


PACE = ImportPace()


TITLE_CHARS, SHOWN_ID = 200, 8  # of a row, and of the name that an agent gave a session
TRIED_LENIENTLY = 1_000_000  # bytes of a damaged file that is read once more, in some hundredths of a second


def run_import(
    job_id: str, pace: ImportPace = PACE, watching: Callable[[Import, str, ImportPace], ImportWatch] | None = None
) -> None:
    """Read the file and store what is in it. Does nothing when another worker has the import.

    `watching` makes another ImportWatch, which may see more of it or end it.
    """
    lease = IMPORTS.take(job_id)
    if not lease:
        return
    job = Import.unscoped.select_related("recording").get(pk=job_id)
    watch = (watching or ImportWatch)(job, lease, pace)
    if not may_be_here(job):
        _leave_to_others(job, watch)
        return
    try:
        _do(job, watch)
    except Cancelled:
        watch.end(Import.State.CANCELLED, message=f"Cancelled. {job.what_stays}")
    except GuardError as error:
        _fail(watch, error)
    except MemoryError as error:
        message = str(error) or "There was not enough memory to read this file."
        watch.end(Import.State.FAILED, message=message)
    except OSError as error:
        trouble = trouble_of(error)
        message = trouble.words if trouble else f"The stored file cannot be read: {error.strerror}."
        watch.end(Import.State.FAILED, message=message)
    except Error as error:  # of the database: the lease runs out, and the import is tried again
        if trouble_of(error) is not DISK_FULL:
            raise
        watch.end(Import.State.FAILED, message=DISK_FULL.words)  # where this finds no space, either, it is tried again
    except Exception:
        log.exception("import %s stopped with an unexpected error", job_id)
        watch.end(Import.State.FAILED, message="An internal error stopped the import; see the server log.")
    hints.send(job.pk)
    _clean_up(watch)


def _leave_to_others(job: Import, watch: ImportWatch) -> None:
    """Have an import wait for a worker that has its bytes; one that has waited for too long fails."""
    if timezone.now() > job.created + AWAITED_FOR:
        watch.end(Import.State.FAILED, message=NO_WORKER)
    else:
        IMPORTS.hand_back(str(job.pk), timezone.now() + ELSEWHERE_PAUSE, phase=Import.ELSEWHERE)
    hints.send(job.pk)


def _clean_up(watch: ImportWatch) -> None:
    """Take away what was stored on the way: at once where it is little, else behind the imports that wait."""
    if watch.left:
        deleting.purge_soon()
    elif watch.closed or not watch.counted:
        deleting.ensure_purged()
    elif watch.counted <= watch.pace.purged_at_once:
        deleting.purge_unfinished()
    else:
        deleting.purge_soon()


class ImportWatch:
    """Progress of one import: notes it now and then, keeps the lease, sees a cancel."""

    def __init__(self, job: Import, lease: str, pace: ImportPace = PACE) -> None:
        self.job, self.lease, self.pace = job, lease, pace
        self.started = time.monotonic()
        self.noted = self.started
        self.counted = self.total = 0  # events
        self._reading: tuple[int, int] | None = (0, job.total)  # bytes, while the file is read
        self.left = False  # texts that are no longer needed
        self.looked = False  # there is a chart to look at
        self.closed = False  # with everything stored

    def reading(self, done: int, total: int) -> None:
        """So many bytes of the file are read."""
        self._reading = done, total
        self._report_progress()

    def read(self, events: int) -> None:
        """The file is read: so many events are to be stored, some of which are."""
        self._reading, self.total = None, events
        self.phase("counted")

    def look(self, first: recordings.FirstLook, *, whole: bool = True) -> None:
        """Something to look at while a large file is stored, the first that comes. `whole`: its session is read."""
        if self.looked or self.job.total < self.pace.look_first_from or not any(first.prompt_tokens):
            return
        self.looked = True
        of_model = window_of(CoreSession(events=(), calls=(), model=first.model))
        stated = stated_window(self.job.project_id, first.model[:200], "", of_model.source.value)
        window = self.job.window or first.window or stated or of_model.value
        self.note(first_look=msgspec.json.encode(look_of(first, window, whole=whole)).decode())

    def stored(self, count: int) -> None:
        """So many more events are stored. While the file is read, progress is measured by the bytes read instead."""
        self.counted += count
        self._report_progress()

    def take_back(self, count: int) -> None:
        """So many of those stored are to be stored otherwise."""
        self.counted -= count
        self.left = True

    def _report_progress(self) -> None:
        if time.monotonic() - self.noted >= self.pace.report_every:
            self.note(**self._progress())

    def _progress(self) -> dict[str, int]:
        if self._reading is not None:
            done, total = self._reading
            return {"done": done, "total": total}
        return {"done": self.job.total * self.counted // max(self.total, 1), "total": self.job.total}

    def phase(self, name: str) -> None:
        self.note(phase=name, **self._progress())

    def end(self, state: str, **more: Any) -> None:
        end(self._mine(), self.job, state, **more)

    def close(self, report: ImportReport) -> None:
        """End the import inside the storing transaction: sessions and the word "done" come together or not at all."""
        text = msgspec.json.encode(report).decode()
        done: dict[str, Any] = {"state": Import.State.DONE, "phase": "indexed", "total": self.job.total}
        if not self._mine().update(**done, report=text, first_look="", finished=timezone.now()):
            raise Cancelled

    def _mine(self) -> Any:
        return IMPORTS.held(self.job.pk, self.lease)

    def note(self, **values: Any) -> None:
        """Write it down, keep the lease. Raises Cancelled where the import is no longer ours."""
        self.noted = time.monotonic()
        if not self._mine().update(heartbeat=Now(), **values):
            raise Cancelled
        hints.send(self.job.pk)


def _fail(watch: ImportWatch, error: GuardError) -> None:
    line = error.line if isinstance(error, RecordingError) else None
    column = error.column if isinstance(error, RecordingError) else None
    text = error.reason if isinstance(error, RecordingError) else str(error)
    place: dict[str, Any] = {"line": line, "column": column}
    if isinstance(error, UnknownFormat):  # it was received, and nothing more
        place["phase"] = "received"
    elif line is not None and watch.job.strict and _leaves_nothing(watch.job.recording):
        place["phase"] = Import.NOTHING_LEFT
    watch.end(Import.State.FAILED, message=text[:2_000], **place)


def _leaves_nothing(recording: Recording | None) -> bool:
    """Would a short file without its damaged places be no session, so that skipping them is no offer."""
    if recording is None or recording.size > TRIED_LENIENTLY:
        return False
    try:
        return not any(session.events for session in recordings.read(recording.path).sessions)
    except GuardError:
        return True


def _do(job: Import, watch: ImportWatch) -> None:
    """What `run_import` surrounds with the answers to everything that may go wrong."""
    return _take_apart(job, watch) if job.unpacks else _read_and_store(job, watch)


def _take_apart(job: Import, watch: ImportWatch) -> None:
    """Add the files of an archive, which is not needed any more once all of them are on the disk."""
    recording = _present(job)
    with own_folder(job, watch.lease) as folder:
        files = archives.unpacked(recording.path, recording.name, folder, watch.reading, strict=job.strict)
        watch.phase("indexed")
        members = add_all(job, watch.lease, files, watch.reading)
    seconds = round(time.monotonic() - watch.started, 3)
    with synced_commits():
        watch.close(
            ImportReport(ARCHIVE, "ZIP archive", {}, 0, 0, {}, 0, seconds=seconds, reading=READING, members=members)
        )
    drop_unused(recording.pk)


def _present(job: Import) -> Recording:
    """The recording of an import, with its bytes. Raises Cancelled, RecordingError."""
    if job.recording is None:
        raise Cancelled
    if not job.recording.path.is_file():
        raise RecordingError(BYTES_MISSING)
    return job.recording


def _read_and_store(job: Import, watch: ImportWatch) -> None:
    recording = _present(job)
    continuation = Continuation(recording)
    look = partial(_look_first, recording, watch)
    options = ReadingOptions(str(recording.path), job.strict, job.window, batch=watch.pace.batch)
    done, counted = count_file(
        continuation, watch, options, own_process_from=watch.pace.own_process_from, meanwhile=look
    )
    watch.phase("indexed")
    report = _report(done, counted, watch)
    with transaction.atomic():
        IMPORTS.hold(watch.job, watch.lease)
        rows = []
        for ordinal, item in enumerate(counted):
            rows.append(_store(continuation, ordinal, item))
        continuation.close(len(rows))
        _distinguish(rows)
        Recording.objects.row(recording).update(format=done.format)
        stored = {"sessions": rows, "known": continuation.known, "extended": continuation.extended}
        whole = {name: tuple(str(row.pk) for row in some) for name, some in stored.items()}
        watch.close(msgspec.structs.replace(report, **whole))
        for row in continuation.extended:
            arising.ask(row, continuation.calls_before[row.pk])
    watch.closed = True
    watch.left |= continuation.leaves_texts


def _store(continuation: Continuation, ordinal: int, item: ReadSession) -> Session:
    if isinstance(item, SameSession):
        return continuation.keep(ordinal, item.row)
    value = item.session
    if isinstance(item, LongerSession):
        if (row := continuation.append(ordinal, item.added, value)) is not None:
            Session.objects.row(row).update(content=item.content)
            return row
        item = item.whole()
    more: dict[str, Any] = {"window": item.window, "counts": item.counts, "explanation": item.explanation}
    return continuation.store(ordinal, value, item.ledger, item.attribution, **more)


def _distinguish(rows: list[Session]) -> None:
    """Sessions of one file that have the same title get the name that their agent gave them beside it."""
    counts = Counter(row.title for row in rows)
    for row in rows:
        if counts[row.title] > 1 and row.source_id:
            room = TITLE_CHARS - len(f" · {row.source_id[:SHOWN_ID]}")
            Session.objects.row(row).update(title=f"{row.title[:room]} · {row.source_id[:SHOWN_ID]}")


def _look_first(recording: Recording, watch: ImportWatch) -> None:
    """A chart to look at while a large file is read. No error ends here: the reading reports what is wrong."""
    spans = SpanBatch.objects.of(recording.project_id).filter(recording=recording)
    if recording.size < watch.pace.look_first_from or spans.exists():
        return  # it is read in a moment, or came from programs: no page waits for it
    try:
        first = recordings.first_look(recording.path)
    except RecordingError:
        return
    if first is not None:
        watch.look(first, whole=False)


def _report(done: Done, counted: list[ReadSession], watch: ImportWatch) -> ImportReport:
    notes = done.notes
    facts = msgspec.structs.asdict(done.facts)
    facts.pop("format")
    return ImportReport(
        format=done.format,
        label=recordings.LABELS.get(done.format, done.format),
        facts=facts,
        lines=notes.lines,
        folded=notes.folded,
        skipped=dict(sorted(notes.skipped.items())),
        problem_count=notes.problem_count,
        problems=tuple(notes.problems),
        steps=sum(each.calls[0] for each in counted),
        reported=sum(each.calls[1] for each in counted),
        window=counted[0].window if counted else None,
        left_out=done.left_out,
        seconds=round(time.monotonic() - watch.started, 3),
        reading=READING,
    )
