"""Texts of events on disk while a long recording is read: each event is kept as an outline, its texts are fetched.

A file of 200 MB then costs some MB of memory, not its size and more. The texts lie in a file without a name, which
vanishes with the last event sequence that needs it, and with the process in any case.
"""

from __future__ import annotations

import tempfile
import weakref
from array import array
from collections.abc import Iterable, Iterator, MutableSequence, Sequence
from pathlib import Path
from typing import IO, Any, overload

import msgspec

from guard_core.events import Event, MediaPart, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.reading.packed_list import PackedList

BUFFER_BYTES = 1 << 18  # written at once, and read at once where events are taken in order
FRESH_BYTES = 3 << 19  # of the newest records, packed, where they are kept in memory too
_TEXT, _REASONING, _MEDIA, _OTHER = TextPart(""), ReasoningPart(), MediaPart(), OtherPart("")
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(tuple[Part, ...])


def outline(part: Part) -> Part:
    """A part without its content: its kind, and what a call and its result are matched by."""
    match part:
        case ToolCallPart():
            return ToolCallPart(part.name, None, part.id)
        case ToolResultPart():
            return ToolResultPart(part.name, None, part.call_id)
        case TextPart():
            return _TEXT
        case ReasoningPart():
            return _REASONING
        case MediaPart():
            return _MEDIA
        case OtherPart():
            return _OTHER


class Shelf:
    """The parts of messages, packed one after another in a file. A place is the number of a record, from 0.

    `keeping`: the newest records stay in memory too, since they are asked for soon.
    """

    def __init__(self, folder: Path, *, keeping: bool = False) -> None:
        file: IO[bytes] = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - closed with the shelf
        weakref.finalize(self, file.close)
        self._file = file
        self._ends = array("Q", [0])  # bytes
        self._waiting = bytearray()  # written, but not to the file yet
        self._written = 0  # bytes in the file
        self._window = (0, b"")  # a stretch of the file that was read: offset, bytes
        self._last = 0  # where the record ends that was asked for last: whoever continues there reads in order
        self._keeping = keeping
        self._fresh: dict[int, tuple[Part, ...]] = {}
        self._oldest = 0  # of them

    def put(self, parts: tuple[Part, ...]) -> int:
        """Keep the parts of a message; their place."""
        self._waiting += _ENCODER.encode(parts)
        self._ends.append(self._written + len(self._waiting))
        place = len(self._ends) - 2
        if self._keeping:
            self._fresh[place] = parts
            while self._ends[place + 1] - self._ends[self._oldest] > FRESH_BYTES:
                del self._fresh[self._oldest]
                self._oldest += 1
        if len(self._waiting) >= BUFFER_BYTES:
            self._flush()
        return place

    def keep_none(self) -> None:
        """From now on records are asked for in order, if at all: hold none of them in memory."""
        self._keeping = False
        self._fresh.clear()

    def get(self, place: int) -> tuple[Part, ...]:
        """The parts of the message at a place of the log, from memory or from the file."""
        if (fresh := self._fresh.get(place)) is not None:
            return fresh
        start, stop = self._ends[place], self._ends[place + 1]
        if stop > self._written:
            self._flush()
        offset, data = self._window
        if not offset <= start <= stop <= offset + len(data):
            buffered = BUFFER_BYTES if start == self._last else 0
            self._file.seek(start)
            offset, data = self._window = start, self._read(max(stop - start, buffered))
        self._last = stop
        return _DECODER.decode(memoryview(data)[start - offset : stop - offset])

    def _flush(self) -> None:
        self._file.seek(self._written)
        rest = memoryview(self._waiting)
        while rest:
            rest = rest[self._file.write(rest) :]
        self._written = self._ends[-1]
        self._waiting = bytearray()

    def _read(self, size: int) -> bytes:
        """Up to `size` bytes: fewer only at the end of the file."""
        pieces = []
        while size and (piece := self._file.read(size)):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


class ShelvedEvents(MutableSequence[Event]):
    """Events whose texts are on a shelf: used as a list; `outlines` is for what needs no text."""

    def __init__(self, shelf: Shelf, events: Iterable[Event] = ()) -> None:
        self.shelf = shelf
        self.outlines: PackedList[Event] = PackedList(Event)
        self._places = array("q")
        self.extend(events)

    def __len__(self) -> int:
        return len(self.outlines)

    def __iter__(self) -> Iterator[Event]:
        for known, place in zip(self.outlines, self._places, strict=True):
            yield self.filled(known, place)

    @overload
    def __getitem__(self, index: int) -> Event: ...

    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...

    def __getitem__(self, index: int | slice) -> Event | list[Event]:
        if isinstance(index, slice):
            return list(map(self.filled, self.outlines[index], self._places[index]))
        return self.filled(self.outlines[index], self._places[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        """Replace one event, or a stretch of them."""
        if isinstance(index, slice):
            fresh = ShelvedEvents(self.shelf, value)
            self.outlines[index], self._places[index] = fresh.outlines, fresh._places
        else:
            self.outlines[index], self._places[index] = _outlined(value), self.shelf.put(value.parts)

    def __delitem__(self, index: int | slice) -> None:
        del self.outlines[index], self._places[index]

    def insert(self, index: int, value: Event) -> None:
        self.insert_outline(index, _outlined(value), self.shelf.put(value.parts))

    @property
    def places(self) -> Sequence[int]:
        """Where the texts of each event lie."""
        return self._places

    def filled(self, known: Event, place: int) -> Event:
        """An event with its texts, from its outline."""
        parts = self.shelf.get(place)
        return msgspec.structs.replace(known, parts=tuple(map(_named, known.parts, parts)))

    def insert_outline(self, index: int, known: Event, place: int) -> None:
        """An event whose parts are outlines, its texts being on the shelf already."""
        self.outlines.insert(index, known)
        self._places.insert(index, place)


def _outlined(event: Event) -> Event:
    return msgspec.structs.replace(event, parts=tuple(map(outline, event.parts)))


def _named(known: Part, part: Part) -> Part:
    """The part, with the names that pairing gave its outline."""
    if isinstance(part, ToolCallPart) and isinstance(known, ToolCallPart):
        return part if part.id == known.id else msgspec.structs.replace(part, id=known.id)
    if isinstance(part, ToolResultPart) and isinstance(known, ToolResultPart):
        if part.call_id == known.call_id and part.name == known.name:
            return part
        return msgspec.structs.replace(part, call_id=known.call_id, name=known.name)
    return part
