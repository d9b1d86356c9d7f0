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
