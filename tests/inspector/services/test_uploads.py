"""Receiving files: limits, names, the same bytes twice."""

from __future__ import annotations

import pytest

from guard_core.errors import LimitExceeded, RecordingError
from inspector.services.uploads import receive, safe_name


def test_bytes_are_hashed_while_they_are_copied(folders):
    received = receive([b"ab", b"c"], "x.jsonl")
    assert received.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert received.path.read_bytes() == b"abc"
    assert received.size == 3


def test_nothing_at_all_is_refused(folders):
    with pytest.raises(RecordingError, match="empty"):
        receive([], "x.jsonl")
    assert not list(folders.rglob("*.*"))


def test_too_much_is_refused_with_the_limit_and_its_setting(folders, settings):
    settings.MAX_UPLOAD_BYTES = 10
    with pytest.raises(LimitExceeded, match=r"10 bytes.*MAX_UPLOAD_BYTES"):
        receive([b"12345", b"678901"], "x.jsonl")
    assert not [path for path in folders.rglob("*") if path.is_file()]


def test_an_upload_that_breaks_off_leaves_no_file(folders):
    def broken():
        yield b"half"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        receive(broken(), "x.jsonl")
    assert not [path for path in folders.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("session.jsonl", "session.jsonl"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\log.json", "log.json"),
        ("a\x00b\r\nc.json", "a_b_c.json"),
        ("\u202egnp.jsonl", "_gnp.jsonl"),
        ('<img src="x">.json', "_img src=_x_.json"),
        ("...", "recording"),
        ("", "recording"),
    ],
)
def test_a_name_is_made_safe_to_show_and_to_offer(given, shown):
    assert safe_name(given) == shown


def test_a_long_name_keeps_its_ending():
    name = safe_name("n" * 500 + ".jsonl")
    assert len(name) <= 120
    assert name.endswith(".jsonl")
