from __future__ import annotations

import random
import tracemalloc

import pytest

from guard_core.recordings.reading.packed_list import PackedList
from guard_core.sessions import ModelCall


def calls(count, start=0):
    return [ModelCall(at=number, source_id=f"msg_{number}") for number in range(start, start + count)]


@pytest.mark.parametrize("seed", range(20))
def test_it_behaves_like_a_list(seed):
    dice = random.Random(seed)
    expected = calls(dice.randrange(0, 1_000))
    packed = PackedList(ModelCall, expected)
    for _ in range(40):
        _change_both(dice, packed, expected)
        assert len(packed) == len(expected)
    assert list(packed) == expected
    assert packed[3:700] == expected[3:700]
    assert packed[::-7] == expected[::-7]
    assert list(reversed(packed)) == expected[::-1]


def _change_both(dice, packed, expected):
    first, second = dice.randrange(-20, len(expected) + 20), dice.randrange(-20, len(expected) + 20)
    fresh = calls(dice.randrange(0, 300), start=dice.randrange(10_000, 20_000))
    change = dice.randrange(5)
    for each in (packed, expected):
        if change == 0:
            each[first:second] = iter(fresh)
        elif change == 1:
            del each[first:second]
        elif change == 2:
            each.extend(fresh)
        elif change == 3 and each:
            each[first % len(each)] = ModelCall(at=5)
        elif change == 4:
            each.insert(first, ModelCall(at=6))


def test_a_place_outside_is_an_error():
    packed = PackedList(ModelCall, calls(300))
    assert packed[-300].at == 0
    for index in (300, -301):
        with pytest.raises(IndexError):
            packed[index]


def test_a_value_that_was_set_stays_when_its_block_is_read_again():
    packed = PackedList(ModelCall, calls(5_000))
    packed[10] = ModelCall(at=77)
    assert [packed[index].at for index in range(0, 5_000, 128)][1] == 128
    assert packed[10].at == 77


def test_it_can_take_its_own_values_changed():
    packed = PackedList(ModelCall, calls(1_000))
    packed.replace_all(ModelCall(at=call.at + 1) for call in packed)
    assert [call.at for call in packed] == list(range(1, 1_001))


def test_a_step_is_left_out_too():
    packed, expected = PackedList(ModelCall, calls(600)), calls(600)
    del packed[::2], expected[::2]
    assert list(packed) == expected


def test_it_takes_a_fraction_of_the_memory():
    tracemalloc.start()
    values = calls(20_000)
    whole, _ = tracemalloc.get_traced_memory()
    packed = PackedList(ModelCall, values)
    more, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(packed) == len(values)
    assert more - whole < whole / 10
