"""From the bytes of a recording to counted sessions whose texts are stored: reading and storing at the same time.

What is stored is in rows that no page shows (`inspector.storage.texts`). Of a large file the first session is stored
while it is read; where it turns out otherwise in the end, it is stored again from the first event that differs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
from django.db import transaction

from guard_core.costs import EventCounter
from guard_core.estimation.attribution import Attribution, attribute
from guard_core.events import Event
from guard_core.findings import Facts, request_words
from guard_core.ledger import Ledger, counter_for
from guard_core.packing import decode
from guard_core.recordings import FirstLook
from guard_core.recordings.reading.file_bytes import GZIP_MAGIC, ZIP_MAGIC
from guard_core.rules import Explanation
from guard_core.sessions import Provenance, Sourced
from guard_core.sessions import Session as CoreSession
from guard_core.windows.models import main_model
from guard_core.windows.window_evidence import WindowJudgement, judge_session
from inspector.ingest.continuation import Continuation
from inspector.ingest.growth import LEAST_STORED, Added, StoredBeginning
from inspector.ingest.reading.messages import (
    Begin,
    Done,
    EarlyEventsCut,
    End,
    EventBatch,
    LookMessage,
    Read,
    ReaderMessage,
    ReadingProgress,
)
from inspector.ingest.reading.process import read_in_process
from inspector.ingest.reading.reader import ReadingOptions, read_here
from inspector.ingest.unchanged import Reading
from inspector.models import Event as EventRow
from inspector.models import Recording, Session
from inspector.models.windows import stated_window
from inspector.storage import explanations, loading, search
from inspector.storage.counts import ToolCount, session_counts
from inspector.storage.texts import StoredTexts, TextWriter

OWN_PROCESS_FROM = 4 * 2**20  # bytes; a smaller file is read in the time in which a process starts
PACKED = (GZIP_MAGIC, ZIP_MAGIC)
FETCHED = 100  # messages between two checks for a cancel
FORGET_SECONDS = 0.2  # between two checks for a cancel


class Watcher(Protocol):
    """Receives the progress; raises to end the import."""

    def reading(self, done: int, total: int) -> None:
        """Bytes read, of all."""

    def read(self, events: int) -> None:
        """The file is read: so many events are to be stored, some of which may be."""

    def look(self, first: FirstLook) -> None:
        """What can be shown of the first session before its events are stored."""

    def stored(self, count: int) -> None:
        """So many more events are stored."""

    def take_back(self, count: int) -> None:
        """So many of those stored are not in the session after all."""


class CountedSession(NamedTuple):
    """A session without its texts, which are stored, and what is computed of it."""

    session: CoreSession
    ledger: Ledger
    attribution: Attribution | None
    window: Sourced
    counts: dict[str, Any]
    explanation: Explanation

    @property
    def calls(self) -> tuple[int, int]:
        """How many model calls it has, and of how many the prompt tokens are recorded."""
        return self.ledger.step_count, int((self.ledger.steps["prompt_tokens"] > 0).sum())


class SameSession(NamedTuple):
    """A stored session that the recording has as it is."""

    row: Session

    @property
    def window(self) -> Sourced:
        return loading.own_window(self.row)

    @property
    def calls(self) -> tuple[int, int]:
        """As of a CountedSession."""
        return self.row.calls, self.row.reported_calls


class LongerSession(NamedTuple):
    """A stored session with more at its end. `whole` counts all of it, should the stored one have changed."""

    added: Added
    whole: Callable[[], CountedSession]
    content: bytes | None

    @property
    def session(self) -> CoreSession:
        return self.added.session

    @property
    def window(self) -> Sourced:
        return loading.own_window(self.added.row)

    @property
    def calls(self) -> tuple[int, int]:
        """As of a CountedSession."""
        calls = self.session.calls
        return len(calls), sum(call.prompt_tokens is not None and call.prompt_tokens > 0 for call in calls)


ReadSession = CountedSession | LongerSession | SameSession


def count_file(
    continuation: Continuation,
    watch: Watcher,
    options: ReadingOptions,
    *,
    own_process_from: int = OWN_PROCESS_FROM,
    meanwhile: Callable[[], object],
) -> tuple[Done, list[ReadSession]]:
    """Read a recording and store the texts of its sessions. Returns facts of the file, and the sessions counted.

    The events of sessions that continue stored ones are stored under the rows of those, later.
    A file of `own_process_from` bytes or more is read in a process of its own; `meanwhile` is called once, before
    anything is stored.
    """
    recording = continuation.recording
    in_process = recording.size >= own_process_from or _is_packed(recording)
    options = msgspec.structs.replace(options, early=in_process and continuation.grown is None)
    with ThreadPoolExecutor(1, "compress") as pool:
        intake = _Intake(continuation, watch, pool)
        if in_process:
            read_in_process(options, intake.take, lambda: watch.stored(0), meanwhile)
        else:
            meanwhile()
            read_here(options, intake.take)
        return intake.finish(), intake.counted


class _Tally:
    """What is counted of a session, event by event."""

    def __init__(self, counter: EventCounter | None = None) -> None:
        self.counter, self.tools = counter or EventCounter(), ToolCount()

    def add(self, event: Event) -> None:
        self.counter.add(event)
        self.tools.add(event)


def _tally_of(texts: Session | StoredTexts) -> _Tally:
    """Count events whose texts are stored."""
    tally = _Tally()
    for event in loading.stored_events(texts):
        tally.add(event)
    return tally


class _Intake:
    """Takes the messages of a reader."""

    def __init__(self, continuation: Continuation, watch: Watcher, pool: ThreadPoolExecutor) -> None:
        self.counted: list[ReadSession] = []
        self._ended: End | None = None  # counted when the next one begins, or the reader has gone with its memory
        self._done: Done | None = None
        self._continuation, self._watch, self._pool = continuation, watch, pool
        self._tally = _Tally()
        self._beginning: StoredBeginning | None = None
        self._reading: Reading | None = Reading({})
        self._writer = None if continuation.grown else self._new_writer(continuation.recording)

    def take(self, message: ReaderMessage) -> None:
        match message:
            case ReadingProgress():
                self._watch.reading(message.done, message.total)
            case EventBatch() if self._writer is not None:
                self._add(self._writer, message)
            case Read():
                self._watch.read(message.events)
            case LookMessage():
                self._watch.look(message.first)
            case EarlyEventsCut() if self._writer is not None:
                self._cut(self._writer, message.count)
            case Begin():
                self._close()
                if self._writer is None or self._writer.is_new:
                    self._writer = self._next_writer(message)
            case End():
                self._ended = message
            case Done():
                self._done = message
            case _:
                raise ValueError(f"{type(message).__name__} out of its turn")

    def finish(self) -> Done:
        """The last message of the file. Raises EOFError where the reader ended before it did."""
        self._close()
        if self._done is None:
            raise EOFError("the reader ended before the file did")
        return self._done

    def _add(self, writer: TextWriter, message: EventBatch) -> None:
        """Write a batch, or those that are let go: while a session may be unchanged, its batches are held back."""
        for batch in [message] if self._reading is None else self._reading.hold(message):
            self._write(writer, batch)

    def _write(self, writer: TextWriter, batch: EventBatch) -> None:
        covered = self._beginning is not None and self._beginning.covers(batch)
        (writer.skip if covered else writer.add)(batch)

    def _next_writer(self, begun: Begin) -> TextWriter:
        """A session that continues a stored one has its events numbered when it takes their place."""
        place = len(self.counted), begun.format, begun.source_id
        waits = self._continuation.may_extend(*place)
        stored = self._continuation.stored_under(begun.source_id)
        self._reading = Reading({bytes(row.content): row for row in stored if row.content})
        is_short = bool(stored) and all(row.events < LEAST_STORED for row in stored)
        candidate = self._continuation.only_candidate(*place) if waits and not is_short else None
        self._beginning = StoredBeginning.of(candidate)
        return self._new_writer(None if waits else self._continuation.recording)

    def _new_writer(self, recording: Recording | None) -> TextWriter:
        self._tally = _Tally()
        # Asked anew for each event, as `_cut` puts another tally in its place.
        return TextWriter(recording, self._pool, each=lambda event: self._tally.add(event), stored=self._watch.stored)

    def _cut(self, writer: TextWriter, count: int) -> None:
        self._reading = None
        self._watch.take_back(writer.settle() - count)
        if count == 0 or writer.row is None:  # the row stays behind, with those of imports that did not end well
            self._writer = self._new_writer(self._continuation.recording)
            return
        _take_back(writer.row, count, self._watch)
        writer.cut(count)
        self._tally = _tally_of(writer.row)

    def _close(self) -> None:
        """Count the session that has ended."""
        if self._ended is None or self._writer is None:
            return
        ended, self._ended = self._ended, None
        writer, self._writer = self._writer, None
        reading, self._reading = self._reading, Reading({})
        content = reading.ended(ended.head) if reading is not None else None
        if reading is not None and content is not None:
            if (same := reading.same(content)) is not None:
                self._beginning = None
                self._watch.stored(same.events)
                self.counted.append(SameSession(same))
                return
            for batch in reading.let_go():
                self._write(writer, batch)
        beginning, self._beginning = self._beginning, None
        texts: Any = writer.texts()
        session = msgspec.structs.replace(decode(ended.head, CoreSession, "session"), events=texts)
        content = content if session.title else None  # else its title is that of the file
        if beginning is not None and (added := beginning.added(session)) is not None:
            self.counted.append(
                LongerSession(added, lambda: self._counted(session, _tally_of(texts), content), content)
            )
            return
        tally = _tally_of(texts) if beginning is not None and beginning.skipped else self._tally
        self.counted.append(self._counted(session, tally, content))

    def _counted(self, session: CoreSession, tally: _Tally, content: bytes | None) -> CountedSession:
        texts: Any = session.events
        events, counter = partial(self._watched, texts), counter_for(session)
        if tally.counter.encoding != counter.encoding:  # the model is known only now that all is read
            tally = _Tally(counter)
            moments = np.frombuffer(texts.marks.timestamps, dtype="<f8").tolist()
            for event, seconds in zip(events(), moments, strict=True):
                tally.add(msgspec.structs.replace(event, timestamp=None if math.isnan(seconds) else seconds))
        ledger, recording = Ledger.counted(session, tally.counter), self._continuation.recording
        whole = counted(session, ledger, recording, events, tally.tools.counts)
        return whole._replace(counts={**whole.counts, "content": content})

    def _watched(self, texts: StoredTexts) -> Iterator[Event]:
        """The events, from the first on, for a look that takes time; the import may be cancelled meanwhile."""
        for number, event in enumerate(loading.stored_events(texts)):
            if number % FETCHED == 0:
                self._watch.stored(0)
            yield event


def counted(
    session: CoreSession,
    ledger: Ledger,
    recording: Recording,
    events: Callable[[], Iterable[Event]],
    tools: dict[str, int],
) -> CountedSession:
    """What is computed of a session whose events were counted. `events` gives them from the first on, whenever it is
    called; `tools` are those of ToolCount."""
    attribution = attribute(ledger)
    judged = judge_session(session)
    words = request_words(session, ledger, events)
    settings = explanations.settings_of(session, recording.project_id)
    facts = Facts(session, ledger, attribution, _in_use(session, judged, recording), words, settings)
    counts = session_counts(facts, tools)
    stored = attribution if ledger.event_count else None
    return CountedSession(session, ledger, stored, judged.sourced, counts, facts.explanation)


def _in_use(session: CoreSession, judged: WindowJudgement, recording: Recording) -> WindowJudgement:
    """The window that a person stated for the session's model, where it takes the place of the one that was judged."""
    model = main_model(session)[:200]
    stated = stated_window(recording.project_id, model, session.format, judged.source.value)
    return judge_session(session, Sourced(stated, Provenance.USER, f"set for {model}")) if stated else judged


def _take_back(row: Session, count: int, watch: Watcher) -> None:
    """Leave only the first `count` events under a row."""
    row.refresh_from_db(fields=["indexed"])
    while row.indexed > count:
        search.forget(row, count, until=time.monotonic() + FORGET_SECONDS)
        watch.stored(0)
    with transaction.atomic():
        EventRow.objects.in_session(row).filter(seq__gte=count).delete()
        Session.objects.row(row).update(events=count)


def _is_packed(recording: Recording) -> bool:
    """A gzip stream or a ZIP archive may be a large file."""
    with recording.path.open("rb") as file:
        return file.read(max(map(len, PACKED))).startswith(PACKED)
