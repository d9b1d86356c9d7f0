"""Findings tell what went wrong, with numbers, a step to look at, and no false alarm on a healthy session."""

import time

import numpy as np
import pytest

from guard_core.attribution import attribute
from guard_core.findings import Finding, findings, verdict
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.replay import observe_recorded, replay
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Session
from guard_core.simulator.samples import SAMPLES, big_session
from guard_core.summaries.sizes import FixedSummaries
from guard_core.trace import (
    FLOAT_COLUMNS,
    FLOOR_OVER_THRESHOLD,
    STILL_OVER,
    TRACE_COLUMNS,
    CompactionRecord,
    Pass,
    Trace,
)
from guard_core.usage import usage_for
from guard_core.views import Inserted, Span, Synthetic
from tests.builders import model, session, user

PASS = Pass(10, 900, 10, 900, 120, 2, 90)


def recorded(session: Session) -> tuple[Ledger, Trace]:
    """A session's ledger and the shadow trace over it."""
    ledger = Ledger.of(session)
    usage = usage_for(ledger, attribute(ledger))
    return ledger, observe_recorded(ledger, get_policy("contextguard"), window=session.window.value, usage=usage)


def replayed(session: Session, policy: str = "contextguard", **settings: object) -> tuple[Ledger, Trace]:
    """A session's ledger and its replay under a policy."""
    ledger = Ledger.of(session)
    usage = usage_for(ledger, attribute(ledger))
    return ledger, replay(ledger, get_policy(policy, **settings), window=session.window.value, usage=usage)


def chat(*prompts: int | None, **fields: object) -> Ledger:
    """A chat in one turn, one call per count."""
    events = (user("begin"), *(model("tell " * 40) for _ in prompts))
    calls = tuple(ModelCall(step + 1, step + 1, tokens) for step, tokens in enumerate(prompts))
    return Ledger.of(session(*events, calls=calls, **fields))


def trace(ledger: Ledger, *compactions: CompactionRecord, window: int = 10_000, **columns: object) -> Trace:
    """A trace in which nothing happened but what is given."""
    size = ledger.step_count
    made = {name: np.full(size, np.nan if name in FLOAT_COLUMNS else 0) for name in TRACE_COLUMNS}
    made["threshold"] = np.full(size, window * 4 // 5)
    made["modelled_prompt_tokens"] = ledger.steps["prompt_tokens"]
    return Trace(
        "test", {}, "0", window, made | {name: np.array(value) for name, value in columns.items()}, compactions
    )


def record(step: int, **fields: object) -> CompactionRecord:
    given = {"before": (Span(0, step + 1),), "after": (Synthetic("summary", 120),), "passes": (PASS,)}
    return CompactionRecord(step=step, reason="test", tokens_before=900, tokens_after=90, **(given | fields))


def kinds(found: tuple[Finding, ...]) -> list[str]:
    return [finding.kind for finding in found]


def only(kind: str, ledger: Ledger, made: Trace, **options: bool) -> Finding:
    """The one finding of a kind."""
    (found,) = [finding for finding in findings(ledger, made, **options) if finding.kind == kind]
    return found


# On the sample sessions, as recorded and as replayed.


def test_the_healthy_session_has_no_findings():
    for ledger, made, is_recorded in (
        (*recorded(SAMPLES["healthy"].build()), True),
        (*replayed(SAMPLES["healthy"].build()), False),
    ):
        assert findings(ledger, made, recorded=is_recorded) == ()
        assert verdict(ledger, made, recorded=is_recorded) == "No compaction; peak 60.2 % of the window at step 74."


def test_the_timing_gap_is_told_with_both_counts():
    ledger, made = recorded(SAMPLES["timing-gap"].build())
    found = only("timing_gap", ledger, made, recorded=True)
    assert found.numbers == {"seen": 140_000, "now": 180_018, "threshold": 180_000}
    assert "(140,000 seen, 180,018 there)" in verdict(ledger, made, recorded=True)


def test_a_replay_of_the_timing_gap_finds_it_too():
    assert only("timing_gap", *replayed(SAMPLES["timing-gap"].build())).numbers["now"] == 180_018


def test_the_small_window_overflowed_before_its_compaction():
    ledger, made = recorded(SAMPLES["small-window"].build())
    found = findings(ledger, made, recorded=True)
    assert kinds(found)[:3] == ["overflow", "late", "fallback_summary"]
    assert verdict(ledger, made, recorded=True).startswith("1 compaction; 1 too late (step 5 overflowed by 1")


def test_the_loop_is_a_loop_whose_summary_is_not_kept():
    ledger, made = recorded(SAMPLES["unpersisted-loop"].build())
    loop = only("loop", ledger, made, recorded=True)
    lost = only("summary_not_kept", ledger, made, recorded=True)
    assert (loop.numbers["length"], lost.count) == (15, 14)
    assert "228,967 → 8,756" in lost.sentence
    assert "231,400 again" in lost.sentence


def test_a_replay_with_a_kept_summary_has_no_loop():
    found = kinds(findings(*replayed(SAMPLES["unpersisted-loop"].build())))
    assert "loop" not in found
    assert "summary_not_kept" not in found


def test_the_sliding_window_loses_its_recent_messages():
    ledger, made = replayed(SAMPLES["long-coding"].build(), "contextguard-sliding")
    found = only("tail_lost", ledger, made)
    assert found.severity == "error"
    assert found.count == len(made.compactions)


def test_a_window_that_the_system_prompt_fills_cannot_be_fitted():
    chat_ = session(*[model("answer " * 30) for _ in range(30)], window=4_000, overhead=5_000)
    ledger, made = replayed(chat_)
    found = only("unfit", ledger, made)
    assert "over the window of 4,000" in found.sentence
    assert "no policy can fit this window" in verdict(ledger, made)


def test_an_empty_summary_brings_the_whole_history_back():
    ledger = Ledger.of(session(*[model("answer " * 900) for _ in range(12)], window=8_000))
    policy, usage = get_policy("contextguard"), usage_for(ledger, None)
    found = kinds(findings(ledger, replay(ledger, policy, window=8_000, usage=usage, summarizer=FixedSummaries(0))))
    assert {"empty_summary", "summary_not_kept", "loop"} <= set(found) or "fallback_summary" in found


# One by one.


def test_an_overflow_names_its_share_and_its_neighbours():
    ledger = chat(9_000, 10_310, 10_200, 400)
    found = only("overflow", ledger, trace(ledger))
    assert (found.step, found.count, found.severity) == (1, 2, "error")
    assert "3.1 % over the window of 10,000" in found.sentence


def test_a_near_miss_is_nine_tenths_of_the_window():
    ledger = chat(8_999, 9_000, 500, 8_999)
    assert only("near_miss", ledger, trace(ledger)).step == 1


def test_many_of_a_kind_are_told_once():
    ledger = chat(*[9_100, 500] * 5)
    found = only("near_miss", ledger, trace(ledger))
    assert found.count == 5
    assert found.sentence.startswith("5 approaches")


def test_a_count_above_the_window_says_that_the_window_is_wrong():
    ledger = chat(9_000, 12_000)
    found = only("window_mismatch", ledger, trace(ledger), recorded=True)
    assert "counted 12,000 prompt tokens at step 1" in found.sentence
    assert "overflow" not in kinds(findings(ledger, trace(ledger), recorded=True))


def test_compactions_at_every_step_are_a_loop_and_a_few_apart_thrash():
    ledger = chat(*[5_000] * 20)
    at_every = trace(ledger, *(record(step) for step in (3, 4, 5)))
    apart = trace(ledger, *(record(step) for step in (3, 6, 9)))
    assert only("loop", ledger, at_every).numbers["length"] == 3
    assert "thrash" not in kinds(findings(ledger, at_every))
    assert "3.0 steps apart" in only("thrash", ledger, apart).sentence


def test_two_compactions_are_neither():
    ledger = chat(*[5_000] * 20)
    assert not {"loop", "thrash"} & set(kinds(findings(ledger, trace(ledger, record(3), record(4)))))


def test_a_compaction_without_which_all_would_have_fitted_is_needless():
    ledger = chat(5_000, 5_050, 5_100, 1_000, 1_050, 1_100)
    made = trace(ledger, record(3))
    assert only("needless", ledger, made).step == 3
    assert verdict(ledger, made).startswith("1 compaction; 1 needless (peak without would have been 5")


def test_a_compaction_near_the_threshold_is_not_needless():
    ledger = chat(7_900, 7_950, 7_990, 1_000, 1_050, 1_100)
    assert "needless" not in kinds(findings(ledger, trace(ledger, record(3))))


def test_stacked_continuations_are_counted():
    ledger = chat(*[5_000] * 4)
    after = (Synthetic("summary", 90), *[Synthetic("continuation", 187)] * 3)
    assert only("stacked_continuations", ledger, trace(ledger, record(2, after=after))).numbers == {"continuations": 3}


def test_a_request_that_the_next_call_lacks_is_lost_and_one_that_is_carried_is_not():
    ledger = chat(*[5_000] * 6)
    lost = trace(ledger, record(2, carried=(Synthetic("summary", 90),), kept_from=3))
    kept = trace(ledger, record(2, carried=(Span(0, 1), Synthetic("summary", 90)), kept_from=3))
    assert only("request_lost", ledger, lost).numbers == {"message": 0}
    assert "request_lost" not in kinds(findings(ledger, kept))


def test_a_tail_is_lost_only_where_later_requests_lack_it():
    ledger = chat(*[5_000] * 6)
    after = (Synthetic("summary", 90), Span(2, 5))
    lost = trace(ledger, record(4, after=after, carried=(Synthetic("summary", 90), Span(3, 4)), kept_from=5))
    kept = trace(ledger, record(4, after=after, carried=(Synthetic("summary", 90), Span(2, 5)), kept_from=5))
    assert only("tail_lost", ledger, lost).numbers == {"messages": 2}
    assert "tail_lost" not in kinds(findings(ledger, kept))


def test_mechanical_empty_and_sealed_summaries_are_told_apart():
    ledger = chat(*[5_000] * 6)
    failed, empty = Pass(9, 9, 9, 9, 50, 2, 9, fallback=True), Pass(9, 9, 9, 9, 0, 2, 9)
    found = kinds(findings(ledger, trace(ledger, record(2, passes=(failed,)), record(4, passes=(empty,)))))
    assert {"fallback_summary", "empty_summary"} <= set(found)
    cut = RecordedCompaction(3, Evidence.DECLARED, "opaque", (Inserted(0),), (user(""),))
    sealed = chat(*[5_000] * 6, compactions=(cut,))
    assert only("unreadable_summary", sealed, trace(sealed), recorded=True).step == 2


def test_a_clamped_factor_is_told_with_both_values():
    ledger = chat(*[5_000] * 3)
    made = trace(ledger, correction_raw=[np.nan, 7.5, 0.8], correction=[2.5, 5.0, 1.0], correction_source=[2, 1, 1])
    assert "7.50 became 5.00 at step 1" in only("factor_capped", ledger, made).sentence
    assert only("factor_floored", ledger, made).step == 2


def test_calls_without_usage_are_counted(no_usage_reported):
    found = only("no_usage", *recorded(no_usage_reported), recorded=True)
    assert found.numbers == {"missing": 10, "calls": 10}
    assert "Every figure is an estimate." in found.sentence


def test_held_compactions_are_told():
    ledger = chat(*[5_000] * 3)
    made = trace(ledger, held=[0, STILL_OVER, FLOOR_OVER_THRESHOLD], heuristic_sent=[0, 8_400, 0])
    assert {"still_over", "unfit"} <= set(kinds(findings(ledger, made)))


def test_a_session_without_calls_has_no_findings():
    ledger = chat()
    assert findings(ledger, trace(ledger)) == ()
    assert verdict(ledger, trace(ledger)) == "No model call."


def test_the_gravest_come_first():
    ledger, made = replayed(SAMPLES["long-coding"].build(), "contextguard-sliding")
    order = [finding.severity for finding in findings(ledger, made)]
    assert order == sorted(order, key=["error", "warning", "info"].index)


@pytest.mark.parametrize("is_recorded", [True, False])
def test_findings_of_fifty_thousand_steps_cost_less_than_counting_them(is_recorded):
    big = big_session()
    begun = time.perf_counter()
    ledger, made = recorded(big) if is_recorded else replayed(big)
    counted = time.perf_counter() - begun
    found = attribute(ledger)
    begun = time.perf_counter()
    assert findings(ledger, made, found, recorded=is_recorded)
    assert time.perf_counter() - begun < counted / 3


@pytest.mark.parametrize(
    ("ats", "words"),
    [
        ((6,), "1 compaction; 1 with no call after it."),
        ((3, 3), "2 compactions; 1 needless (peak without would have been "),
        ((3, 3, 6), ", 2 with no call after them."),
    ],
)
def test_a_compaction_that_no_call_came_after_is_counted_and_said(ats, words):
    events = [user("one"), model("two"), user("three"), model("four"), user("five"), model("six")]
    cuts = tuple(RecordedCompaction(at, Evidence.DECLARED, "summary", (Span(0, 1),)) for at in ats)
    made = tuple(ModelCall(at, at, 100) for at in (1, 3, 5))
    ledger, shadow = recorded(session(*events, calls=made, compactions=cuts))
    assert words in verdict(ledger, shadow, attribute(ledger), recorded=True)


def test_a_quiet_edit_of_the_history_is_no_compaction():
    events = [part for _ in range(4) for part in (user("ask " * 300), model("tell " * 300))]
    edit = RecordedCompaction(4, Evidence.INFERRED, "edit", (Span(0, 4),))
    made = tuple(ModelCall(2 * step + 1, 2 * step + 1, 900 * (step + 1)) for step in range(4))
    ledger, shadow = recorded(session(*events, calls=made, compactions=(edit,)))
    assert verdict(ledger, shadow, attribute(ledger), recorded=True).startswith("No compaction")
