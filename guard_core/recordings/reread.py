"""Events whose texts stay in the file: an outline of each is kept, the text is read again when the event is asked for.

A file of 200 MB then costs some MB, not its size and more. The file must stay as it is while the events are in use.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import IO, Any, overload

import msgspec

from guard_core.errors import DamagedRecording
from guard_core.events import Event, MediaPart, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings import strict_json

BUFFER_BYTES = 1 << 18  # events are read in the order of the file
_TEXT, _REASONING, _MEDIA, _OTHER = TextPart(""), ReasoningPart(), MediaPart(), OtherPart("")


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


class Texts:
    """The lines of a file, by number, as the messages in them. `parts_of` gives the parts of some parsed lines."""

    def __init__(self, path: Path, parts_of: Callable[[list[Any]], tuple[Part, ...]]) -> None:
        self.path, self.parts_of = path, parts_of
        self._starts = array("q")

    def note(self, number: int, offset: int) -> None:
        """Where a line begins; lines come in order, and some may be left out."""
        while len(self._starts) < number:
            self._starts.append(offset)

    def open(self) -> IO[bytes]:
        return open(self.path, "rb", buffering=BUFFER_BYTES)

    def parts(self, lines: Sequence[int], file: IO[bytes] | None = None) -> tuple[Part, ...]:
        """The parts of the message that these lines (from 1) hold. Raises DamagedRecording where the file changed."""
        if file is None:
            with closing(self.open()) as opened:
                return self.parts(lines, opened)
        return self.parts_of([self._line(number, file) for number in lines])

    def _line(self, number: int, file: IO[bytes]) -> Any:
        file.seek(self._starts[number - 1])
        try:
            return strict_json.decode_again(file.readline())
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DamagedRecording("the file was changed while it was read", line=number) from error


class Reread(Sequence[Event]):
    """The events of a session, in order; each access reads its text again. `groups`: events of more than one line."""

    def __init__(self, texts: Texts, outlines: tuple[Event, ...], groups: Mapping[int, Sequence[int]]) -> None:
        self.texts, self.outlines, self.groups = texts, outlines, groups

    def __len__(self) -> int:
        return len(self.outlines)

    def __iter__(self) -> Iterator[Event]:
        with closing(self.texts.open()) as file:
            for index in range(len(self.outlines)):
                yield self._event(index, file)

    @overload
    def __getitem__(self, index: int) -> Event: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Event, ...]: ...

    def __getitem__(self, index: int | slice) -> Event | tuple[Event, ...]:
        with closing(self.texts.open()) as file:
            if isinstance(index, slice):
                return tuple(self._event(at, file) for at in range(*index.indices(len(self))))
            return self._event(range(len(self))[index], file)

    def _event(self, index: int, file: IO[bytes]) -> Event:
        known = self.outlines[index]
        lines = self.groups.get(index) or ([known.line] if known.line is not None else [])
        return filled(known, self.texts.parts(lines, file))


def filled(known: Event, parts: tuple[Part, ...]) -> Event:
    """An outline with the texts of its parts; calls and results keep the names that pairing gave them."""
    if len(parts) != len(known.parts):
        raise DamagedRecording("the file was changed while it was read", line=known.line)
    return msgspec.structs.replace(known, parts=tuple(map(_named, known.parts, parts)))


def _named(known: Part, part: Part) -> Part:
    if isinstance(part, ToolCallPart) and isinstance(known, ToolCallPart):
        return part if part.id == known.id else msgspec.structs.replace(part, id=known.id)
    if isinstance(part, ToolResultPart) and isinstance(known, ToolResultPart):
        if part.call_id == known.call_id and part.name == known.name:
            return part
        return msgspec.structs.replace(part, call_id=known.call_id, name=known.name)
    return part
