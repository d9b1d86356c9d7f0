"""Cline: limits by window, and how many messages are dropped."""

import pytest

from guard_core.policies import get_policy
from guard_core.sessions import ModelCall
from guard_core.trace import NOTHING_TO_COMPACT
from guard_core.views import Span
from tests.builders import model, session, user
from tests.guard_core.policies.tools import run


@pytest.mark.parametrize(
    ("window", "limit"),
    [(64_000, 37_000), (128_000, 98_000), (200_000, 160_000), (1_000_000, 960_000), (50_000, 40_000)],
)
def test_the_limit_follows_from_the_window(window, limit):
    assert get_policy("cline").threshold(window) == limit


def chat(turns, prompt):
    """Questions and answers; the last answer was made on a prompt of so many tokens, and a question follows it."""
    events = [say(str(turn)) for turn in range(turns) for say in (user, model)]
    calls = [ModelCall(2 * turn + 1, 2 * turn + 1, 1_000 + turn, output_tokens=10) for turn in range(turns - 1)]
    calls.append(ModelCall(2 * turns - 1, 2 * turns - 1, prompt, output_tokens=10))
    return session(*events, user("more"), calls=(*calls, ModelCall(2 * turns + 1, None, 500)))


@pytest.mark.parametrize(
    ("limit", "kept"),
    [
        (50_000, Span(6, 13)),  # 13 messages: 11 // 4 * 2 = 4 behind the first two go
        (20_000, Span(10, 13)),  # half of the count is above the limit: 11 * 3 // 4 // 2 * 2 = 8 go
    ],
)
def test_half_or_three_quarters_of_the_messages_behind_the_first_two_go(limit, kept):
    trace = run(get_policy("cline", limit=limit), chat(6, 60_000), window=200_000)
    first = next(record for record in trace.compactions if record.step == 6)
    assert first.after == (Span(0, 2), kept)
    assert first.passes[0].summariser_view == ()


def test_with_few_messages_nothing_can_go():
    trace = run(get_policy("cline", limit=900), chat(1, 1_000), window=200_000)
    assert trace.columns["held"].tolist() == [0, NOTHING_TO_COMPACT]
