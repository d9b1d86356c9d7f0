"""Conversations that Letta Code keeps on its own machine: pi's entries with what it adds, and the rule that explains
them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guard_core.events import part_text
from guard_core.ledger import Ledger
from guard_core.recordings import first_look
from guard_core.recordings.formats.pi.session import FORMAT
from guard_core.requests import materialise
from guard_core.rules import explain
from guard_core.rules.registry import agent_of
from guard_core.sessions import Provenance
from guard_core.views import Inserted, Span
from tests.guard_core.recordings.checks import lines, read_as
from tests.guard_core.recordings.formats.pi.test_session import HEADER, assistant, entry, result, user

NOTE = "Note: 2 messages are hidden.\n the summary"
OWN = {"metadata": {"agent_id": "agent-local-1", "conversation_id": "local-conv-1"}}
REMINDER = "<system-reminder>\n## Device Information\n- **Letta Code version**: {}\n</system-reminder>"


def own(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, **OWN}


def asked(text: str, version: str) -> dict[str, Any]:
    blocks = [{"type": "text", "text": block} for block in (REMINDER.format(version), text)]
    return own({"role": "user", "content": blocks})


def compaction(entry_id: str, parent: str, kept: str | None, trigger: str, window: int = 10_000) -> dict[str, Any]:
    stats = {"trigger": trigger, "context_tokens_before": 300, "context_tokens_after": 90, "context_window": window}
    words = json.dumps({"type": "system_alert", "message": NOTE})
    message = own({"role": "user", "content": [{"type": "text", "text": words}]})
    message["metadata"] = {**OWN["metadata"], "compaction": {"summary": "the summary", "stats": stats}}
    fields = {"summary": "the summary", "tokensBefore": 300, "message": message, "details": {"stats": stats}}
    return entry(entry_id, parent, "compaction", firstKeptEntryId=kept, **fields)


def conversation(trigger: str = "context_window_limit", *, result_chars: int = 804) -> list[dict[str, Any]]:
    """Two turns; the compaction lies within the second, behind a result of so many characters. The window is 10,000,
    of which 2,000 are kept free; the answer before the result had 7,793 tokens with its prompt."""
    messages = (
        asked("List files", "0.34.11"),
        own(assistant("I look", 7_000, "c1")),
        own(result("c1")),
        own(assistant("Done", 7_100)),
        asked("And now more of them", "0.34.12"),
        own(assistant("I look again", 7_786, "c2")),
        own(result("c2", "x" * result_chars)),
    )
    entries = [entry(f"e{i}", f"e{i - 1}" if i else None, message=message) for i, message in enumerate(messages)]
    after = entry("e7", "k1", message=own(assistant("All of them", 7_200)))
    return [*entries, compaction("k1", "e6", "e3", trigger), after]


def read(entries: list[dict[str, Any]]):
    recording = read_as(FORMAT, lines(HEADER, *entries))
    assert recording.notes.problems == []
    return recording.sessions[0]


def test_the_agent_its_versions_and_the_window_of_its_compactions_are_read():
    session = read(conversation())
    assert session.agent == "Letta Code"
    assert session.versions == ((0, "0.34.11"), (4, "0.34.12"))
    assert (session.window.value, session.window.source) == (10_000, Provenance.RECORDER)
    assert agent_of(session).label == "Letta Code"


def test_the_message_that_it_sends_in_place_of_the_others_is_shown_as_it_is_sent():
    session = read(conversation())
    (item,) = session.compactions
    assert (item.at, item.base) == (7, (Inserted(0), Span(3, 7)))
    view, epoch = Ledger.of(session).recorded_view(3)
    sent = materialise(view, session, epoch)
    assert (
        part_text(sent[0].parts[0])
        == '{"type": "system_alert", "message": "Note: 2 messages are hidden.\\n the summary"}'
    )
    assert [message.source_id for message in sent[1:]] == ["e3", "e4", "e5", "e6"]


@pytest.mark.parametrize(
    ("word", "trigger"),
    [("context_window_limit", "auto"), ("context_window_overflow", "overflow"), ("manual", "manual")],
)
def test_who_asked_for_a_compaction_is_read(word, trigger):
    assert read(conversation(word)).compactions[0].trigger == trigger


def test_a_compaction_that_keeps_nothing_leaves_the_summary_alone():
    *before, last = conversation()
    session = read([*before[:-1], compaction("k1", "e6", None, "manual"), last])
    assert session.compactions[0].base == (Inserted(0),)


@pytest.mark.parametrize(
    ("result_chars", "verdict"), [(825, "other threshold"), (828, "other threshold"), (829, "agrees")]
)  # 8,000 = 7,793 + 828 / 4; above it fires
def test_its_own_rule_counts_what_came_since_the_last_answer(result_chars, verdict):
    explained = explain(read(conversation(result_chars=result_chars)))
    rule, (judged,) = explained.rules[-1], explained.compactions
    assert (rule.threshold, rule.relation, rule.formula) == (8_000, ">", "10,000 − 2,000 (reserve)")
    assert judged.decision_tokens == 7_793 + -(-result_chars // 4)
    assert judged.verdict.value == verdict
    assert explained.missed == ()


def test_sessions_of_pi_are_still_pis():
    entries = [entry("e0", None, message=user("Hi")), entry("e1", "e0", message=assistant("Hello"))]
    session = read(entries)
    assert (session.agent, agent_of(session).label, session.versions) == ("pi", "pi", ())


def bare(number: int, message: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """A message as 0.25 wrote it, made in this second."""
    made = f"2026-01-01T00:00:{number:02d}.000Z"
    return {"id": f"ui-msg-{number}", **message, "metadata": {**OWN["metadata"], "created_at": made, **metadata}}


def compacted(counted: int) -> list[dict[str, Any]]:
    """What is left after a compaction behind an answer of so many tokens with its prompt; a turn follows."""
    stats = {"trigger": "context_window_limit", "context_window": 10_000, "context_tokens_before": 300}
    text = json.dumps({"type": "system_alert", "message": NOTE})
    summary = {"role": "user", "content": [{"type": "text", "text": text}]}
    return [
        bare(7, summary, compaction={"summary": "the summary", "stats": stats}),
        bare(3, assistant("I look", 10_200, "c1")),
        bare(4, result("c1")),
        bare(6, assistant("Done", counted - 7)),
        bare(8, user("More")),
        bare(9, assistant("All", 8_000)),
    ]


def test_messages_without_entries_are_read_with_the_compaction_behind_those_that_were_there_before():
    recording = read_as(FORMAT, lines(*compacted(10_001)), strict=True)
    assert recording.notes.problems == []
    session = recording.sessions[0]
    assert (session.agent, session.source_id, session.window.value) == ("Letta Code", "local-conv-1", 10_000)
    assert [call.prompt_tokens for call in session.calls] == [10_200, 9_994, 8_000]
    assert [(item.at, item.base, item.trigger) for item in session.compactions] == [
        (3, (Inserted(0), Span(0, 3)), "auto")
    ]
    assert any("compactions before the last, are lost" in note for note in session.notes)


@pytest.mark.parametrize(("counted", "verdict"), [(10_000, "other threshold"), (10_001, "agrees")])
def test_the_earlier_version_compares_the_total_with_the_window_and_lost_compactions_count_for_nothing(
    counted, verdict
):
    explained = explain(read_as(FORMAT, lines(*compacted(counted))).sessions[0])
    rule, (judged,) = explained.rules[0], explained.compactions
    assert (rule.threshold, rule.relation, rule.formula) == (10_000, ">", "10,000 (window)")
    assert (judged.decision_tokens, judged.verdict.value) == (counted, verdict)
    assert explained.missed == ()  # 10,207 tokens before it: a compaction there would be lost


def test_messages_without_a_compaction_are_a_conversation_too():
    first, second = bare(1, user("Hi")), bare(2, assistant("Hello", 100))
    session = read_as(FORMAT, lines(first, second), strict=True).sessions[0]
    assert (session.agent, len(session.events), session.compactions) == ("Letta Code", 2, ())
    assert not any("are lost" in note for note in session.notes)


def test_a_compaction_that_left_nothing_stands_before_what_follows():
    summary, *_, question, answer = compacted(9_000)
    session = read_as(FORMAT, lines(summary, question, answer)).sessions[0]
    assert [(item.at, item.base) for item in session.compactions] == [(0, (Inserted(0),))]


def test_a_second_compaction_before_the_first_has_its_place_leaves_the_first_in_the_log():
    first, *rest = compacted(10_001)
    second = {**bare(7, {"role": "user", "content": "Note"}, compaction={"summary": "another"}), "id": "ui-msg-17"}
    recording = read_as(FORMAT, lines(first, second, *rest), strict=True)
    assert [item.at for item in recording.sessions[0].compactions] == [0, 3]
    assert recording.facts.compactions == 2


def test_messages_without_entries_have_no_first_look(tmp_path):
    path = tmp_path / "messages.jsonl"
    path.write_bytes(lines(*compacted(10_001)))
    assert first_look(path) is None
