from __future__ import annotations

import tracemalloc

import pytest

from guard_core.recordings.reading.numbers_by_name import NumbersByName


def test_it_knows_what_a_dictionary_knows():
    numbers, expected = NumbersByName(), {}
    for number in range(5_000):
        name = f"id {number * 7 % 3_000}"
        numbers[name] = expected[name] = number
    assert len(numbers) == len(expected)
    assert all(numbers[name] == number for name, number in expected.items())
    assert sorted(numbers.values()) == sorted(expected.values())


def test_a_name_without_a_number_is_missing():
    numbers = NumbersByName()
    numbers["a"] = 0
    assert "a" in numbers
    assert "b" not in numbers
    assert numbers.get("b") is None
    with pytest.raises(KeyError, match="b"):
        numbers["b"]


def test_the_first_number_of_a_name_is_its_default():
    numbers = NumbersByName()
    assert [numbers.setdefault(name, number) for number, name in enumerate("aba")] == [0, 1, 0]


def test_half_a_character_is_a_name_too():
    numbers = NumbersByName()
    numbers["\ud800"] = 1
    assert numbers["\ud800"] == 1


def test_cleared_it_knows_nothing():
    numbers = NumbersByName()
    numbers["a"] = 1
    numbers.clear()
    assert "a" not in numbers
    assert len(numbers) == 0


def test_a_long_name_takes_as_little_memory_as_a_short_one():
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    numbers = NumbersByName()
    for number in range(10_000):
        numbers[f"{number:0500}"] = number
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 10_000 * 46
