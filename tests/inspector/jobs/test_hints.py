"""Viewers in the process that changes a row hear of it at once."""

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
