"""The provider's own compaction and clearing, as the requests of a log ask for them."""

from __future__ import annotations

from typing import Any

import pytest

from guard_core.checker import check
from guard_core.findings import Facts, recorded_findings
from guard_core.recordings.formats.anthropic_messages import FORMAT
from guard_core.rules import Agreement, Moment, explain
from guard_core.sessions import Session
from tests.guard_core.recordings.checks import lines, read_as

JSON = dict[str, Any]
CLEARS = {
    "type": "clear_tool_uses_20250919",
    "trigger": {"type": "input_tokens", "value": 30_000},
    "keep": {"type": "tool_uses", "value": 5},
    "clear_at_least": {"type": "input_tokens", "value": 2_000},
    "exclude_tools": ["memory", "web_search"],
}


def looked(number: int) -> list[JSON]:
    call = {"type": "tool_use", "id": f"t{number}", "name": "ls", "input": {}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"file {number} " * 900}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def session(*edits: JSON, compacted_at: int = 0, by: int = 10_000) -> Session:
    """Five calls whose prompts grow by so many tokens; the fifth is answered behind a summary of that many."""
    talk: list[JSON] = [{"role": "user", "content": "Please list every file"}]
    records = []
    for number in range(5):
        call, result = looked(number)
        usage: JSON = {"input_tokens": by * (number + 1), "output_tokens": 20}
        if number == 4 and compacted_at:
            summary = {"type": "compaction", "content": "Files were listed."}
            call = {**call, "content": [summary, *call["content"]]}
            iteration = {"type": "compaction", "input_tokens": compacted_at, "output_tokens": 90}
            usage = {"input_tokens": 2_000, "output_tokens": 20, "iterations": [iteration]}
        response = {"id": f"m{number}", "type": "message", "role": "assistant", "model": "c", "usage": usage}
        request = {"model": "c", "system": "Be brief.", "messages": list(talk), "context_management": {"edits": edits}}
        records.append({"request": request, "response": {**response, "content": call["content"]}})
        talk += [call, result]
    return read_as(FORMAT, lines(*records)).sessions[0]


def compacts(value: int | None = None) -> JSON:
    trigger = {} if value is None else {"trigger": {"type": "input_tokens", "value": value}}
    return {"type": "compact_20260112", **trigger}


@pytest.mark.parametrize(("edit", "threshold"), [(compacts(50_000), 50_000), (compacts(), 150_000)])
def test_the_requests_say_above_which_input_tokens_the_provider_compacts(edit, threshold):
    built = session(edit, compacted_at=threshold + 1_500, by=threshold * 24 // 100)
    explained = explain(built)
    assert (explained.rule.threshold, explained.rule.relation) == (threshold, ">")
    assert [(item.decision_tokens, item.verdict) for item in explained.compactions] == [
        (threshold + 1_500, Agreement.AGREES)
    ]
    assert explained.missed == ()


def test_requests_above_the_trigger_that_were_not_summarised_are_checks_that_it_missed():
    built = session(compacts(25_000))
    assert [(item.step, item.count) for item in explain(built).missed] == [(2, 30_000), (3, 40_000), (4, 50_000)]
    facts = Facts.of(built)
    findings = recorded_findings(facts)
    assert "own_missed" in {item.kind for item in findings}
    assert check(built, findings, facts.window) == []


def test_clearing_of_tool_results_is_no_compaction():
    explained = explain(session(CLEARS))
    rule = explained.rule
    assert (rule.checks, rule.reason) == (
        Moment.NEVER,
        "above 30,000 tokens the provider clears tool results, all but the newest 5",
    )
    assert [(item.name, item.value) for item in rule.settings] == [
        ("clear_trigger", 30_000),
        ("clear_keep", 5),
        ("clear_at_least", 2_000),
        ("clear_excluded", 2),
    ]
    by_uses = {"type": CLEARS["type"], "trigger": {"type": "tool_uses", "value": 8}}
    assert explain(session(by_uses)).rule.reason == (
        "above 8 tool uses the provider clears tool results, all but the newest 3"
    )


def test_a_log_that_asks_for_neither_has_no_rule():
    assert explain(session()).rule is None
