"""Lines of running agents on their way into sessions: stored, acknowledged and, mostly at once, taken into the session.

    answer = live.take(project, "my-agent", message)     # committed when it returns

What is acknowledged does not depend on what becomes of it: lines that could not be taken over, or whose process was
killed, stay stored, and the next batch or a worker takes them over. New events and calls are appended
(`storage.appending`); a compaction changes what earlier calls are compared with, so a session that has a new one is
counted as a whole, by a job where it is long.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import uuid4

import msgspec
from django.db import transaction
from django.db.models import F, Subquery
from django.db.models.functions import Now

from guard_core.errors import DamagedRecording, GuardError
from guard_core.events import Event
from guard_core.ledger import Ledger
from guard_core.packing import decode, encode
from guard_core.recordings.formats.native import NAME
from guard_core.recordings.formats.native.growing import CALLS, EVENTS, LinesSoFar, NativeLine, entry_of
from guard_core.recordings.formats.native.growing import session_of as session_of_entries
from guard_core.sessions import ModelCall
from guard_core.sessions import Session as CoreSession
from inspector.ingest.counting import CountedSession, counted
from inspector.ingest.uploads import check_quota
from inspector.jobs import hints, queue
from inspector.models import Project, PurgedStream, Recording, Session, Stream, StreamBatch
from inspector.models.prepared import Insert, Select, Slot, Update
from inspector.models.recordings import STREAM
from inspector.project.trouble import trouble_of
from inspector.storage import appending, explanations, storing
from inspector.storage.assessment import assess
from inspector.storage.compression import compressed, decompressed
from inspector.storage.counts import ToolCount
from inspector.storage.writing import in_turn
from inspector.streams.machine import DIGEST_BYTES, Acknowledgement, Misfit, digest, receive
from inspector.streams.messages import MOST_LINES, StreamMessage
from inspector.webhooks import arising

log = logging.getLogger(__name__)

KIND = "apply_stream"
LONG = 5_000  # events; a session that has more is not counted as a whole while a client waits
PURGED_FOR = timedelta(days=90)  # for which the name of a stream that was deleted for good is refused
SETTLED = timedelta(seconds=5)  # after the last batch: what is not taken over by then was left by a dead process
APPENDED = (EVENTS, CALLS)

_CHANGED = ("received", "applied", "growth", "prompt_tokens", "trouble")  # of a stream, by a batch
_STREAM = Select(
    Stream.objects.of(Slot(Stream, "project"))
    .filter(name=Slot(Stream, "name"))
    .only("project", "recording", *_CHANGED)
    .select_for_update()
)
_SAVED = Stream.unscoped.filter(pk=Slot(Stream, "id"))
_SAVE = Update(_SAVED, *_CHANGED, heard=Now(), ended=None)
_SAVE_ENDED = Update(_SAVED, *_CHANGED, heard=Now(), ended=Now())
_ROW = Select(
    Session.objects.of(Slot(Session, "project"))
    .filter(recording=Slot(Session, "recording"), ordinal=0)
    .only("project", "deleted", *appending.COUNTS)
    .select_for_update()
)
_ADD_BATCH = Insert(StreamBatch, "stream", "first", "count", "digests", "body")
_ADD_SIZE = Update(Recording.unscoped.filter(pk=Slot(Recording, "id")), size=F("size") + Slot(Recording, "size"))


class StreamDeleted(Exception):
    """The session of a stream was deleted by a person."""


class Taken(NamedTuple):
    """What a batch is answered with; `session` is None where its lines are not in a session yet."""

    answer: Acknowledgement
    session: Session | None


def take(project: Project, name: str, message: StreamMessage) -> Taken:
    """Store a batch, then take it over into its session. Raises machine.BatchRefused, StreamDeleted, and LimitExceeded
    where the project's quota has no room for it."""
    if not message.batch.lines and not Stream.objects.of(project).filter(name=name).exists():
        _check_not_purged(project, name)
        return Taken(Acknowledgement(0, 0, 0), None)  # who only asks how far a stream is begins none
    with in_turn():
        stream, row = _locked(project, name)
        known = stream.received
        if unknown := message.batch.lines[max(0, known - message.batch.first) :]:
            check_quota(project, sum(len(line) + 1 for line in unknown))
        answer = receive(_StreamLines(stream, message.entries), message.batch)
        new = message.entries[answer.repeated :] if stream.applied == known else None
        grown = _appended(stream, row, new) if row is not None and new else None
        if grown is not None:
            stream.applied, stream.trouble = stream.received, ""
        columns = {name: getattr(stream, name) for name in _CHANGED}
        (_SAVE_ENDED if message.ended else _SAVE).run(id=stream.pk, **columns)
    if grown is None:
        return Taken(answer, _tried(stream, row, new))
    hints.send(grown.pk)
    return Taken(answer, grown)


def session_of(stream: Stream) -> Session | None:
    """The session that a stream has, deleted or not; None before its first line."""
    return Session.objects.of(stream.project_id).filter(recording=stream.recording_id, ordinal=0).first()


def _growing(stream: Stream) -> Session | None:
    """The same with what is needed to add to it, locked until the end of the transaction."""
    row: Session | None = _ROW.row(project=stream.project_id, recording=stream.recording_id)
    return row


def lines_of(stream: Stream, start: int = 0) -> Iterator[bytes]:
    """The stored lines of a stream from number `start` on, as many as the row in hand knows, without newlines."""
    mine = StreamBatch.objects.filter(stream=stream, first__lt=stream.received)
    before = mine.filter(first__lte=start).order_by("-first").values("first")[:1]  # the batch that holds line `start`
    batches = mine.filter(first__gte=Subquery(before)) if start else mine
    for first, body in batches.order_by("first").values_list("first", "body").iterator(20):
        yield from decompressed(body).split(b"\n")[max(0, start - first) :]


def apply(
    stream: Stream, row: Session | None, new: Sequence[NativeLine] | None = None, *, at_once: bool = True
) -> Session | None:
    """Take over into the session, which has this `row`, what is stored and not in it (`new`, where the caller knows
    it); None where a job does that. Raises GuardError."""
    if stream.applied >= stream.received:
        return row
    entries = _entries(stream, stream.applied) if new is None else new
    known = row.calls if row is not None else 0
    if row is not None and _may_append(row, entries):
        with in_turn():
            if is_mine := _is_mine(stream):
                row = appending.append(row, *_apart(entries))
                arising.ask(row, known)
    elif row is not None and row.events > LONG and at_once:
        queue.enqueue(KIND, str(stream.pk))
        return None
    else:
        session = session_of_entries(_entries(stream, 0))
        tools = ToolCount(session.events).counts
        whole = counted(session, Ledger.of(session), stream.recording, lambda: session.events, tools)
        with in_turn():
            if is_mine := _is_mine(stream):
                row = _store(stream, session_of(stream), whole)
                arising.ask(row, known)
    if is_mine:
        return row
    stream.refresh_from_db(fields=["received", "applied"])  # another process was faster
    return apply(stream, session_of(stream), at_once=at_once)


def _appended(stream: Stream, row: Session, new: Sequence[NativeLine]) -> Session | None:
    """The locked row with new lines, within the transaction that stores them: a transaction of its own would cost as
    much as the lines. None where they are to be taken over behind it: by more than appending, or because this failed,
    which is then found again and noted. Raises what ends the whole transaction."""
    if not _may_append(row, new):
        return None
    known = row.calls
    try:
        with transaction.atomic():
            grown = appending.append_to_locked(row, *_apart(new))
            arising.ask(grown, known)
        return grown
    except Exception as error:
        if trouble_of(error) is not None:
            raise
        row.refresh_from_db(fields=appending.COUNTS)
        return None


def _may_append(row: Session, entries: Sequence[NativeLine]) -> bool:
    return row.events > 0 and all(entry.name in APPENDED for entry in entries)


def _apart(entries: Sequence[NativeLine]) -> tuple[list[Event], list[ModelCall]]:
    """Events and calls, each in their order."""
    events, calls = ([entry.value for entry in entries if entry.name == name] for name in APPENDED)
    return events, calls


def run(stream_id: str) -> None:
    """The job: take over what is left, where there still is such a stream."""
    stream = Stream.unscoped.filter(pk=stream_id).first()
    if stream is not None:
        _tried(stream, session_of(stream), at_once=False)


def resume() -> None:
    """Queue the streams of which dead processes left something."""
    left = Stream.unscoped.filter(applied__lt=F("received"), heard__lt=Now() - SETTLED, trouble="")
    for pk in left.values_list("pk", flat=True)[:100]:
        if not queue.entries(KIND).filter(args_kwargs__args__0=str(pk), status__in=("READY", "RUNNING")).exists():
            queue.enqueue(KIND, str(pk))


class _StreamLines:
    """The lines of a locked stream, as the state machine sees them; `entries` are what those of the batch hold."""

    def __init__(self, stream: Stream, entries: Sequence[NativeLine]) -> None:
        self.stream, self.entries = stream, entries

    def received(self) -> int:
        return self.stream.received

    def digests(self, start: int, stop: int) -> Sequence[bytes]:
        near = StreamBatch.objects.filter(stream=self.stream, first__lt=stop, first__gt=start - MOST_LINES)
        known: list[bytes] = []
        for first, digests in near.order_by("first").values_list("first", "digests"):
            body = bytes(digests)
            some = [body[place : place + DIGEST_BYTES] for place in range(0, len(body), DIGEST_BYTES)]
            known += some[max(0, start - first) : max(0, stop - first)]
        return known

    def add(self, first: int, lines: Sequence[bytes]) -> None:
        growth = decode(bytes(self.stream.growth), LinesSoFar, "stream")
        for number, entry in enumerate(self.entries[-len(lines) :], first):
            try:
                growth = growth.take(entry)
            except DamagedRecording as error:
                raise Misfit(number, first, error.reason) from error
        body = b"\n".join(lines)
        stored = {"digests": b"".join(map(digest, lines)), "body": compressed(body)}
        _ADD_BATCH.run([{"stream": self.stream.pk, "first": first, "count": len(lines), **stored}])
        _ADD_SIZE.run(id=self.stream.recording_id, size=len(body) + 1)
        self.stream.received = first + len(lines)
        self.stream.growth, self.stream.prompt_tokens = encode(growth), growth.prompt_tokens


def _locked(project: Project, name: str) -> tuple[Stream, Session | None]:
    """The stream of a name, made where there is none, and its session, where it has one; both rows are locked until the
    end of the transaction. Raises StreamDeleted."""
    stream: Stream | None = _STREAM.row(project=project.pk, name=name)
    if stream is None:
        _begin(project, name)
        stream = _STREAM.row(project=project.pk, name=name)
    assert stream is not None
    row = _growing(stream)
    if row is None:
        _check_not_purged(project, name)
    elif row.deleted is not None:
        raise StreamDeleted("the session of this stream was deleted; begin another stream")
    return stream, row


def _check_not_purged(project: Project, name: str) -> None:
    if PurgedStream.objects.of(project).filter(digest=PurgedStream.digest_of(name)).exists():
        raise StreamDeleted(
            f"the session of this stream was deleted for good; its name is free again {PURGED_FOR.days} days after that"
        )


def forget_purged() -> None:
    """Free the names of streams that were deleted for good long ago."""
    PurgedStream.unscoped.filter(purged__lt=Now() - PURGED_FOR).delete()


def _begin(project: Project, name: str) -> None:
    key = f"{STREAM}{uuid4().hex}"
    recording = Recording.objects.of(project).create(sha256=key, name=name, size=0, format=NAME)
    values = {"recording": recording, "growth": encode(LinesSoFar()), "heard": Now()}
    _, is_new = Stream.objects.of(project).get_or_create(name=name, defaults=values)
    if not is_new:  # two first batches at once
        recording.delete()


def _is_mine(stream: Stream) -> bool:
    """Note that all that was read of a stream is taken over, where no other process has done so meanwhile."""
    rows = Stream.objects.row(stream).filter(applied=stream.applied)
    return bool(rows.update(applied=stream.received, trouble=""))


def _tried(
    stream: Stream, row: Session | None, new: Sequence[NativeLine] | None = None, *, at_once: bool = True
) -> Session | None:
    """The session with what is stored; what fails is noted, for its lines are safe."""
    try:
        row = apply(stream, row, new, at_once=at_once)
        if row is not None:
            hints.send(row.pk)
        return row
    except GuardError as error:
        log.exception("stream %s cannot be taken over", stream.pk)
        Stream.objects.row(stream).update(trouble=str(error)[:400])
    except Exception as error:
        if trouble_of(error) is None:
            log.exception("stream %s was not taken over", stream.pk)
    return None


def _entries(stream: Stream, start: int) -> list[NativeLine]:
    """What the lines from `start` on hold."""
    return [entry_of(msgspec.json.decode(line)) for line in lines_of(stream, start)]


def _store(stream: Stream, row: Session | None, whole: CountedSession) -> Session:
    """Put the session on the list, or store the longer one in its place."""
    value = whole.session
    place: tuple[Recording, int, CoreSession] = stream.recording, 0, value
    more: dict[str, Any] = {"window": whole.window, "counts": whole.counts}
    if row is None:
        row = storing.store_session(*place, whole.ledger, whole.attribution, **more)
    else:
        row = storing.extend_session(row, *place, whole.ledger, whole.attribution, **more, same=row.events)
    if row.window_override:
        assess(row)
    else:
        explanations.store(row, value, whole.explanation)
    return row
