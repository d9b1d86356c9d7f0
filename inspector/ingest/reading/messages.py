"""What a reader sends of a file, in this order.

ReadingProgress, and perhaps EventBatches of the first session, while the file is read; Read and LookMessage; then for
each session Begin, EventBatches and End; Done. For the first session an EarlyEventsCut may come before Begin.
ReadingFailed instead of whatever was to come.
"""

from __future__ import annotations

from typing import IO

import msgspec

from guard_core.recordings import FirstLook, ImportNotes, RecordingFacts
from inspector.project.pipes import read_frame, write_frame


class ReaderMessage(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """What a process that reads a file sends through its pipe: one of the classes below."""


class ReadingProgress(ReaderMessage, frozen=True):
    """Bytes read, of all."""

    done: int
    total: int


class Read(ReaderMessage, frozen=True):
    """The file is read; so many events are in its sessions."""

    events: int


class LookMessage(ReaderMessage, frozen=True):
    """What the provider reported for the calls of the first session."""

    first: FirstLook


class EarlyEventsCut(ReaderMessage, frozen=True):
    """Of the events sent of the first session, the first `count` are in it; the others are not."""

    count: int


class Begin(ReaderMessage, frozen=True):
    """A session of this format follows, which its agent calls so."""

    format: str
    source_id: str


class EventBatch(ReaderMessage, frozen=True):
    """The next events of the session."""

    texts: list[bytes]  # contents.packed
    keys: list[bytes]  # contents.key_of each
    words: list[str]  # guard_core.facts.searchable.text_of
    lines: bytes  # int64, -1: none
    timestamps: bytes  # float64, nan: none
    source_ids: list[str]


class End(ReaderMessage, frozen=True):
    """The session is whole."""

    head: bytes  # packing.encode of the session without its events


class Done(ReaderMessage, frozen=True):
    """The end of the file, what is known of it as a whole, and how many sessions were above the limit."""

    format: str
    facts: RecordingFacts
    notes: ImportNotes
    left_out: int


class ReadingFailed(ReaderMessage, frozen=True):
    """The file cannot be read: the name of a RecordingError, "memory", "system", or a "mistake" of ours."""

    kind: str
    reason: str = ""
    line: int | None = None
    column: int | None = None


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(
    ReadingProgress | Read | LookMessage | EarlyEventsCut | Begin | EventBatch | End | Done | ReadingFailed
)


def write(out: IO[bytes], message: ReaderMessage) -> None:
    """Write one message to a pipe."""
    write_frame(out, _ENCODER.encode(message))


def read(source: IO[bytes]) -> ReaderMessage | None:
    """The next message from a pipe; None at its end."""
    data = read_frame(source)
    return None if data is None else _DECODER.decode(data)
