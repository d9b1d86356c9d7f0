"""Letta: thresholds by model family, and how much goes."""

import pytest

from guard_core.policies import get_policy
from guard_core.sessions import ModelCall
from guard_core.views import Span, Synthetic
from tests.builders import model, session, user
from tests.guard_core.policies.tools import run


def test_thresholds_are_the_window_or_90_percent_of_it():
    assert get_policy("letta").threshold(128_000) == 128_000
    assert get_policy("letta", profile="gpt-5").threshold(272_000) == 244_800


def chat(prompt, size=160, turns=10):
    """Questions and answers of some bytes each; the last answer was made on a prompt of so many tokens."""
    events = [say("x" * size) for _ in range(turns) for say in (user, model)]
    calls = [ModelCall(2 * turn + 1, 2 * turn + 1, 100 + turn, output_tokens=10) for turn in range(turns - 1)]
    last = ModelCall(2 * turns - 1, 2 * turns - 1, prompt, output_tokens=10)
    return session(*events, user("more"), calls=(*calls, last, ModelCall(2 * turns + 1, None, 500)))


@pytest.mark.parametrize(("prompt", "compacts"), [(990, False), (991, True)])
def test_it_compacts_above_the_window_with_the_answer(prompt, compacts):
    trace = run(get_policy("letta"), chat(prompt), window=1_000, summary=40)
    assert [record.step for record in trace.compactions] == ([10] if compacts else [])


@pytest.mark.parametrize(
    ("size", "first"),
    [
        (160, 7),  # 20 messages and the system prompt: round(0.4 * 21) = 8, which is an answer, message 7 of the log
        (280, 11),  # 70 tokens each: 13 stay in the first round, 11 in the second, 9 in the third, below 700 of 1,000
    ],
)
def test_a_tenth_more_goes_until_70_percent_of_the_window_is_left(size, first):
    (record,) = run(get_policy("letta"), chat(995, size), window=1_000, summary=40).compactions
    summary, *kept = record.after
    assert isinstance(summary, Synthetic)
    assert kept == [Span(first, 21)]
    assert record.passes[0].summariser_view == (Span(0, first),)


def test_where_no_round_leaves_little_enough_all_goes():
    (record,) = run(get_policy("letta"), chat(995, 4_000, 3), window=1_000).compactions[:1]
    assert record.after[1:] == (Span(6, 7),)
