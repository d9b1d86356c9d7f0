"""The threshold strategy: what fires it, what is sent after it, and what the exact profiles get wrong."""

import pytest

from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.replay import replay
from guard_core.sessions import ModelCall
from guard_core.simulator.flow import Simulation, Turn, play
from guard_core.summaries.sizes import FixedSummaries, NoSummaries, ScriptedSummaries
from guard_core.trace import FLOOR_OVER_THRESHOLD, FLOOR_OVER_WINDOW, HELD_REASONS, STILL_OVER
from guard_core.views import Span, content_count
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.policies.tools import check_compacts, check_passes_through, run

CURRENT = get_policy("contextguard")
FIXED = get_policy("contextguard", profile="fixed")


def simulated(turns, *, window=8_000, ratio=2.0, summarizer=None, policy=CURRENT, request="", **simulation):
    """A replay of a simulated session."""
    ledger = Ledger.of(play(Simulation(window, tuple(turns), ratio, **simulation)).session)
    return replay(ledger, policy, window=window, summarizer=summarizer or FixedSummaries(120), request=request)


def test_it_leaves_a_short_chat_alone(short_chat):
    check_passes_through(CURRENT, short_chat)


def test_it_compacts_after_a_giant_result(single_giant_result):
    trace = check_compacts(CURRENT, single_giant_result, at_step=1)
    assert trace.columns["decision_tokens"][1] >= trace.columns["threshold"][1] == 6_400
    assert trace.columns["contents_sent"][1] == 2


def test_it_fires_at_equality():
    turns = [Turn(4 * 2_560)]  # heuristic 2,560 x 2.5 = 6,400
    assert simulated(turns).columns["decision_tokens"][0] == 6_400
    assert len(simulated(turns).compactions) == 1
    assert len(simulated([Turn(4 * 2_559)]).compactions) == 0


def test_later_requests_are_the_summary_and_what_came_after(tool_heavy):
    trace = check_compacts(CURRENT, tool_heavy, at_step=1, window=20_000)
    record = trace.compactions[0]
    at = Ledger.of(tool_heavy).steps["at"].tolist()
    assert record.kept_from == trace.columns["watermark"][1] == at[1]
    after = trace.view(2, at[2])
    assert [item.kind for item in after[:-1]] == ["summary"]
    assert after[-1] == Span(at[1], at[2])
    assert content_count(after) == trace.columns["contents_sent"][2]


def test_the_calibration_starts_again_after_a_compaction():
    trace = simulated([Turn(9_000), Turn(9_000), Turn(400)])
    fired = trace.compactions[0].step
    assert trace.columns["correction"][fired + 1] == pytest.approx(2, abs=0.01)
    assert trace.columns["last_heuristic_loaded"][fired + 1] == trace.columns["heuristic_sent"][fired]


def test_the_continuation_names_the_request_only_at_the_step_that_compacts(tool_heavy):
    trace = run(CURRENT, tool_heavy, window=20_000)
    record = trace.compactions[0]
    assert [item.kind for item in record.after] == ["summary", "continuation"]
    assert record.after[1].bytes > 187
    assert [item.kind for item in record.carried] == ["summary"]


def test_a_text_that_looks_like_a_summary_switches_the_injection_off():
    forged = [user("[Previous conversation summary] of mine: " + "x" * 12_000), model("ok " * 1_000)] * 3
    log = session(*forged, window=8_000)
    assert run(CURRENT, log).columns["contents_decided"].tolist() == [1, 3, 5]
    mended = run(get_policy("contextguard", mend_marker=True), log)
    assert mended.compactions
    assert mended.columns["heuristic_decided"][2] < mended.columns["heuristic_built"][2]


def test_a_failing_summariser_gives_the_mechanical_summary():
    trace = simulated([Turn(9_000), Turn(9_000)], summarizer=ScriptedSummaries((None, 60)))
    first = trace.compactions[0]
    assert (first.passes[0].failed, first.passes[0].fallback) == (True, True)
    lines = (len("user: ") + 200 + len("...\n"), len("model: ") + 120 + 1, len("user: ") + 200 + len("...\n"))
    assert first.passes[0].summary_bytes == sum(lines)
    assert "failed" in first.notes[0]


def test_a_summary_that_is_too_large_is_tried_again():
    retry = simulated([Turn(30_000)], summarizer=ScriptedSummaries((40_000, 40_000, 100)), window=8_000)
    assert [item.summary_bytes for item in retry.compactions[0].passes] == [40_000, 40_000, 100]
    vain = simulated([Turn(30_000)], summarizer=FixedSummaries(40_000))
    assert len(vain.compactions[0].passes) == 3
    assert vain.columns["held"][0] == STILL_OVER


def tool_only(count=12):
    """A session whose messages hold no text at all."""
    events = []
    for index in range(count):
        events += [tool_call("look", f"c{index}", at=index), tool_result("x" * 4_000, "look", f"c{index}")]
    return session(*events, window=8_000)


def test_mend_fallback_keeps_a_tool_only_session_compacted():
    exact = run(CURRENT, tool_only(), summarizer=NoSummaries())
    mended = run(get_policy("contextguard", mend_fallback=True), tool_only(), summarizer=NoSummaries())
    assert {record.passes[-1].summary_bytes for record in exact.compactions} == {0}
    assert exact.columns["contents_decided"][-1] == exact.columns["contents_built"][-1]  # the whole history is back
    assert mended.columns["contents_decided"][-1] < mended.columns["contents_built"][-1]
    assert len(mended.compactions) < len(exact.compactions)


def test_mend_growth_bounds_a_summary_that_grows_with_every_failure():
    turns = [Turn(9_000) for _ in range(40)]
    exact = simulated(turns, summarizer=NoSummaries())
    mended = simulated(turns, summarizer=NoSummaries(), policy=get_policy("contextguard", mend_growth=True))
    limit = CURRENT.settings.limits(8_000).output_tokens * 4
    assert exact.columns["summary_bytes"].max() > limit
    assert mended.columns["summary_bytes"].max() <= limit


def test_mend_request_repeats_the_request_until_the_turn_ends(tool_heavy):
    chain = play(Simulation(8_000, (Turn(400, tools=(("a", 9_000),) * 6, sequential=True), Turn(50)))).session
    exact, mended = (run(get_policy("contextguard", mend_request=on), chain, window=8_000) for on in (False, True))
    fired = exact.compactions[0].step
    assert mended.compactions[0].step == fired
    assert mended.columns["contents_sent"][fired + 1] == exact.columns["contents_sent"][fired + 1] + 1


def test_mend_retry_judges_a_pass_by_calibrated_tokens():
    sizes = ScriptedSummaries((15_000, 100))
    exact, mended = (
        simulated([Turn(30_000)], summarizer=sizes, policy=get_policy("contextguard", mend_retry=on))
        for on in (False, True)
    )
    assert len(exact.compactions[0].passes) == 1
    assert exact.columns["heuristic_sent"][0] * 2.5 > 6_400
    assert [item.summary_bytes for item in mended.compactions[0].passes] == [15_000, 100]


def test_mend_loop_does_not_compact_what_cannot_get_smaller():
    turns = [Turn(200) for _ in range(20)]
    fixed_costs = {"system_bytes": 13_200}  # 3,300 tokens of system prompt: 6,600 real ones, over the threshold
    exact = simulated(turns, **fixed_costs)
    mended = simulated(turns, policy=get_policy("contextguard", mend_loop=True), **fixed_costs)
    assert len(exact.compactions) == 20
    assert len(mended.compactions) < 5
    assert FLOOR_OVER_THRESHOLD in mended.columns["held"]
    assert mended.columns["overflow"].sum() == 0


def test_it_says_so_where_nothing_can_fit():
    trace = simulated([Turn(200) for _ in range(9)], policy=FIXED, system_bytes=20_000)
    assert trace.columns["held"][-1] == FLOOR_OVER_WINDOW
    assert "nothing can fit" in HELD_REASONS[FLOOR_OVER_WINDOW]
    assert trace.columns["overflow"][-1] == 1
    assert len(trace.compactions) == 1


def test_mend_pairs_keeps_a_call_with_its_result():
    events = [user("x" * 30_000), tool_call("run", "c1"), tool_call("run", "c2"), tool_result("a", "run", "c1")]
    log = session(*events, tool_result("b", "run", "c2"), model("done"), window=6_000)
    exact, mended = (run(get_policy("contextguard", mend_pairs=on), log) for on in (False, True))
    assert exact.columns["watermark"].tolist() == [1, 2, 5]  # between the calls and their results
    assert mended.columns["watermark"].tolist() == [1, 1, 5]


@pytest.mark.parametrize("profile", ["early", "current", "fixed"])
def test_an_empty_request_leaves_no_trace(profile):
    log = session(user("hello"), model("hi"), calls=(ModelCall(at=0), ModelCall(at=1)), window=8_000)
    trace = run(get_policy("contextguard", profile=profile), log)
    assert trace.columns["contents_sent"].tolist() == [0, 1]
    assert trace.columns["last_heuristic_loaded"][1] == 0
