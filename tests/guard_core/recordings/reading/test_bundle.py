"""The files of an archive: each a recording of its own, a large one in a temporary file."""

import random
import tempfile

import pytest

from guard_core.errors import DamagedRecording
from guard_core.recordings.reading.bundle import Bundle
from guard_core.recordings.reading.source import ByteSource
from tests.recordings.seeds import archive

WORDS = random.Random(1).randbytes(100_000).hex().encode()
FILES = {"small.json": b"[1]", "large.json": b'[1,"%s"]' % WORDS, "empty.json": b"", "bad.json": b"["}


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return lambda: len(list(tmp_path.iterdir()))


@pytest.mark.parametrize(("shelve_from", "small", "large"), [(300_000, 0, 0), (200_000, 0, 1), (1, 1, 1)])
def test_a_large_file_is_unpacked_to_one_that_goes_away(temporary, shelve_from, small, large):
    with ByteSource.open(archive(FILES)) as source:
        source.shelve_from = shelve_from
        with Bundle(source) as bundle:
            for name, files in (("small.json", small), ("large.json", large)):
                with bundle.open(name) as inner:
                    assert temporary() == files
                    assert inner is not None
                    with inner.stream() as stream:
                        assert stream.read() == FILES[name]
                    assert next(inner.elements()) == 1
                assert temporary() == 0


@pytest.mark.parametrize("shelve_from", [0, 100])
def test_what_is_wrong_with_a_file_names_it(temporary, shelve_from):
    with ByteSource.open(archive(FILES)) as source:
        source.shelve_from = shelve_from
        with Bundle(source) as bundle:
            with bundle.open("empty.json") as inner:
                assert inner is None
            with pytest.raises(DamagedRecording, match=r"bad\.json: JSON that ends too early"):
                _value_of(bundle, "bad.json")
    assert temporary() == 0


def _value_of(bundle, name):
    with bundle.open(name) as inner:
        return inner.json()
