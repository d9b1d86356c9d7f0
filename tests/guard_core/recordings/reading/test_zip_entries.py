"""Zip entries as streams: methods, limits, bombs, missing directories."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

import pytest
import zstandard

from guard_core.errors import DamagedRecording, LimitExceeded
from guard_core.recordings.reading.limits import Limits
from guard_core.recordings.reading.zip_entries import BROKEN_DIRECTORY, NO_DIRECTORY, ZipEntries, entry_names


def archive(entries: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as target:
        for name, data in entries.items():
            target.writestr(name, data)
    return out.getvalue()


def zstd_archive(entries: dict[str, bytes], *, directory: bool = True, method: int = 93) -> bytes:
    """A zip as Inspect writes it now: Python's zipfile can write no zstd, so the records are put together here."""
    body, central = b"", b""
    for name, data in entries.items():
        packed = zstandard.compress(data)
        common = struct.pack("<HHHHIIIHH", 0, method, 0, 0, zlib.crc32(data), len(packed), len(data), len(name), 0)
        central += b"PK\x01\x02" + struct.pack("<HH", 63, 63) + common + struct.pack("<HHHII", 0, 0, 0, 0, len(body))
        central += name.encode()
        body += b"PK\x03\x04" + struct.pack("<H", 63) + common + name.encode() + packed
    if not directory:
        return body
    end = struct.pack("<HHHHIIH", 0, 0, len(entries), len(entries), len(central), len(body), 0)
    return body + central + b"PK\x05\x06" + end


def opened(data: bytes, limits: Limits | None = None) -> ZipEntries:
    return ZipEntries(io.BytesIO(data), len(data), limits or Limits())


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_stored_and_deflated_entries_are_read(method):
    entries = opened(archive({"a.json": b"{}", "b.json": b"[1]" * 50_000}, method))
    assert entries.names() == ["a.json", "b.json"]
    assert entries.read("b.json") == b"[1]" * 50_000


def test_zstd_entries_are_read():
    entries = opened(zstd_archive({"a.json": b"{}" * 9, "b.json": b"x" * 2_000_000}), Limits(inflation_ratio=100_000))
    assert entries.read("a.json") == b"{}" * 9
    assert len(entries.read("b.json")) == 2_000_000


@pytest.mark.parametrize("is_zip64", [False, True])
@pytest.mark.parametrize("size", [46, 700])
def test_a_directory_of_too_many_entries_is_refused_before_they_are_kept(size, is_zip64):
    listed = (b"PK\1\2" + bytes(24) + struct.pack("<H", size - 46) + bytes(size - 30)) * 100_000
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, len(listed), 0, 0)
    if is_zip64:
        record = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 100_000, 100_000, len(listed), 0)
        end = (
            record
            + struct.pack("<4sIQI", b"PK\6\7", 0, len(listed), 1)
            + end.replace(struct.pack("<I", len(listed)), b"\xff" * 4)
        )
    with pytest.raises(
        LimitExceeded, match="directory of the ZIP archive takes" if size > 400 else "more than 50,000 entries"
    ):
        opened(listed + end)


def test_a_bomb_is_stopped_while_it_unpacks():
    bomb = archive({"bomb.json": b"\0" * 20_000_000})
    with pytest.raises(LimitExceeded, match="unpacks to more than"):
        opened(bomb).read("bomb.json")
    with pytest.raises(LimitExceeded, match="unpacks to more than"):
        opened(zstd_archive({"bomb.json": b"\0" * 20_000_000})).read("bomb.json")


def test_entries_that_share_a_body_are_refused():
    data = bytearray(archive({"aaaa": b"x" * 5000, "bbbb": b"y" * 5000}, zipfile.ZIP_STORED))
    second = data.rindex(b"PK\x01\x02")
    data[second + 42 : second + 46] = struct.pack("<I", 0)  # its body is the first one's
    with pytest.raises(LimitExceeded, match="overlaps"):
        opened(bytes(data))


def test_all_entries_together_are_limited():
    entries = opened(archive({name: bytes([65]) * 900_000 for name in "abcdef"}), Limits(inflated_bytes=1_000_000))
    with pytest.raises(LimitExceeded, match="archive unpacks"):
        [entries.read(name) for name in entries.names()]


def test_an_archive_without_a_directory_gives_its_whole_entries():
    data = zstd_archive({"a.json": b"{}", "b.json": b"[]" * 99}, directory=False)
    entries = opened(data)
    assert entries.damage == NO_DIRECTORY
    assert entries.read("a.json") == b"{}"
    assert opened(data[:-3]).names() == ["a.json"]


def test_a_changed_entry_is_told():
    data = bytearray(archive({"a.json": b'{"a": 12345678}'}, zipfile.ZIP_STORED))
    at = data.index(b"12345678")
    data[at : at + 1] = b"9"
    with pytest.raises(DamagedRecording, match="checksum"):
        opened(bytes(data)).read("a.json")


def test_an_unknown_method_is_named():
    with pytest.raises(DamagedRecording, match="method 95"):
        opened(zstd_archive({"a.json": b"{}"}, method=95)).read("a.json")


def test_an_encrypted_archive_is_refused():
    data = bytearray(archive({"a.json": b"{}"}))
    at = data.index(b"PK\x01\x02")
    data[at + 8] |= 1
    entries = opened(bytes(data))
    assert entries.names() == ["a.json"]
    with pytest.raises(DamagedRecording, match=r"'a.json' of the archive is encrypted"):
        entries.read("a.json")


def test_a_directory_that_declares_another_number_of_entries_is_told():
    data = bytearray(archive({"a.json": b"{}"}))
    at = data.rindex(b"PK\x05\x06") + 8
    data[at : at + 4] = b"\xff\xff\xff\xff"
    assert opened(bytes(data)).damage == "the archive declares 65535 entries and has 1"
    assert opened(archive({"a.json": b"{}"})).damage == ""


@pytest.mark.parametrize(("signature", "offset"), [(b"PK\x01\x02", 42), (b"PK\x05\x06", 16)])
def test_an_archive_whose_directory_leads_outside_gives_its_whole_entries(signature, offset):
    data = bytearray(archive({"a.json": b"{}"}))
    at = data.rindex(signature) + offset
    data[at : at + 4] = b"\xff\xff\xff\x7f"
    entries = opened(bytes(data))
    assert (entries.read("a.json"), entries.damage) == (b"{}", BROKEN_DIRECTORY)


def test_names_are_told_without_looking_into_the_entries():
    data = archive({"a.json": b"{}", "b.json": b""})
    assert entry_names(io.BytesIO(data), len(data)) == ["a.json", "b.json"]


def test_cut_and_broken_bytes_are_told_in_a_sentence():
    whole = zstd_archive({"a.json": b"[1, 2, 3]" * 100, "b.json": b"{}"})
    for cut in range(4, len(whole), 7):
        for data in (whole[:cut], whole[:cut] + b"\xff\xff\xff\xff" + whole[cut + 4 :]):
            try:
                entries = opened(data)
                for name in entries.names():
                    entries.read(name)
            except (DamagedRecording, LimitExceeded):
                continue
