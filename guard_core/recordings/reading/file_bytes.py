"""The bytes of a recording, wherever they come from: a path, a folder, a file object or memory.

A gzip stream is inflated, a folder becomes a ZIP archive, and what is no recording at all is refused by its name.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import IO

from guard_core.errors import DamagedRecording, LimitExceeded, UnknownFormat
from guard_core.recordings.reading.folders import pack
from guard_core.recordings.reading.gzip_stream import inflate
from guard_core.recordings.reading.limits import MIB, Limits

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
PROGRESS_STEP = MIB  # bytes between two reports of progress
BUFFER_BYTES = MIB // 4  # read at once; with the 8 KiB of the default, long lines are put together piece by piece


class FileBytes:
    """Bytes that can be read several times. `close` removes the temporary files that this needs."""

    def __init__(self, data: bytes | None = None, path: Path | None = None) -> None:
        self.is_folder = False  # the archive is a folder's
        self._data = data
        self._path = path
        self._temporary: list[Path] = []

    @classmethod
    def open(cls, recording: str | os.PathLike[str] | bytes | IO[bytes], limits: Limits) -> FileBytes:
        """The bytes of a path, a binary file object or bytes.

        Raises LimitExceeded, UnknownFormat (an archive), DamagedRecording (empty, UTF-16, a broken gzip stream).
        """
        opened = cls()
        try:
            opened._take(recording, limits)
            if opened.size > limits.request_bytes:
                raise LimitExceeded(f"the file has {opened.size} bytes (limit {limits.request_bytes})")
            if opened.size == 0:
                raise DamagedRecording("the file is empty")
            if opened.head(len(GZIP_MAGIC)) == GZIP_MAGIC:
                opened._inflate(limits)
            opened._refuse_other_kinds()
        except BaseException:
            opened.close()
            raise
        return opened

    def close(self) -> None:
        """Remove the temporary files."""
        while self._temporary:
            self._temporary.pop().unlink(missing_ok=True)

    @property
    def size(self) -> int:
        """Bytes in all, inflated."""
        return len(self._data) if self._data is not None else self.path.stat().st_size

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

    def stream(self) -> IO[bytes]:
        """A new binary stream over all bytes."""
        return BytesIO(self._data) if self._data is not None else open(self.path, "rb", BUFFER_BYTES)

    def text_stream(self) -> IO[bytes]:
        """A stream over all bytes behind the byte order mark, where offsets of a value begin."""
        stream = self.stream()
        if stream.read(len(BOM)) != BOM:
            stream.seek(0)
        return stream

    def head(self, size: int) -> bytes:
        """The first `size` bytes."""
        with self.stream() as stream:
            return stream.read(size)

    def first_character(self) -> bytes:
        """The first byte that is neither blank nor byte order mark; none where there is no other."""
        with self.text_stream() as stream:
            while block := stream.read(MIB):
                if stripped := block.lstrip(b" \t\r\n"):
                    return stripped[:1]
        return b""

    def whole(self) -> bytes:
        """All bytes behind the byte order mark."""
        with self.stream() as stream:
            return stream.read().removeprefix(BOM)

    def lines(self, limit: int, progress: Progress | None = None) -> Iterator[tuple[int, int, bytes, bool]]:
        """Number, offset, bytes, and whether a newline ended it; a line of more than `limit` bytes is given cut."""
        total, reported, offset, number = self.size, 0, 0, 0
        with self.text_stream() as stream:
            offset = stream.tell()
            while raw := stream.readline(limit + 2):
                number += 1
                start, offset = offset, offset + len(raw)
                ended = raw.endswith(b"\n")
                yield number, start, raw.rstrip(b"\r\n") if ended else raw, ended
                while not ended and len(raw) == limit + 2:  # the rest of a line that is too long
                    more = stream.readline(MIB)
                    offset += len(more)
                    ended = not more or more.endswith(b"\n")
                if progress is not None and offset - reported >= PROGRESS_STEP:
                    reported = offset
                    progress(offset, total)
        if progress is not None:
            progress(total, total)

    def without_head(self, size: int) -> bytes:
        """All bytes, the first `size` as blanks: places behind them stay what they are."""
        with self.stream() as stream:
            return re.sub(rb"[^\n]", b" ", stream.read(size)) + stream.read()

    def blank_head(self, size: int) -> None:
        """Have blanks in the place of the first `size` bytes from now on."""
        self._data, self._path = self.without_head(size), None

    def _take(self, recording: str | os.PathLike[str] | bytes | IO[bytes], limits: Limits) -> None:
        if isinstance(recording, bytes | bytearray | memoryview):
            self._data = bytes(recording)
        elif not isinstance(recording, str | os.PathLike):
            self._spool(recording, limits)
        elif Path(recording).is_dir():
            self._path, self.is_folder = self._temporary_file(), True
            pack(Path(recording), self._path, limits)
        elif Path(recording).is_file():
            self._path = Path(recording)
        else:
            raise DamagedRecording(f"{Path(recording).name} is not a file that can be read")

    def _spool(self, stream: IO[bytes], limits: Limits) -> None:
        """Write a file object's bytes to a temporary file, so that they can be read more than once."""
        self._path = self._temporary_file()
        size = 0
        with open(self._path, "wb") as out:
            while block := stream.read(MIB):
                size += len(block)
                if size > limits.request_bytes:
                    raise LimitExceeded(f"the file has more than {limits.request_bytes} bytes")
                out.write(block)

    def _inflate(self, limits: Limits) -> None:
        target = self._temporary_file()
        with self.stream() as packed, open(target, "wb") as unpacked:
            inflate(packed, unpacked, self.size, limits)
        self._data, self._path = None, target
        if self.head(len(GZIP_MAGIC)) == GZIP_MAGIC:
            raise UnknownFormat("a gzip stream inside a gzip stream: only a single one is unpacked")
        if self.size == 0:
            raise DamagedRecording("the gzip stream is empty")

    def _refuse_other_kinds(self) -> None:
        first = self.head(512)
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
