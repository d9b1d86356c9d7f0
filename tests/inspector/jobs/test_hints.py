"""Viewers in the process that changes a row hear of it at once."""

from types import SimpleNamespace
from uuid import uuid4

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


def test_a_hint_that_redis_does_not_take_is_one_line_of_the_log(settings, monkeypatch, caplog):
    async def away(*_: object) -> None:
        raise ConnectionError("refused")

    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    monkeypatch.setattr(hints, "get_channel_layer", lambda: SimpleNamespace(group_send=away))
    hints.send(uuid4())
    (record,) = caplog.records
    assert "(ConnectionError: refused); watchers will notice" in record.getMessage()
    assert record.exc_info is None
