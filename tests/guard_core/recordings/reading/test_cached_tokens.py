"""Cached tokens inside or beside `input_tokens`."""

import pytest

from guard_core.recordings.reading.cached_tokens import CachedTokens
from guard_core.sessions import ModelCall


def heard(*counts: tuple[int, int, int]) -> list[int | None]:
    """The prompts of calls with (input, read, written) tokens."""
    cached = CachedTokens()
    calls = [
        ModelCall(at=0, prompt_tokens=sum(each), cached_tokens=each[1], cache_write_tokens=each[2], model="m")
        for each in counts
    ]
    for place, call in enumerate(calls):
        cached.hear("", str(place), call)
    cached.judge()
    return [cached.counted(call).prompt_tokens for call in calls]


def test_a_cached_part_that_follows_the_input_before_lies_inside() -> None:
    counts = [(20_000, 0, 0), (24_000, 19_968, 0), (29_000, 23_936, 0), (31_000, 28_928, 0)]
    assert heard(*counts) == [20_000, 24_000, 29_000, 31_000]


def test_a_call_whose_input_cannot_hold_its_cached_part_stays_a_sum() -> None:
    counts = [(20_000, 0, 0), (24_000, 19_968, 0), (29_000, 23_936, 0), (31_000, 28_928, 0), (10, 30_990, 500)]
    assert heard(*counts)[-1] == 31_500


@pytest.mark.parametrize(
    "counts",
    [
        [(3, 0, 20_000), (5, 20_000, 4_000), (8, 24_000, 5_000)],  # as Anthropic counts
        [(20_000, 0, 0), (4_000, 19_968, 0), (5_000, 23_936, 0)],  # without writes
        [(20_000, 0, 0), (24_000, 20_000, 0), (20_000, 44_000, 0), (20_000, 64_000, 0)],  # large results at first
        [(20_000, 15_000, 0), (24_000, 15_000, 0), (29_000, 15_000, 0)],  # a cache of the system prompt alone
        [(20_000, 0, 0), (24_000, 19_968, 0)],  # once is too little
        [(20_000, 0, 0), (24_000, 0, 0), (29_000, 0, 0)],
    ],
)
def test_a_cached_part_beside_the_input_is_added(counts: list[tuple[int, int, int]]) -> None:
    assert heard(*counts) == [sum(each) for each in counts]
