"""A recording that adds to the end of a stored session: what is stored already is compared, and not stored again.

beginning = StoredBeginning.of(row)          # None where the session is too short to gain by it
beginning.covers(batch)                      # of each batch of the recording: is all of it stored already
beginning.added(session)                     # in the end: what there is to append, None where more has changed
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from guard_core.chunks import read_state
from guard_core.events import Event
from guard_core.ledger import fixed_of
from guard_core.sessions import ModelCall
from guard_core.sessions import Session as CoreSession
from inspector.ingest.reading.messages import EventBatch
from inspector.models import Session
from inspector.storage import chunks, loading, storing
from inspector.storage.contents import unpacked

LEAST_STORED = 2_048  # events; a shorter session is counted and assessed as a whole within a second
MOST_ADDED = 2_000  # events held in memory; with more, the session is counted and assessed as a whole


class Added(NamedTuple):
    """What a recording adds to the end of a stored session, as it was at `revision`."""

    row: Session
    session: CoreSession  # all of it but the texts of its events
    events: list[Event]
    calls: tuple[ModelCall, ...]


class StoredBeginning:
    """The events of a stored session, compared with the batches of a recording in their order."""

    def __init__(self, row: Session) -> None:
        self.row = row
        self.skipped = 0  # events whose batches were stored already
        self._repeats = True
        self._count = 0  # events of the recording
        self._marks = chunks.load_marks(row.pk)
        self._events: list[Event] = []

    @classmethod
    def of(cls, row: Session | None) -> StoredBeginning | None:
        """That of a session, where it is long and its columns are those of this version."""
        if row is None or row.events < LEAST_STORED or not storing.has_current_columns(row):
            return None
        return cls(row)

    def covers(self, batch: EventBatch) -> bool:
        """Is all of the next batch stored already, and everything before it."""
        start, self._count = self._count, self._count + len(batch.keys)
        if not self._repeats:
            return False
        stop = max(start, min(self._count, self.row.events))
        self._repeats = self._has(batch, start, stop)
        if self._repeats and stop < self._count:
            self._take(batch, stop - start)
        covered = self._repeats and stop == self._count
        self.skipped += len(batch.keys) if covered else 0
        return covered

    def added(self, session: CoreSession) -> Added | None:
        """What a recording adds, whose events were all compared: only events and model calls at the end."""
        if not self._repeats or self._count < self.row.events:
            return None
        state, head = loading.ledger_state(self.row), loading.load_short_head(self.row)
        stored = chunks.repeated_calls(self.row, state, session)
        if stored is None or read_state(state).fixed != fixed_of(session):
            return None
        if (head.started_at, head.window) != (session.started_at, session.window):
            return None
        more = session.calls[stored:]
        return Added(self.row, session, self._events, more) if self._events or more else None

    def _has(self, batch: EventBatch, start: int, stop: int) -> bool:
        count, place = stop - start, slice(8 * start, 8 * stop)
        return (
            batch.keys[:count] == loading.stored_keys(self.row, start, stop)
            and batch.lines[: 8 * count] == self._marks.lines[place]
            and batch.timestamps[: 8 * count] == self._marks.timestamps[place]
            and tuple(batch.source_ids[:count]) == self._marks.source_ids[start:stop]
        )

    def _take(self, batch: EventBatch, first: int) -> None:
        lines = np.frombuffer(batch.lines, dtype="<i8").tolist()
        moments = np.frombuffer(batch.timestamps, dtype="<f8").tolist()
        for place in range(first, len(batch.keys)):
            event = unpacked(batch.texts[place], moments[place])
            line = None if lines[place] < 0 else lines[place]
            self._events.append(msgspec.structs.replace(event, line=line, source_id=batch.source_ids[place]))
        if len(self._events) > MOST_ADDED:
            self._repeats, self._events = False, []
