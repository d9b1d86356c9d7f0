"""The bytes of a recording, read strictly: lines split on newline bytes only, UTF-8 and JSON checked.

Nothing here loads a whole file unless it is one JSON value: `lines()` holds one line at a time, and `elements()` one
element of a large JSON array.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from guard_core.errors import DamagedRecording, LimitExceeded, RecordingError
from guard_core.recordings.reading import json_array, normalise, strict_json
from guard_core.recordings.reading.copies import Copies
from guard_core.recordings.reading.early_events import EarlyEvents
from guard_core.recordings.reading.file_bytes import BOM, PROGRESS_STEP, SQLITE_MAGIC, ZIP_MAGIC, FileBytes, Progress
from guard_core.recordings.reading.large_array import LargeArray, checked_array, names_nan
from guard_core.recordings.reading.limits import MIB, Limits
from guard_core.recordings.reading.notes import ImportNotes
from guard_core.recordings.reading.positions import position, stream_position
from guard_core.recordings.reading.shelf import Shelf
from guard_core.recordings.reading.watch import ObjectWatch
from guard_core.sessions import DAMAGED, Session

UNFINISHED = "the last line is not finished and was left out; it is read once the file has grown"
LINES_SEEN = 4 * MIB  # bytes, in which two lines of a recording have room
SHELVED_FROM = 4 * MIB  # bytes; below that a source is cheaper in memory
_JSON_KINDS = {type(None): "null", bool: "boolean", int: "number", float: "number", str: "text", list: "array"}


class SourceShape(StrEnum):
    """What the bytes are, before any format is asked."""

    EMPTY = "empty"
    SQLITE = "sqlite"
    ZIP = "zip"
    JSON = "json"  # one JSON value; a file of one line is this, and its one line is also in `lines()`
    LINES = "lines"  # JSON Lines
    TEXT = "text"  # anything else


class Line(NamedTuple):
    """One good line: number (from 1), offset of its first byte, the JSON object, the bytes without the newline."""

    number: int
    offset: int
    obj: dict[str, Any]
    raw: bytes

    def column(self, key: str) -> int:
        """The column (from 1) where a key is first; 1 where it is not found."""
        at = self.raw.find(b'"' + key.encode() + b'"')
        return 1 if at < 0 else len(self.raw[:at].decode("utf-8", "replace")) + 1


class ByteSource:
    """What the bytes of one recording say. Use as a context manager: temporary files are removed at its end."""

    def __init__(self, file: FileBytes, *, strict: bool, limits: Limits) -> None:
        self._file = file
        self.strict = strict
        self.limits = limits
        self.notes = ImportNotes()
        self.progress: Progress | None = None
        self.shelve: Path | None = None  # the folder in which readers may keep the texts of a large source
        self.shelve_from = SHELVED_FROM  # bytes from which a source is large
        self.early: EarlyEvents | None = None  # gets the events of a large source while it is read
        self.has_left_out = False  # a damaged line, record or part of one
        self._noted = 0  # the problems of lines up to here are noted: a second pass does not note them again
        self.memo: dict[str, Any] = {}  # what a format found out while it was asked whether it matches
        self.watch: ObjectWatch | None = None  # looks at what is parsed before the reader does
        self._spoiled: set[int] = set()  # lines in which the watch changes something
        self._watched: Any = None  # the whole value, once it has been looked at
        self._json: dict[bool, Any] = {}  # by allow_nan; a RecordingError where it is no such value, or a LargeArray
        self._watched_elements = 0  # of a large array: the watch has noted what is in these
        self._spoiled_elements: set[int] = set()  # in which it changes something
        self._heads: list[Line] | None = None
        self._decoded_heads: dict[int, strict_json.Decoded] = {}  # by line, until the first pass comes there
        self._shape: SourceShape | None = None
        self._shelf: Shelf | None = None

    @classmethod
    def open(
        cls,
        recording: str | os.PathLike[str] | bytes | IO[bytes],
        *,
        strict: bool = False,
        limits: Limits | None = None,
        progress: Progress | None = None,
    ) -> ByteSource:
        """The bytes of a path, a binary file object or bytes. A gzip stream is inflated, a folder becomes a ZIP
        archive, archives of other kinds are refused.

        Raises LimitExceeded, UnknownFormat (an archive), DamagedRecording (empty, UTF-16, a broken gzip stream).
        """
        limits = limits or Limits()
        source = cls(FileBytes.open(recording, limits), strict=strict, limits=limits)
        source.progress = progress
        return source

    def __enter__(self) -> ByteSource:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the temporary files."""
        self._file.close()

    @property
    def is_folder(self) -> bool:
        """Was a folder opened, so that the archive is ours?"""
        return self._file.is_folder

    @property
    def shelf(self) -> Shelf | None:
        """Where the texts of events are kept instead of in memory; None for sources that are not worth it."""
        if self._shelf is None and self.shelve is not None and self.size >= self.shelve_from:
            self._shelf = Shelf(self.shelve, keeping=self.early is not None)
        return self._shelf

    @property
    def size(self) -> int:
        """Bytes in all, inflated."""
        return self._file.size

    @property
    def first_bytes(self) -> bytes:
        """The first 4,096 bytes."""
        return self.head(4096)

    def head(self, size: int) -> bytes:
        """The first `size` bytes."""
        return self._file.head(size)

    @property
    def may_be_lines(self) -> bool:
        """Could these be JSON Lines, as far as a quick look shows: a short file, or one with a second object on a line
        of its own near the beginning."""
        head = self.head(LINES_SEEN)
        return len(head) < LINES_SEEN or (head.removeprefix(BOM).lstrip().startswith(b"{") and b"\n{" in head)

    def stream(self) -> IO[bytes]:
        """A new binary stream over all bytes."""
        return self._file.stream()

    @property
    def path(self) -> Path:
        """A real file with these bytes: the file itself where one was opened, else a temporary copy."""
        return self._file.path

    def beside(self, suffix: str) -> Path | None:
        """The file with the same name and one more suffix (`-wal`), where there is one beside the opened file."""
        return self._file.beside(suffix)

    @property
    def shape(self) -> SourceShape:
        """What kind of bytes these are."""
        if self._shape is None:
            self._shape = self._find_shape()
        return self._shape

    def head_lines(self, count: int = 50) -> list[Line]:
        """The first `count` (at most 50) good lines, to recognise a format by; damaged ones are passed over."""
        if self._heads is None:
            self._heads = self._read_heads()
        return self._heads[:count]

    def lines(self, *, with_copies: bool = False) -> Iterator[Line]:
        """Every good line. A damaged one raises in strict mode and is noted and left out in lenient mode.

        The beginning of an object at the end of the file is a file that is still being written: left out and noted
        in both modes, when a line before it was good. Blank lines are passed over. So are lines that repeat the file
        from its first line on: the same recording was written twice into it, or an earlier state behind a later one.
        `with_copies`: not these, as each recording of the format says where it begins.
        """
        good, copies = 0, None if with_copies else Copies(self.size, self.stream)
        for number, offset, raw, ended in self._file.lines(self.limits.line_bytes, self.progress):
            if number > self.notes.lines:
                self.notes.lines = number
            if copies is not None and copies.have(offset, raw):
                self.notes.folded += number > self._noted
                self._noted = max(self._noted, number)
                continue
            line = self._good_line(number, offset, raw, last=not ended and good > 0)
            self._noted = max(self._noted, number)
            if line is not None:
                good += 1
                yield line

    def json(self, *, allow_nan: bool = False) -> Any:
        """The whole as one JSON value, read once. Raises DamagedRecording with line and column, or LimitExceeded."""
        value = self._value(allow_nan)
        if isinstance(value, LargeArray):
            value = self._decoded(self._file.whole(), self.limits, allow_nan)
            self._json[allow_nan] = value
        if self.watch is not None and self._watched is not value:
            self._watched = value
            self.watch.check(value, None, self.problem, self._file.whole())
        return value

    def json_head(self, *, allow_nan: bool = False) -> Any:
        """The same, to recognise a format by: of a large array only its first elements, HEADS at most. Raises as
        `json`, wherever the damage is."""
        value = self._value(allow_nan)
        return value.heads if isinstance(value, LargeArray) else value

    def elements(
        self, listed: Callable[[Any], Iterable[Any]] | None = None, *, allow_nan: bool = False
    ) -> Iterator[Any]:
        """The elements of the array that the whole is, of a large one each parsed when it is asked for, again in every
        pass. Of another value what `listed` finds in it, or the value itself. Raises as `json`."""
        value = self._value(allow_nan)
        if not isinstance(value, LargeArray):
            value = self.json(allow_nan=allow_nan)
            yield from value if isinstance(value, list) else listed(value) if listed else (value,)
            return
        total, reported, limits = self.size, 0, self._element_limits
        try:
            with self._file.text_stream() as stream:
                for number, (offset, raw) in enumerate(json_array.elements(stream), start=1):
                    element = self._decoded(raw, limits, allow_nan)
                    self._watch_element(element, number, offset, raw)
                    if self.progress is not None and offset - reported >= PROGRESS_STEP:
                        reported = offset
                        self.progress(offset, total)
                    yield element
        except (json_array.NotParted, strict_json.JsonProblem) as error:
            raise DamagedRecording("the file has changed while it was read") from error
        if self.progress is not None:
            self.progress(total, total)

    def parse(self, raw: bytes, *, allow_nan: bool = False, what: str = "") -> Any:
        """One JSON value of a part of the recording (a zip member, a database column, an embedded text).

        `what` names the part in the message. In lenient mode NaN and repeated keys are mended and noted.
        """
        try:
            value, mended, more = strict_json.decode(raw, self.limits, allow_nan=allow_nan, mend=not self.strict)
        except strict_json.JsonProblem as problem:
            raise self._error(problem, raw, what) from None
        for reason, offset in mended:
            line, column = position(raw, offset)
            self._mend(f"{what}: {reason}" if what else reason, line, column)
        self.notes.mend(more)
        if self.watch is not None and what:
            self.watch.check(value, None, lambda message, line, column: self.problem(f"{what}: {message}"))
        return value

    def without_head(self, size: int) -> bytes:
        """All bytes, the first `size` as blanks: places behind them stay what they are."""
        return self._file.without_head(size)

    def drop_head(self, size: int, problem: strict_json.JsonProblem) -> None:
        """Read the first bytes as blanks, because of a problem on their first line: raises it in strict mode."""
        self._damaged(problem, 1, self.head(size))
        self._file.blank_head(size)
        self._json, self._heads, self._shape = {}, None, None
        self._decoded_heads = {}

    def text(self, raw: bytes | None = None) -> str:
        """All bytes (or these) as text. Bytes that are not UTF-8 raise in strict mode, else become U+FFFD, noted."""
        data = self._file.whole() if raw is None else raw
        try:
            decoded = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line, column = position(data, error.start)
            self.problem(f"the byte 0x{data[error.start]:02x}, which is not UTF-8", line, column)
            decoded = data.decode("utf-8", "replace")
        cleaned, count = normalise.text(decoded)
        if count:
            self._mend("a NUL character", *position(data, data.find(b"\x00")))
        return cleaned

    def problem(self, message: str, line: int | None = None, column: int | None = None) -> None:
        """Something is wrong at a place: raises DamagedRecording in strict mode, is noted in lenient mode."""
        if self.strict:
            raise DamagedRecording(message, line=line, column=column)
        self.notes.problem(message, line, column)

    def leave_out(self, message: str, line: int | None = None) -> None:
        """A problem with part of a conversation, which is left out."""
        self.problem(message, line)
        self.has_left_out = True

    def nothing_left(self, otherwise: str) -> DamagedRecording:
        """Why no session was found: the first damaged place that a lenient reading left out, else `otherwise`."""
        first = next(iter(self.notes.problems), None)
        if first is None:
            return DamagedRecording(otherwise)
        return DamagedRecording(f"{otherwise}: {first.message}", line=first.line, column=first.column)

    def tolerate(self, line: int | None = None) -> AbstractContextManager[None, bool]:
        """Around the handling of one line or record: a RecordingError inside skips it in lenient mode, and is noted.

        Change nothing of your own inside before everything that can fail has been checked.
        """
        return _Tolerance(self, line)

    @contextmanager
    def apart(self, sessions: list[Session]) -> Iterator[None]:
        """Around the reading of sessions from a part of the source that no other session comes from, which are added to
        a list: what is left out inside is of these alone."""
        before, elsewhere = len(sessions), self.has_left_out
        self.has_left_out = False
        try:
            yield
            if self.has_left_out:
                sessions[before:] = map(noting_damage, sessions[before:])
        finally:
            self.has_left_out = elsewhere

    # -- reading lines

    def _good_line(self, number: int, offset: int, raw: bytes, *, last: bool) -> Line | None:
        if not raw or not raw.strip(b" \t\r"):
            return None
        try:
            known = number in self._decoded_heads
            value, mended, more = self._decoded_heads.pop(number) if known else self._decode_line(raw)
        except strict_json.JsonProblem as problem:
            if last and problem.cut and raw.lstrip().startswith(b"{"):
                if number > self._noted:
                    self.notes.problem(f"{UNFINISHED}: {problem.reason}", number, position(raw, len(raw))[1])
            else:
                self._damaged(problem, number, raw)
            return None
        first = number > self._noted
        if self.watch is not None and first and self.watch.check(value, number, self.problem, raw):
            self._spoiled.add(number)
        elif self.watch is not None and number in self._spoiled:
            self.watch.spoil(value)
        if first:
            for reason, at in mended:
                self._mend(reason, number, position(raw, at)[1])
            self.notes.mend(more)
        return Line(number, offset, value, raw)

    def _decode_line(self, raw: bytes) -> strict_json.Decoded:
        if len(raw) > self.limits.line_bytes:
            raise strict_json.JsonProblem(f"a line longer than {self.limits.line_bytes} bytes", limit=True)
        decoded = strict_json.decode(raw, self.limits)
        if not isinstance(decoded.value, dict):
            kind = _JSON_KINDS[type(decoded.value)]
            raise strict_json.JsonProblem(f"a JSON {kind} where an object should be", 0)
        return decoded

    def _damaged(self, problem: strict_json.JsonProblem, number: int, raw: bytes) -> None:
        column = None if problem.offset is None else position(raw, problem.offset)[1]
        if self.strict:
            kind = LimitExceeded if problem.limit else DamagedRecording
            raise kind(problem.reason, line=number, column=column)
        self.has_left_out = True
        if number > self._noted:
            self.notes.problem(problem.reason, number, column)

    def _mend(self, reason: str, line: int | None, column: int | None) -> None:
        if self.strict:
            raise DamagedRecording(reason, line=line, column=column)
        self.notes.mended += 1
        self.notes.problem(f"{reason} (replaced)", line, column)

    def _read_heads(self) -> list[Line]:
        heads: list[Line] = []
        if self.first_bytes.startswith((SQLITE_MAGIC, ZIP_MAGIC)):
            return heads
        for number, offset, raw, _ in self._file.lines(self.limits.line_bytes):
            if raw.lstrip(b" \t\r").startswith(b"{"):  # no other line is good, and an array may be one long line
                with suppress(strict_json.JsonProblem):
                    self._decoded_heads[number] = decoded = self._decode_line(raw)
                    heads.append(Line(number, offset, decoded.value, raw))
            if len(heads) >= 50 or number >= 500 or offset > self.limits.head_bytes:
                break
        return heads

    # -- the whole

    def _find_shape(self) -> SourceShape:
        first = self.first_bytes
        if first.startswith(SQLITE_MAGIC):
            return SourceShape.SQLITE
        if first.startswith(ZIP_MAGIC):
            return SourceShape.ZIP
        start = self._file.first_character()
        if not start:
            return SourceShape.EMPTY
        heads = self.head_lines(2)
        if len(heads) == 2 and start != b"[" and not self._is_one_value(heads[0]):
            return SourceShape.LINES
        if start in (b"{", b"["):
            try:
                self.json_head(allow_nan=True)
                return SourceShape.JSON
            except RecordingError:
                return SourceShape.LINES if heads else SourceShape.JSON
        return SourceShape.LINES if heads else SourceShape.TEXT

    def _is_one_value(self, good: Line) -> bool:
        """Is the whole one JSON object written over several lines, some of which are objects by themselves? `good`: the
        first such line."""
        first = self.head(min(good.offset, self.limits.head_bytes)).removeprefix(BOM).lstrip().partition(b"\n")[0]
        try:
            strict_json.decode(first, self.limits)
        except strict_json.JsonProblem as problem:
            if not first or not problem.cut:  # damaged: the first of several lines only ends too early
                return False
        else:
            return False
        try:
            self.json_head(allow_nan=True)
        except RecordingError:
            return False
        return True

    def _value(self, allow_nan: bool) -> Any:
        """The whole as one JSON value, or as a large array; raises what is wrong with it."""
        if allow_nan not in self._json:
            array = self._large_array(allow_nan)
            value, has_nan = array or self._small(allow_nan)
            self._json[allow_nan] = value
            if not has_nan:
                self._json[not allow_nan] = value
        value = self._json[allow_nan]
        if isinstance(value, RecordingError):  # every format asks, and finding the place takes seconds
            raise value.with_traceback(None)
        return value

    def _small(self, allow_nan: bool) -> tuple[Any, bool]:
        """The value, or the error that it is, and whether it may be another one with the other `allow_nan`."""
        raw = self._file.whole()
        value: Any
        try:
            value = self.parse(raw, allow_nan=allow_nan)
        except RecordingError as error:
            value = error
        return value, names_nan(raw)

    def _large_array(self, allow_nan: bool) -> tuple[LargeArray | RecordingError, bool] | None:
        """The same for a large array that could be checked element by element; None for any other value."""
        if self.size < self.shelve_from or self._file.first_character() != b"[":
            return None
        with self._file.text_stream() as stream:
            array = checked_array(stream, self._element_limits, allow_nan=allow_nan)
        if array is None:
            return None
        try:
            for reason, offset in array.mended:
                self._mend(reason, *self._place_of(offset))
            self.notes.mend(array.more)
        except DamagedRecording as error:
            return error, array.has_nan
        return array, array.has_nan

    @property
    def _element_limits(self) -> Limits:
        """The limits of an element: the array around it is one level."""
        return msgspec.structs.replace(self.limits, depth=self.limits.depth - 1)

    def _decoded(self, raw: bytes, limits: Limits, allow_nan: bool) -> Any:
        """A value that was checked before."""
        return strict_json.decode_again(raw, limits, allow_nan=allow_nan, mend=not self.strict)

    def _watch_element(self, value: Any, number: int, offset: int, raw: bytes) -> None:
        """Let the watch look at an element of a large array; only in the first pass it is noted what is in it."""
        if self.watch is None:
            return
        if number <= self._watched_elements:
            if number in self._spoiled_elements:
                self.watch.spoil(value)
            return

        def problem(message: str, line: int | None, column: int | None) -> None:
            self.problem(message, *self._place_within(offset, line, column))

        self._watched_elements = number
        if self.watch.check(value, None, problem, raw):
            self._spoiled_elements.add(number)

    def _place_within(self, offset: int, line: int | None, column: int | None) -> tuple[int | None, int | None]:
        """The place in the file that has this line and column behind an offset."""
        if line is None:
            return None, None
        first, start = self._place_of(offset)
        return first + line - 1, start + column - 1 if line == 1 and column is not None else column

    def _place_of(self, offset: int) -> tuple[int, int]:
        """Line and column of a byte offset behind the byte order mark."""
        with self._file.text_stream() as stream:
            return stream_position(stream, offset)

    def _error(self, problem: strict_json.JsonProblem, raw: bytes, what: str) -> RecordingError:
        kind = LimitExceeded if problem.limit else DamagedRecording
        line, column = (None, None) if problem.offset is None else position(raw, problem.offset)
        if not what:
            return kind(problem.reason, line=line, column=column)
        place = f" (its line {line}, column {column})" if line is not None else ""
        return kind(f"{what}: {problem.reason}{place}")


def noting_damage(session: Session) -> Session:
    """A session with the note, once, that something of it may have been left out."""
    noted = DAMAGED in session.notes
    return session if noted else msgspec.structs.replace(session, notes=(*session.notes, DAMAGED))


class _Tolerance:
    """A class, since it is entered for every line, and a generator takes thrice as long."""

    __slots__ = ("_line", "_source")

    def __init__(self, source: ByteSource, line: int | None) -> None:
        self._source, self._line = source, line

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, RecordingError) or isinstance(error, LimitExceeded):
            return False
        place = error.line if error.line is not None else self._line
        if self._source.strict:
            raise type(error)(error.reason, line=place, column=error.column) from error
        self._source.has_left_out = True
        self._source.notes.problem(error.reason, place, error.column)
        return True
