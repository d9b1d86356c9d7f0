"""Roo Code: what is allowed of a window, and what stays in its versions."""

import pytest

from guard_core.policies import get_policy
from guard_core.policies.roo import allowed_of
from guard_core.sessions import ModelCall
from guard_core.views import Span
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


@pytest.mark.parametrize(("profile", "kept"), [("fresh-start", ()), ("keep-3", (Span(3, 7),))])
def test_a_summary_stays_and_in_older_versions_the_ends(profile, kept):
    (record,) = run(get_policy("roo", profile=profile, reserved=8_193), LOG, window=200_000).compactions
    first = (Span(0, 1),) if kept else ()
    assert tuple(item for item in record.after if isinstance(item, Span)) == (
        *first,
        *kept,
    )  # a result stays with its call
