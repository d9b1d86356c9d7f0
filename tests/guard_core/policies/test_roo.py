"""Roo Code: what is allowed of a window, and what stays in its versions."""

import pytest

from guard_core.estimation.usage import usage_for
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.policies.roo import allowed_of, hidden_of
from guard_core.replay import replay
from guard_core.sessions import ModelCall
from guard_core.summaries.sizes import FixedSummaries, NoSummaries
from guard_core.views import Span, Synthetic
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.policies.tools import run


def test_90_percent_less_the_reserve_are_allowed():
    assert allowed_of(200_000, 8_192) == 171_808
    assert get_policy("roo").threshold(200_000) == 171_809  # above what is allowed
    assert get_policy("roo", share=0.5).threshold(200_000) == 100_000


LOG = session(
    user("go"),
    model("thinking"),
    user("more"),
    tool_call("read", "a"),
    tool_result("y" * 400, "read", "a"),
    tool_call("read", "b"),
    tool_result("y" * 400, "read", "b"),
    calls=(
        ModelCall(3, 3, 1_000, output_tokens=10),
        ModelCall(5, 5, 171_698, output_tokens=10),
        ModelCall(7, None, 500),
    ),
)


def test_the_last_message_counts():
    trace = run(get_policy("roo"), LOG, window=200_000)
    assert trace.columns["decision_tokens"][2] == 171_698 + 10 + 100
    assert trace.compactions == ()
    assert [record.step for record in run(get_policy("roo", reserved=8_193), LOG, window=200_000).compactions] == [2]


@pytest.mark.parametrize(("messages", "hidden"), [(21, 10), (10, 4), (5, 2), (1, 0)])
def test_half_of_the_messages_are_hidden_where_there_is_no_summary(messages, hidden):
    assert hidden_of(messages) == hidden


@pytest.mark.parametrize("summarizer", [NoSummaries(), FixedSummaries(100_000)])
def test_without_a_summary_that_makes_it_smaller_messages_are_hidden_with_a_note(summarizer):
    ledger = Ledger.of(LOG)
    policy = get_policy("roo", reserved=8_193)
    trace = replay(ledger, policy, window=200_000, usage=usage_for(ledger, None), summarizer=summarizer)
    (record,) = trace.compactions
    note = Synthetic("note of hidden messages", 100)
    assert record.after == (Span(0, 1), note, Span(3, 7))


@pytest.mark.parametrize(("profile", "kept"), [("fresh-start", ()), ("keep-3", (Span(3, 7),))])
def test_a_summary_stays_and_in_older_versions_the_ends(profile, kept):
    policy = get_policy("roo", profile=profile, reserved=8_193)
    (record,) = run(policy, LOG, window=200_000, summary=20).compactions
    first = (Span(0, 1),) if kept else ()
    assert tuple(item for item in record.after if isinstance(item, Span)) == (
        *first,
        *kept,
    )  # a result stays with its call
