"""Reads a file and sends what is in it as messages (messages.py)."""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from guard_core import recordings
from guard_core.errors import RecordingError
from guard_core.events import Event
from guard_core.facts.searchable import text_of
from guard_core.packing import encode
from guard_core.sessions import Session
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
from inspector.storage.contents import key_of, packed

BATCH_BYTES = 300_000  # of texts; their words are as many again, and about six batches are in memory at once
BATCH = 2_000  # events; each batch is a transaction, and a segment of the text index
MAX_SESSIONS = 2_000  # sent of one file

Send = Callable[[ReaderMessage], None]


class ReadingOptions(msgspec.Struct, frozen=True):
    """How a file is read. `window`: tokens, by the user. `early`: the first session is sent while the file is read.
    `batch`: at most so many events are sent in one message."""

    path: str
    strict: bool
    window: int | None = None
    early: bool = False
    batch: int = BATCH


def read_here(options: ReadingOptions, send: Send) -> None:
    """Read a file and send what is in it. Raises RecordingError."""
    messages = _SessionMessages(send, options.batch)
    early = recordings.EarlyEvents(messages.add) if options.early else None
    recording = recordings.read(
        options.path,
        strict=options.strict,
        window=options.window,
        progress=lambda done, total: send(ReadingProgress(done, total)),
        shelve=Path(options.path).parent,
        early=early,
    )
    sessions = deque(recording.sessions[:MAX_SESSIONS])
    left_out = len(recording.sessions) - len(sessions)
    if not any(session.events for session in sessions):
        raise RecordingError("no messages were found in this file, so there is no session to show")
    recording = replace(recording, sessions=())  # each session goes when it is sent, and its events with it
    send(Read(sum(len(session.events) for session in sessions)))
    send(LookMessage(recordings.look_at(sessions[0])))
    if early is not None:
        messages.settle(early.agreed(sessions[0].events))
    while sessions:
        session = sessions.popleft()
        send(Begin(session.format, session.source_id))
        messages.rest(session)
        messages = _SessionMessages(send, options.batch)
    send(Done(recording.format, recording.facts, recording.notes, left_out))


class _SessionMessages:
    """Sends the messages of one session."""

    def __init__(self, send: Send, batch: int) -> None:
        self._send, self._batch = send, batch
        self._count = 0
        self._start_batch()

    def add(self, event: Event) -> None:
        """The next event."""
        self._count += 1
        text = packed(event)
        self._texts.append(text)
        self._keys.append(key_of(text))
        self._words.append(text_of(event.parts))
        self._lines.append(-1 if event.line is None else event.line)
        self._moments.append(math.nan if event.timestamp is None else event.timestamp)
        self._source_ids.append(event.source_id)
        self._size += len(text)
        if self._size >= BATCH_BYTES or len(self._texts) >= self._batch:
            self._flush()

    def settle(self, agreed: int) -> None:
        """Of the events sent, the first `agreed` are the session's."""
        self._flush()
        if agreed < self._count:
            self._send(EarlyEventsCut(agreed))
            self._count = agreed

    def rest(self, session: Session) -> None:
        """What is left of the session, and its end."""
        for index in range(self._count, len(session.events)):
            self.add(session.events[index])
        self._flush()
        self._send(End(encode(msgspec.structs.replace(session, events=()))))

    def _flush(self) -> None:
        if self._texts:
            lines, moments = self._lines.tobytes(), self._moments.tobytes()
            self._send(EventBatch(self._texts, self._keys, self._words, lines, moments, self._source_ids))
            self._start_batch()

    def _start_batch(self) -> None:
        self._texts: list[bytes] = []
        self._keys: list[bytes] = []
        self._words: list[str] = []
        self._lines, self._moments = array("q"), array("d")
        self._source_ids: list[str] = []
        self._size = 0  # bytes of texts
