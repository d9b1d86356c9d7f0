"""The entries of a zip file as byte streams: deflate and zstd, never extracted, overlaps refused, output counted.

Python 3.11's zipfile knows no zstd (method 93, Inspect's default) and opens entries that share one body, so only its
reading of the directory is used. A file whose directory is missing (its writer died) is read entry by entry.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, NamedTuple, cast

import zstandard

from guard_core.errors import DamagedRecording, LimitExceeded
from guard_core.recordings.reading.limits import MIB, Limits
from guard_core.recordings.reading.zstd_frames import WINDOW

STORED, DEFLATED, ZSTD = 0, 8, 93
ENTRY_LIMIT = 50_000  # samples, summaries and journal of one log; far above any real one
DIRECTORY_LIMIT = 32 * MIB  # ours: so many entries with names of several hundred bytes
TOTAL_FACTOR = 4  # all entries of one file together, in units of the limit for one entry
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_END = struct.Struct("<4sHHHHIIH")  # end of the directory; the fifth field counts its entries
_LOCATOR_SIZE = 20  # of the zip64 record that may precede it
_END_64 = struct.Struct("<4sQHHIIQQQQ")  # the zip64 record; its last field but one is the size of the directory
_LISTED = struct.Struct("<4s24xHHH12x")  # an entry of the directory: sizes of its name, extra field and comment
NO_DIRECTORY = "the archive has no directory: its writer was stopped; its whole entries are read"
BROKEN_DIRECTORY = "the archive's directory names places outside the file; its whole entries are read instead"
_UNREADABLE = (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error, OverflowError, EOFError)


class ZipEntry(NamedTuple):
    """One file of the archive: where its header is, how it is packed, what it claims to hold."""

    name: str
    method: int
    offset: int
    packed: int
    crc: int
    encrypted: bool = False
    mode: int = 0  # of the file on Unix, as far as the archive says


def entry_names(stream: IO[bytes], size: int) -> list[str]:
    """The names that an archive gives its entries, whether or not they can be read."""
    return [entry.name for entry in _listed(stream, size)[0]]


class ZipEntries:
    """The entries of one archive by name, in the archive's order; `damage` says what is wrong with its directory."""

    def __init__(self, stream: IO[bytes], size: int, limits: Limits) -> None:
        self._stream = stream
        self._limits = limits
        self._read = 0
        self.entries, self.damage = _listed(stream, size)
        if len(self.entries) > ENTRY_LIMIT:
            raise LimitExceeded(f"a ZIP archive of more than {ENTRY_LIMIT:,} entries, which is the limit")
        end = 0  # bodies that overlap are a bomb: thousands of entries that unpack one body again and again
        for entry in sorted(self.entries, key=lambda entry: entry.offset):
            if entry.offset < end:
                raise LimitExceeded(f"the entry {_shown(entry.name)} overlaps the entry before it: not read")
            end = entry.offset + _LOCAL.size + entry.packed
        self._entries = {entry.name: entry for entry in self.entries}

    def names(self) -> list[str]:
        return list(self._entries)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def read(self, name: str) -> bytes:
        """The unpacked bytes. Raises as `blocks`."""
        return b"".join(self.blocks(name))

    def blocks(self, name: str) -> Iterator[bytes]:
        """The unpacked bytes in pieces, of which the last comes before it is known that all of them are right. Raises
        LimitExceeded (too much in it), DamagedRecording (broken, encrypted, unknown)."""
        entry = self._entries[name]
        if entry.encrypted:
            raise DamagedRecording(f"the entry {_shown(name)} of the archive is encrypted")
        allowed = min(self._limits.inflated_bytes, max(entry.packed * self._limits.inflation_ratio, MIB))
        most = TOTAL_FACTOR * self._limits.inflated_bytes  # of all entries together
        size = crc = 0
        try:
            for block in self._unpacked(entry):
                size += len(block)
                if size > allowed:
                    raise LimitExceeded(f"the entry {_shown(name)} unpacks to more than {allowed} bytes")
                crc = zlib.crc32(block, crc)
                self._read += len(block)
                if self._read > most:
                    raise LimitExceeded(f"the archive unpacks to more than {most} bytes")
                yield block
        except (zlib.error, zstandard.ZstdError, *_UNREADABLE) as error:
            raise DamagedRecording(f"the entry {_shown(name)} of the archive is broken") from error
        if crc != entry.crc:
            raise DamagedRecording(f"the entry {_shown(name)} of the archive does not match its checksum")

    def _unpacked(self, entry: ZipEntry) -> Iterator[bytes]:
        body = _EntryBody(self._stream, entry)
        if entry.method == STORED:
            return iter(lambda: body.read(MIB), b"")
        if entry.method == DEFLATED:
            return _inflated(body)
        if entry.method == ZSTD:
            decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW)
            reader = decompressor.stream_reader(cast(IO[bytes], body), read_size=65_536, read_across_frames=True)
            return iter(lambda: reader.read(MIB), b"")
        raise DamagedRecording(
            f"the entry {_shown(entry.name)} is packed with method {entry.method}, which is not read"
        )


def _listed(stream: IO[bytes], size: int) -> tuple[list[ZipEntry], str]:
    """The entries that the directory names, or that are in the file where it has none; what is wrong with it."""
    _check_count(stream, size)
    try:
        with zipfile.ZipFile(stream) as archive:
            infos = archive.infolist()
    except _UNREADABLE:
        return list(_scanned(stream, size)), NO_DIRECTORY
    entries = [
        ZipEntry(
            info.filename,
            info.compress_type,
            info.header_offset,
            info.compress_size,
            info.CRC,
            bool(info.flag_bits & 1),
            info.external_attr >> 16,
        )
        for info in infos
    ]
    if any(not 0 <= entry.offset <= size - _LOCAL.size - entry.packed for entry in entries):
        return list(_scanned(stream, size)), BROKEN_DIRECTORY
    declared = _declared_count(stream, size)
    wrong = declared not in (None, len(entries))
    return entries, f"the archive declares {declared} entries and has {len(entries)}" if wrong else ""


def _check_count(stream: IO[bytes], size: int) -> None:
    """Count the entries of the directory before zipfile keeps an object for each. Raises LimitExceeded."""
    stream.seek(max(0, size - _END.size - _LOCATOR_SIZE - _END_64.size - 0xFFFF))
    tail = stream.read()
    at = len(tail) - _END.size
    if not (tail[at:].startswith(b"PK\x05\x06") and tail.endswith(b"\0\0")):  # as zipfile looks for it
        at = tail.rfind(b"PK\x05\x06")
    if at < 0 or at + _END.size > len(tail):
        return
    end = size - len(tail) + at  # of the directory
    directory = _END.unpack_from(tail, at)[5]
    at_64 = at - _LOCATOR_SIZE - _END_64.size
    is_located = tail[max(0, at - _LOCATOR_SIZE) : at].startswith(b"PK\x06\x07")
    if at_64 >= 0 and is_located and tail[at_64:].startswith(b"PK\x06\x06"):
        end, directory = size - len(tail) + at_64, _END_64.unpack_from(tail, at_64)[8]
    if directory > DIRECTORY_LIMIT:
        raise LimitExceeded(f"the directory of the ZIP archive takes {directory:,} bytes (limit {DIRECTORY_LIMIT:,})")
    stream.seek(max(0, end - directory))
    listed = stream.read(directory)
    place = count = 0
    while place + _LISTED.size <= len(listed) and listed.startswith(b"PK\x01\x02", place):
        place += _LISTED.size + sum(_LISTED.unpack_from(listed, place)[1:])
        count += 1
        if count > ENTRY_LIMIT:
            raise LimitExceeded(f"a ZIP archive of more than {ENTRY_LIMIT:,} entries, which is the limit")


def _declared_count(stream: IO[bytes], size: int) -> int | None:
    """How many entries the end of the directory declares; None where a zip64 record has the number instead."""
    stream.seek(max(0, size - _END.size - 0xFFFF))  # the longest comment
    tail = stream.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or at + _END.size > len(tail) or tail[max(0, at - _LOCATOR_SIZE) : at].startswith(b"PK\x06\x07"):
        return None
    count: int = _END.unpack_from(tail, at)[4]
    return count


def _scanned(stream: IO[bytes], size: int) -> Iterator[ZipEntry]:
    """The whole entries from the start of the file, by their own headers."""
    offset = 0
    while offset + _LOCAL.size <= size:
        stream.seek(offset)
        header = stream.read(_LOCAL.size)
        if len(header) < _LOCAL.size or not header.startswith(b"PK\x03\x04"):
            return
        _, _, flags, method, _, _, crc, packed, _, name_size, extra_size = _LOCAL.unpack(header)
        name = stream.read(name_size).decode("utf-8", "replace")
        end = offset + _LOCAL.size + name_size + extra_size + packed
        if flags & 0b1000 or end > size:  # its size follows it, or it is cut off
            return
        yield ZipEntry(name, method, offset, packed, crc, bool(flags & 1))
        offset = end


class _EntryBody:
    """The packed bytes of one entry as a stream."""

    def __init__(self, stream: IO[bytes], entry: ZipEntry) -> None:
        stream.seek(entry.offset)
        header = stream.read(_LOCAL.size)
        if len(header) < _LOCAL.size or not header.startswith(b"PK\x03\x04"):
            raise DamagedRecording(f"the entry {_shown(entry.name)} of the archive has no header")
        name_size, extra_size = struct.unpack_from("<HH", header, 26)
        stream.seek(entry.offset + _LOCAL.size + name_size + extra_size)
        self._stream = stream
        self._left = entry.packed

    def read(self, size: int = -1) -> bytes:
        block = self._stream.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(block)
        return block


def _inflated(body: _EntryBody) -> Iterator[bytes]:
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    pending = body.read(65_536)
    while pending and not inflater.eof:
        block = inflater.decompress(pending, MIB)
        if block:
            yield block
        pending = inflater.unconsumed_tail or body.read(65_536)
    while not inflater.eof:
        block = inflater.decompress(b"", MIB)
        if not block:
            raise DamagedRecording("an entry of the archive ends too early")
        yield block


def _shown(name: str) -> str:
    return ascii(name[:80])
