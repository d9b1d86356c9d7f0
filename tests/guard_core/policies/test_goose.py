"""Goose: a share of the window before a turn, and calls that become lines."""

import pytest

from guard_core.policies import get_policy
from guard_core.sessions import ModelCall
from guard_core.views import Span, Synthetic
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.policies.tools import run


@pytest.mark.parametrize(("share", "threshold"), [(0.8, 160_000), (0.0, None), (1.0, None)])
def test_the_threshold_is_a_share_and_off_at_both_ends(share, threshold):
    assert get_policy("goose", threshold=share).threshold(200_000) == threshold


def turns(count, calls_each, prompts):
    """Turns of tool calls; `prompts` are those of the last call of each."""
    events, calls = [], []
    for turn in range(count):
        events.append(user(f"question {turn}"))
        for number in range(calls_each):
            calls.append(ModelCall(len(events), len(events), 1_000, output_tokens=0))
            events += [tool_call("read", f"{turn}.{number}"), tool_result("y" * 40, "read", f"{turn}.{number}")]
        calls.append(ModelCall(len(events), len(events), prompts[turn], output_tokens=0))
        events.append(model("done"))
    return session(*events, calls=tuple(calls))


@pytest.mark.parametrize(("prompt", "fires"), [(160_000, False), (160_001, True)])
def test_it_compares_before_a_turn_and_only_above_the_share(prompt, fires):
    trace = run(get_policy("goose"), turns(2, 1, (prompt, 1_000)), window=200_000)
    assert [record.step for record in trace.compactions] == ([2] if fires else [])


def test_everything_before_the_new_message_becomes_a_summary():
    (record,) = run(get_policy("goose"), turns(2, 1, (170_000, 1_000)), window=200_000).compactions
    summary, text, *rest = record.after
    assert (summary.kind, text.kind, text.role) == ("summary", "request to continue", "model")
    assert rest == [Span(4, 5)]


def test_old_calls_become_lines_ten_at_a_time():
    log = turns(3, 8, (1_000, 1_000, 1_000))
    trace = run(get_policy("goose", tool_pairs=True, keep_calls=5), log, window=200_000)
    (record,) = trace.compactions  # counted at the third turn's first call: 16 calls before it are more than 5 and ten
    lines = [item for item in record.after if isinstance(item, Synthetic)]
    assert (record.step, len(lines)) == (19, 10)
    assert record.after[0] == Span(0, 1)
    assert record.passes[0].summariser_view == ()


def test_a_long_turn_loses_ten_earlier_calls_at_each_of_its_calls():
    log = turns(2, 40, (1_000, 1_000))
    trace = run(get_policy("goose", tool_pairs=True, keep_calls=5), log, window=200_000)
    assert [record.step for record in trace.compactions] == [42, 43, 44]


@pytest.mark.parametrize(("window", "kept"), [(128_000, 15), (200_000, 24), (1_000_000, 120), (8_000, 10)])
def test_how_many_calls_stay_follows_from_the_window(window, kept):
    assert get_policy("goose").kept_calls(window) == kept
