"""LlamaIndex's chat memory buffer sends what the original sends."""

import pytest

from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.replay import replay
from guard_core.sessions import ModelCall
from guard_core.views import Span
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.conformance.libraries import check_equals_the_library


def test_it_equals_recorded_runs_of_the_library():
    check_equals_the_library("llama-index-buffer")


LOG = session(
    user("x" * 399),
    model("y" * 399),
    user("x" * 39),
    tool_call("read", "a"),
    tool_result("z" * 399, "read", "a"),
    calls=(ModelCall(at=1), ModelCall(at=3), ModelCall(at=5)),
)


@pytest.mark.parametrize(
    ("limit", "view"),
    [
        (1_000, (Span(0, 5),)),
        (150, (Span(2, 5),)),  # from the second question on: 439 characters and a space between two messages each
        (110, (Span(2, 5),)),
        (109, (Span(4, 5),)),  # the turn does not fit: its newest message alone
    ],
)
def test_it_begins_with_the_user_or_sends_the_newest_message_alone(limit, view):
    trace = replay(Ledger.of(LOG), get_policy("llama-index-buffer", token_limit=limit), window=1_000)
    assert trace.view(2, 5) == view


def test_without_a_limit_three_quarters_of_the_window_count():
    trace = replay(Ledger.of(LOG), get_policy("llama-index-buffer"), window=1_000)
    assert set(trace.columns["threshold"]) == {750}
