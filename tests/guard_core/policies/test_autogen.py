"""AutoGen's model contexts send what the original sends."""

import pytest

from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.replay import replay
from guard_core.sessions import ModelCall
from guard_core.views import Span, Synthetic
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.conformance.libraries import check_equals_the_library

# Two questions, the second with two calls at once; the last call is made over all of it. Five messages of the list
# for AutoGen: question, answer, question, calls, results.
LOG = session(
    user("first"),
    model("done"),
    user("second"),
    tool_call("read", "a"),
    tool_result("y" * 400, "read", "a"),
    tool_result("z" * 400, "read", "b"),
    calls=(ModelCall(at=1), ModelCall(at=3), ModelCall(at=6)),
)


@pytest.mark.parametrize("policy", ["autogen-buffered", "autogen-head-and-tail", "autogen-token-limited"])
def test_it_equals_recorded_runs_of_the_library(policy):
    check_equals_the_library(policy)


def sent(policy, **settings):
    trace = replay(Ledger.of(LOG), get_policy(policy, **settings), window=1_000)
    return trace.view(2, 6)


def test_all_results_of_an_answer_are_one_message_and_never_the_first():
    assert sent("autogen-buffered", buffer_size=2) == (Span(3, 6),)
    assert sent("autogen-buffered", buffer_size=1) == ()
    assert sent("autogen-buffered", buffer_size=5) == (Span(0, 6),)


def test_between_head_and_tail_a_note_counts_what_is_skipped():
    note = Synthetic("skipped", 19, "Skipped 2 messages.")
    assert sent("autogen-head-and-tail", head_size=1, tail_size=2) == (Span(0, 1), note, Span(3, 6))


def test_a_call_at_the_end_of_the_head_is_left_out_and_so_are_results_at_the_beginning_of_the_tail():
    log = session(
        tool_call("read", "a"),
        tool_result("y", "read", "a"),
        tool_call("read", "b"),
        tool_result("y", "read", "b"),
        calls=(ModelCall(at=4),),
    )
    trace = replay(Ledger.of(log), get_policy("autogen-head-and-tail", head_size=1, tail_size=1), window=1_000)
    assert trace.view(0, 4) == (Synthetic("skipped", 19, "Skipped 2 messages."),)


@pytest.mark.parametrize(
    ("limit", "view"),
    [
        (300, (Span(0, 6),)),
        (203, (Span(0, 2), Span(3, 6))),  # the second question goes
        (100, (Span(0, 1),)),
    ],
)
def test_messages_in_the_middle_go_until_the_others_fit(limit, view):
    assert sent("autogen-token-limited", token_limit=limit) == view


@pytest.mark.parametrize("policy", ["autogen-buffered", "autogen-token-limited"])
def test_results_at_the_beginning_of_a_list_that_fits_are_left_out(policy):
    log = session(tool_result("y", "read", "lost"), user("go on"), calls=(ModelCall(at=2),))
    assert replay(Ledger.of(log), get_policy(policy), window=1_000).view(0, 2) == (Span(1, 2),)
