"""Needless and needed: judged without all automatic compactions together, never one by one."""

import msgspec
import pytest

from guard_core.checker import check
from guard_core.findings import Facts, recorded_findings, recorded_verdict
from guard_core.findings.without import without_automatic
from guard_core.policies import get_policy
from guard_core.recordings import read
from guard_core.replay import replay
from guard_core.sessions import ANSWER_LIMIT, AgentSetting, Provenance
from tests.builders import bundled, transcript
from tests.guard_core.findings.cases import chat, compaction, findings, of_replay, record, replayed, trace
from tests.guard_core.recordings.checks import SAMPLES as FILES

SCRIPTED = FILES.parent / "rules/gemini-cli/default/session-2026-11-22T07-20-d5c0e2a6.jsonl"
# Requests that grow by 100 tokens a call, compacted to 1,000 twice; without compaction they would end at 6,200.
TWICE = [*range(4_000, 4_400, 100), *range(1_000, 1_400, 100), *range(1_000, 1_300, 100)]
CUTS = (compaction(5), compaction(9))


def test_needless_is_judged_with_all_compactions_gone_together():
    """One by one each would stay below nine tenths of 5,400; together they do not."""
    by_kind = findings(chat(*TWICE, window=5_400, compactions=CUTS))
    assert "needless" not in by_kind
    assert by_kind["needed"].numbers["compactions"] == 2


def test_compactions_without_which_all_would_have_fitted_are_needless():
    finding = findings(chat(*TWICE, window=10_000, compactions=CUTS))["needless"]
    assert (finding.severity, finding.count, finding.step) == ("warning", 2, 4)
    assert finding.numbers["peak"] < 9_000
    assert finding.numbers["calls_over"] == 0
    assert {"same_turns", "modelled_tokens"} <= set(finding.assumptions)


def test_compactions_between_the_same_two_calls_are_counted_as_one_need():
    """The second one replaced the first before any call was made with it."""
    built = chat(*TWICE, window=10_000, compactions=(CUTS[0], CUTS[0], CUTS[1]))
    facts = Facts.of(built)
    finding = {item.kind: item for item in recorded_findings(facts)}["needless"]
    assert (finding.numbers["compactions"], finding.count, finding.step) == (3, 3, 4)
    verdict = recorded_verdict(facts, (finding,))
    assert verdict.sentence.startswith("3 compactions, none needed")
    assert check(built, [finding], facts.window, verdict) == []


def test_what_rests_on_calls_that_are_not_counted_says_how_many():
    built = chat(*TWICE, window=10_000, compactions=CUTS)
    calls = tuple(
        msgspec.structs.replace(call, prompt_tokens=None) if step in (1, 6) else call
        for step, call in enumerate(built.calls)
    )
    finding = findings(msgspec.structs.replace(built, calls=calls))["needless"]
    assert "(modelled, 2 of 11 calls not counted)." in finding.sentence


def test_nothing_is_said_where_only_a_model_makes_the_requests_larger_with_them():
    """Each compaction leaves more than it removed, and no call after the first is counted."""
    summary = compaction(5, summary="word " * 3_000)
    built = chat(4_000, *[None] * 9, window=100_000, compactions=(summary,))
    assert Facts.of(built).requests.peak.source == "modelled"
    assert "needless" not in findings(built)


def test_nothing_is_said_where_the_prompt_also_fell_without_a_record():
    falling = [*range(30_000, 40_000, 1_000), *range(5_000, 9_000, 1_000), *range(2_000, 5_000, 1_000)]
    by_kind = findings(chat(*falling, window=100_000, compactions=(compaction(15),)))
    assert "silent_truncation" in by_kind
    assert not {"needless", "needed"} & set(by_kind)


def test_nothing_is_said_where_the_recorder_counted_far_more_before_it_than_the_model_has():
    """Counts begin after the compaction: what was before the file is in the recorder's figure alone."""
    counts = [None] * 5 + [*range(20_000, 30_000, 1_000)]
    cut = compaction(6)
    assert "needless" in findings(chat(*counts, window=100_000, compactions=(cut,)))
    far = msgspec.structs.replace(cut, tokens_before=80_000)
    assert not {"needless", "needed"} & set(findings(chat(*counts, window=100_000, compactions=(far,))))


def test_a_manual_compaction_is_never_needless():
    cuts = (compaction(5, trigger="manual"), compaction(9, trigger="manual"))
    assert not {"needless", "needed"} & set(findings(chat(*TWICE, compactions=cuts)))


def test_manual_compactions_stay_when_the_automatic_ones_are_taken_out():
    facts = Facts.of(chat(*TWICE, compactions=(compaction(5, trigger="manual"), compaction(9))))
    without = without_automatic(facts.recording)
    assert [item.index for item in without.removed] == [1]
    assert without.tokens[:8].tolist() == TWICE[:8]  # up to the automatic one everything is as recorded
    assert 1_300 < without.tokens[8] < 2_000  # it goes on from the manual one, not from the whole log


def test_the_whole_log_without_them_is_what_the_policy_none_sends():
    facts = Facts.of(chat(*TWICE, compactions=CUTS))
    none = replay(facts.ledger, get_policy("none"), window=10_000, usage=facts.usage)
    assert without_automatic(facts.recording).tokens.tolist() == none.columns["modelled_prompt_tokens"].tolist()


def test_a_verdict_without_the_automatic_ones_says_that_the_manual_ones_stay():
    cuts = (compaction(5, (0, 1)), compaction(9, (0, 1), trigger="manual"))
    facts = Facts.of(chat(*TWICE, window=4_850, compactions=cuts))
    case, finding = facts.recording, next(item for item in recorded_findings(facts) if item.kind == "needed")
    words = "2 compactions, no overflow. Without any but the manual ones: peak "
    assert recorded_verdict(facts, (finding,)).sentence.startswith(words)
    assert len(case.fired) == 2


def test_how_much_later_the_first_could_have_come_is_said():
    finding = findings(chat(*TWICE, window=4_850, compactions=CUTS))["needed"]
    first, over = finding.numbers["first"], finding.numbers["first_over"]
    assert (first, finding.numbers["could_wait"]) == (4, over - first)
    assert f"could have come {over - first} calls later, at step {over + 1}" in finding.sentence


def test_a_trigger_that_is_not_recorded_is_taken_as_automatic_and_that_is_said():
    cuts = (compaction(5, trigger=""), compaction(9, trigger=""))
    finding = findings(chat(*TWICE, compactions=cuts))["needless"]
    assert "trigger_not_recorded" in finding.assumptions
    assert "taken as automatic" in finding.sentence


def test_the_verdict_calls_what_a_person_may_have_asked_for_needless_only_if_it_was_automatic():
    built = chat(
        5_000, 5_050, 900, compactions=(compaction(3, (0, 1), trigger=""),), source=Provenance.ASSUMED, window=128_000
    )
    facts = Facts.of(built)
    verdict = recorded_verdict(facts, recorded_findings(facts))
    assert verdict.kind == "needless"
    assert verdict.sentence.startswith("1 compaction, not needed if automatic: without it, peak ")
    assert len(verdict.sentence.split()) <= 25


def test_an_assumed_window_is_said_and_is_no_warning():
    finding = findings(chat(*TWICE, source=Provenance.ASSUMED, compactions=CUTS))["needless"]
    assert finding.severity == "info"
    assert "window_assumed" in finding.assumptions
    assert "if the window is 128,000" in finding.sentence


def test_nothing_is_said_where_the_file_lacks_what_was_removed():
    assert not {"needless", "needed"} & set(findings(chat(*TWICE, compactions=(compaction(5, (0, 5)),))))


def test_nothing_is_said_where_no_call_came_before_the_compaction():
    assert not {"needless", "needed"} & set(findings(chat(*TWICE, compactions=(compaction(0),))))


def test_nothing_is_said_without_any_count():
    assert not {"needless", "needed"} & set(findings(chat(*[None] * 11, compactions=CUTS)))


def test_a_replay_is_compared_with_the_policy_none():
    facts = Facts.of(chat(5_000, 5_050, 5_100, 5_150))
    by_kind = of_replay(facts, trace(facts, record(2)))
    assert (by_kind["needless"].step, by_kind["needless"].numbers["peak"]) == (2, 5_150)


def test_a_replay_says_how_many_overflows_it_removes():
    by_kind = of_replay(*replayed(bundled("long-coding")))
    assert by_kind["avoided_overflows"].numbers == {"without": 95, "with": 0, "window": 200_000}
    assert "removes 95 overflows" in by_kind["avoided_overflows"].sentence


def test_overflows_that_a_replay_leaves_are_not_said_to_be_removed():
    removed = of_replay(*replayed(bundled("long-coding"), "sweagent-last-n", n=50))["avoided_overflows"]
    before, after = removed.numbers["without"], removed.numbers["with"]
    assert 0 < after < before
    assert f"removes {before - after} overflows: without compaction {before} calls" in removed.sentence
    assert f"with it {after} (modelled)" in removed.sentence


@pytest.mark.skipif(not FILES.exists(), reason="../shared/samples is absent")
def test_the_camel_session_needed_its_four_compactions():
    (built,) = read(FILES / "adk" / "session-camel-token-threshold-4-compactions.json").sessions
    kinds = {finding.kind: finding for finding in recorded_findings(Facts.of(built))}
    assert "needless" not in kinds
    assert kinds["needed"].numbers["calls_over"] == pytest.approx(25, abs=1)  # modelled: one call is at the edge
    assert round(kinds["needed"].numbers["peak"] / 128_000, 2) == 1.24


def test_nothing_is_said_of_need_where_a_model_with_a_smaller_window_answered():
    """One window does not hold for all calls: what fits a million tokens may be refused by the next model."""
    prompts = [100_000, 150_000, 20_000, 60_000]
    built = chat(*prompts, window=1_000_000, compactions=(compaction(3, tokens_before=160_000),))
    large = Facts.of(built)
    assert {item.kind for item in recorded_findings(large)} & {"needless"}
    calls = tuple(msgspec.structs.replace(call, model="claude-haiku-4-5") for call in built.calls)
    small = Facts.of(msgspec.structs.replace(built, calls=calls))
    assert not {item.kind for item in recorded_findings(small)} & {"needless", "needed"}


def test_a_compaction_before_a_model_with_a_smaller_window_casts_no_doubt_on_the_larger_one():
    built = chat(150_000, 240_000, 300_000, 30_000, compactions=(compaction(4, tokens_before=301_000),))
    names = ["claude-sonnet-4-5[1m]"] * 3 + ["claude-haiku-4-5"]
    calls = tuple(msgspec.structs.replace(call, model=name) for call, name in zip(built.calls, names, strict=True))
    changed = msgspec.structs.replace(built, calls=calls, window=None, format="claude-code")
    facts = Facts.of(changed)
    kinds = {item.kind: item for item in recorded_findings(facts)}
    assert (facts.window.value, "window_doubted" in kinds) == (1_000_000, False)
    assert "over its model's window of 200,000" in kinds["counted_over"].sentence
    assert check(changed, list(kinds.values()), facts.window) == []


def test_a_compaction_before_which_the_agent_counted_more_than_the_window_could_not_have_waited():
    prompts = [70_000, 99_000, 20_000, 60_000, 95_000]
    built = chat(*prompts, window=100_000, compactions=(compaction(3, tokens_before=100_400),))
    kinds = {item.kind: item for item in recorded_findings(Facts.of(built))}
    assert kinds["counted_over"].numbers["tokens"] == 100_400
    assert "could_wait" not in kinds["needed"].numbers


@pytest.mark.parametrize(("tokens", "is_believed"), [(119_000, True), (130_000, False)])
def test_a_figure_that_no_request_can_have_had_is_not_held_against_the_window(tokens, is_believed):
    """WORDS and 20,000 tokens that are not in the file may have been added, no more."""
    built = chat(70_000, 99_000, 20_000, 60_000, window=100_000, compactions=(compaction(3, tokens_before=tokens),))
    facts = Facts.of(built)
    kinds = {item.kind: item for item in recorded_findings(facts)}
    assert ("counted_over" in kinds) == is_believed
    assert check(built, list(kinds.values()), facts.window) == []


@pytest.mark.skipif(not SCRIPTED.exists(), reason="../shared/rules is absent")
def test_nothing_is_said_of_need_where_the_counts_do_not_follow_the_messages():
    """A provider that counted by a script: what a longer history would have cost is not in the file."""
    facts = Facts.of(read(SCRIPTED).sessions[0])
    assert facts.counts.total == 3
    assert not {"needless", "needed"} & {item.kind for item in recorded_findings(facts)}


def test_the_window_of_another_model_is_named_where_its_request_is_the_fullest():
    """The last call is of a model with 32,768 tokens; nothing comes near the session's window."""
    prompts = [20_000, 22_000, 24_000, 26_000, 10_000, 11_000, 12_000]
    built = chat(*prompts, window=200_000, compactions=(compaction(5),))
    names = ["claude-sonnet-4-5"] * (len(prompts) - 1) + ["mistralai/voxtral-small-24b-2507"]
    calls = tuple(msgspec.structs.replace(call, model=name) for call, name in zip(built.calls, names, strict=True))
    built = msgspec.structs.replace(built, calls=calls)
    facts = Facts.of(built)
    by_kind = {item.kind: item for item in recorded_findings(facts)}
    claim = by_kind.get("needed") or by_kind["needless"]
    assert (claim.numbers["window"], claim.numbers["own_window"]) == (32_768, 200_000)
    assert "of its model's window of 32,768" in claim.sentence
    assert check(built, [claim], facts.window) == []
    assert check(built, [msgspec.structs.replace(claim, numbers={**claim.numbers, "own_window": 5})], facts.window)


def test_the_fullest_request_is_not_called_the_largest_where_another_is_in_a_larger_window():
    prompts = [60_000, 70_000, 80_000, 90_000, 20_000, 30_000, 40_000]
    built = chat(*prompts, window=128_000, compactions=(compaction(5),))
    names = ["gpt-4o"] * 4 + ["gpt-4.1"] * 3
    calls = tuple(msgspec.structs.replace(call, model=name) for call, name in zip(built.calls, names, strict=True))
    built = msgspec.structs.replace(built, calls=calls, window=None)
    facts = Facts.of(built)
    (claim,) = (item for item in recorded_findings(facts) if item.kind == "needless")
    assert claim.numbers["peak"] == 90_000 < claim.numbers["larger"]
    assert "the fullest request has 90,000 tokens" in claim.sentence
    assert check(built, [claim], facts.window) == []
    for lie in (
        {"sentence": claim.sentence.replace("fullest", "largest")},
        {"numbers": {**claim.numbers, "larger": 91_000}},
    ):
        assert check(built, [msgspec.structs.replace(claim, **lie)], facts.window)


def answering(built, output, **changes):
    """The same calls, each answered by so many tokens."""
    calls = tuple(msgspec.structs.replace(call, output_tokens=output) for call in built.calls)
    return msgspec.structs.replace(built, calls=calls, **changes)


def checked(built):
    """The findings by kind and the verdict, which the checker confirms."""
    facts = Facts.of(built)
    claims = recorded_findings(facts)
    verdict = recorded_verdict(facts, claims)
    assert check(built, claims, facts.window, verdict) == []
    return {item.kind: item for item in claims}, verdict.sentence


def test_a_compaction_without_which_an_answer_would_have_no_room_is_not_needless():
    """Without any the largest request would have some 4,950 of 5,800 tokens: 85 %, and the longest answer has 1,000."""
    built = chat(*TWICE, window=5_800, compactions=CUTS)
    by_kind, _ = checked(built)
    assert 0.8 < by_kind["needless"].numbers["peak"] / 5_800 < 0.9
    assert "leaves room" not in by_kind["needless"].sentence
    by_kind, _ = checked(answering(built, 1_000))
    assert "needless" not in by_kind
    tight = by_kind["needed"].numbers["tight"]
    assert f"no call over it and {tight} calls without room for an answer of 1,000 tokens, the longest" in (
        by_kind["needed"].sentence
    )
    assert "With that room, the first could have come" in by_kind["needed"].sentence
    facts = Facts.of(answering(built, 1_000))
    verdict = recorded_verdict(facts, (by_kind["needed"],))
    assert (
        f"Without any: peak 85.3 % of the window, {tight} calls lacking room to answer (modelled)" in verdict.sentence
    )


def test_a_needless_compaction_says_for_which_long_answer_there_is_room():
    built = chat(*TWICE, window=5_800, compactions=CUTS)
    assert "room" not in checked(answering(built, 300))[0]["needless"].sentence
    assert checked(answering(built, 700))[0]["needless"].sentence.endswith(
        "(modelled), which leaves room for an answer of 700 tokens, the longest recorded."
    )


@pytest.mark.parametrize("name", ["gemini-2.5-pro", "openai-codex/gpt-5.5"])
def test_a_window_of_requests_alone_has_its_room_for_answers_elsewhere(name):
    built = answering(chat(*TWICE, window=5_800, compactions=CUTS), 1_500, model=name)
    by_kind, _ = checked(built)
    assert by_kind["needless"].numbers["calls_over"] == 0
    assert "answer" not in by_kind["needless"].numbers


def test_what_the_agent_allows_an_answer_counts_where_no_answer_was_as_long():
    """Claude Code asks for 32,000 tokens by default: 177,000 of 200,000 leave no room for them, 162,000 do."""
    for more, kind in ((16_100, "needed"), (3_000, "needless")):
        prompts = (20_000, 150_000, 155_000, 30_000, 30_000 + more)
        built = transcript(prompts=prompts)
        by_kind, verdict = checked(built)
        assert {"needed", "needless"} & set(by_kind) == {kind}
        assert "room for an answer of 32,000 tokens, Claude Code's default" in by_kind[kind].sentence
        assert "rule_defaults" in by_kind[kind].assumptions
        assert len(verdict.split()) <= 25


def test_what_the_requests_allow_an_answer_counts_where_no_answer_was_as_long():
    """85 % of 5,800 leave no room for the 1,200 tokens that a request allows, which the recorded ones all have."""
    built = answering(chat(*TWICE, window=5_800, compactions=CUTS), 300)
    limited = msgspec.structs.replace(built, settings=(AgentSetting(ANSWER_LIMIT, 1_200),))
    by_kind, _ = checked(limited)
    assert "without room for an answer of 1,200 tokens, the most that a request allows" in by_kind["needed"].sentence
    assert "needless" in checked(msgspec.structs.replace(built, settings=(AgentSetting(ANSWER_LIMIT, 200),)))[0]


def test_a_limit_of_answers_that_an_answered_request_exceeded_is_no_room_that_its_provider_asks_for():
    """4,300 and 2,000 tokens are more than the window of 5,800, and the request was answered."""
    built = answering(chat(*TWICE, window=5_800, compactions=CUTS), 300)
    by_kind, _ = checked(msgspec.structs.replace(built, settings=(AgentSetting(ANSWER_LIMIT, 2_000),)))
    assert "needed" not in by_kind
    assert "2,000" not in by_kind["needless"].sentence
