"""Numbers as people read them."""

import numpy as np

from inspector.pages.shared.numbers import amount, percent, short, size, step_index, step_number


def test_people_count_from_1_where_the_engine_counts_from_0():
    assert (step_number(0), step_index(1)) == (1, 0)
    assert list(step_number(np.array([0, 47]))) == [1, 48]
    assert all(step_index(step_number(index)) == index for index in range(100))


def test_a_size_has_the_unit_that_leaves_it_three_digits():
    values = (999, 99_949, 999_499, 999_994_000, 999_995_000, 5_474_550_000)
    assert [short(value) for value in values] == ["999", "99.9k", "999k", "999.99M", "1B", "5.47B"]
    assert [size(value) for value in (1, 812, 39_000, 2_200_000, 1_400_000_000)] == [
        "1 byte", "812 bytes", "39 kB", "2.2 MB", "1.4 GB"
    ]  # fmt: skip


def test_a_share_is_not_rounded_down_to_nothing():
    assert percent(10, 200_000, 1) == "under 0.1\xa0%"
    assert percent(1, 1_000) == "under 1\xa0%"
    assert (percent(100, 200_000, 1), percent(0, 200_000, 1)) == ("0.1\xa0%", "0.0\xa0%")


def test_what_is_over_the_whole_does_not_read_as_all_of_it():
    assert percent(200_001, 200_000, 1) == "100.0005\xa0%"
    assert (percent(199_900, 200_000), percent(200_000, 200_000)) == ("99.9\xa0%", "100\xa0%")


def test_a_sum_of_tokens_is_written_out_in_a_sentence():
    assert [amount(value) for value in (600_000, 12_400_000, 5_474_550_000)] == [
        "600,000", "12.40 million", "5.47 billion"
    ]  # fmt: skip
