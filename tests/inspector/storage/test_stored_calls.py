"""The calls of a long stored session behave as a tuple of them, and are not kept decoded."""

import pytest

from guard_core.packing import encode
from guard_core.sessions import ModelCall
from inspector.storage.compression import compressed
from inspector.storage.stored_calls import StoredCalls

ROWS = 4


@pytest.mark.parametrize("count", [0, 1, 4, 5, 11])
def test_they_are_what_was_stored(count):
    calls = tuple(ModelCall(at, at, 100 * at, model="m", source_id=f"c{at}") for at in range(count))
    stored = StoredCalls([compressed(encode(calls[at : at + ROWS])) for at in range(0, count, ROWS)], ROWS)
    assert len(stored) == count
    assert tuple(stored) == calls
    assert tuple(reversed(stored)) == calls[::-1]
    assert [stored[at] for at in range(-count, count)] == [calls[at] for at in range(-count, count)]
    for part in (slice(None), slice(2, 9), slice(None, None, -3), slice(8, 2)):
        assert stored[part] == calls[part]
    with pytest.raises(IndexError):
        stored[count]
