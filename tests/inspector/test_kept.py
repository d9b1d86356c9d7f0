"""A cache bounded by bytes, that many threads ask at once."""

from __future__ import annotations

import threading

import pytest

from inspector.kept import Kept


def test_a_value_is_made_once():
    kept, made = Kept(100, len), []
    for _ in range(3):
        assert kept.get("a", lambda: made.append(1) or "text") == "text"
    assert made == [1]


def test_the_values_used_longest_ago_go_first():
    kept = Kept(10, len)
    kept.get("a", lambda: "aaaa")
    kept.get("b", lambda: "bbbb")
    kept.get("a", lambda: "not made again")
    kept.get("c", lambda: "cccc")
    assert kept.bytes == 8
    assert kept.get("a", lambda: "made again") == "aaaa"
    assert kept.get("b", lambda: "made again") == "made again"


def test_the_newest_value_stays_whatever_its_size():
    kept = Kept(10, len)
    kept.get("a", lambda: "a")
    assert kept.get("long", lambda: "x" * 50) == "x" * 50
    assert (kept.bytes, kept.get("long", lambda: "")) == (50, "x" * 50)


def test_what_fails_is_not_kept():
    kept = Kept(10, len)
    with pytest.raises(ZeroDivisionError):
        kept.get("a", lambda: 1 / 0)
    assert kept.get("a", lambda: "now") == "now"


def test_few_are_made_at_a_time():
    kept, running, most, made = Kept(1_000, len, at_once=2), set(), [], []
    lock = threading.Lock()

    def make(key: str) -> str:
        with lock:
            running.add(threading.get_ident())
            most.append(len(running))
        made.append(key)
        sum(range(20_000))
        with lock:
            running.discard(threading.get_ident())
        return key

    threads = [
        threading.Thread(target=lambda key=str(number % 8): kept.get(key, lambda: make(key))) for number in range(40)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) <= 2
    assert set(made) == {str(number) for number in range(8)}
