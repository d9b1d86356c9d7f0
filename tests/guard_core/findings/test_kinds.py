"""Every kind of finding: said where it is true, with its numbers, and not where it is not."""

import dataclasses
import json
import time

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from guard_core.checker import check
from guard_core.estimation.attribution import attribute
from guard_core.events import Event, Role, TextPart, ToolResultPart
from guard_core.findings import (
    Facts,
    Finding,
    Verdict,
    recorded_findings,
    recorded_verdict,
    replayed_findings,
    replayed_verdict,
)
from guard_core.findings.gaps import clearings
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.recordings import read
from guard_core.replay import replay
from guard_core.sessions import (
    DAMAGED,
    NO_CONTENT,
    Evidence,
    LeftBranches,
    ModelCall,
    Provenance,
    RecordedCompaction,
    Refusal,
    Session,
    Sourced,
)
from guard_core.summaries.sizes import FixedSummaries
from guard_core.trace import FLOOR_OVER_THRESHOLD, STILL_OVER, Pass
from guard_core.views import Inserted, Rewritten, Span, Synthetic
from guard_core.windows.window_evidence import Status, judge_session
from tests.big_sessions import big_session
from tests.builders import bundled, image, model, session, tool_call, tool_result, user
from tests.guard_core.checker.cases import WORDS, cleared_after_a_cut, clearing, exchange, priced, sliding
from tests.guard_core.findings.cases import chat, compaction, findings, of_replay, record, replayed, trace
from tests.guard_core.recordings.checks import SAMPLES as FILES
from tests.guard_core.rules.measured import run_of


def test_the_healthy_session_has_no_findings():
    facts, replayed_trace = replayed(bundled("healthy"))
    assert recorded_findings(facts) == replayed_findings(facts, replayed_trace) == ()


# The window.


def test_an_answered_prompt_above_the_window_contradicts_it():
    finding = findings(chat(9_000, 12_000, 11_000))["window_contradicted"]
    assert finding.numbers == {"window": 10_000, "tokens": 12_000, "step": 1, "calls": 2}
    assert finding.sentence.startswith("A prompt of 12,000 tokens was answered at step 2, above the window set by hand")


def test_nothing_else_is_said_against_a_window_that_is_contradicted():
    prompts = [9_500, 12_000, 3_000, 9_300, None]
    by_kind = findings(chat(*prompts, compactions=(compaction(3),)))
    assert {"near_miss", "overflow", "late", "needless", "needed"} & set(by_kind) == set()


def test_compactions_below_half_of_the_tables_window_doubt_it():
    built = chat(
        90_000, 5_000, window=1_000_000, source=Provenance.MODEL_TABLE, format="pi", compactions=(compaction(2),)
    )
    by_kind = findings(built)
    assert by_kind["window_doubted"].numbers == {"window": 1_000_000, "low": 90_000, "high": 90_000, "compactions": 1}
    assert "needless" not in by_kind


@pytest.mark.parametrize(
    ("typed", "status", "kind"),
    [
        ({}, "doubted", "window_doubted"),
        ({"auto_compact_window": "150000"}, "doubted", "window_doubted"),
        ({"auto_compact_window": "129000"}, "table", "needless"),
    ],
)
def test_a_window_is_doubted_until_settings_of_the_agent_explain_its_early_compactions(typed, status, kind):
    quoting = compaction(4, summary="Please begin with the report of the week: done", tokens_before=96_500)
    built = chat(
        30_000,
        70_000,
        96_000,
        5_000,
        window=200_000,
        source=Provenance.MODEL_TABLE,
        format="claude-code",
        versions=((0, "2.1.330"),),
        compactions=(quoting,),
    )
    facts = dataclasses.replace(Facts.of(built), settings=typed)
    claims = recorded_findings(facts)
    verdict = recorded_verdict(facts, claims)
    assert (facts.window.status, verdict.kind) == (status, kind)
    assert check(built, claims, facts.window, verdict) == []


def test_a_doubted_window_that_was_inferred_from_prompts_is_not_called_stated():
    built = chat(
        90_000, 5_000, window=1_000_000, source=Provenance.PROMPTS, format="claude-code", compactions=(compaction(2),)
    )
    facts = Facts.of(built)
    (doubted,) = (item for item in recorded_findings(facts) if item.kind == "window_doubted")
    assert "below half of the prompt-inferred window of 1,000,000" in doubted.sentence


def test_a_window_that_only_the_prompts_speak_for_is_an_assumption_of_the_verdict():
    built = chat(150_000, 208_026, window=1_000_000, source=Provenance.PROMPTS, format="claude-code")
    facts = Facts.of(built)
    verdict = recorded_verdict(facts, recorded_findings(facts))
    assert verdict.sentence == (
        "Healthy: no compaction needed; peak 20.8 % of the window at step 2, if the window is 1,000,000."
    )
    assert verdict.assumptions == ("window_assumed",)


def claimed(built):
    """Findings of a recording by kind, and its verdict; the checker confirms them."""
    facts = Facts.of(built)
    claims = recorded_findings(facts)
    verdict = recorded_verdict(facts, claims)
    assert check(built, claims, facts.window, verdict) == []
    return {item.kind: item for item in claims}, verdict


def test_refused_requests_that_the_file_holds_are_an_overflow_and_not_a_near_miss():
    built = chat(9_000, 9_640)
    by_kind, verdict = claimed(replace(built, refused=(4, 4, 4)))
    assert verdict.sentence == "3 requests failed as too long, the first after step 2: overflows (recorded)."
    assert (verdict.kind, verdict.severity, by_kind["refused"].count) == ("refused", "error", 3)
    assert by_kind["refused"].numbers == {"requests": 3, "after": 1, "compacted": 0}
    assert claimed(built)[1].kind == "near_miss"


@pytest.mark.parametrize(("behind", "compacted"), [(0, 1), (1, 0)])
def test_only_a_compaction_behind_a_refused_request_followed_it(behind, compacted):
    cut = RecordedCompaction(4, Evidence.DECLARED, "summary", (), trigger="auto", refused_behind=behind)
    built = replace(chat(9_000, 9_640, 3_000), refused=(4,), compactions=(cut,))
    by_kind, _ = claimed(built)
    assert by_kind["refused"].numbers["compacted"] == compacted


def test_the_size_and_the_limit_that_the_provider_stated_are_said_and_the_limit_is_the_window():
    built = chat(5_000, 9_000, model="unknown", source=Provenance.ASSUMED)
    built = replace(built, refused=(4,), refusals=(Refusal(4, 12_345, 10_000),))
    by_kind, verdict = claimed(built)
    assert by_kind["refused"].sentence == (
        "1 request failed as too long, after step 2, as the file says: an overflow (recorded). The provider stated "
        "12,345 tokens and a limit of 10,000."
    )
    assert verdict.sentence.endswith("after step 2: 12,345 tokens, the provider takes 10,000 (recorded).")
    facts = Facts.of(built)
    assert (facts.window.value, facts.window.source, facts.window.status) == (10_000, "provider", "known")
    assert facts.refused_request == (12_345, 1)


def test_a_refused_request_below_the_limit_is_said_to_have_asked_for_an_answer_too():
    built = chat(5_000, 9_000, model="unknown", source=Provenance.ASSUMED)
    by_kind, verdict = claimed(replace(built, refused=(4,), refusals=(Refusal(4, 9_500, 10_000),)))
    assert by_kind["refused"].sentence.endswith(
        "The provider stated 9,500 tokens, which with room for an answer exceed a limit of 10,000."
    )
    assert verdict.sentence.endswith("after step 2: 9,500 tokens plus an answer, the provider takes 10,000 (recorded).")


def test_a_limit_below_the_window_of_the_file_is_named():
    built = replace(
        chat(5_000, window=50_000, source=Provenance.RECORDER), refused=(2,), refusals=(Refusal(2, 0, 10_000),)
    )
    claim = claimed(built)[0]["refused"]
    assert claim.sentence.endswith("The provider stated a limit of 10,000 tokens, below the stated window of 50,000.")
    assert check(built, (replace(claim, numbers={**claim.numbers, "limit": 20_000}),), Facts.of(built).window)


@pytest.mark.parametrize(
    "refusals",
    [(Refusal(4, 0, 10_000), Refusal(4, 0, 20_000)), (Refusal(2, 0, 10_000),)],
    ids=["two limits", "beside a call of another model"],
)
def test_limits_that_may_be_those_of_another_model_are_no_window(refusals):
    built = chat(5_000, 9_000, 9_500, model="unknown", source=Provenance.ASSUMED)
    names = ("other", "unknown", "unknown")
    calls = tuple(replace(call, model=name) for call, name in zip(built.calls, names, strict=True))
    facts = Facts.of(replace(built, calls=calls, refused=tuple(item.at for item in refusals), refusals=refusals))
    assert facts.window.source == "assumed"


def test_a_refused_request_that_a_compaction_followed_is_a_warning():
    built = replace(chat(9_000, 3_000, compactions=(compaction(2),)), refused=(2,))
    by_kind, verdict = claimed(built)
    assert (verdict.kind, verdict.severity) == ("refused", "warning")
    assert by_kind["refused"].sentence == (
        "1 request failed as too long, after step 1, as the file says: an overflow (recorded). "
        "A compaction followed it before the next call."
    )


def test_no_compaction_is_called_needless_where_a_request_was_refused():
    grown = [*range(4_000, 4_400, 100), *range(1_000, 1_400, 100)]
    built = chat(*grown, compactions=(compaction(5, (0, 1)),))
    assert "needless" in claimed(built)[0]
    assert "needless" not in claimed(replace(built, refused=(5,)))[0]
    requested = replace(built, compactions=(compaction(5, (0, 1), trigger="requested"),))
    assert "needless" not in claimed(requested)[0]  # OpenHands: by a person, or after a refused request
    assert check(requested, [claimed(built)[0]["needless"]], Facts.of(requested).window)


def test_a_request_that_was_refused_before_the_first_answer_is_said_before_step_1():
    verdict = claimed(replace(chat(5_000), refused=(0,)))[1]
    assert verdict.sentence == "1 request failed as too long, before step 1: an overflow (recorded)."


def test_an_answered_request_that_is_refused_when_sent_again_says_no_size_that_the_provider_refuses():
    built = chat(5_000, 6_000)
    assert Facts.of(replace(built, refused=(3,))).refused_request is None
    more = replace(built, events=(*built.events, user("More")), refused=(4,))
    assert Facts.of(more).refused_request.tokens > 6_000


def test_the_checker_finds_a_verdict_that_is_silent_of_a_refused_request():
    built = chat(5_000)
    facts = Facts.of(built)
    verdict = recorded_verdict(facts, recorded_findings(facts))
    assert verdict.kind == "healthy"
    (wrong,) = check(replace(built, refused=(2,)), (), facts.window, verdict)
    assert "failed as too long" in wrong.reason


@pytest.mark.parametrize(("trigger", "is_doubted"), [("auto", True), ("overflow", True), ("cut_off", False)])
def test_a_compaction_that_came_at_any_size_does_not_doubt_the_window(trigger, is_doubted):
    """pi 1.6.0 compacts wherever an answer is cut off; Copilot CLI where memory is scarce."""
    window = {"window": 1_000_000, "source": Provenance.MODEL_TABLE, "format": "pi"}
    built = chat(90_000, 5_000, compactions=(compaction(2, trigger=trigger),), **window)
    assert ("window_doubted" in claimed(built)[0]) == is_doubted


@pytest.mark.parametrize(
    ("refused", "trigger", "end"),
    [
        ((), "auto", ": the window is smaller, or the threshold was set by hand."),
        ((2,), "auto", ", after a refused request: the window is smaller, or the request was larger than counted."),
        ((), "overflow", ", after a refused request: the window is smaller, or the request was larger than counted."),
    ],
)
def test_no_threshold_was_set_where_a_refused_request_forced_a_compaction_far_below_the_window(refused, trigger, end):
    """Claude Code 2.1.332 without a window compacts only so."""
    window = {"window": 200_000, "source": Provenance.MODEL_TABLE, "format": "claude-code"}
    cut = compaction(2, trigger=trigger, tokens_before=70_626)
    built = replace(chat(70_000, 5_000, compactions=(cut,), **window), refused=refused)
    facts = Facts.of(built)
    (doubted,) = (item for item in recorded_findings(facts) if item.kind == "window_doubted")
    assert doubted.sentence == (
        f"1 compaction took place at 70,626 tokens, below half of the model table's window of 200,000{end}"
    )
    assert ("threshold" in facts.window.note) == (end[0] == ":")
    assert check(built, [doubted], facts.window) == []
    other = doubted.sentence.replace("after a refused request", "as set by hand")
    assert end[0] == ":" or check(built, [replace(doubted, sentence=other)], facts.window)


def test_a_trigger_that_is_not_recorded_is_said_where_a_window_is_doubted():
    cuts = (compaction(2, (0, 1), trigger=""),)
    built = chat(90_000, 5_000, window=1_000_000, source=Provenance.MODEL_TABLE, format="pi", compactions=cuts)
    facts = Facts.of(built)
    claims = recorded_findings(facts)
    (doubted,) = (item for item in claims if item.kind == "window_doubted")
    assert doubted.assumptions == ("trigger_not_recorded",)
    assert doubted.sentence.endswith("The file does not say what triggered it; it is taken as automatic.")
    verdict = recorded_verdict(facts, claims)
    assert "1 compaction, if automatic, after a prompt of 90,000 tokens" in verdict.sentence
    assert check(built, claims, facts.window, verdict) == []
    silent = replace(doubted, sentence=doubted.sentence.split(" The file")[0], assumptions=())
    assert check(built, [silent], facts.window)


def test_of_how_many_compactions_a_trigger_is_not_recorded_is_said():
    cuts = (compaction(2, (0, 1)), compaction(3, (0, 1), trigger=""))
    built = chat(90_000, 90_000, 5_000, window=1_000_000, source=Provenance.MODEL_TABLE, format="pi", compactions=cuts)
    facts = Facts.of(built)
    (doubted,) = (item for item in recorded_findings(facts) if item.kind == "window_doubted")
    assert doubted.sentence.endswith("The file does not say what triggered 1 of them; it is taken as automatic.")
    assert doubted.numbers["unknown_trigger"] == 1
    assert check(built, [doubted], facts.window) == []
    of_all = replace(doubted, sentence=doubted.sentence.replace("1 of them", "them"))
    assert check(built, [of_all], facts.window)


def test_an_assumed_window_is_doubted_as_the_tables_is():
    cuts = (compaction(2, (0, 1)),)
    built = chat(50_000, 5_000, window=128_000, source=Provenance.ASSUMED, format="pi", compactions=cuts)
    facts = Facts.of(built)
    claims = recorded_findings(facts)
    assert "needless" not in {item.kind for item in claims}
    assert "below half of the assumed window of 128,000" in recorded_verdict(facts, claims).sentence


def test_a_compaction_before_the_last_call_is_not_said_never_to_have_paid():
    cuts = (compaction(2),)
    paid = [
        "never_paid" in findings(chat(20_000, *after, window=90_000, model="claude-sonnet-4-5", compactions=cuts))
        for after in ((19_000,), (19_000, 19_100))
    ]
    assert paid == [False, True]


# One window for each model.


def two_models(*calls: tuple[int | None, str], **fields: object) -> Session:
    """A chat whose calls name their models; most name the one with a million tokens."""
    built = chat(*(tokens for tokens, _ in calls), source=Provenance.ASSUMED, **fields)
    named = tuple(replace(call, model=name) for call, (_, name) in zip(built.calls, calls, strict=True))
    return replace(built, calls=named, window=None)


LARGE, SMALL = "claude-opus-4-6", "claude-haiku-4-5"  # 1,000,000 and 200,000 tokens in the model table


def confirmed(built: Session) -> tuple[Facts, dict[str, Finding], Verdict]:
    """Findings by kind and the verdict, each confirmed by the checker."""
    facts = Facts.of(built)
    claims = recorded_findings(facts)
    verdict = recorded_verdict(facts, claims)
    assert check(built, claims, facts.window, verdict) == []
    return facts, {item.kind: item for item in claims}, verdict


def test_a_call_of_another_model_is_held_against_that_models_window():
    facts, by_kind, verdict = confirmed(two_models((300_000, LARGE), (190_000, SMALL), (310_000, LARGE)))
    assert facts.window.value == 1_000_000
    assert (by_kind["near_miss"].step, by_kind["near_miss"].numbers["window"]) == (1, 200_000)
    assert "fills 95.0 % of its model's window: 190,000 of 200,000 tokens" in by_kind["near_miss"].sentence
    assert verdict.sentence == "Peak 95.0 % of its model's window at step 2: little room was left."


def test_the_answer_of_another_model_with_a_larger_window_contradicts_nothing():
    facts, by_kind, verdict = confirmed(two_models((90_000, SMALL), (500_000, LARGE), (100_000, SMALL)))
    assert (facts.window.value, facts.window.status) == (200_000, "table")
    assert by_kind == {}
    assert verdict.sentence == "Healthy: no compaction needed; peak 50.0 % of its model's window at step 2."


def test_the_peak_is_the_request_that_fills_most_of_its_own_models_window():
    facts, by_kind, verdict = confirmed(two_models((300_000, LARGE), (168_000, SMALL), (310_000, LARGE)))
    assert (facts.window.value, by_kind) == (1_000_000, {})
    assert verdict.sentence == "Healthy: no compaction needed; peak 84.0 % of its model's window at step 2."
    named_largest = replace(verdict, step=2, numbers={**verdict.numbers, "peak": 310_000, "peak_step": 2})
    assert check(facts.session, (), facts.window, named_largest) != []


def test_a_call_without_an_answer_is_none_that_lacks_a_count():
    built = chat(None, None, None)
    waiting = replace(built, calls=(*built.calls[:2], replace(built.calls[2], response=None)))
    by_kind = confirmed(waiting)[1]
    assert by_kind["no_usage"].sentence == (
        "None of the 2 answered calls has recorded token usage. Every figure is an estimate, without the system prompt "
        "and tools, which are not in the file."
    )
    assert findings(chat(None))["no_usage"].sentence.startswith("The only call has no recorded token usage.")
    assert findings(chat(4_000, None))["no_usage"].sentence == "1 of 2 calls has no recorded token usage: step 2."


def test_counts_of_the_file_that_no_call_has_are_not_denied():
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]
    counts = {"prompt": 5_200, "completion": 310}
    for meta in ({"token_counts": counts}, {"usage": {"prompt_tokens": 5_200}, "x": 1}):
        [session] = read(json.dumps({"meta": meta, "messages": messages}).encode()).sessions
        by_kind = confirmed(session)[1]
        assert by_kind["no_usage"].sentence.startswith(
            "The only call has no recorded token usage that can be read: what looks like counts has places or names "
            "that are not known here. Every figure is an estimate"
        )
        denying = replace(
            by_kind["no_usage"], sentence="The only call has no recorded token usage. Every figure is an estimate."
        )
        facts = confirmed(session)[0]
        assert check(facts.session, (denying,), facts.window, confirmed(session)[2]) != []
    [session] = read(json.dumps({"messages": messages}).encode()).sessions
    assert "that can be read" not in confirmed(session)[1]["no_usage"].sentence


def test_sizes_before_the_first_count_prove_nothing_of_a_compaction(tmp_path):
    """The first calls of this run were not counted: an estimate of one and a count of another cannot be compared."""
    run = run_of("mistral-vibe/default", tmp_path)
    assert {"grown", "summary_not_kept"} & set(findings(run.session)) == set()


def test_an_uncounted_call_of_a_smaller_model_overflows_its_own_window():
    built = two_models((300_000, LARGE), (None, SMALL), (310_000, LARGE))
    failed = tuple(
        replace(call, response=None if call.prompt_tokens is None else call.response) for call in built.calls
    )
    facts, by_kind, _ = confirmed(replace(built, calls=failed))
    assert facts.recording.over.tolist() == [1]
    assert "is over the window of its model, 200,000" in by_kind["overflow"].sentence


def test_a_claim_against_the_wrong_models_window_is_caught():
    built = two_models((300_000, LARGE), (190_000, SMALL), (310_000, LARGE))
    facts, by_kind, _ = confirmed(built)
    lie = by_kind["near_miss"]
    lie = replace(lie, numbers={**lie.numbers, "window": 1_000_000})
    assert check(built, [lie], facts.window)


def test_another_models_window_that_its_own_answers_contradict_is_not_known():
    """Nor is it the session's: nothing is held against either at these calls."""
    facts, by_kind, _ = confirmed(two_models((300_000, LARGE), (250_000, SMALL), (310_000, LARGE)))
    assert facts.recording.windows.tolist() == [1_000_000, 0, 1_000_000]
    assert facts.limits(1_000_000).over(np.array([999_999, 2_000_000, 1_000_001])).tolist() == [False, False, True]
    assert by_kind == {}


def test_an_answer_of_a_model_that_the_table_does_not_know_disproves_no_other_models_window():
    facts, by_kind, _ = confirmed(two_models((90_000, SMALL), (310_000, "my-own-model"), (190_000, SMALL)))
    assert facts.window.status is Status.TABLE
    assert facts.recording.windows.tolist() == [200_000, 0, 200_000]
    assert by_kind.keys() == {"near_miss"}


def test_the_window_that_a_file_states_holds_for_a_model_that_the_table_does_not_know():
    stated = Sourced(400_000, Provenance.RECORDER, "declared")
    built = replace(two_models((90_000, SMALL), (310_000, "my-own-model"), (190_000, SMALL)), window=stated)
    assert confirmed(built)[0].recording.windows.tolist() == [400_000] * 3


def test_a_replay_is_held_against_the_same_windows():
    facts = Facts.of(two_models((300_000, LARGE), (190_000, SMALL), (310_000, LARGE)))
    none = trace(facts, modelled_prompt_tokens=[300_000, 210_000, 310_000])
    assert facts.replay(none).over.tolist() == [1]


# Sizes.


def test_a_request_that_just_fits_is_not_rounded_up_to_the_whole_window():
    facts, by_kind, verdict = confirmed(replace(chat(4_000, 9_998), window=Sourced(10_000, Provenance.RECORDER)))
    assert "fills 99.9 % of the window: 9,998 of 10,000" in by_kind["near_miss"].sentence
    assert "99.9 %" in verdict.sentence
    assert facts.recording.over.tolist() == []


def test_a_tiny_request_is_not_rounded_down_to_nothing():
    _, _, verdict = confirmed(replace(chat(10, 20), window=Sourced(200_000, Provenance.RECORDER)))
    assert verdict.sentence == "Healthy: no compaction needed; peak under 0.1 % of the window at step 2."


def test_an_overflow_by_estimates_alone_says_so_and_is_a_warning():
    built = chat(*[None] * 9, window=400)
    calls = tuple(replace(call, response=None) for call in built.calls)
    _, by_kind, verdict = confirmed(replace(built, calls=calls))
    assert by_kind["overflow"].severity == "warning"
    assert "estimated from the text, no call is counted" in by_kind["overflow"].sentence
    assert "of it (estimated)" in verdict.sentence


def test_a_loop_of_encrypted_summaries_claims_no_sizes():
    cuts = tuple(compaction(at, kind="opaque", summary="") for at in (2, 3, 4))
    _, by_kind, verdict = confirmed(chat(4_000, None, None, None, window=100_000, compactions=cuts))
    assert "this file does not say how much the first one removed" in by_kind["loop"].sentence
    assert verdict.sentence == "A loop: 3 compactions at consecutive steps 2 to 4: every call compacts again."


def test_compactions_that_a_person_asked_for_are_no_loop():
    cuts = tuple(replace(compaction(at, kind="opaque", summary=""), trigger="manual") for at in (2, 3, 4))
    _, by_kind, verdict = confirmed(chat(4_000, None, None, None, window=100_000, compactions=cuts))
    assert not {"loop", "thrash"} & set(by_kind)
    assert "loop" not in verdict.sentence


def test_an_overflow_names_its_share_and_its_neighbours():
    facts = Facts.of(chat(None, None))
    finding = of_replay(facts, trace(facts, modelled_prompt_tokens=[10_310, 10_200]))["overflow"]
    assert (finding.step, finding.count, finding.severity) == (0, 2, "error")
    assert "3.1 % too many" in finding.sentence
    assert (finding.numbers["first"], finding.numbers["last"]) == (0, 1)


def test_a_single_overflow_names_its_step_once():
    facts = Facts.of(chat(None, None))
    sentence = of_replay(facts, trace(facts, modelled_prompt_tokens=[9_000, 10_310]))["overflow"].sentence
    assert sentence.startswith("The request of step 2 is over the window of 10,000: 10,310 tokens, 3.1 % too many")


def test_a_recorded_overflow_is_a_call_that_was_not_counted():
    finding = findings(bundled("small-window"))["overflow"]
    assert (finding.numbers["window"], finding.numbers["calls"], finding.step) == (8_000, 1, 5)
    assert "modelled_tokens" in finding.assumptions


def test_an_overflow_that_was_answered_is_only_a_warning_about_the_estimate():
    built = session(user("x" * 60_000), model("yes"), window=10_000, reported=False)
    finding = findings(built)["overflow"]
    assert finding.severity == "warning"
    assert finding.sentence.endswith(
        "Yet it was answered: the window is larger, or the request was smaller, because the estimate is too high or "
        "messages were left out."
    )


def test_a_near_miss_is_nine_tenths_of_the_window():
    finding = findings(chat(8_999, 9_001, 500, 9_100))["near_miss"]
    assert (finding.step, finding.count, finding.steps) == (3, 2, (1, 3))
    assert finding.numbers["share"] == 0.91
    assert "near_miss" not in findings(chat(8_999, 500))


def test_a_compaction_after_an_overflow_came_too_late():
    finding = findings(bundled("small-window"))["late"]
    assert (finding.numbers["step_over"], finding.numbers["compaction"]) == (5, 0)
    assert "Compaction 1 came too late, at step 7: the request of step 6" in finding.sentence


# Repetition.


def test_the_loop_is_a_loop_whose_summary_is_not_kept():
    by_kind = findings(bundled("unpersisted-loop"))
    assert (by_kind["loop"].numbers["length"], by_kind["summary_not_kept"].count) == (15, 14)
    assert "228,967 → 8,756" in by_kind["summary_not_kept"].sentence
    assert by_kind["summary_not_kept"].numbers["again"] == 231_400


def test_a_replay_with_a_kept_summary_has_no_loop():
    assert not {"loop", "summary_not_kept"} & set(of_replay(*replayed(bundled("unpersisted-loop"))))


def test_an_empty_summary_brings_the_whole_history_back():
    facts = Facts.of(session(*[model("answer " * 900) for _ in range(12)], window=8_000))
    policy, empty = get_policy("contextguard"), FixedSummaries(0)
    replayed_trace = replay(facts.ledger, policy, window=8_000, usage=facts.usage, summarizer=empty)
    by_kind = of_replay(facts, replayed_trace)
    assert {"empty_summary", "summary_not_kept", "loop"} <= set(by_kind) or "fallback_summary" in by_kind


def test_compactions_at_every_step_are_a_loop_and_a_few_apart_thrash():
    facts = Facts.of(chat(*[5_000] * 20))
    at_every = of_replay(facts, trace(facts, *(record(step) for step in (3, 4, 5))))
    apart = of_replay(facts, trace(facts, *(record(step) for step in (3, 6, 9))))
    assert at_every["loop"].numbers.items() >= {"length": 3, "first": 3, "last": 5}.items()
    assert "thrash" not in at_every
    assert apart["thrash"].numbers == {"length": 3, "first": 3, "last": 9, "all": 3, "mean_gap": 3.0}


def compacting_at(*steps):
    """Findings by kind of a replay with compactions before these calls, and its verdict."""
    facts = Facts.of(chat(*[5_000] * 20))
    replayed_trace = trace(facts, *(record(step) for step in steps))
    claims = replayed_findings(facts, replayed_trace)
    return {item.kind: item for item in claims}, replayed_verdict(facts, replayed_trace, claims).sentence


def test_several_compactions_before_one_call_are_no_loop():
    by_kind, verdict = compacting_at(4, 4, 4)
    assert not {"loop", "thrash"} & set(by_kind)
    assert "loop" not in verdict


def test_nor_are_they_calls_of_their_own_in_one():
    by_kind, verdict = compacting_at(3, 4, 4, 4, 5)
    assert by_kind["loop"].sentence.startswith("A loop: 5 compactions at 3 consecutive steps, steps 4 to 6; the first ")
    assert verdict == "A loop: 5 compactions at 3 consecutive steps, steps 4 to 6: every call compacts again."
    assert (by_kind["loop"].numbers["length"], by_kind["loop"].count, by_kind["loop"].steps) == (3, 3, (3, 4, 5))


def test_nor_do_they_thrash_alone():
    assert "thrash" not in compacting_at(2, 4, 4, 4)[0]
    by_kind, verdict = compacting_at(2, 4, 4, 7)
    assert by_kind["thrash"].sentence == (
        "Thrashing: 4 compactions at 3 of the steps 3 to 8, on average every 2.5 steps."
    )
    assert verdict == by_kind["thrash"].sentence


def reading(turns, calls):
    """Requests of the user, each with so many calls that read a file of 2,000 characters."""
    events, asked = [], []
    for turn in range(turns):
        events.append(user(f"please do number {turn} of the things on the list"))
        for _ in range(calls):
            asked.append(ModelCall(len(events), len(events), 1_000 + 200 * len(asked)))
            name = str(len(events))
            events += [tool_call("read", name, path=f"{name}.py"), tool_result("word " * 400, id=name)]
    return session(*events, calls=tuple(asked))


@pytest.mark.parametrize("policy", ["crush", "goose", "hermes", "cline"])
def test_a_request_that_is_still_over_a_threshold_is_so_by_the_tokens_that_are_named(policy):
    built = reading(2, 9)
    facts = Facts.of(built)
    replayed_trace = replay(facts.ledger, get_policy(policy), window=2_000, usage=facts.usage, session=built)
    claims = of_replay(facts, replayed_trace)
    assert check(built, claims.values(), facts.window, trace=replayed_trace) == []
    claim = claims["still_over"]
    tokens = int(replayed_trace.columns["modelled_prompt_tokens"][claim.step])
    assert f" the request still had {tokens:,} tokens (modelled), not below the threshold of " in claim.sentence
    lie = replace(claim, numbers={**claim.numbers, "tokens": tokens - 1})
    assert check(built, [lie], facts.window, trace=replayed_trace)


def test_an_estimate_below_a_threshold_is_still_over_it_with_its_correction():
    built = reading(2, 3)
    calls = tuple(replace(call, prompt_tokens=call.prompt_tokens + 500) for call in built.calls)
    built = replace(built, calls=calls)
    facts = Facts.of(built)
    policy, summaries = get_policy("contextguard", profile="fixed"), FixedSummaries(3_000)
    replayed_trace = replay(facts.ledger, policy, window=2_000, usage=facts.usage, session=built, summarizer=summaries)
    claim = of_replay(facts, replayed_trace)["still_over"]
    assert claim.numbers["heuristic"] < claim.numbers["threshold"]
    assert check(built, [claim], facts.window, trace=replayed_trace) == []


@pytest.mark.parametrize("policy", ["claude-code", "strands-summarizing", "kimi-code", "openhands"])
def test_policies_that_compact_several_times_before_a_call_are_claimed_what_they_do(policy):
    built = reading(2, 9)
    facts = Facts.of(built)
    replayed_trace = replay(facts.ledger, get_policy(policy), window=2_000, usage=facts.usage, session=built)
    claims = [item for item in replayed_findings(facts, replayed_trace) if item.kind in ("loop", "thrash")]
    assert len(replayed_trace.compactions) > len({item.step for item in replayed_trace.compactions})
    assert check(built, claims, facts.window, trace=replayed_trace) == []


def test_messages_dropped_at_every_call_are_a_sliding_window_and_no_loop():
    finding = findings(exchange(12, tokens=lambda turn: 9_000, compactions=sliding()))
    assert not {"loop", "thrash", "summary_not_kept"} & set(finding)
    window = finding["sliding_window"]
    assert window.severity == "info"
    assert window.numbers == {"changed": 4, "calls": 4, "first": 4, "last": 7}


def moving(every: int, note: str = "", kind: str = "trim") -> Session:
    """A window of the newest 8 of 48 messages that moves every few calls, with a note (its number: what is dropped)."""
    cuts = []
    for turn in range(10, 46, every):
        noted = ((Inserted(0),), (user(note.format(turn)),)) if note else ((), ())
        base = (*noted[0], Span(turn - 7, turn + 1))
        cuts.append(RecordedCompaction(turn + 1, Evidence.INFERRED, kind, base, noted[1]))
    return priced(exchange(48, tokens=lambda turn: 9_000 + turn % every, compactions=tuple(cuts)))


@pytest.mark.parametrize(
    "built",
    [moving(4), moving(7), moving(4, "Skipped {} messages."), moving(1, "[{} older messages dropped]", "summary+tail")],
)
def test_a_window_that_moves_every_few_calls_is_not_judged_as_a_compaction(built):
    _, kinds, _ = confirmed(built)
    assert not {"loop", "thrash", "summary_not_kept", "needless", "never_paid"} & set(kinds)
    assert ("leaving a note" in kinds["sliding_window"].sentence) == bool(built.compactions[0].messages)


@pytest.mark.parametrize(("left", "slides"), [(12, True), (3, False)])
def test_what_is_written_in_place_of_most_messages_is_a_summary_however_short(left, slides):
    """And though it is always the same but for its numbers: here after every 8 messages, of which `left` stay."""
    cuts = []
    for number, turn in enumerate(range(20, 46, 8)):
        words = user(f"Summary {number}: {number + 20} files were read, the parser was mended. Never push to main.")
        base = (Inserted(0), Span(turn + 1 - left, turn + 1))
        cuts.append(RecordedCompaction(turn + 1, Evidence.INFERRED, "summary+tail", base, (words,)))
    _, kinds, _ = confirmed(priced(exchange(48, tokens=lambda turn: 9_000 + turn % 8, compactions=tuple(cuts))))
    assert ("sliding_window" in kinds) == slides


def test_summaries_every_few_calls_are_no_sliding_window():
    built = moving(4, "So far step {} was done.", "summary+tail")
    own = [user(f"Summary: {words}") for words in ("it began", "the parser was read", "the bug was found")]
    cuts = [msgspec.structs.replace(item, messages=(own[number % 3],)) for number, item in enumerate(built.compactions)]
    _, kinds, _ = confirmed(msgspec.structs.replace(built, compactions=tuple(cuts)))
    assert "thrash" in kinds
    assert "sliding_window" not in kinds


@pytest.mark.parametrize(
    "changes", [{"kind": "summary"}, {"trigger": "overflow"}, {"base": (Inserted(0),), "messages": (model("notes"),)}]
)
def test_a_summary_or_a_refused_request_at_every_call_is_a_loop(changes):
    cuts = tuple(msgspec.structs.replace(item, **changes) for item in sliding())
    kinds = findings(exchange(12, tokens=lambda turn: 9_000, compactions=cuts))
    assert "loop" in kinds
    assert "sliding_window" not in kinds


def test_cuts_that_empty_the_request_call_after_call_are_a_loop():
    cuts = sliding(kept=lambda turn: 4 if turn == 4 else 1)
    kinds = findings(exchange(12, tokens=lambda turn: 9_000, compactions=cuts))
    assert "loop" in kinds
    assert "sliding_window" not in kinds


@pytest.mark.parametrize("policy", ["autogen-buffered", "autogen-head-and-tail", "semantic-kernel-truncation"])
def test_a_policy_that_sends_the_last_messages_slides_and_makes_no_empty_summary(policy):
    kinds = of_replay(*replayed(session(*[model("answer " * 900) for _ in range(40)], window=100_000), policy))
    assert not {"loop", "thrash", "summary_not_kept", "empty_summary"} & set(kinds)
    assert kinds["sliding_window"].numbers["last"] == 39


def test_a_replay_without_summaries_says_that_none_can_hold_the_request():
    built = session(user("Please rename the parser"), *[model("answer " * 900) for _ in range(40)], window=100_000)
    kinds = of_replay(*replayed(built, "autogen-buffered"))
    assert "the policy makes no summary that could hold it" in kinds["request_lost"].sentence


def test_a_request_that_the_policy_sends_again_is_not_lost():
    built = session(user("Please rename the parser"), *[model("answer " * 900) for _ in range(40)], window=40_000)
    facts, played = replayed(built, "crush")
    assert played.compactions
    assert "request_lost" not in of_replay(facts, played)


def test_cuts_that_never_get_below_the_threshold_are_a_loop():
    built = session(*[model("answer " * 900) for _ in range(40)], window=100_000)
    kinds = of_replay(*replayed(built, "pydantic-ai-sliding-window", max_tokens=1_000, keep_messages=4))
    assert "loop" in kinds
    assert "sliding_window" not in kinds


def test_two_compactions_are_neither():
    facts = Facts.of(chat(*[5_000] * 20))
    assert not {"loop", "thrash"} & set(of_replay(facts, trace(facts, record(3), record(4))))


def test_counts_that_grow_without_text_prove_no_return():
    prompts = [1_000, 4_000, 7_000, 1_000, 6_000, 6_500]
    assert "summary_not_kept" not in findings(chat(*prompts, compactions=(compaction(4, tokens_before=7_500),)))


def test_a_history_that_a_resume_brings_back_is_no_finding():
    built = bundled("unpersisted-loop")
    assert "summary_not_kept" in findings(built)
    first = built.compactions[0]
    resume = compaction(first.at + 1, (0, first.at + 1), kind="edit", trigger="resume", tokens_before=None)
    fields = {name: getattr(built, name) for name in built.__struct_fields__}
    fields["compactions"] = (first, resume)
    assert "summary_not_kept" not in findings(type(built)(**fields))


def test_a_request_that_a_compaction_made_larger_is_said():
    by_kind = findings(chat(5_000, 5_050, 5_200, 5_300, compactions=(compaction(3, (1, 3), tokens_before=5_100),)))
    assert by_kind["grown"].numbers == {"compaction": 0, "before": 5_100, "after": 5_200}
    assert by_kind["grown"].severity == "warning"


def test_after_a_refused_request_nothing_is_said_of_growth():
    """Of that request all that is known is that it was too large: the agent's own count is of less."""
    built = chat(
        5_000, 5_050, 5_200, 5_300, compactions=(compaction(3, (1, 3), tokens_before=5_100, trigger="overflow"),)
    )
    assert "grown" not in findings(built)


def test_a_long_message_after_a_compaction_is_no_growth_by_it():
    events = [user("Please begin with the report of the week"), *(model("word " * 800) for _ in range(4))]
    events += [user("Here is the whole report: " + "word " * 4_000), model("word " * 800), model("word " * 800)]
    at = compaction(5, (4, 5), tokens_before=5_000)
    calls = tuple(ModelCall(*call) for call in ((1, 1, 1_000), (2, 2, 2_000), (3, 3, 3_000), (4, 4, 4_000)))
    for after, is_grown in ((6_000, False), (13_000, True)):
        built = session(
            *events, calls=(*calls, ModelCall(6, 6, after), ModelCall(7, 7, after + 1_000)), compactions=(at,)
        )
        by_kind = findings(built)
        assert ("grown" in by_kind) == is_grown
    before = by_kind["grown"].numbers["before"]
    assert 8_000 < before < 13_000
    assert f"was followed by a larger request: {before:,} (modelled) → 13,000 tokens." in by_kind["grown"].sentence


def test_growth_within_the_error_of_the_model_is_not_claimed():
    """What the request before would have had is modelled from its last count on: 16,000 and about 4,000 more."""
    events = (user("Please begin with the report of the week"), *(model("word " * 4_000) for _ in range(4)))
    counted = tuple(ModelCall(at, at, 4_000 + 4_000 * at) for at in (1, 2, 3))
    for after, is_grown in ((21_500, False), (22_500, True)):
        built = session(*events, calls=(*counted, ModelCall(4, 4, after)), compactions=(compaction(4, (3, 4)),))
        facts, by_kind, _ = confirmed(built)
        (fired,) = facts.recording.fired
        assert 19_500 < fired.before < 20_500
        assert ("grown" in by_kind) == is_grown
        numbers = {"compaction": 0, "before": fired.before, "after": after}
        claim = Finding("grown", "warning", 3, "was followed by a larger request", numbers)
        objections = check(built, [claim], facts.window)
        assert bool(objections) != is_grown


def test_an_agents_own_count_below_that_of_its_provider_is_no_proof_of_growth():
    for after, is_grown in ((5_040, False), (5_060, True)):
        built = chat(5_000, 5_050, after, compactions=(compaction(3, (1, 3), tokens_before=4_500),))
        assert ("grown" in confirmed(built)[1]) == is_grown


def test_a_modelled_request_after_a_compaction_is_no_proof_of_growth():
    assert "grown" in findings(chat(5_000, 5_050, 5_200, compactions=(compaction(3, (1, 3), tokens_before=100),)))
    assert "grown" not in findings(chat(5_000, 5_050, None, compactions=(compaction(3, (1, 3), tokens_before=100),)))


def test_growth_where_the_file_lacks_what_was_removed_is_only_noted():
    by_kind = findings(chat(5_000, 5_050, 5_200, 5_300, compactions=(compaction(3, (0, 3), tokens_before=5_100),)))
    assert by_kind["grown"].severity == "info"
    assert "not in the file" in by_kind["grown"].sentence


# Summaries.


def test_mechanical_empty_and_sealed_summaries_are_told_apart():
    facts = Facts.of(chat(*[5_000] * 6))
    failed, empty = Pass(9, 9, 9, 9, 50, 2, 9, fallback=True), Pass(9, 9, 9, 9, 0, 2, 9)
    by_kind = of_replay(facts, trace(facts, record(2, passes=(failed,)), record(4, passes=(empty,))))
    assert by_kind["fallback_summary"].numbers == {"compactions": [0]}
    assert by_kind["empty_summary"].numbers == {"compactions": [1]}
    sealed = findings(chat(*[5_000] * 6, compactions=(compaction(3, kind="opaque", summary=""),)))
    assert sealed["sealed_summary"].numbers == {"compactions": [0]}
    assert "empty_summary" not in sealed
    assert "empty_summary" in findings(chat(*[5_000] * 6, compactions=(compaction(3, summary=""),)))


# What the file lacks.


def test_calls_without_usage_are_counted(no_usage_reported):
    finding = findings(no_usage_reported)["no_usage"]
    assert (finding.numbers, finding.severity) == ({"missing": 10, "calls": 10}, "warning")
    assert finding.sentence.endswith(
        "Every figure is an estimate, without the system prompt and tools, which are not in the file."
    )


def test_what_is_in_the_file_is_not_called_missing(no_usage_reported):
    fixed = msgspec.structs.replace(no_usage_reported, system=(TextPart("Be brief."),), tools=())
    assert findings(fixed)["no_usage"].sentence.endswith("Every figure is an estimate.")
    fixed = msgspec.structs.replace(no_usage_reported, tools=())
    assert findings(fixed)["no_usage"].sentence.endswith(
        "Every figure is an estimate, without the system prompt, which is not in the file."
    )


def test_counts_that_repeat_the_one_before_are_named_and_nothing_is_concluded_from_them():
    """A recorder wrote each count twice: the one before the compaction is that of the call after it, too."""
    counts = [5_000 + 1_000 * (call - call % 2) for call in range(9)] + [6_000 + 1_000 * (k - k % 2) for k in range(9)]
    counts[9] = counts[8]
    by_kind = confirmed(chat(*counts, window=100_000, compactions=(compaction(10),)))[1]
    assert set(by_kind) == {"usage_repeated", "request_lost"}
    assert by_kind["usage_repeated"].sentence == (
        "8 of 18 recorded counts repeat the one before them, although messages were added: what those calls sent "
        "is not known. The first is step 2."
    )


def test_equal_counts_of_requests_that_a_compaction_left_equally_large_repeat_nothing():
    """A window that slides: each request drops as much as was added."""
    slides = tuple(
        replace(compaction(place, kind="trim", trigger=""), base=(Span(place - 3, place),), messages=())
        for place in range(4, 9)
    )
    built = chat(*(None for _ in range(3)), *(1_000 for _ in range(5)), window=100_000, compactions=slides)
    claims = findings(built)
    assert "usage_repeated" not in claims
    assert check(built, list(claims.values()), judge_session(built)) == []


def test_of_counts_of_characters_it_is_said_how_many_could_be_compared():
    """Six counts, of which the first and the one after a short message cannot."""
    texts = ["word " * 100 if number != 3 else "yes" for number in range(6)]
    events = (user("x" * 500), *map(model, texts))
    sizes = [500 + sum(map(len, texts[:number])) for number in range(6)]
    calls = tuple(ModelCall(step + 1, step + 1, size) for step, size in enumerate(sizes))
    built = session(*events, calls=calls)
    finding = findings(built)["usage_in_characters"]
    assert finding.sentence == (
        "Of 4 recorded counts after 400 bytes of new text or more, 4 grew by one token per byte: they seem to count "
        "characters, so nothing is concluded from them. The first is step 2."
    )
    assert check(built, [finding], judge_session(built)) == []


def test_counts_with_more_cached_than_prompt_tokens_are_said_to_be_wrong():
    session = chat(*range(1_000, 9_000, 1_000), window=100_000)
    calls = tuple(msgspec.structs.replace(call, cached_tokens=20_000) for call in session.calls)
    _, by_kind, verdict = confirmed(msgspec.structs.replace(session, calls=calls))
    assert by_kind["cached_above"].sentence.startswith(
        "8 of 8 recorded counts have more cached tokens than prompt tokens, the first at step 1: 20,000 of 1,000. "
    )
    assert verdict.sentence.startswith("8 of 8 recorded counts have more cached than prompt tokens: ")


def test_few_repeated_counts_are_no_finding_but_no_fall_begins_at_one():
    counts = [*range(20_000, 30_000, 1_000), 29_000, 9_000, *range(10_000, 70_000, 1_000)]
    assert set(findings(chat(*counts, window=100_000))) == set()
    assert "silent_truncation" in findings(chat(*counts[:10], *counts[11:], window=100_000))


def test_falls_that_are_too_many_may_be_counts_without_what_the_cache_held():
    counts = [call * 1_000 + 10_000 if call % 4 else 1_000 for call in range(1, 40)]
    finding = findings(chat(*counts, window=100_000))["silent_truncation"]
    assert finding.sentence.endswith(
        "8 more falls like it. Perhaps the counts leave out what the provider's cache held."
    )


def test_totals_are_named_where_no_call_has_a_count(no_usage_reported):
    counted = msgspec.structs.replace(no_usage_reported, prompt_tokens_total=10_816_853, total_calls=82)
    finding = findings(counted)["no_usage"]
    assert "Only totals are recorded: 10,816,853 prompt tokens over 82 calls, 131,913 on average." in finding.sentence
    assert (finding.numbers["total"], finding.numbers["total_calls"], finding.numbers["average"]) == (
        10_816_853,
        82,
        131_913,
    )


def test_a_window_below_the_average_of_all_calls_is_contradicted_on_average():
    totals = {"prompt_tokens_total": 10_816_853, "total_calls": 82}
    built = chat(None, None, source=Provenance.ASSUMED, **totals)
    finding = findings(built)["window_contradicted"]
    assert finding.numbers == {"window": 128_000, "tokens": 131_913, "calls": 82}
    assert finding.sentence == (
        "Prompts of 131,913 tokens on average over 82 calls were answered, above the assumed window of 128,000. "
        "Set the real window."
    )


def test_a_prompt_that_falls_while_the_log_grows_is_a_silent_truncation():
    prompts = [20_000, 20_100, 9_000, 9_100]
    finding = findings(chat(*prompts, window=100_000))["silent_truncation"]
    assert (finding.numbers["step"], finding.numbers["before"], finding.numbers["after"]) == (2, 20_100, 9_000)


def test_a_count_that_returns_by_itself_after_a_fall_was_not_of_the_whole_history():
    facts, by_kind, said = confirmed(chat(20_000, 20_100, 9_000, 9_100, 21_000, window=100_000))
    finding = by_kind["silent_truncation"]
    assert (finding.numbers["back"], finding.numbers["back_step"]) == (21_000, 4)
    assert finding.sentence.endswith(
        "no compaction is recorded. It returned to 21,000 at step 5, by far more than was added there: the counts "
        "between are not of the whole history."
    )
    assert said.sentence == (
        "The recorded prompt fell from 20,100 to 9,000 tokens at step 3, but returned to 21,000 at step 5: "
        "no lasting cut."
    )
    assert facts.lasting_falls == ()


@pytest.mark.parametrize("later", [(9_100, 9_200), (12_000, 15_000, 18_000, 21_000)])
def test_a_count_that_stays_low_or_grows_step_by_step_after_a_fall_has_not_returned(later):
    facts, by_kind, said = confirmed(chat(20_000, 20_100, 9_000, *later, window=100_000))
    assert "back" not in by_kind["silent_truncation"].numbers
    assert said.sentence.endswith("at step 3, and no compaction is recorded there.")
    assert [fall.step for fall in facts.lasting_falls] == [2]


def claude_code(prompts: tuple[int, ...], damaged: int = -1) -> bytes:
    """A transcript with one call of so many prompt tokens behind each line of the user, of which one is cut off."""
    lines = []
    for at, count in enumerate(prompts):
        around = {
            "sessionId": "s",
            "version": "2.1.5",
            "isSidechain": False,
            "cwd": "/w",
            "timestamp": f"{2026 + at}-01-01T00:00:00Z",
        }
        asked = {"role": "user", "content": f"Look at the file number {at}, please"}
        lines.append(
            {**around, "type": "user", "uuid": f"u{at}", "parentUuid": f"a{at - 1}" if at else None, "message": asked}
        )
        usage = {"input_tokens": count, "output_tokens": 5}
        said = {
            "id": f"m{at}",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": f"Seen {at}"}],
            "usage": usage,
        }
        lines.append({**around, "type": "assistant", "uuid": f"a{at}", "parentUuid": f"u{at}", "message": said})
    texts = [json.dumps(line) for line in lines]
    return "\n".join(text[: len(text) // 2] if at == damaged else text for at, text in enumerate(texts)).encode()


@pytest.mark.parametrize("damaged", [-1, 4])
def test_lines_that_could_not_be_read_are_said_where_a_prompt_fell(damaged):
    (built,) = read(claude_code((20_000, 20_100, 9_000, 9_100), damaged)).sessions
    facts = Facts.of(built)
    claims = recorded_findings(facts)
    (fall,) = (item for item in claims if item.kind == "silent_truncation")
    assert ("Damaged parts of the file were left out: they may hold the reason." in fall.sentence) == (damaged >= 0)
    assert check(built, claims, facts.window, recorded_verdict(facts, claims)) == []
    other = replace(
        fall, sentence=fall.sentence.replace(" Damaged parts", "") if damaged >= 0 else f"{fall.sentence} Damaged parts"
    )
    assert check(built, [other], facts.window)


def test_what_could_not_be_read_of_one_json_object_is_not_called_lines():
    messages = [{"role": "user", "content": "Look at the first file, please " * 40}, "damaged"]
    messages += [{"role": "assistant", "content": "Seen", "usage": {"prompt_tokens": 900, "completion_tokens": 5}}]
    (built,) = read(json.dumps({"model": "gpt-4o", "messages": messages}).encode()).sessions
    assert DAMAGED in built.notes
    fallen = chat(20_000, 20_100, 9_000, 9_100, window=100_000)
    finding = findings(replace(fallen, notes=built.notes))["silent_truncation"]
    assert "Damaged parts of the file were left out" in finding.sentence
    assert "line" not in finding.sentence


@pytest.mark.parametrize(
    ("damaged", "words"), [(-1, "Healthy"), (2, "No compaction in what could be read of the file")]
)
def test_a_file_with_lines_that_could_not_be_read_is_not_called_healthy(damaged, words):
    (built,) = read(claude_code((9_000, 9_100, 9_200), damaged)).sessions
    facts = Facts.of(built)
    claims = recorded_findings(facts)
    verdict = recorded_verdict(facts, claims)
    assert verdict.sentence.startswith(words)
    assert check(built, claims, facts.window, verdict) == []
    healthy = replace(verdict, sentence=verdict.sentence.replace(words, "Healthy"))
    assert bool(check(built, claims, facts.window, healthy)) == (damaged >= 0)


def test_a_last_line_that_is_still_being_written_is_no_damage():
    text = claude_code((9_000, 9_100, 9_200))
    (built,) = read(text[:-40]).sessions
    assert DAMAGED not in built.notes


def test_a_fall_in_a_file_without_messages_says_nothing_of_what_was_added():
    calls = tuple(
        ModelCall(at=at, response=at, prompt_tokens=count) for at, count in enumerate((20_000, 20_100, 9_000))
    )
    built = chat(20_000, 20_100, 9_000, window=100_000)
    blank = tuple(Event(Role.MODEL, ()) for _ in calls)
    finding = findings(msgspec.structs.replace(built, events=blank, calls=calls, notes=(NO_CONTENT,)))[
        "silent_truncation"
    ]
    assert finding.sentence == (
        "The recorded prompt fell from 20,100 to 9,000 tokens at step 3, and no compaction is recorded. What left the "
        "request is not known: the file has no messages."
    )


def test_a_gap_of_the_file_is_no_finding_about_the_correction():
    """A large system prompt that the file does not hold makes any raw factor large."""
    built = session(*[model("answer " * 30) for _ in range(30)], window=200_000, overhead=30_000)
    assert "correction_limited" not in findings(built)
    assert "correction_limited" not in of_replay(*replayed(built))


@pytest.mark.skipif(not FILES.exists(), reason="../shared/samples is absent")
@pytest.mark.parametrize("name", ["claude-code/long-2-compactions.jsonl", "openai-responses/raw-responses.json"])
def test_prompts_that_are_mostly_not_in_the_file_say_nothing_about_the_correction(name):
    """The first begins in the middle of a conversation, the second holds no inputs at all."""
    assert "correction_limited" not in of_replay(*replayed(read(FILES / name).sessions[0]))


# A policy's own arithmetic.


def test_the_timing_gap_is_said_with_both_counts():
    finding = of_replay(*replayed(bundled("timing-gap")))["timing_gap"]
    numbers = {"seen": 140_000, "now": 180_018, "threshold": 180_000, "window": 200_000, "compactions": [0]}
    assert finding.numbers == numbers


def test_a_recording_that_holds_contextguards_state_is_judged_by_its_arithmetic():
    built = bundled("timing-gap")
    assert findings(built)["timing_gap"].sentence == (
        "Compaction 1 (step 49) was caught only by the estimate: last count 140,000, estimate 180,018, threshold "
        "180,000."
    )
    assert "timing_gap" not in findings(msgspec.structs.replace(built, guard_states=()))


def test_a_recording_of_another_agent_is_not_judged_by_contextguards_arithmetic():
    assert "timing_gap" not in findings(chat(7_000, 7_100, 1_000, compactions=(compaction(3),)))


def test_the_sliding_window_loses_its_recent_messages():
    facts, replayed_trace = replayed(bundled("long-coding"), "contextguard-sliding")
    finding = of_replay(facts, replayed_trace)["tail_lost"]
    assert (finding.severity, finding.count) == ("error", len(replayed_trace.compactions))


def test_a_window_that_the_system_prompt_fills_cannot_be_fitted():
    facts, replayed_trace = replayed(session(*[model("answer " * 30) for _ in range(10)], window=8_000, overhead=6_900))
    finding = of_replay(facts, replayed_trace)["no_fit"]
    assert finding.numbers["floor"] == facts.attribution.overhead
    assert "over the threshold of 6,400" in finding.sentence
    assert "no_fit" not in {item.kind for item in recorded_findings(facts)}


def test_held_compactions_are_said():
    facts = Facts.of(chat(*[5_000] * 3))
    replayed_trace = trace(facts, held=[0, STILL_OVER, FLOOR_OVER_THRESHOLD], heuristic_sent=[0, 8_400, 0])
    assert {"still_over", "no_fit"} <= set(of_replay(facts, replayed_trace))


def test_a_clamped_factor_is_said_with_both_values():
    facts = Facts.of(chat(*[100] * 3, overhead=0))
    replayed_trace = trace(
        facts,
        correction_raw=[np.nan, 4.5, 0.8],
        correction=[2.5, 3.0, 1.0],
        correction_source=[2, 1, 1],
        real_loaded=[0, 45_000, 800],
        last_heuristic_loaded=[0, 10_000, 1_000],
    )
    limited = [item for item in replayed_findings(facts, replayed_trace) if item.kind == "correction_limited"]
    assert [(item.numbers["limit"], item.numbers["raw"], item.step) for item in limited] == [
        ("cap", 4.5, 1),
        ("floor", 0.8, 2),
    ]


def test_stacked_continuations_are_counted():
    facts = Facts.of(chat(*[5_000] * 4))
    after = (Synthetic("summary", 90), *[Synthetic("continuation", 187)] * 3)
    finding = of_replay(facts, trace(facts, record(2, after=after)))["stacked_continuations"]
    assert finding.numbers == {"continuations": 3, "compactions": [0]}


def test_a_tail_is_lost_only_where_later_requests_lack_it():
    facts = Facts.of(chat(*[5_000] * 6))
    after = (Synthetic("summary", 90), Span(2, 5))
    lost = trace(facts, record(4, after=after, carried=(Synthetic("summary", 90), Span(3, 4)), kept_from=5))
    with_tail = trace(facts, record(4, after=after, carried=(Synthetic("summary", 90), Span(2, 5)), kept_from=5))
    assert of_replay(facts, lost)["tail_lost"].numbers == {"messages": 2, "first": 2, "last": 4, "compactions": [0]}
    assert "tail_lost" not in of_replay(facts, with_tail)


SPAN = st.builds(lambda start, size: Span(start, start + size), st.integers(0, 11), st.integers(1, 4))
SPANS = st.lists(SPAN, max_size=5)


@given(after=SPANS, carried=SPANS)
def test_the_messages_of_a_lost_tail_are_those_that_no_span_carries_on(after, carried):
    facts = Facts.of(chat(*[5_000] * 10))
    lost_trace = trace(facts, record(4, after=tuple(after), carried=tuple(carried), kept_from=14))
    held = {event for span in carried for event in range(span.start, span.stop)}
    lost = [event for span in after for event in range(span.start, min(span.stop, 14)) if event not in held]
    finding = of_replay(facts, lost_trace).get("tail_lost")
    assert (finding.numbers["messages"] if finding else 0) == len(lost)


def test_a_picture_that_fires_contextguard_at_a_small_real_fill_is_named():
    pictures = [part for _ in range(3) for part in (image(150_000), model("I see a chart"))]
    calls = tuple(ModelCall(index, index, 1_500 + 1_000 * index) for index in (1, 3, 5))
    finding = of_replay(*replayed(session(*pictures, calls=calls, window=100_000)))["inline_data"]
    assert finding.numbers["real"] < 0.6 * finding.numbers["estimate"]
    assert finding.numbers["inline_share"] > 0.9
    assert "inline data" in finding.sentence


# All of them.


def test_a_session_without_calls_has_no_findings():
    assert findings(session(user("hello"))) == {}


def test_the_gravest_come_first():
    facts, replayed_trace = replayed(bundled("long-coding"), "contextguard-sliding")
    order = [finding.severity for finding in replayed_findings(facts, replayed_trace)]
    assert order == sorted(order, key=["error", "warning", "info"].index)


@pytest.mark.long
def test_findings_of_fifty_thousand_steps_cost_less_than_counting_them():
    """What the findings say is tried on short sessions; only their cost needs a long one."""
    big = big_session()
    begun = time.process_time()
    ledger = Ledger.of(big)
    facts = Facts(big, ledger, attribute(ledger), judge_session(big))
    replayed_trace = replay(ledger, get_policy("contextguard"), window=facts.window.value, usage=facts.usage)
    counted = time.process_time() - begun
    for find in (lambda: recorded_findings(facts), lambda: replayed_findings(facts, replayed_trace)):
        begun = time.process_time()
        assert find()
        assert time.process_time() - begun < counted / 2


def test_results_that_a_client_clears_in_its_requests_are_named():
    _, by_kind, verdict = confirmed(clearing())
    finding = by_kind["results_cleared"]
    cleared = 2 * (len("file 0 " + "some words " * 500) - len("[cleared]"))
    numbers = {
        "messages": 2,
        "cuts": 2,
        "bytes": cleared,
        "tokens": finding.numbers["tokens"],
        "edits": 1,
        "recorded": 0,
    }
    assert (finding.step, finding.numbers) == (3, numbers)
    assert finding.sentence.startswith(
        "The tool results of 2 older messages were cleared or shortened from step 4 on: "
    )
    assert verdict.sentence.startswith("Tool results of 2 messages cleared or shortened, first at step 4; peak ")


def test_a_result_that_is_cut_first_and_cleared_later_is_one_message_of_two_cuts():
    session = cleared_after_a_cut()
    _, by_kind, _ = confirmed(session)
    numbers = by_kind["results_cleared"].numbers
    assert (numbers["messages"], numbers["cuts"], numbers["edits"]) == (2, 3, 2)
    assert numbers["bytes"] == findings(clearing())["results_cleared"].numbers["bytes"]
    assert "at 2 steps, the first step 3, some more than once (3 cuts in all): " in by_kind["results_cleared"].sentence
    assert [(item.messages, item.again) for item in clearings(Facts.of(session))] == [(1, 0), (2, 1)]


def test_an_edit_that_the_recording_declares_is_named_and_not_called_unrecorded():
    session = clearing()
    (edit,) = session.compactions
    declared = msgspec.structs.replace(edit, evidence=Evidence.DECLARED, note="Cleared by the provider.")
    session = msgspec.structs.replace(session, compactions=(declared,))
    _, by_kind, verdict = confirmed(session)
    assert by_kind["results_cleared"].sentence.endswith("The file records it as an edit, not as a compaction.")
    assert by_kind["results_cleared"].numbers["recorded"] == 1
    assert verdict.kind == "results_cleared"


def test_a_sum_over_calls_that_are_not_counted_is_no_health():
    built = chat(None, None, prompt_tokens_total=90_001)
    _, by_kind, said = confirmed(built)
    assert said.sentence == (
        "No call is counted: 90,001 prompt tokens in total, 45,001 each if there were 2; the peak is not known."
    )
    assert by_kind["no_usage"].numbers == {"missing": 2, "calls": 2, "total": 90_001, "each": 45_001}


def test_a_sum_over_an_only_call_is_not_said_to_be_its_own():
    _, by_kind, said = confirmed(chat(None, prompt_tokens_total=587))
    assert said.sentence == "No call is counted: 587 prompt tokens in total; the peak is not known."
    assert by_kind["no_usage"].sentence.endswith(": 587 prompt tokens over all calls, whose number is not recorded.")


def test_an_average_of_less_than_a_token_is_said_as_one():
    _, by_kind, _ = confirmed(chat(None, None, prompt_tokens_total=1, total_calls=3))
    assert by_kind["no_usage"].numbers == {"missing": 2, "calls": 2, "total": 1, "total_calls": 3, "average": 0}
    assert by_kind["no_usage"].sentence.endswith(" 1 prompt token over 3 calls, 0 on average.")


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (LeftBranches(7, compactions=2), "No compaction on this branch, 2 on others; peak "),
        (LeftBranches(7, compactions=2, refused=1), "No compaction on this branch, 1 overflow on others; peak "),
        (LeftBranches(7, largest=9_500), "No compaction on this branch, 9,500 tokens on another; peak "),
        (LeftBranches(7, largest=4_500), "Healthy: no compaction needed; peak "),
    ],
)
def test_a_verdict_beside_branches_that_were_left_speaks_of_one(left, words):
    _, by_kind, verdict = confirmed(chat(4_000, 5_000, left=left))
    assert verdict.sentence.startswith(words)
    assert ("left_branches" in by_kind) == (words[0] == "N")
    _, _, other = confirmed(chat(4_000, 5_000, 6_000, 9_500, left=left))
    assert other.sentence.startswith("This branch: peak 95.0 % ") == bool(left.compactions)


def test_a_user_who_cleared_the_context_is_no_sign_of_health():
    edit = RecordedCompaction(2, Evidence.DECLARED, "edit", (), trigger="clear")
    _, _, verdict = confirmed(chat(4_000, 5_000, compactions=(edit,)))
    assert verdict.sentence.startswith("No compaction, 1 recorded edit of the history; peak ")


def test_a_message_that_lost_only_a_remark_beside_its_result_has_no_cleared_result():
    session = clearing()
    (edit,) = session.compactions
    same = tuple(
        msgspec.structs.replace(part, message=session.events[part.event]) if isinstance(part, Rewritten) else part
        for part in edit.base
    )
    edit = msgspec.structs.replace(edit, base=same)
    assert "results_cleared" not in findings(msgspec.structs.replace(session, compactions=(edit,)))


def test_what_is_cleared_is_said_in_tokens_and_a_cut_of_a_few_is_no_clearing():
    session = clearing()
    facts = Facts.of(session)
    (item,) = clearings(facts)
    attributed = facts.attribution.tokens[[2, 4]].sum()
    assert item.tokens == round(attributed * item.bytes / facts.ledger.events["bytes"][[2, 4]].sum())
    assert 0.9 * attributed < item.tokens < attributed
    assert f"about {item.tokens:,} tokens less (estimated)" in findings(session)["results_cleared"].sentence
    (edit,) = session.compactions
    beginning = "file 0 " + "some words " * 400
    nearly = msgspec.structs.replace(
        edit.base[1], message=Event(Role.USER, (ToolResultPart("read", beginning, "call-0"),))
    )
    edit = msgspec.structs.replace(edit, base=(Span(0, 2), nearly, Span(3, 6)))
    assert "results_cleared" not in findings(msgspec.structs.replace(session, compactions=(edit,)))


def test_it_is_found_without_the_texts_of_the_log():
    session = clearing()
    ledger = Ledger.of(session)
    facts = Facts(msgspec.structs.replace(session, events=()), ledger, attribute(ledger), judge_session(session), ())
    assert "results_cleared" in {finding.kind for finding in recorded_findings(facts)}


def test_a_summary_right_behind_a_sliding_window_makes_no_loop_of_it():
    """Its words are few, and it comes at the next step: moves of the window before it stay what they are."""
    moves = tuple(
        RecordedCompaction(turn + 1, Evidence.INFERRED, "trim", (Span(turn - 4, turn + 1),)) for turn in range(6, 12)
    )
    short = Event(Role.USER, (TextPart("Summary: all is well, go on."),))
    summary = RecordedCompaction(13, Evidence.INFERRED, "summary", (Inserted(0), Span(12, 13)), (short,))
    built = exchange(16, tokens=lambda turn: 9_000, compactions=(*moves, summary))
    kinds = findings(built)
    assert "loop" not in kinds
    assert (kinds["sliding_window"].numbers["first"], kinds["sliding_window"].numbers["last"]) == (6, 11)
    assert check(built, list(kinds.values()), judge_session(built)) == []


def test_a_request_that_a_later_summary_has_again_was_not_still_quoted():
    moves = tuple(
        RecordedCompaction(turn + 1, Evidence.INFERRED, "trim", (Span(turn - 4, turn + 1),)) for turn in range(6, 12)
    )
    words = Event(Role.USER, (TextPart(f"Summary: half is done. The task: {WORDS}. Go on with it."),))
    summary = RecordedCompaction(13, Evidence.INFERRED, "summary", (Inserted(0), Span(12, 13)), (words,))
    built = exchange(16, tokens=lambda turn: 9_000, compactions=(*moves, summary))
    finding = findings(built)["request_lost"]
    assert "is missing from the requests of steps 7 to 12 (compaction 1)." in finding.sentence
    assert " Compaction 7 quoted " in finding.sentence
    assert check(built, [finding], judge_session(built)) == []
