"""Letta: thresholds by model family, and how much goes."""

import msgspec
import pytest

from guard_core.policies import get_policy
from guard_core.sessions import ModelCall, ToolDefinition
from guard_core.views import Span, Synthetic
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.policies.tools import run


def test_thresholds_are_the_window_or_90_percent_of_it():
    assert get_policy("letta").threshold(128_000) == 128_000
    assert get_policy("letta", profile="gpt-5").threshold(272_000) == 244_800
    assert get_policy("letta", profile="0.16.7").threshold(128_000) == 115_200


def chat(prompt, text="x" * 160, turns=10):
    """The same text as questions and answers; the last answer was made on a prompt of so many tokens."""
    events = [say(text) for _ in range(turns) for say in (user, model)]
    calls = [ModelCall(2 * turn + 1, 2 * turn + 1, 100 + turn, output_tokens=10) for turn in range(turns - 1)]
    last = ModelCall(2 * turns - 1, 2 * turns - 1, prompt, output_tokens=10)
    return session(*events, user("more"), calls=(*calls, last, ModelCall(2 * turns + 1, None, 500)))


@pytest.mark.parametrize(("prompt", "compacts"), [(990, False), (991, True)])
def test_it_compacts_above_the_window_with_the_answer(prompt, compacts):
    trace = run(get_policy("letta"), chat(prompt), window=1_000, summary=40)
    assert [record.step for record in trace.compactions] == ([10] if compacts else [])


@pytest.mark.parametrize(
    ("text", "first"),
    [  # what letta 0.16.8 kept of 20 such messages behind an empty system prompt, under a window of 1,000
        ("x" * 100, 7),
        ("x" * 160, 11),
        ("é" * 40, 13),  # an escape of six characters each in JSON
        ("x" * 280, 15),
    ],
)
def test_a_tenth_more_goes_until_70_percent_of_the_window_is_left(text, first):
    (record,) = run(get_policy("letta"), chat(995, text), window=1_000, summary=40).compactions
    summary, *kept = record.after
    assert isinstance(summary, Synthetic)
    assert kept == [Span(first, 21)]
    assert record.passes[0].summariser_view == (Span(0, first),)


@pytest.mark.parametrize(("window", "first"), [(1_000, 11), (1_300, 7)])  # letta 0.16.8
def test_calls_and_results_count_as_json(window, first):
    rounds = [
        event
        for number in range(8)
        for event in (
            tool_call("read_file", f"call_{number}", path='a"b' * 10, n=number),
            tool_result("line\n" * 40, id=f"call_{number}"),
        )
    ]
    events = (user("q" * 200), *rounds)
    counted = tuple(ModelCall(at, at, window if at == 15 else 100, output_tokens=10) for at in range(1, 17, 2))
    trace = run(get_policy("letta"), session(*events, calls=(*counted, ModelCall(17, None, 500))), window=window)
    record = trace.compactions[0]
    assert record.passes[0].summariser_view == (Span(0, first),)


@pytest.mark.parametrize(
    ("tools", "given", "kept"),
    [(1, Span(0, 11), (Span(11, 21),)), (2, Span(11, 20), (Span(20, 21),))],  # letta 0.16.8
)
def test_with_too_many_tools_what_stays_is_summarised_alone_and_the_rest_lost(tools, given, kept):
    definition = ToolDefinition("t", "d" * 1_000)
    conversation = msgspec.structs.replace(chat(995, "x" * 160), tools=(definition,) * tools)
    (record,) = run(get_policy("letta"), conversation, window=1_000, summary=40).compactions
    (only,) = record.passes
    assert only.summariser_view == (given,)
    assert only.dropped_before_summariser == given.start
    assert record.after[1:] == kept


def test_a_provider_that_counts_needs_no_margin():
    policy = get_policy("letta", safety_margin=1)
    (record,) = run(policy, chat(995, "x" * 160), window=1_000, summary=40).compactions
    assert record.passes[0].summariser_view == (Span(0, 7),)


def test_where_no_round_leaves_little_enough_all_goes():
    (record,) = run(get_policy("letta"), chat(995, "x" * 4_000, 3), window=1_000).compactions[:1]
    assert record.after[1:] == (Span(6, 7),)
