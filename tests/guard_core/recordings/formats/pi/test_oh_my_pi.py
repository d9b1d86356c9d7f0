"""oh-my-pi's sessions: pi's files with entries of its own kinds, and the rule that explains them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from guard_core.events import part_text
from guard_core.recordings.formats.pi.session import FORMAT
from guard_core.rules import explain
from guard_core.rules.oh_my_pi import least_thresholds, rule, variants
from guard_core.rules.registry import agent_of
from guard_core.rules.stretches import stretches_of
from guard_core.sessions import Provenance, Session, Sourced
from tests.guard_core.recordings.checks import lines, read_as
from tests.guard_core.recordings.formats.pi.test_session import HEADER, assistant, entry, result, user


def answer(text: str, prompt: int, *calls: str) -> dict[str, Any]:
    return {
        **assistant(text, prompt, *calls),
        "contextSnapshot": {"promptTokens": prompt, "nonMessageTokens": 50, "compactionEpoch": 0},
    }


def conversation(counted: int, **compaction: Any) -> list[dict[str, Any]]:
    """A turn that is compacted within, at a count as it was written down."""
    began = {"toolCallId": "c1", "toolName": "bash", "args": {"command": "ls"}}
    fields = {"summary": "the summary", "firstKeptEntryId": "e2", "tokensBefore": counted, "tokensAfter": 90}
    return [
        entry("e0", None, message=user("List files")),
        entry("e1", "e0", message=answer("I look", 30_000, "c1")),
        entry("x1", "e1", "custom", customType="tool_execution_start", data=began),
        entry("e2", "x1", message=result("c1")),
        entry("k1", "e2", "compaction", **fields, **compaction),
        entry("e3", "k1", message=answer("Done", 200)),
    ]


def read(*entries: dict[str, Any]):
    recording = read_as(FORMAT, lines(HEADER, *entries), strict=True)
    assert recording.notes.problems == []
    return recording.sessions[0]


@pytest.mark.parametrize(
    "own",
    [
        entry("e1", "e0", message=answer("Hello", 100)),
        entry("x1", "e0", "custom", customType="session_exit", data={"reason": "dispose"}),
        entry("k1", "e0", "compaction", summary="s", firstKeptEntryId="e0", method="handoff"),
        entry("r1", "e0", "reset_boundary"),
        entry("m1", "e0", "model_change", model="zai/glm-5.2", role="default"),
    ],
)
def test_it_is_known_by_what_only_it_writes(own):
    session = read(entry("e0", None, message=user("Hi")), own)
    assert agent_of(session).label == session.agent == "oh-my-pi"


def test_a_change_of_the_model_as_pi_writes_it_is_pis():
    change = entry("m1", "e0", "model_change", provider="zai", modelId="glm-5.2")
    assert agent_of(read(entry("e0", None, message=user("Hi")), change)).label == "pi"


@pytest.mark.parametrize(("counted", "verdict"), [(43_616, "not modelled"), (43_617, "agrees")])
def test_its_own_rule_explains_a_compaction_right_behind_results_or_leaves_it_to_an_estimate_of_them(counted, verdict):
    explained = explain(read(*conversation(counted, method="handoff")), typed={"window": "60000"})
    rule, (judged,) = explained.rules[0], explained.compactions
    assert (rule.threshold, rule.relation, rule.formula) == (43_616, ">", "60,000 − 16,384 (reserve)")
    assert (judged.decision_tokens, judged.verdict.value) == (counted, verdict)


def test_a_compaction_right_behind_results_bounds_no_threshold_that_is_not_known():
    """18.2.3, run with a threshold of 40,000: it compacted at totals of 38,890 and 39,297, by an estimate with them."""
    assert explain(read(*conversation(39_297, method="soft"))).inference == ()


def test_a_compaction_at_the_end_of_a_turn_was_made_by_the_count_that_it_names():
    turn = [entry("e0", None, message=user("Hi")), entry("e1", "e0", message=answer("Hello", 43_000))]
    fields = {"summary": "the summary", "firstKeptEntryId": "e1", "tokensBefore": 43_007, "method": "soft"}
    compacted = read(*turn, entry("k1", "e1", "compaction", **fields), entry("e2", "k1", message=user("Go on")))
    (judged,) = explain(compacted, typed={"window": "60000"}).compactions
    assert (judged.decision_tokens, judged.verdict.value) == (43_007, "other threshold")
    assert [item.at_most for item in explain(compacted).inference] == [43_007]


@pytest.mark.parametrize(
    ("typed", "threshold"),
    [
        ({"thresholdPercent": "80"}, 48_000),
        ({"thresholdTokens": "50000", "thresholdPercent": "80"}, 50_000),
        ({"reserveTokens": "20000"}, 40_000),
    ],
)
def test_settings_can_be_typed_by_its_own_names(typed, threshold):
    explained = explain(read(*conversation(44_000, method="handoff")), typed={"window": "60000", **typed})
    assert explained.rules[0].threshold == threshold


@pytest.mark.parametrize("method", ["handoff", "soft"])
def test_a_summary_is_shown_without_the_words_around_it_which_the_file_does_not_hold(method):
    (compaction,) = read(*conversation(44_000, method=method)).compactions
    assert part_text(compaction.messages[0].parts[0]) == "the summary"
    assert compaction.note == "oh-my-pi's own words around the summary are not in the file."


def test_a_compaction_without_a_method_has_pis_words_around_its_summary():
    (compaction,) = read(*conversation(44_000)).compactions
    assert part_text(compaction.messages[0].parts[0]).endswith("<summary>\nthe summary\n</summary>")
    assert not compaction.note


def test_a_reserve_of_0_that_was_typed_is_no_change_of_the_rule():
    typed = {"window": "100000", "reserve_tokens": "0"}
    session = read(*conversation(30_007))
    (stretch,) = stretches_of(session, Sourced(100_000, Provenance.USER, "typed in"))
    unchanged = {item.threshold for item in variants(stretch, typed) if item.changes == 0}
    assert unchanged == {rule(stretch, typed).threshold} == {85000}


def waiting(counts: list[int], method: str) -> Session:
    """A turn whose calls have these totals, compacted behind the last of them."""
    rounds, before = [], "e0"
    for number, count in enumerate(counts):
        rounds.append(entry(f"a{number}", before, message=answer("I look", count - 7, f"c{number}")))
        rounds.append(entry(f"r{number}", f"a{number}", message=result(f"c{number}")))
        before = f"r{number}"
    fields = {"summary": "the summary", "firstKeptEntryId": before, "tokensBefore": counts[-1], "method": method}
    return read(entry("e0", None, message=user("List files")), *rounds, entry("k1", before, "compaction", **fields))


# 18.2.3 with a window of 200,000, run with summaries that took 1.5 seconds: calls passed at 170,903 to 185,937.
WAITED = [163_000, 170_903, 183_952, 185_937, 194_607]


def test_calls_that_pass_above_the_threshold_while_a_summary_is_written_contradict_nothing():
    explained = explain(waiting(WAITED, "handoff"), typed={"window": "200000"})
    (judged,) = explained.compactions
    assert (judged.threshold, judged.verdict.value, explained.missed) == (170_000, "agrees", ())
    (interval,) = explained.inference
    assert interval.above == 163_000  # 185,937 may pass above any threshold from 165,278 on


@pytest.mark.parametrize(
    ("method", "typed"),
    [("snapcompact", {}), ("handoff", {"asyncEnabled": "false"})],
)
def test_where_no_summary_is_written_meanwhile_they_contradict_the_rule(method, typed):
    explained = explain(waiting(WAITED, method), typed={"window": "200000", **typed})
    assert [item.count for item in explained.missed] == [170_903, 183_952, 185_937]
    assert explained.compactions[0].verdict.value == "other threshold"


def test_calls_far_above_the_threshold_contradict_the_rule_whoever_writes_the_summary():
    explained = explain(waiting([100_000, 120_000, 140_000, 160_000], "handoff"), typed={"thresholdTokens": "100000"})
    assert [item.count for item in explained.missed] == [120_000]


@pytest.mark.parametrize(("passed", "least"), [(60_000, 51_809), (180_000, 160_001), (300_000, 268_001)])
def test_the_least_threshold_that_a_call_leaves_possible(passed, least):
    """Of 18.2.3: calls pass until the threshold and its eighth, at least 8,192 and at most 32,000 tokens, are there."""
    (smallest,) = least_thresholds(np.array([passed]))
    reached = [threshold + min(32_000, max(8_192, threshold // 8)) for threshold in (least, least - 1)]
    assert smallest == least
    assert reached[0] > passed >= reached[1]
