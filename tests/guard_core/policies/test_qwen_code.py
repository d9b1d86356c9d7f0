"""Qwen Code: the share of the window or what is reserved of it, and the call that stays."""

import pytest

from guard_core.policies import get_policy
from guard_core.sessions import ModelCall
from guard_core.views import Span, Synthetic
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.policies.tools import run


@pytest.mark.parametrize(
    ("window", "threshold"), [(1_000_000, 850_000), (200_000, 167_000), (131_072, 98_072), (30_000, 25_500)]
)
def test_thresholds_are_those_that_were_measured(window, threshold):
    assert get_policy("qwen-code").threshold(window) == threshold


def work(*prompts):
    """A turn of a tool call and an answer, and the beginning of another; the prompts of its calls."""
    first, second = prompts
    return session(
        user("go"),
        tool_call("read", "a"),
        tool_result("y" * 1_600, "read", "a"),
        model("done"),
        user("more"),
        calls=(
            ModelCall(1, 1, first, output_tokens=7),
            ModelCall(3, 3, second, output_tokens=7),
            ModelCall(5, None, 500),
        ),
    )


@pytest.mark.parametrize(("prompt", "fires"), [(166_576, False), (166_577, True)])
def test_it_counts_the_answer_and_what_is_pending(prompt, fires):
    trace = run(get_policy("qwen-code"), work(prompt, 1_000), window=200_000)
    assert trace.columns["decision_tokens"][1] == prompt + 7 + 416
    assert trace.columns["fired"][1] == fires


def test_within_a_turn_the_call_under_way_stays():
    record = run(get_policy("qwen-code"), work(170_000, 1_000), window=200_000).compactions[0]
    summary, answer, *kept = record.after
    assert isinstance(summary, Synthetic)
    assert answer == Synthetic("acknowledgement", 42)
    assert (record.step, kept) == (1, [Span(1, 3)])


def test_before_a_turn_nothing_stays_but_the_new_message():
    (record,) = run(get_policy("qwen-code"), work(1_000, 170_000), window=200_000).compactions
    assert (record.step, record.after[2:]) == (2, (Span(4, 5),))
