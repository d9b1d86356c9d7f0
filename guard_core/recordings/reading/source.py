"""The bytes of a recording, read strictly: lines split on newline bytes only, UTF-8 and JSON checked.

Nothing here loads a whole file unless it is one JSON value: `lines()` holds one line at a time, and `elements()` one
element of a large JSON array.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from enum import StrEnum
from io import BytesIO
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from guard_core.errors import DamagedRecording, LimitExceeded, RecordingError, UnknownFormat
from guard_core.recordings.reading import json_array, normalise, strict_json
from guard_core.recordings.reading.copies import Copies
from guard_core.recordings.reading.early_events import EarlyEvents
from guard_core.recordings.reading.folders import pack
from guard_core.recordings.reading.gzip_stream import inflate
from guard_core.recordings.reading.limits import MIB, Limits
from guard_core.recordings.reading.notes import ImportNotes
from guard_core.recordings.reading.shelf import Shelf
from guard_core.recordings.reading.watch import ObjectWatch

Progress = Callable[[int, int], None]  # bytes read, bytes in all; may raise to cancel

BOM = b"\xef\xbb\xbf"
SQLITE_MAGIC = b"SQLite format 3\x00"
ZIP_MAGIC = b"PK\x03\x04"
GZIP_MAGIC = b"\x1f\x8b"
# The beginnings of what is refused by name instead of as "not JSON".
REFUSED = {
    b"PK\x05\x06": "an empty ZIP archive",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!\x1a\x07": "a RAR archive",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ\x00": "an xz file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"%PDF-": "a PDF document",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"\x7fELF": "a program",
    b"PAR1": "a Parquet file: pick out its messages column as JSON first",
}
_UTF16 = {b"\xff\xfe\x00\x00": "UTF-32", b"\x00\x00\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_BEGINNINGS = bytes(byte for byte in range(256) if byte & 0xC0 != 0x80)  # every byte but those that go on a character
_PROGRESS_STEP = MIB
UNFINISHED = "the last line is not finished and was left out; it is read once the file has grown"
BUFFER_BYTES = MIB // 4  # read at once; with the 8 KiB of the default, long lines are put together piece by piece
LINES_SEEN = 4 * MIB  # bytes, in which two lines of a recording have room
SHELVED_FROM = 4 * MIB  # bytes; below that a source is cheaper in memory
HEADS = 200  # elements of a large array that are kept to recognise a format by
HEAD_BYTES = MIB  # of the array, in which these begin; as values they take several times as much
# Bytes of an element, on average, from which it is worth the time to find its end. Ours, measured: that takes 4 µs in
# every pass, as long as parsing 400 bytes; an array of numbers would take minutes.
ELEMENT_BYTES = 100


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


class _LargeArray(NamedTuple):
    """An array that was found good element by element. None of them is kept but the first ones."""

    heads: list[Any]


class ByteSource:
    """Bytes of one recording. Use as a context manager: a temporary file is removed at its end."""

    def __init__(self, data: bytes | None, path: Path | None, *, strict: bool, limits: Limits) -> None:
        self.strict = strict
        self.limits = limits
        self.notes = ImportNotes()
        self.progress: Progress | None = None
        self.shelve: Path | None = None  # the folder in which readers may keep the texts of a large source
        self.shelve_from = SHELVED_FROM  # bytes from which a source is large
        self.early: EarlyEvents | None = None  # gets the events of a large source while it is read
        self.is_folder = False  # the archive is a folder's
        self._data = data
        self._path = path
        self._temporary: list[Path] = []
        self._noted = 0  # the problems of lines up to here are noted: a second pass does not note them again
        self.memo: dict[str, Any] = {}  # what a format found out while it was asked whether it matches
        self.watch: ObjectWatch | None = None  # looks at what is parsed before the reader does
        self._spoiled: set[int] = set()  # lines in which the watch changes something
        self._watched: Any = None  # the whole value, once it has been looked at
        self._json: dict[bool, Any] = {}  # by allow_nan; a RecordingError where it is no such value, or a _LargeArray
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
        source = _opened(recording, strict=strict, limits=limits or Limits())
        source.progress = progress
        try:
            source._check_size()
            if source.first_bytes.startswith(GZIP_MAGIC):
                source._inflate()
            source._refuse_other_kinds()
        except BaseException:
            source.close()
            raise
        return source

    def __enter__(self) -> ByteSource:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the temporary files."""
        while self._temporary:
            self._temporary.pop().unlink(missing_ok=True)

    @property
    def shelf(self) -> Shelf | None:
        """Where the texts of events are kept instead of in memory; None for sources that are not worth it."""
        if self._shelf is None and self.shelve is not None and self.size >= self.shelve_from:
            self._shelf = Shelf(self.shelve, keeping=self.early is not None)
        return self._shelf

    @property
    def size(self) -> int:
        """Bytes in all, inflated."""
        return len(self._data) if self._data is not None else self.path.stat().st_size

    @property
    def first_bytes(self) -> bytes:
        """The first 4,096 bytes."""
        return self.head(4096)

    def head(self, size: int) -> bytes:
        """The first `size` bytes."""
        with self.stream() as stream:
            return stream.read(size)

    @property
    def may_be_lines(self) -> bool:
        """Could these be JSON Lines, as far as a quick look shows: a short file, or one with a second object on a line
        of its own near the beginning."""
        head = self.head(LINES_SEEN)
        return len(head) < LINES_SEEN or (head.removeprefix(BOM).lstrip().startswith(b"{") and b"\n{" in head)

    def stream(self) -> IO[bytes]:
        """A new binary stream over all bytes."""
        return BytesIO(self._data) if self._data is not None else open(self.path, "rb", BUFFER_BYTES)

    @property
    def path(self) -> Path:
        """A real file with these bytes: the file itself where one was opened, else a temporary copy."""
        if self._path is None:
            self._path = self._temporary_file()
            self._path.write_bytes(self._data or b"")
        return self._path

    def beside(self, suffix: str) -> Path | None:
        """The file with the same name and one more suffix (`-wal`), where there is one beside the opened file."""
        if self._path is None or self._path in self._temporary:
            return None
        other = self._path.with_name(self._path.name + suffix)
        return other if other.is_file() else None

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
        for number, offset, raw, ended in self._raw_lines():
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
        if isinstance(value, _LargeArray):
            value = self._decoded(self._whole(), self.limits, allow_nan)
            self._json[allow_nan] = value
        if self.watch is not None and self._watched is not value:
            self._watched = value
            self.watch.check(value, None, self.problem, self._whole())
        return value

    def json_head(self, *, allow_nan: bool = False) -> Any:
        """The same, to recognise a format by: of a large array only its first elements, HEADS at most. Raises as
        `json`, wherever the damage is."""
        value = self._value(allow_nan)
        return value.heads if isinstance(value, _LargeArray) else value

    def elements(
        self, listed: Callable[[Any], Iterable[Any]] | None = None, *, allow_nan: bool = False
    ) -> Iterator[Any]:
        """The elements of the array that the whole is, of a large one each parsed when it is asked for, again in every
        pass. Of another value what `listed` finds in it, or the value itself. Raises as `json`."""
        value = self._value(allow_nan)
        if not isinstance(value, _LargeArray):
            value = self.json(allow_nan=allow_nan)
            yield from value if isinstance(value, list) else listed(value) if listed else (value,)
            return
        total, reported, limits = self.size, 0, self._element_limits
        try:
            for number, (offset, raw) in enumerate(self._parted(), start=1):
                element = self._decoded(raw, limits, allow_nan)
                self._watch_element(element, number, offset, raw)
                if self.progress is not None and offset - reported >= _PROGRESS_STEP:
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
            line, column = _place(raw, offset)
            self._mend(f"{what}: {reason}" if what else reason, line, column)
        self.notes.mend(more)
        if self.watch is not None and what:
            self.watch.check(value, None, lambda message, line, column: self.problem(f"{what}: {message}"))
        return value

    def without_head(self, size: int) -> bytes:
        """All bytes, the first `size` as blanks: places behind them stay what they are."""
        with self.stream() as stream:
            return re.sub(rb"[^\n]", b" ", stream.read(size)) + stream.read()

    def drop_head(self, size: int, problem: strict_json.JsonProblem) -> None:
        """Go on with the first bytes as blanks, because of a problem on their first line: raises it in strict mode."""
        self._damaged(problem, 1, self.head(size))
        self._data, self._path = self.without_head(size), None
        self._json, self._heads, self._shape = {}, None, None
        self._decoded_heads = {}

    def text(self, raw: bytes | None = None) -> str:
        """All bytes (or these) as text. Bytes that are not UTF-8 raise in strict mode, else become U+FFFD, noted."""
        data = self._whole() if raw is None else raw
        try:
            decoded = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line, column = _place(data, error.start)
            self.problem(f"the byte 0x{data[error.start]:02x}, which is not UTF-8", line, column)
            decoded = data.decode("utf-8", "replace")
        cleaned, count = normalise.text(decoded)
        if count:
            self._mend("a NUL character", *_place(data, data.find(b"\x00")))
        return cleaned

    def problem(self, message: str, line: int | None = None, column: int | None = None) -> None:
        """Something is wrong at a place: raises DamagedRecording in strict mode, is noted in lenient mode."""
        if self.strict:
            raise DamagedRecording(message, line=line, column=column)
        self.notes.problem(message, line, column)

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

    # -- reading lines

    def _raw_lines(self) -> Iterator[tuple[int, int, bytes, bool]]:
        """Number, offset, bytes, and whether a newline ended it; a line over the limit is given cut."""
        limit = self.limits.line_bytes
        total, reported, offset, number = self.size, 0, 0, 0
        with self.stream() as stream:
            if stream.read(3) != BOM:
                stream.seek(0)
            else:
                offset = 3
            while raw := stream.readline(limit + 2):
                number += 1
                start, offset = offset, offset + len(raw)
                ended = raw.endswith(b"\n")
                yield number, start, raw.rstrip(b"\r\n") if ended else raw, ended
                while not ended and len(raw) == limit + 2:  # the rest of a line that is too long
                    more = stream.readline(MIB)
                    offset += len(more)
                    ended = not more or more.endswith(b"\n")
                if self.progress is not None and offset - reported >= _PROGRESS_STEP:
                    reported = offset
                    self.progress(offset, total)
        if self.progress is not None:
            self.progress(total, total)

    def _good_line(self, number: int, offset: int, raw: bytes, *, last: bool) -> Line | None:
        if not raw or not raw.strip(b" \t\r"):
            return None
        try:
            known = number in self._decoded_heads
            value, mended, more = self._decoded_heads.pop(number) if known else self._decode_line(raw)
        except strict_json.JsonProblem as problem:
            if last and problem.cut and raw.lstrip().startswith(b"{"):
                if number > self._noted:
                    self.notes.problem(f"{UNFINISHED}: {problem.reason}", number, _place(raw, len(raw))[1])
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
                self._mend(reason, number, _place(raw, at)[1])
            self.notes.mend(more)
        return Line(number, offset, value, raw)

    def _decode_line(self, raw: bytes) -> strict_json.Decoded:
        if len(raw) > self.limits.line_bytes:
            raise strict_json.JsonProblem(f"a line longer than {self.limits.line_bytes} bytes", limit=True)
        decoded = strict_json.decode(raw, self.limits)
        if not isinstance(decoded.value, dict):
            raise strict_json.JsonProblem(f"a JSON {_kind(decoded.value)} where an object should be", 0)
        return decoded

    def _damaged(self, problem: strict_json.JsonProblem, number: int, raw: bytes) -> None:
        column = None if problem.offset is None else _place(raw, problem.offset)[1]
        if self.strict:
            kind = LimitExceeded if problem.limit else DamagedRecording
            raise kind(problem.reason, line=number, column=column)
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
        progress, self.progress = self.progress, None
        try:
            for number, offset, raw, _ in self._raw_lines():
                if raw.lstrip(b" \t\r").startswith(b"{"):  # no other line is good, and an array may be one long line
                    with suppress(strict_json.JsonProblem):
                        self._decoded_heads[number] = decoded = self._decode_line(raw)
                        heads.append(Line(number, offset, decoded.value, raw))
                if len(heads) >= 50 or number >= 500 or offset > self.limits.head_bytes:
                    break
        finally:
            self.progress = progress
        return heads

    # -- the whole

    def _find_shape(self) -> SourceShape:
        first = self.first_bytes
        if first.startswith(SQLITE_MAGIC):
            return SourceShape.SQLITE
        if first.startswith(ZIP_MAGIC):
            return SourceShape.ZIP
        start = self._first_character()
        if not start:
            return SourceShape.EMPTY
        heads = self.head_lines(2)
        if len(heads) == 2 and start != b"[":
            return SourceShape.LINES
        if start in (b"{", b"["):
            try:
                self.json_head(allow_nan=True)
                return SourceShape.JSON
            except RecordingError:
                return SourceShape.LINES if heads else SourceShape.JSON
        return SourceShape.LINES if heads else SourceShape.TEXT

    def _first_character(self) -> bytes:
        with self._text_stream() as stream:
            while block := stream.read(MIB):
                if stripped := block.lstrip(b" \t\r\n"):
                    return stripped[:1]
        return b""

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
        raw = self._whole()
        value: Any
        try:
            value = self.parse(raw, allow_nan=allow_nan)
        except RecordingError as error:
            value = error
        return value, _has_nan(raw)

    def _large_array(self, allow_nan: bool) -> tuple[_LargeArray | RecordingError, bool] | None:
        """The same for a large array; None where it is none, one of very small elements, or damaged: only as a whole it
        shows where."""
        if self.size < self.shelve_from or self._first_character() != b"[":
            return None
        heads: list[Any] = []
        mended: list[strict_json.Mended] = []
        more, has_nan, limits = 0, False, self._element_limits
        try:
            for number, (offset, raw) in enumerate(self._parted()):
                if number >= HEADS and offset < number * ELEMENT_BYTES:
                    return None
                value, places, further = strict_json.decode(raw, limits, allow_nan=allow_nan)
                if len(heads) < HEADS and offset < HEAD_BYTES:
                    heads.append(value)
                known = max(strict_json.MENDED_SHOWN - len(mended), 0)
                mended += [strict_json.Mended(reason, offset + at) for reason, at in places[:known]]
                more += further + len(places[known:])
                has_nan = has_nan or _has_nan(raw)
        except (json_array.NotParted, strict_json.JsonProblem):
            return None
        try:
            self._note_mended(mended, more)
        except DamagedRecording as error:
            return error, has_nan
        return _LargeArray(heads), has_nan

    def _note_mended(self, mended: list[strict_json.Mended], more: int) -> None:
        """Note characters that were replaced in a large array, as those of one value are noted."""
        for reason, offset in mended:
            self._mend(reason, *self._place_of(offset))
        self.notes.mend(more)

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
        """Line and column of a byte offset, without the whole in memory."""
        line, column = 1, 1
        with self._text_stream() as stream:
            while offset > 0 and (block := stream.read(min(offset, MIB))):
                offset -= len(block)
                last = block.rfind(b"\n")
                line += block.count(b"\n")
                column = (column if last < 0 else 1) + _characters(block[last + 1 :])
        return line, column

    def _parted(self) -> Iterator[tuple[int, bytes]]:
        """The elements of the array that the whole is, with their offsets."""
        with self._text_stream() as stream:
            yield from json_array.elements(stream)

    def _text_stream(self) -> IO[bytes]:
        """A stream over all bytes behind the byte order mark, where offsets of a value begin."""
        stream = self.stream()
        if stream.read(len(BOM)) != BOM:
            stream.seek(0)
        return stream

    def _whole(self) -> bytes:
        with self.stream() as stream:
            return stream.read().removeprefix(BOM)

    def _error(self, problem: strict_json.JsonProblem, raw: bytes, what: str) -> RecordingError:
        kind = LimitExceeded if problem.limit else DamagedRecording
        line, column = (None, None) if problem.offset is None else _place(raw, problem.offset)
        if not what:
            return kind(problem.reason, line=line, column=column)
        place = f" (its line {line}, column {column})" if line is not None else ""
        return kind(f"{what}: {problem.reason}{place}")

    # -- opening

    def _check_size(self) -> None:
        limit = self.limits.request_bytes
        if self.size > limit:
            raise LimitExceeded(f"the file has {self.size} bytes (limit {limit})")
        if self.size == 0:
            raise DamagedRecording("the file is empty")

    def _inflate(self) -> None:
        target = self._temporary_file()
        with self.stream() as packed, open(target, "wb") as unpacked:
            inflate(packed, unpacked, self.size, self.limits)
        self._data, self._path = None, target
        if self.first_bytes.startswith(GZIP_MAGIC):
            raise UnknownFormat("a gzip stream inside a gzip stream: only a single one is unpacked")
        if self.size == 0:
            raise DamagedRecording("the gzip stream is empty")

    def _refuse_other_kinds(self) -> None:
        first = self.first_bytes
        for magic, name in REFUSED.items():
            if first.startswith(magic):
                raise UnknownFormat(f"this is {name}, not a recording that can be read")
        if first[257:262] == b"ustar":
            raise UnknownFormat("this is a tar archive, not a recording; unpack it and import its files")
        for magic, name in _UTF16.items():
            if first.startswith(magic):
                raise DamagedRecording(f"the file is {name} text: save it as UTF-8", line=1, column=1)

    def _temporary_file(self) -> Path:
        handle, name = tempfile.mkstemp(prefix="recording-")
        os.close(handle)
        self._temporary.append(Path(name))
        return Path(name)


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
        self._source.notes.problem(error.reason, place, error.column)
        return True


def _opened(recording: str | os.PathLike[str] | bytes | IO[bytes], *, strict: bool, limits: Limits) -> ByteSource:
    if isinstance(recording, bytes | bytearray | memoryview):
        return ByteSource(bytes(recording), None, strict=strict, limits=limits)
    if isinstance(recording, str | os.PathLike):
        path = Path(recording)
        if path.is_dir():
            return _packed(path, strict=strict, limits=limits)
        if not path.is_file():
            raise DamagedRecording(f"{path.name} is not a file that can be read")
        return ByteSource(None, path, strict=strict, limits=limits)
    return _spooled(recording, strict=strict, limits=limits)


def _packed(folder: Path, *, strict: bool, limits: Limits) -> ByteSource:
    """A folder's files as a ZIP archive in a temporary file."""
    source = ByteSource(None, None, strict=strict, limits=limits)
    source._path, source.is_folder = source._temporary_file(), True
    try:
        pack(folder, source._path, limits)
    except BaseException:
        source.close()
        raise
    return source


def _spooled(stream: IO[bytes], *, strict: bool, limits: Limits) -> ByteSource:
    """A file object's bytes in a temporary file, so that they can be read more than once."""
    source = ByteSource(None, None, strict=strict, limits=limits)
    target = source._path = source._temporary_file()
    size = 0
    with open(target, "wb") as out:
        while block := stream.read(MIB):
            size += len(block)
            if size > limits.request_bytes:
                source.close()
                raise LimitExceeded(f"the file has more than {limits.request_bytes} bytes")
            out.write(block)
    return source


def _place(raw: bytes, offset: int) -> tuple[int, int]:
    """Line and column (characters), both from 1, of a byte offset."""
    start = raw.rfind(b"\n", 0, offset) + 1
    return raw.count(b"\n", 0, offset) + 1, len(raw[start:offset].decode("utf-8", "replace")) + 1


def _characters(raw: bytes) -> int:
    """How many characters begin in a stretch of UTF-8."""
    return len(raw) - len(raw.translate(None, _BEGINNINGS))


def _has_nan(raw: bytes) -> bool:
    return b"NaN" in raw or b"Infinity" in raw


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return {bool: "boolean", int: "number", float: "number", str: "text", list: "array"}[type(value)]
