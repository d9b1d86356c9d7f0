"""What the rule of the agent itself says of a recording."""

from dataclasses import replace
from math import ceil

import msgspec
import pytest

from guard_core.checker import check
from guard_core.checker.own_rule import UNROUNDED, worked_out
from guard_core.checker.story import Wrong
from guard_core.findings import Facts, recorded_findings, recorded_verdict
from guard_core.ledger import Ledger
from guard_core.rules import AGENTS, explain
from guard_core.rules.base import Stretch
from guard_core.rules.claude_code import FAILING
from guard_core.rules.decisions import OwnChecks
from guard_core.rules.words import decision_words
from guard_core.sessions import Evidence, ModelCall, Provenance, RecordedCompaction, Session, Sourced
from guard_core.views import Inserted, Span
from guard_core.windows.window_evidence import judge_session
from tests.builders import OPUS, model, transcript, user

SONNET = "claude-sonnet-4-5"


def findings_of(session, **settings):
    facts = replace(Facts.of(session), settings=settings)
    return {item.kind: item for item in recorded_findings(facts)}


def test_a_recording_that_fits_its_rule_has_none_of_these():
    assert {kind for kind in findings_of(transcript()) if kind.startswith(("own_", "other_", "setting_"))} == set()


def test_a_typed_setting_that_the_recording_contradicts_never_acts():
    finding = findings_of(transcript(), max_output_tokens="8192")["setting_never_acts"]
    assert finding.sentence == (
        "The typed max_output_tokens of 8,192 never acts: with it the threshold is 178,808, but Claude Code compacted "
        "at 155,010 (step 4)."
    )
    assert finding.severity == "warning"


def test_one_whose_threshold_was_passed_never_acts_either():
    sentence = findings_of(transcript(), autocompact_pct="50")["setting_never_acts"].sentence
    assert "with it the threshold is 84,000, but Claude Code did not compact at 151,010 (step 3)" in sentence


def test_it_leads_the_verdict():
    facts = replace(Facts.of(transcript()), settings={"max_output_tokens": "8192"})
    verdict = recorded_verdict(facts, recorded_findings(facts))
    assert verdict.sentence == (
        "1 compaction; the typed max_output_tokens of 8,192 never acts: Claude Code compacted at 155,010; its "
        "threshold would be 178,808."
    )


def test_checks_that_fit_another_threshold_name_its_bounds():
    assert findings_of(transcript(version="2.1.21"))["other_threshold"].sentence == (
        "Every known count fits a threshold above 151,010 (step 3) and at most 155,010 (compaction 1), not the 167,000 "
        "of Claude Code, if its settings are the defaults."
    )


def test_a_threshold_that_a_compaction_of_unknown_trigger_bounds_is_only_supposed():
    session = transcript(version="2.1.21", trigger="")
    facts = Facts.of(session)
    (claim,) = [item for item in recorded_findings(facts) if item.kind == "other_threshold"]
    assert claim.sentence.startswith("If compaction 1 was automatic, every known count fits a threshold above 151,010 ")
    assert recorded_verdict(facts, [claim]).sentence == (
        "1 compaction; the threshold of Claude Code is at most 155,010 if automatic, not the default 167,000."
    )
    assert check(session, [claim], judge_session(session)) == []
    lie = msgspec.structs.replace(claim, numbers={**claim.numbers, "by_itself": True})
    assert check(session, [lie], judge_session(session)) != []


def talk_with_pi(*prompts):
    """A turn for each prompt, and a compaction at 155,010 tokens before the last one."""
    events, calls = [], []
    for prompt in prompts:
        events.append(user("go on"))
        calls.append(ModelCall(len(events), len(events), prompt, None, None, 10, OPUS))
        events.append(model("done"))
    at = calls[-1].at - 1
    base = (Inserted(0), Span(at, at))
    compacted = RecordedCompaction(at, Evidence.DECLARED, "summary", base, (user("sum"),), tokens_before=155_010)
    return Session(events=tuple(events), calls=tuple(calls), compactions=(compacted,), format="pi", model=OPUS)


@pytest.mark.parametrize(
    ("session", "bounds"),
    [
        (talk_with_pi(100_000, 150_000, 30_000), "a threshold of at least 100,010 (step 2) and below 155,010 ("),
        (talk_with_pi(150_000, 30_000), "a threshold below 155,010 ("),
        (transcript(version="2.1.21", prompts=(150_000, 30_000), place=1), "a threshold of at most 151,010 ("),
    ],
)
def test_bounds_are_said_in_plain_words(session, bounds):
    claim = findings_of(session)["other_threshold"]
    assert f"every known count fits {bounds}" in claim.sentence.lower()
    assert check(session, [claim], judge_session(session)) == []


def test_a_default_below_what_passed_is_excluded_by_what_passed():
    facts = Facts.of(transcript(prompts=(20_000, 160_000, 170_000, 30_000)))
    claims = tuple(item for item in recorded_findings(facts) if item.kind == "other_threshold")
    assert recorded_verdict(facts, claims).sentence == (
        "1 compaction; the threshold of Claude Code is above 161,010, not the default 155,000."
    )


@pytest.mark.parametrize(("version", "kind"), [("1.0.10", "other_threshold"), ("1.0.30", "setting_never_acts")])
def test_what_is_said_of_the_share_of_early_versions_is_confirmed(version, kind):
    session = transcript(version=version)
    facts = replace(Facts.of(session), settings={"max_output_tokens": "8192"})
    (claim,) = [item for item in recorded_findings(facts) if item.kind == kind]
    assert not check(session, [claim], facts.window)


def test_checks_that_fit_none_are_early_and_late():
    by_kind = findings_of(transcript(prompts=(20_000, 160_000, 151_000, 30_000)))
    assert by_kind["own_early"].sentence == (
        "Compaction 1 (step 4) came early by the rule of Claude Code: 152,010 is 2,990 tokens below its threshold of "
        "155,000, if its settings are the defaults."
    )
    assert by_kind["own_missed"].sentence == (
        "The rule of Claude Code fires at 1 check at which it did not compact, at step 3: 161,010 ≥ 155,000, if its "
        f"settings are the defaults ({FAILING})."
    )


def test_bounds_that_a_refused_request_or_a_fall_leaves_open_are_caught_by_the_checker():
    session = transcript(version="2.1.21", prompts=(20_000, 150_000, 154_000, 40_000))
    facts = Facts.of(session)
    (claim,) = [item for item in recorded_findings(facts) if item.kind == "other_threshold"]
    assert not check(session, [claim], facts.window)
    refused = msgspec.structs.replace(session, refused=(session.compactions[0].at,))
    fallen = tuple(
        msgspec.structs.replace(call, prompt_tokens=[20_000, 150_000, 60_000, 154_000][step])
        for step, call in enumerate(session.calls)
    )
    assert "own_early" not in findings_of(refused)
    assert "other_threshold" not in findings_of(refused)
    assert check(refused, [claim], facts.window)
    assert check(msgspec.structs.replace(session, calls=fallen), [claim], facts.window)


def uncompacted(prompts, *models):
    """A transcript without its compaction, the calls by these models."""
    built = transcript(prompts=prompts, place=0)
    calls = (msgspec.structs.replace(call, model=model) for call, model in zip(built.calls, models, strict=True))
    return msgspec.structs.replace(built, compactions=(), calls=tuple(calls))


def test_a_check_before_a_far_smaller_prompt_of_another_model_did_not_pass():
    """The agent cut the history for it, or it counts otherwise: that it did not compact is not known."""
    assert "own_missed" in findings_of(uncompacted((20_000, 160_000, 161_500), OPUS, OPUS, SONNET))
    assert "own_missed" not in findings_of(uncompacted((20_000, 160_000, 60_000), OPUS, OPUS, SONNET))


def test_a_check_before_a_far_smaller_prompt_bounds_no_threshold():
    for last in (OPUS, SONNET):
        explanation = explain(uncompacted((20_000, 160_000, 60_000), OPUS, OPUS, last))
        assert [interval.above for interval in explanation.inference] == [21_010], last


def test_a_check_at_which_the_rule_fires_before_a_smaller_prompt_did_not_pass():
    """1.0.80 with `-p` compacts without a record: a prompt of 130,286 followed one of 159,998 (run)."""
    smaller = uncompacted((20_000, 160_000, 130_000), OPUS, OPUS, OPUS)
    assert "own_missed" not in findings_of(smaller)
    explanation = explain(smaller)
    assert [interval.above for interval in explanation.inference] == [21_010]
    assert (
        decision_words(OwnChecks(smaller, Ledger.of(smaller), explanation).at(2))
        == "No compaction: none is in the file, but the next request is smaller."
    )


def test_the_verdict_on_a_check_that_passed_names_no_other_compaction_where_there_is_none():
    facts = Facts.of(uncompacted((20_000, 160_000, 161_500), OPUS, OPUS, OPUS))
    assert recorded_verdict(facts, recorded_findings(facts)).sentence == (
        "By its default rule Claude Code would have compacted at step 3: 161,010 reached 155,000."
    )


def test_a_check_at_which_the_prompt_fell_far_did_not_pass():
    """The agent compacted there, and the record of it is missing."""
    unrecorded = msgspec.structs.replace(transcript(prompts=(20_000, 160_000, 60_000, 61_000)), compactions=())
    assert not {"own_missed", "other_threshold"} & set(findings_of(unrecorded))
    compacted = transcript(prompts=(20_000, 155_500, 60_000, 156_000, 30_000), place=4, tokens_before=157_100)
    assert not {"own_missed", "other_threshold"} & set(findings_of(compacted))


def test_compactions_without_a_known_count_are_named():
    built = transcript(version="2.1.21", prompts=(20_000, 150_000, 154_000, 30_000, 31_000))
    calls = tuple(
        msgspec.structs.replace(call, prompt_tokens=None) if step > 2 else call for step, call in enumerate(built.calls)
    )
    second = msgspec.structs.replace(built.compactions[0], at=calls[4].at)
    built = msgspec.structs.replace(built, calls=calls, compactions=(*built.compactions, second))
    assert findings_of(built)["other_threshold"].sentence.endswith(" 1 of 2 compactions has no known count.")


def test_checks_of_all_stretches_with_the_same_threshold_are_counted_together():
    built = transcript("cline", prompts=(10_000, 45_000, 46_000, 47_000))
    names = ("anthropic/claude-opus-4.8", "anthropic/claude-opus-4.8", "anthropic/claude-opus-4.8", "mistral-small")
    calls = tuple(msgspec.structs.replace(call, model=name) for call, name in zip(built.calls, names, strict=True))
    built = msgspec.structs.replace(built, calls=calls, compactions=(), window=Sourced(50_000, Provenance.RECORDER))
    assert findings_of(built)["own_missed"].numbers["checks"] == 2


def test_a_rule_without_a_threshold_says_nothing():
    assert "own_missed" not in findings_of(msgspec.structs.replace(transcript(version="2.1.330"), compactions=()))


def test_nothing_rests_on_a_window_that_the_recording_contradicts():
    session = msgspec.structs.replace(transcript("crush"), window=Sourced(100_000, Provenance.RECORDER))
    assert "own_missed" not in findings_of(session)


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.label)
def test_the_checker_works_out_the_sum_of_every_rule(agent):
    for window in (128_000, 200_000, 266_667, 1_000_000, 1_048_577):
        stretch = Stretch(0, 1, "2.1.14", "claude-opus-4-5", Sourced(window, Provenance.USER))
        rule = agent.ruled(stretch, {})
        if rule.threshold is not None:
            assert worked_out(rule.formula, ceil if agent.label.split(" (")[0] in UNROUNDED else int) == rule.threshold


def test_a_sum_that_is_none_is_refused():
    for formula in ("the provider's refusal", "min(1)", "2 + 2"):
        with pytest.raises(Wrong):
            worked_out(formula)
