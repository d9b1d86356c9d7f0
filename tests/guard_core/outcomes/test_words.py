"""Amounts of money as people read them, and which window a comparison uses."""

from guard_core.outcomes.outcome import CallWindow, call_windows
from guard_core.outcomes.words import dollars, windows_words
from guard_core.windows.prices import UNIT
from tests.guard_core.outcomes.cast import SONNET, counted, facts_of


def test_small_amounts_are_not_rounded_down_to_nothing():
    million = UNIT * 1_000_000
    assert [dollars(round(value * million)) for value in (0.00002, -0.00002, 0.00006, 0.5, 12.345, 0, -0.25)] == [
        "under $0.0001", "under $0.0001", "$0.0001", "$0.5000", "$12.35", "$0.0000", "−$0.2500"
    ]  # fmt: skip


def test_windows_of_other_models_are_counted_and_the_one_of_the_replays_is_named_first():
    facts = facts_of(counted((20_000,) * 6, names=(*(SONNET,) * 3, "gpt-4o", "gemini-2.5-pro", "gpt-4o")))
    windows = call_windows(facts, 200_000)
    assert windows == (CallWindow(200_000, 3), CallWindow(128_000, 2), CallWindow(1_048_576, 1))
    assert windows_words(windows) == (
        "The calls have 3 windows, in tokens: 200,000 (3 calls), 128,000 (2 calls), 1,048,576 (1 call). Overflows and "
        "near misses are counted by each call's own; policies compact by 200,000 at every call, and the share of the "
        "peak and the room left are of it, too."
    )


def test_a_session_of_one_window_needs_no_words_of_it():
    facts = facts_of(counted((20_000,) * 4))
    assert call_windows(facts, 60_000) == (CallWindow(60_000, 4),)
    assert windows_words(call_windows(facts, 60_000)) == ""
