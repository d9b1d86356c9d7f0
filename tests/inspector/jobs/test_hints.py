"""Viewers in the process that changes a row hear of it at once."""

import socket
import time
from contextlib import suppress
from uuid import uuid4

import pytest

from inspector.jobs import hints


def test_who_listens_hears_of_the_own_row_until_it_is_forgotten():
    key, other, heard = uuid4(), uuid4(), []

    def one() -> None:
        heard.append("one")

    def two() -> None:
        heard.append("two")

    hints.listen(key, one)
    hints.listen(key, two)
    hints.send(other)
    hints.send(str(key))
    hints.forget(key, one)
    hints.send(key)
    hints.forget(key, two)
    hints.send(key)
    hints.forget(key, two)  # a second time is not an error
    assert heard == ["one", "two", "two"]


@pytest.fixture
def silent_redis(settings):
    """A Redis that takes connections and answers nothing, as one that was stopped; how many connections it has."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        _lies_at(settings, f"redis://127.0.0.1:{listening.getsockname()[1]}/0")
        yield lambda: _accepted(listening)


def _lies_at(settings, url: str) -> None:
    layer = {"BACKEND": "inspector.api.hint_layer.HintLayer", "CONFIG": {"hosts": [url]}}
    settings.REDIS_URL, settings.CHANNEL_LAYERS = url, {"default": layer}


def _accepted(listening: socket.socket) -> int:
    count = 0
    with suppress(BlockingIOError):
        while True:
            listening.accept()[0].close()
            count += 1
    return count


def test_a_redis_that_does_not_answer_holds_nothing_up_and_is_left_alone_for_a_while(silent_redis, monkeypatch, caplog):
    pytest.importorskip("channels_redis")
    with caplog.at_level("WARNING", "inspector.jobs.hints"):
        for _ in range(20):
            hints.send(uuid4())
    assert len(caplog.records) == 1  # one waited, the others did not try
    assert f"no answer within {hints.SECONDS:g} seconds); watchers will notice" in caplog.text
    assert silent_redis() >= 1
    assert silent_redis() == 0
    now = time.monotonic
    monkeypatch.setattr(hints.time, "monotonic", lambda: now() + hints.AGAIN)
    hints.send(uuid4())
    assert silent_redis() >= 1  # it is tried again later


def test_a_hint_that_redis_does_not_take_is_one_line_of_the_log(settings, caplog):
    pytest.importorskip("channels_redis")
    _lies_at(settings, "redis://127.0.0.1:1/0")  # where nothing listens
    hints.send(uuid4())
    (record,) = caplog.records
    assert "(ConnectionError: " in record.getMessage()
    assert "127.0.0.1:1" in record.getMessage()
    assert record.getMessage().endswith("; watchers will notice the change when they next poll")
    assert record.exc_info is None
