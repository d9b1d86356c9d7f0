"""The server's own compaction, as the requests of a log of OpenAI's Responses API ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from guard_core.checker import check
from guard_core.findings import Facts, recorded_findings
from guard_core.recordings.formats.openai.responses import FORMAT
from guard_core.rules import Agreement, Explanation, explain
from guard_core.sessions import Session
from tests.guard_core.recordings.checks import check_session, lines, read_as

JSON = dict[str, Any]
SEALED = {"type": "compaction", "id": "k1", "encrypted_content": "QUJD" * 40}


def session(threshold: int | None, prompts: Sequence[int], compacted: int = -1, output: int = 20) -> Session:
    """A call per prompt; the response of one of them begins with the item of a compaction."""
    talk: list[JSON] = [{"role": "user", "content": "Please list every file"}]
    asked = {"type": "compaction"} | ({} if threshold is None else {"compact_threshold": threshold})
    records = []
    for number, prompt in enumerate(prompts):
        call = {"type": "function_call", "call_id": f"c{number}", "name": "ls", "arguments": "{}"}
        answer = [SEALED, call] if number == compacted else [call]
        response = {"id": f"r{number}", "object": "response", "model": "gpt-5", "output": answer}
        usage = {"input_tokens": prompt, "output_tokens": output}
        request = {"model": "gpt-5", "instructions": "Be brief.", "input": list(talk), "context_management": [asked]}
        records.append({"request": request, "response": {**response, "usage": usage}})
        result = {"type": "function_call_output", "call_id": f"c{number}", "output": f"file {number} " * 900}
        talk += [*answer, result]
    return read_as(FORMAT, lines(*records)).sessions[0]


def judged(explained: Explanation) -> list[tuple[int | None, Agreement]]:
    return [(item.decision_tokens, item.verdict) for item in explained.compactions]


@pytest.mark.parametrize(
    ("prompt", "output", "count"),
    [
        (31_000, 20, 31_000),
        (29_990, 20, 30_010),  # the threshold was reached while it answered
        (30_000, 1, 30_001),
    ],
)
def test_a_response_with_the_item_says_on_what_count_the_server_compacted(prompt, output, count):
    built = session(30_000, [10_000, 20_000, prompt, 9_000, 15_000], compacted=2, output=output)
    check_session(built)
    explained = explain(built)
    assert explained.rule is not None
    assert (explained.rule.threshold, explained.rule.relation) == (30_000, ">")
    assert judged(explained) == [(count, Agreement.AGREES)]
    assert explained.missed == ()
    (interval,) = explained.inference
    assert (interval.above, interval.at_most) == (20_000, count)
    assert interval.hypotheses[0].threshold == 30_000
    facts = Facts.of(built)
    assert check(built, recorded_findings(facts), facts.window) == []


def test_a_smaller_count_may_be_of_what_was_left_and_proves_nothing():
    built = session(30_000, [10_000, 20_000, 8_000, 9_000], compacted=2)
    assert built.compactions[0].tokens_before is None
    assert judged(explain(built)) == [(None, Agreement.NOT_MODELLED)]


def test_a_compaction_within_the_last_response_is_at_the_end_of_the_recording():
    built = session(30_000, [10_000, 20_000, 31_000], compacted=2)
    check_session(built)
    (compaction,) = built.compactions
    assert (compaction.at, compaction.trigger, compaction.tokens_before) == (len(built.events), "auto", 31_000)
    assert judged(explain(built)) == [(31_000, Agreement.AGREES)]
    assert explain(built).missed == ()


def test_requests_above_the_threshold_without_an_item_are_checks_that_it_missed():
    built = session(25_000, [10_000, 30_000, 40_000, 9_000, 50_000], compacted=2)
    assert [(item.step, item.count) for item in explain(built).missed] == [(1, 30_000), (4, 50_000)]
    facts = Facts.of(built)
    findings = recorded_findings(facts)
    assert "own_missed" in {item.kind for item in findings}
    assert check(built, findings, facts.window) == []


def test_a_threshold_can_be_typed_in():
    explained = explain(
        session(25_000, [10_000, 20_000, 31_000, 9_000], compacted=2), typed={"compact_threshold": "40000"}
    )
    assert judged(explained) == [(31_000, Agreement.OTHER_THRESHOLD)]


def test_requests_that_ask_for_no_threshold_have_no_rule():
    assert explain(session(None, [10_000, 20_000])).rule is None
