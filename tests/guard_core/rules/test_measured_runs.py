"""The rules give what was measured by running the agents: thresholds, compared counts, intervals."""

import numpy as np
import pytest

from guard_core.events import Role, TextPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.replay import observe_recorded
from guard_core.rules import Agreement, explain
from guard_core.rules.kept import KeptVerdict
from guard_core.rules.words import headline
from guard_core.triggers import is_counted
from tests.guard_core.rules.measured import RUNS, run_of, sample

# Hermes records no tokens per call, and Mistral Vibe none of the time before its last snapshot.
COUNTED = tuple(name for name in RUNS if not name.startswith(("hermes", "mistral-vibe")))


@pytest.fixture(params=RUNS)
def run(request, tmp_path):
    return run_of(request.param, tmp_path)


@pytest.fixture(params=COUNTED)
def counted(request, tmp_path):
    return run_of(request.param, tmp_path)


def test_the_rule_gives_the_threshold_that_was_measured(run):
    rule = explain(run.session, window=run.window).rule
    assert (rule.threshold, rule.relation) == (run.truth["rule"]["threshold"], run.truth["rule"]["op"])


def test_it_finds_the_compactions_that_were_measured(run):
    explanation = explain(run.session, window=run.window)
    asked = sum(item["trigger"] == "manual" for item in run.truth["compactions"])
    assert (explanation.auto, len(explanation.compactions)) == (
        len(run.truth["compactions"]) - asked,
        len(run.truth["compactions"]),
    )


def test_the_counts_at_which_it_compacted_are_those_that_were_compared(counted):
    explanation = explain(counted.session, window=counted.window)
    measured = [item["count"] for item in counted.truth["compactions"]]
    assert [item.decision_tokens for item in explanation.compactions] == measured


def test_the_count_computed_is_the_one_that_the_agent_wrote_down(counted):
    explanation = explain(counted.session, window=counted.window)
    for item in explanation.compactions:
        assert item.recorded is None or item.computed == item.recorded


def test_the_interval_of_the_threshold_is_the_one_that_was_measured(counted):
    (interval,) = explain(counted.session, window=counted.window).inference
    measured = counted.truth["interval"]
    assert (interval.above, interval.at_most) == (measured["above"], measured["at_most"])
    assert (interval.counter, interval.contradiction) == (counted.truth["rule"]["counter"], "")


def test_the_default_rule_is_the_only_known_one_inside_the_interval(counted):
    (interval,) = explain(counted.session, window=counted.window).inference
    threshold = counted.truth["rule"]["threshold"]
    assert {item.threshold for item in interval.hypotheses} == ({threshold} if threshold else set())


def test_every_automatic_compaction_agrees_and_none_was_missed(counted):
    explanation = explain(counted.session, window=counted.window)
    assert (explanation.agrees, len(explanation.missed)) == (explanation.auto, 0)


def test_a_recording_without_tokens_per_call_says_why_nothing_can_be_compared(tmp_path):
    run = run_of("hermes/default-200k", tmp_path)
    explanation = explain(run.session, window=run.window)
    assert {item.verdict for item in explanation.compactions} == {Agreement.NOT_MODELLED}
    assert explanation.inference == ()


def test_what_the_summaries_of_hermes_used_is_noted(tmp_path):
    notes = run_of("hermes/default-200k", tmp_path).session.notes
    assert "Beside them 1,052,100 prompt tokens in 7 calls of the task 'compression'." in notes


def test_the_compactions_since_the_last_snapshot_of_mistral_vibe_agree(tmp_path):
    run = run_of("mistral-vibe/default", tmp_path)
    explanation = explain(run.session)
    known = [item for item in explanation.compactions if item.decision_tokens is not None]
    assert [item.decision_tokens for item in known] == [item["count"] for item in run.truth["compactions"]][-5:]
    assert {item.verdict for item in known} == {Agreement.AGREES}
    assert ({item.verdict for item in explanation.compactions[:4]}, explanation.missed) == (
        {Agreement.NOT_MODELLED},
        (),
    )
    (interval,) = explanation.inference
    assert (interval.above, interval.at_most) == (199_999, 200_000)


def test_without_the_window_the_intervals_name_it(tmp_path):
    run = run_of("opencode/default", tmp_path)
    explanation = explain(run.session)
    assert explanation.rule.threshold is None
    assert "200,000 − 32,000 (max output)" in [item.formula for item in explanation.inference[0].hypotheses]
    assert {item.verdict for item in explanation.compactions} == {Agreement.NOT_MODELLED}
    assert explanation.comparable == 0
    assert "By its recording the threshold is above 167,999 and at most 168,000" in headline(explanation)
    assert " agree" not in headline(explanation)


# -- once more, in plain loops over the messages


def plain_counts(session):
    """What the agent knew at each compaction: the last answer's tokens, and an estimate of the results since."""
    counts = []
    for item in filter(is_counted, session.compactions):
        call = [call for call in session.calls if call.at < item.at][-1]
        output = call.output_tokens if call.output_tokens is not None else call.output_tokens_at_start
        since = session.events[call.response + 1 : item.at]
        counts.append((call.prompt_tokens, output, sum(map(PENDING[session.format], since))))
    return counts


def rounded(event):
    """Claude Code: a quarter of the characters of each result, and of reminders where the file has them."""
    total = 0
    for part in event.parts:
        if isinstance(part, ToolResultPart):
            total += int(len(part.content) / 4 + 0.5)
        elif isinstance(part, TextPart) and event.role is Role.SYSTEM:
            total += int(len(part.text) / 4 + 0.5)
    return total


def quarters(event):
    """Codex: a quarter of the bytes of each output and of its call's id, rounded up."""
    results = [part for part in event.parts if isinstance(part, ToolResultPart)]
    return sum(-(-(len(part.content.encode()) + len(part.call_id)) // 4) for part in results)


PENDING = {"claude-code": rounded, "codex": quarters}


@pytest.mark.parametrize("name", [name for name in COUNTED if name.startswith(("claude", "codex"))])
def test_plain_loops_over_the_messages_give_the_same_counts(name, tmp_path):
    run = run_of(name, tmp_path)
    explanation = explain(run.session, window=run.window)
    assert [item.computed for item in explanation.compactions] == [sum(parts) for parts in plain_counts(run.session)]


def test_two_compactions_of_a_real_session_are_explained_to_the_token():
    explanation = explain(sample("claude-code/long-2-compactions.jsonl"))
    assert (explanation.rule.threshold, explanation.rule.version) == (155_000, "2.1.14")
    assert [(item.recorded, item.computed) for item in explanation.compactions] == [
        (155_277, 155_277),
        (155_475, 155_475),
    ]
    assert [item.verdict for item in explanation.compactions] == [Agreement.AGREES] * 2


def test_a_limit_that_was_configured_is_among_the_hypotheses():
    session = sample("codex/rollout-0.169-2-compactions.jsonl")
    explanation = explain(session)
    assert {item.verdict for item in explanation.compactions} == {Agreement.OTHER_THRESHOLD}
    assert [item.threshold for item in explanation.inference[0].hypotheses] == [40_000]
    typed = explain(session, typed={"model_auto_compact_token_limit": "40000"})
    assert (typed.auto, typed.agrees, typed.missed) == (2, 2, ())


def test_the_shadow_of_the_policy_codex_fires_at_the_checks_at_which_codex_did(tmp_path):
    run = run_of("codex/default", tmp_path)
    ledger = Ledger.of(run.session)
    policy = get_policy("codex", usable_share=0.95)
    trace = observe_recorded(ledger, policy, window=run.session.window.value)
    explanation = explain(run.session, ledger)
    assert np.flatnonzero(trace.columns["fired"]).tolist() == [item.step for item in explanation.compactions]
    decided = [int(trace.columns["decision_tokens"][item.step]) for item in explanation.compactions]
    assert decided == [item.decision_tokens for item in explanation.compactions]


def test_a_resumed_session_of_gemini_cli_does_not_know_its_last_count():
    session = sample("gemini-cli/chats/session-2026-11-21T02-58-9436eadb.jsonl")
    (interval,) = explain(session).inference
    assert (interval.above, interval.at_most, interval.left_out) == (30_196, 32_948, ())
    assert [item.formula for item in interval.hypotheses if item.changes == 1] == ["3 % of 1,048,576"]
    typed = explain(session, typed={"compression_threshold": "3"})
    assert (typed.auto, typed.agrees, typed.missed) == (5, 5, ())


def test_a_threshold_of_adk_is_inferred_and_explains_every_compaction_once_it_is_typed():
    session = sample("adk/session-camel-token-threshold-4-compactions.json")
    (interval,) = explain(session).inference
    assert (interval.above, interval.at_most) == (39_967, 40_139)
    assert [item.threshold for item in interval.hypotheses] == [40_000]
    typed = explain(session, typed={"token_threshold": "40000"})
    assert (typed.auto, typed.agrees, typed.missed) == (4, 4, ())


def test_the_threshold_of_an_evaluation_is_in_its_plan_and_explains_every_compaction():
    explanation = explain(sample("inspect/react-compaction-summary-zstd.eval"))
    assert (explanation.rule.formula, explanation.rule.version) == ("20,000 (threshold)", "0.3.285")
    assert (explanation.auto, explanation.agrees, explanation.missed) == (3, 3, ())
    names = [item.formula for item in explanation.inference[0].hypotheses]
    assert names[0] == "20,000 (threshold)"
    assert "threshold 20,000" not in names


def test_one_threshold_is_named_once_whether_it_is_in_the_file_or_a_default(tmp_path):
    explanation = explain(run_of("mistral-vibe/default", tmp_path).session)
    assert [item.formula for item in explanation.inference[0].hypotheses if item.threshold == 200_000][:1] == [
        "200,000 (in the file)"
    ]
    plain = [item for item in explanation.inference[0].hypotheses if "%" not in item.formula]
    assert len(plain) == 1


def test_what_kimi_code_kept_is_read_by_its_rule_and_proves_nothing_of_it(tmp_path):
    comparisons = explain(run_of("kimi-code/default", tmp_path).session).kept
    assert {item.verdict for item in comparisons} == {KeptVerdict.NOT_MODELLED}
    assert {item.rewritten for item in comparisons} == {0}
    assert all(item.kept == item.users > 0 for item in comparisons)
