"""Shares in per cent: what is over the window, or under it, never reads as what fills it."""

import pytest

from guard_core.shares import per_cent


@pytest.mark.parametrize(
    ("part", "whole", "digits", "words"),
    [
        (77_500, 100_000, 1, "77.5"),
        (124_000, 100_000, 0, "124"),
        (1_240_000, 100_000, 0, "1,240"),
        (100_000, 100_000, 1, "100.0"),
        (99_999, 100_000, 1, "99.9"),
        (99_700, 100_000, 0, "99.7"),
        (100_004, 100_000, 1, "100.0040"),
        (100_020, 100_000, 1, "100.02"),
        (100_400, 100_000, 0, "100.4"),
        (128_001, 128_000, 0, "100.0008"),
        (2_000_001, 2_000_000, 1, "100.0001"),
        (10**9 + 1, 10**9, 1, "over 100"),
        (0, 100_000, 1, "0.0"),
        (10, 100_000, 1, "under 0.1"),
    ],
)
def test_a_share_is_never_rounded_to_all_or_nothing(part, whole, digits, words):
    assert per_cent(part / whole, digits) == words
