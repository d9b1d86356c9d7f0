"""Gemini CLI: the share of the limit, and where the history is cut."""

import pytest

from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.policies.gemini_cli import split_point
from guard_core.policies.pieces.message_columns import list_messages
from guard_core.replay import replay
from guard_core.summaries.sizes import FixedSummaries
from guard_core.usage import usage_for
from guard_core.views import Span, content_count
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.rules.measured import run_of


@pytest.mark.parametrize(
    ("settings", "threshold"),
    [({}, 524_288), ({"profile": "0.7"}, 734_004), ({"compression_threshold": 0.2}, 209_716)],
)
def test_the_threshold_is_a_share_of_the_limit(settings, threshold):
    assert get_policy("gemini-cli", **settings).threshold(1_048_576) == threshold


def cut(*events):
    log = session(*events)
    return split_point(list_messages(Ledger.of(log), (Span(0, len(events)),)), 0.7)


def call(size):
    return tool_call("read", "c", path="p" * size)


def result(size):
    return tool_result("y" * size, "read", "c")


def test_it_cuts_at_the_first_text_of_the_user_behind_70_percent():
    said = [user("u" * 1_000), model("m" * 4_000), user("u" * 1_000), model("m" * 2_000)]
    assert cut(*said, user("u" * 500), model("m" * 1_500)) == 4


def test_where_no_text_of_the_user_is_behind_it_and_a_call_is_open_the_last_one_before_counts():
    assert cut(user("u" * 500), call(200), result(8_000), call(200), result(1_000)) == 0


def test_a_finished_answer_lets_everything_go():
    assert cut(user("u" * 500), call(200), result(8_000), model("m" * 900)) == 4


def test_it_keeps_as_many_messages_as_the_agent_kept(tmp_path):
    measured = run_of("gemini-cli/default", tmp_path)
    ledger = Ledger.of(measured.session)
    usage = usage_for(ledger, None)
    trace = replay(ledger, get_policy("gemini-cli"), window=1_048_576, usage=usage, summarizer=FixedSummaries(2_442))
    assert content_count(trace.compactions[0].after) == measured.truth["compactions"][0]["next_request"]["n_messages"]
