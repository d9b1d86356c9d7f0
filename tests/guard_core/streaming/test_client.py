"""A client whose server is not there, or is none."""

from __future__ import annotations

import pytest

from guard_core.streaming import Client

NOBODY = "http://127.0.0.1:9"  # the port of a service that no machine runs any more


@pytest.mark.parametrize("address", ["", "127.0.0.1:8000", "ftp://host", "http://"])
def test_an_address_that_is_none_is_refused_at_once(address):
    with pytest.raises(ValueError, match="begins with http"):
        Client(address)


@pytest.mark.parametrize("name", [".x", "a b", "x" * 101])
def test_a_name_that_no_server_takes_is_refused_at_once(name):
    with pytest.raises(ValueError, match="1 to 100 letters"):
        Client(NOBODY, name)


def test_what_cannot_be_sent_is_on_disk_and_the_agent_hears_nothing(tmp_path):
    client = Client(NOBODY, "a", spool=tmp_path)
    client.write(b'{"a":1}\n{"b"')
    client.write(b":2}\n")
    client.flush()
    assert not client.wait(0.01)
    assert not client.close(0.01)
    assert (tmp_path / "a.stream.jsonl").read_bytes() == b'{"a":1}\n{"b":2}\n'


def test_a_spool_that_cannot_be_written_breaks_no_agent(tmp_path):
    (tmp_path / "file").touch()
    client = Client(NOBODY, "a", spool=tmp_path / "file")
    client.write(b"{}\n")
    assert not client.close(0.01)


@pytest.mark.parametrize(
    ("with_spool", "words"), [(True, "left in the spool"), (False, "without a spool lost when the program ends")]
)
def test_one_warning_says_how_many_lines_the_server_has_not_acknowledged(with_spool, words, tmp_path, caplog):
    client = Client(NOBODY, "a", spool=tmp_path if with_spool else None)
    client.write(b"{}\n{}\n")
    client.close(0.01)
    client.close(0.01)
    assert caplog.messages == [f"stream a was closed with 2 lines not acknowledged, {words}"]


def test_lines_after_the_client_gave_up_are_in_the_number(monkeypatch, caplog):
    monkeypatch.setattr("guard_core.streaming.client.MOST_WAITING", 5)
    client = Client(NOBODY, "a")
    client.write(b"{}\n{}\n{}\n{}\n")
    client.close(0.01)
    assert caplog.messages[-1].startswith("stream a was closed with 4 lines not acknowledged")


def test_nothing_is_said_of_a_stream_without_lines(caplog):
    Client(NOBODY, "a").close(0.01)
    assert not caplog.messages
