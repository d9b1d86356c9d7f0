"""What is opened: which sizes, archives and gzip streams are taken, and what is left of temporary files."""

import gzip
import io

import pytest

from guard_core.errors import LimitExceeded, UnknownFormat
from guard_core.recordings.reading.limits import Limits
from guard_core.recordings.reading.source import ByteSource


def test_a_file_over_the_limit_is_refused():
    with pytest.raises(LimitExceeded, match=r"the file has 8 bytes \(limit 7\)"):
        ByteSource.open(b'{"a":1}\n', limits=Limits(request_bytes=7))


def test_a_stream_over_the_limit_is_refused_while_it_is_read():
    with pytest.raises(LimitExceeded, match="more than 7 bytes"):
        ByteSource.open(io.BytesIO(b'{"a":1}\n'), limits=Limits(request_bytes=7))


def test_a_gzip_stream_is_inflated():
    with ByteSource.open(gzip.compress(b'{"a":1}\n{"a":2}\n'), strict=True) as source:
        assert [line.obj for line in source.lines()] == [{"a": 1}, {"a": 2}]


def test_a_gzip_stream_may_not_unpack_to_more_than_the_limit():
    with pytest.raises(LimitExceeded, match="unpacks to more than 1048576 bytes"):
        ByteSource.open(gzip.compress(bytes(2**21)), limits=Limits(inflated_bytes=2**20))


def test_another_archive_is_refused_by_its_name():
    with pytest.raises(UnknownFormat, match="a 7z archive"):
        ByteSource.open(b"7z\xbc\xaf\x27\x1c" + bytes(32))


def test_temporary_files_go_away():
    with ByteSource.open(gzip.compress(b'{"a":1}\n')) as source:
        path = source.path
        assert path.exists()

    assert not path.exists()
