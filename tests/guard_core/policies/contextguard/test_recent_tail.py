"""The first threshold flow: raw tokens, a recent tail, no watermark."""

from guard_core.policies import get_policy
from guard_core.summaries.sizes import ScriptedSummaries
from guard_core.trace import SUMMARISER_FAILED
from guard_core.views import Span
from tests.guard_core.policies.tools import check_compacts, check_passes_through, run

TAIL = get_policy("contextguard", profile="tail")


def test_it_leaves_a_short_chat_alone(short_chat):
    check_passes_through(TAIL, short_chat)


def test_it_judges_by_the_raw_heuristic(tool_heavy):
    trace = check_compacts(TAIL, tool_heavy, at_step=11, window=32_000)
    assert trace.columns["decision_tokens"][11] == trace.columns["heuristic_built"][11]
    assert trace.columns["correction_source"].max() == 0


def test_it_keeps_a_recent_tail_and_no_continuation(tool_heavy):
    record = run(TAIL, tool_heavy, window=32_000).compactions[0]
    assert record.after[0].kind == "summary"
    assert isinstance(record.after[-1], Span)
    assert len(record.after) == 2


def test_the_next_request_holds_the_whole_log_again(tool_heavy):
    trace = run(TAIL, tool_heavy, window=32_000)
    step = trace.compactions[0].step + 1
    assert trace.columns["contents_decided"][step] == trace.columns["contents_built"][step] + 1


def test_a_failed_summariser_lets_it_pass(tool_heavy):
    trace = run(TAIL, tool_heavy, window=32_000, summarizer=ScriptedSummaries((None,)))
    assert trace.compactions == ()
    assert SUMMARISER_FAILED in trace.columns["held"]
