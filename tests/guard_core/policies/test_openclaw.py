"""OpenClaw fires as pi does, with its own reserve."""

import pytest

from guard_core.policies import get_policy
from guard_core.sessions import ModelCall
from tests.builders import model, session, user
from tests.guard_core.policies.tools import run

WINDOW = 200_000


def at_the_end(used):
    """Turns of 10,000 tokens, the last call of which has so many, and another turn."""
    turns = (user("q" * 40_000), model("a")) * 5
    calls = (ModelCall(at=9, prompt_tokens=used - 100, output_tokens=100, response=9), ModelCall(at=11, response=11))
    return session(*turns, user("q"), model("a"), calls=calls)


@pytest.mark.parametrize(
    ("settings", "limit"),
    [({}, 180_000), ({"reserve_tokens": 40_000}, 160_000), ({"reserve_tokens_floor": 0}, 183_616)],
)
def test_it_fires_above_the_window_less_the_larger_reserve(settings, limit):
    policy = get_policy("openclaw", **settings)
    assert policy.threshold(WINDOW) == limit
    assert not run(policy, at_the_end(limit), window=WINDOW).columns["fired"].any()
    assert run(policy, at_the_end(limit + 1), window=WINDOW).columns["fired"].tolist() == [0, 1]


def test_it_tries_three_times_after_refusals_where_pi_tries_once():
    assert get_policy("openclaw").most_refusals == 3
    assert get_policy("pi").most_refusals == 1
    assert get_policy("openclaw", overflow_attempts=0).most_refusals == 0


def test_it_never_keeps_more_than_a_quarter_of_the_window_free():  # 2026.9.6, run with 64,000
    assert get_policy("openclaw").threshold(64_000) == 48_000
    assert get_policy("openclaw", reserve_tokens=40_000).threshold(100_000) == 75_000
