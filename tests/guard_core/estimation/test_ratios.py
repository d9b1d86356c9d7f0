"""The ratios of a session are the same numbers on every machine."""

import hashlib

import numpy as np
import pytest

from guard_core.estimation.ratios import HIGHEST, KINDS, OPAQUE, START, _NormalEquations, content, fit
from guard_core.events import Event, ReasoningPart, Role
from guard_core.ledger import Ledger
from tests.builders import session

INTERVALS = 700


def made_up(kinds: int) -> np.ndarray:
    """Amounts of the first so many kinds in every interval; whole numbers that look like nothing in particular."""
    places = np.arange(INTERVALS)[:, None] * len(KINDS) + np.arange(len(KINDS))
    amounts = places * 7_919 % 3_001 * (places % 3 > 0)
    amounts[:, kinds:] = 0
    return amounts


# Golden: of the fit as it was first written, one row operation at a time.
@pytest.mark.parametrize(
    ("kinds", "digest"),
    [(8, "7439e968c79bb24b"), (5, "03e7885307146184"), (1, "a4e01cec832ef474"), (0, "2a123a21dbb0f66a")],
)
def test_the_golden_ratios_stand(kinds, digest):
    amounts = made_up(kinds)
    tokens = (amounts * np.array([2, 1, 3, 1, 2, 9, 1, 30])).sum(axis=1) + np.arange(INTERVALS) % 97 * 5
    assert hashlib.sha256(fit(amounts, tokens).tobytes()).hexdigest()[:16] == digest


@pytest.mark.parametrize("kinds", [1, 2, 8])
def test_intervals_are_added_one_after_the_other(kinds):
    """In another order the last digits differ: `numpy.sum` of a single column, for one, adds in pairs."""
    amounts, goal = made_up(kinds), np.sqrt(np.arange(INTERVALS) + 0.3)
    matrix, right = _NormalEquations(amounts, goal).normal(goal * 1.1)
    trust = 1 / (np.maximum(goal * 1.1, 1.0) + 40.0)  # all are near their estimates
    for row in range(kinds):
        total = 0.0
        for weighted, tokens in zip((amounts[:, row] * trust).tolist(), goal.tolist(), strict=True):
            total += weighted * tokens
        assert right[row] == total
        square = 0.0
        for weighted, amount in zip((amounts[:, row] * trust).tolist(), amounts[:, row].tolist(), strict=True):
            square += weighted * amount
        assert matrix[row, row] == square


def test_ratios_stay_within_their_bounds_and_a_kind_that_is_nowhere_keeps_its_own():
    amounts = made_up(2)
    ratios = fit(amounts, amounts[:, 0] * 50)
    assert ratios[0] == HIGHEST[0]
    assert ratios[1] >= 0.0
    assert np.array_equal(ratios[5:], START[5:])


@pytest.mark.parametrize(("words", "hidden"), [("", 400), ("t" * 150, 200), ("t" * 300, 0), ("t" * 900, 0)])
def test_encrypted_reasoning_counts_as_far_as_its_words_are_not_shown(words, hidden):
    answer = Event(Role.MODEL, (ReasoningPart(words, opaque_bytes=400),))
    assert content(Ledger.of(session(answer)))[0, OPAQUE] == hidden


def test_a_few_intervals_with_content_that_the_file_lacks_are_not_the_level_of_a_session():
    """Two requests that grew by twice what their texts cost are taken for less than that, twenty of them are not."""
    amounts = np.zeros((20, len(KINDS)), dtype=np.int64)
    amounts[:, KINDS.index("tool results")] = 4_000
    tokens = np.full(20, round(2 * 1.2 * 4_000), dtype=np.int64)
    calls = KINDS.index("tool calls")
    few, many = fit(amounts[:2], tokens[:2])[calls], fit(amounts, tokens)[calls]
    assert START[calls] < few < 1.25 * START[calls]
    assert many > 1.5 * START[calls]
