"""Columns lie in memory as narrow as their values until they are read, and are int64 to every reader."""

import numpy as np
import pytest

from guard_core.columns import (
    Columns,
    bytes_of,
    join_columns,
    narrowed,
    pack_columns,
    replaced,
    rows_of,
    unpack_columns,
)
from guard_core.errors import GuardError
from guard_core.ledger import Ledger

NAMES = ("small", "large", "signed")
WIDE = {
    "small": np.arange(100, dtype=np.int64),
    "large": np.arange(100, dtype=np.int64) * 2**40,
    "signed": np.arange(100, dtype=np.int64) - 300,
}


def columns() -> Columns:
    return unpack_columns(pack_columns(WIDE, NAMES))


def check_is_wide(read: dict) -> None:
    assert list(read) == list(NAMES)
    for name, column in read.items():
        assert column.dtype == np.int64
        assert np.array_equal(column, WIDE[name])


def test_a_column_is_narrow_until_it_is_read():
    some = columns()
    assert bytes_of(some) == 100 * (1 + 8 + 2)
    assert some["small"].dtype == np.int64
    assert bytes_of(some) == 100 * (8 + 8 + 2)
    assert some["small"] is some["small"]


def test_what_was_read_is_narrow_again_and_its_reader_keeps_a_column():
    some = columns()
    read = some["small"]
    some.narrow()
    assert bytes_of(some) == 100 * (1 + 8 + 2)
    assert np.array_equal(read, WIDE["small"])
    check_is_wide(dict(some))


def test_a_column_that_was_replaced_is_not_made_as_narrow_as_the_one_before():
    some = columns()
    assert some["small"][1] == 1
    some["small"] = WIDE["large"]
    some.narrow()
    assert np.array_equal(some["small"], WIDE["large"])


def test_columns_of_floats_stay_as_they_are():
    some = narrowed({**WIDE, "real": np.linspace(0, 1, 100)})
    assert bytes_of(some) == 100 * (1 + 8 + 2 + 8)
    assert some["real"].tolist() == np.linspace(0, 1, 100).tolist()
    some.narrow()
    assert some["real"].dtype == np.float64


@pytest.mark.parametrize(
    "read",
    [
        lambda some: {name: some[name] for name in some},
        lambda some: dict(some.items()),
        lambda some: dict(zip(some.keys(), some.values(), strict=True)),
        lambda some: {name: some.get(name) for name in some},
        lambda some: {**some},
        dict,
        lambda some: some | {},
        lambda some: dict(some | {}),
        lambda some: join_columns([some], NAMES),
        lambda some: rows_of(some, 0, 100),
        lambda some: replaced(some, small=WIDE["small"]),
    ],
)
def test_every_way_of_reading_gives_int64(read):
    check_is_wide(read(columns()))


def test_joining_slicing_and_replacing_read_no_column():
    some = columns()
    whole = join_columns([some, rows_of(some, 10, 20)], NAMES)
    other = replaced(whole, small=whole["small"] * 2)
    assert bytes_of(some) == 100 * (1 + 8 + 2)
    assert bytes_of(other) == 110 * (8 + 8 + 2)
    assert other["small"][105] == 2 * 15


def test_blocks_of_different_width_keep_their_values():
    wide = unpack_columns(pack_columns({**WIDE, "small": WIDE["small"] - 2**31}, NAMES))
    joined = join_columns([columns(), wide], NAMES)["small"]
    assert np.array_equal(joined, np.concatenate([WIDE["small"], WIDE["small"] - 2**31]))
    assert join_columns([], NAMES)["large"].dtype == np.int64


def test_a_block_without_a_column_is_an_error():
    with pytest.raises(GuardError, match="no column 'other'"):
        join_columns([columns()], ("other",))


def test_a_counted_ledger_and_a_stored_one_lie_narrow_in_memory(tool_heavy):
    counted = Ledger.of(tool_heavy)
    for ledger in (counted, Ledger.from_bytes(counted.to_bytes()), Ledger.of(tool_heavy)):
        read = 8 * (len(ledger.events) * ledger.event_count + len(ledger.parts) * len(ledger.parts["event"]))
        if ledger is not counted:  # writing its bytes has read it
            assert bytes_of(ledger.events) + bytes_of(ledger.parts) < read / 2
