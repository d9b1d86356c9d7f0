"""Aider's chat summary sends what the original sends."""

import json

import pytest

from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.replay import replay
from guard_core.requests import materialise
from guard_core.sessions import ModelCall
from guard_core.summaries.sizes import FixedSummaries, ScriptedSummaries
from guard_core.trace import RAISED
from guard_core.views import Span, Synthetic
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.conformance.libraries import check_equals_the_library

NAME = "aider-chat-summary"
CHAT = session(
    *(event for _ in range(4) for event in (user("u" * 400), model("m" * 400))),
    user("v" * 4_000),
    calls=tuple(ModelCall(at=at) for at in (1, 3, 5, 7, 9)),
)

LONG = session(*CHAT.events[:8] * 2, user("v"), calls=(ModelCall(at=17),))
SHORT = FixedSummaries(48)


def test_it_equals_recorded_runs_of_the_library():
    check_equals_the_library(NAME)


def replayed(log=CHAT, summarizer=SHORT, *, window=100_000, as_json=False, **settings):
    policy = get_policy(NAME, as_json=as_json, **settings)
    return replay(Ledger.of(log), policy, window=window, summarizer=summarizer)


def test_the_newest_message_of_the_user_is_not_counted():
    trace = replayed(max_tokens=799)
    assert trace.columns["decision_tokens"].tolist() == [0, 200, 400, 600, 800]
    assert [record.step for record in trace.compactions] == [4]


def test_the_older_part_becomes_a_summary_before_a_tail_behind_an_answer():
    trace = replayed(LONG, max_tokens=700)  # 300 tokens fit in half of it, but the first of them follows a question
    assert trace.view(0, 17) == (Synthetic("summary", 100), Span(12, 17))
    assert trace.compactions[0].passes[0].summariser_view == (Span(0, 12),)


def test_four_messages_or_fewer_are_not_parted_from_the_tail():
    assert replayed(max_tokens=399).compactions[0].passes[0].summariser_view == (Span(0, 4),)


def test_a_list_that_does_not_end_with_an_answer_gets_one():
    assert materialise(replayed(max_tokens=300).view(4, 9), CHAT)[-2].parts[0].text == "Ok."


def test_a_summary_over_the_limit_is_summarised_again_at_once_and_before_every_call():
    trace = replayed(summarizer=FixedSummaries(4_000), max_tokens=300)
    assert [record.step for record in trace.compactions] == [2, 3, 4]


def test_what_does_not_fit_the_window_of_the_summariser_is_in_no_summary():
    trace = replayed(LONG, max_tokens=700, window=862)  # 350 tokens are left of it
    assert trace.compactions[0].passes[0].summariser_view == (Span(0, 3),)
    assert trace.view(0, 17)[1:] == (Span(12, 17),)


@pytest.mark.parametrize(("window", "limit"), [(8_000, 1_024), (100_000, 6_250), (1_000_000, 8_192)])
def test_without_a_limit_it_is_a_sixteenth_of_the_window(window, limit):
    assert replayed(window=window).columns["threshold"][0] == limit


def test_a_summariser_that_fails_is_an_error_and_the_history_stays():
    trace = replayed(summarizer=ScriptedSummaries((None,)), max_tokens=799)
    assert trace.columns["held"][4] == RAISED
    assert trace.view(4, 9) == (Span(0, 9),)


def test_tool_calls_and_results_are_sent_as_nothing():
    log = session(user("u"), tool_call(), tool_result("r" * 400), calls=(ModelCall(at=3),))
    trace = replayed(log)
    assert [event.parts for event in materialise(trace.view(0, 3), log)][1:] == [(), ()]
    assert trace.columns["decision_tokens"].tolist() == [0]


@pytest.mark.parametrize("text", ["word", 'a "quoted"\nline\t', "压缩", "é 🚀", "\x01\\"])
def test_a_message_counts_as_json_in_ascii(text):
    messages = [{"role": "user", "content": text}, {"role": "assistant", "content": text * 9}]
    log = session(user(text), model(text * 9), user("?"), calls=(ModelCall(at=3),))
    counted = get_policy(NAME).settings.as_json
    assert counted
    trace = replayed(log, as_json=counted)
    assert trace.columns["decision_tokens"].tolist() == [sum(len(json.dumps(message)) // 4 for message in messages)]


@pytest.mark.parametrize(("tokens", "passes"), [(241, 1), (242, 2)])
def test_a_summary_that_was_just_made_counts_as_its_text(tokens, passes):
    """Behind it stay a question of 107 tokens and an answer of 109; together they must be below the limit."""
    made = FixedSummaries(tokens * 4 - 52)
    trace = replayed(LONG, made, as_json=True, max_tokens=242 + 107 + 109)
    assert len(trace.compactions[0].passes) == passes
