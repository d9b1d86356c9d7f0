"""Letta Code: the reserve by window, what is counted, and how much goes."""

import pytest

from guard_core.policies import get_policy
from guard_core.sessions import ModelCall
from guard_core.views import Span, Synthetic
from tests.builders import model, session, user
from tests.guard_core.policies.tools import run


@pytest.mark.parametrize(
    ("window", "threshold"),
    [(40_000, 32_000), (44_000, 35_200), (81_920, 65_536), (128_000, 111_616), (1_000_000, 983_616), (4, 3)],
)
def test_it_keeps_16_384_tokens_free_or_a_fifth_of_a_smaller_window(window, threshold):
    assert get_policy("letta-code").threshold(window) == threshold


def chat(prompt, text="x" * 160, turns=10):
    """The same text as questions and answers, and a question more; the last answer was made on a prompt of so many
    tokens."""
    events = [say(text) for _ in range(turns) for say in (user, model)]
    calls = [ModelCall(2 * turn + 1, 2 * turn + 1, 100 + turn, output_tokens=10) for turn in range(turns - 1)]
    last = ModelCall(2 * turns - 1, 2 * turns - 1, prompt, output_tokens=10)
    return session(*events, user(text), calls=(*calls, last, ModelCall(2 * turns + 1, None, 500)))


@pytest.mark.parametrize(("prompt", "compacts"), [(750, False), (751, True)])
def test_the_users_message_counts_before_it_is_sent(prompt, compacts):
    trace = run(get_policy("letta-code"), chat(prompt), window=1_000, summary=40)  # 800 = 750 + 10 + 160 / 4
    assert [record.step for record in trace.compactions] == ([10] if compacts else [])


@pytest.mark.parametrize(("chars", "first"), [(100, 7), (160, 7), (240, 11), (280, 13), (400, 15)])  # its function, run
def test_a_tenth_more_goes_until_less_than_70_percent_of_the_window_is_left(chars, first):
    (record,) = run(get_policy("letta-code"), chat(995, "x" * chars), window=1_000, summary=40).compactions
    summary, *newest = record.after
    assert isinstance(summary, Synthetic)
    assert newest == [Span(first, 21)]
    assert record.passes[0].summariser_view == (Span(0, first),)


@pytest.mark.parametrize(
    ("chars", "turns", "settings"),
    [(1_600, 10, {}), (400, 1, {}), (100, 10, {"mode": "all"})],  # no round is enough; three messages; asked for
)
def test_everything_goes_where_nothing_can_stay(chars, turns, settings):
    conversation = chat(995, "x" * chars, turns)
    record = run(get_policy("letta-code", **settings), conversation, window=1_000, summary=40).compactions[0]
    assert [type(segment) for segment in record.after] == [Synthetic]
    assert record.passes[0].summariser_view == (Span(0, 2 * turns + 1),)
