"""Semantic Kernel's history reducers keep what the originals keep."""

import pytest

from guard_core.events import Role
from guard_core.policies import get_policy
from guard_core.sessions import ModelCall
from guard_core.summaries.sizes import ScriptedSummaries
from guard_core.trace import NOTHING_TO_COMPACT, RAISED, SUMMARISER_FAILED
from guard_core.views import Span, Synthetic
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.conformance.libraries import check_equals_the_library
from tests.guard_core.policies.tools import run


@pytest.mark.parametrize("policy", ["semantic-kernel-truncation", "semantic-kernel-summarization"])
def test_it_equals_recorded_runs_of_the_library(policy):
    check_equals_the_library(policy)


CHAT = session(*(say(str(k)) for k in range(3) for say in (user, model)), user("3"), calls=(ModelCall(at=7),))
WORK = session(
    user("go"),
    *(event for k in range(3) for event in (tool_call("read", f"c{k}"), tool_result("y", "read", f"c{k}"))),
    calls=(ModelCall(at=7),),
)


def after(log, policy, **settings):
    (record,) = run(get_policy(policy, **settings), log, window=1_000).compactions
    return record


def test_the_last_messages_stay_from_a_message_of_the_user_that_is_near():
    assert after(CHAT, "semantic-kernel-truncation", target_count=4).after == (Span(3, 7),)
    assert after(CHAT, "semantic-kernel-truncation", target_count=4, threshold_count=1).after == (Span(2, 7),)


def test_a_cut_moves_back_over_calls_and_results():
    trace = run(get_policy("semantic-kernel-truncation", target_count=2), WORK, window=1_000)
    assert trace.compactions[0].after == (Span(1, 7),)


def test_calls_and_results_are_summarised_only_where_they_are_included():
    log = session(*WORK.events, model("done"), user("more"), calls=(ModelCall(at=9),))
    plain = after(log, "semantic-kernel-summarization", target_count=2)
    assert plain.passes[0].summariser_view == (Span(0, 1),)
    assert plain.after == (Synthetic("summary", 2_000, None, Role.MODEL), Span(7, 9))
    both = after(log, "semantic-kernel-summarization", target_count=2, include_function_content_in_summary=True)
    assert both.passes[0].summariser_view == (Span(0, 7),)


def test_where_nothing_can_be_summarised_nothing_happens():
    log = session(*WORK.events[1:], calls=(ModelCall(at=6),))
    trace = run(get_policy("semantic-kernel-summarization", target_count=2), log, window=1_000)
    assert trace.columns["held"].tolist() == [NOTHING_TO_COMPACT]


@pytest.mark.parametrize(("raises", "held"), [(True, RAISED), (False, SUMMARISER_FAILED)])
def test_a_summariser_that_fails_ends_the_run_or_leaves_the_list_as_it_is(raises, held):
    policy = get_policy("semantic-kernel-summarization", target_count=4, fail_on_error=raises)
    trace = run(policy, CHAT, window=1_000, summarizer=ScriptedSummaries((None,)))
    assert trace.columns["held"].tolist() == [held]
    assert trace.columns["contents_sent"].tolist() == [7]
