"""OpenClaw's sessions: pi's entries in its database, and the rule that explains them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest
import zstandard

from guard_core.errors import DamagedRecording
from guard_core.events import ToolResultPart
from guard_core.ledger import Ledger
from guard_core.recordings import first_look
from guard_core.recordings import read as read_file
from guard_core.recordings.formats.pi.session import FORMAT
from guard_core.requests import materialise
from guard_core.rules import explain
from guard_core.rules.openclaw import rule, variants
from guard_core.rules.registry import agent_of
from guard_core.rules.stretches import stretches_of
from guard_core.sessions import DAMAGED, Provenance, Sourced
from guard_core.views import Inserted, Span
from tests.guard_core.recordings.checks import lines, read_as
from tests.guard_core.recordings.formats.pi.test_session import HEADER, assistant, entry, result, user

MARK = {"__openclaw": {"runId": "r1"}}
ASKED = "And now more"  # 12 characters, 3 tokens


def own(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, **MARK}


def turns(prompt: int, *, kept: str = "e2") -> list[dict[str, Any]]:
    """A turn whose last answer has a prompt of so many tokens and 7 more; a compaction, and another turn."""
    return [
        entry("e0", None, message=own(user("List files"))),
        entry("e1", "e0", message=assistant("I look", 100, "call_1")),
        entry("e2", "e1", message=own(result("call_1"))),
        entry("e3", "e2", message=assistant("Done", prompt)),
        entry("k1", "e3", "compaction", summary="the summary", firstKeptEntryId=kept, tokensBefore=prompt + 7),
        entry("e4", "k1", message=own(user(ASKED))),
        entry("e5", "e4", message=assistant("All of them", 120)),
    ]


@pytest.fixture
def database(tmp_path):
    """Bytes of a database with the entries of sessions, every second one behind zstd."""

    def write(*sessions: list[dict[str, Any]], window: int = 200_000) -> bytes:
        path = tmp_path / "openclaw-agent.sqlite"
        path.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.executescript(
                "CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, event_zstd BLOB);"
                "CREATE TABLE session_nodes (session_key TEXT, current_session_id TEXT, entry_json TEXT);"
            )
            for number, entries in enumerate(sessions, 1):
                name = f"s{number}"
                node = json.dumps({"contextTokens": window, "totalTokens": 9, "contextBudgetStatus": {"tokens": 5}})
                connection.execute("INSERT INTO session_nodes VALUES (?, ?, ?)", (f"agent:main:{name}", name, node))
                for seq, item in enumerate([{**HEADER, "id": name}, *entries]):
                    text = json.dumps(item)
                    packed = zstandard.ZstdCompressor().compress(text.encode()) if seq % 2 else None
                    row = (name, seq, None if packed else text, packed)
                    connection.execute("INSERT INTO transcript_events VALUES (?, ?, ?, ?)", row)
        return path.read_bytes()

    return write


def test_the_entries_of_a_database_are_a_session_of_openclaw(database):
    recording = read_as(FORMAT, database(turns(1_000), turns(2_000)), strict=True)
    assert recording.notes.problems == []
    assert [session.source_id for session in recording.sessions] == ["s1", "s2"]
    session = recording.sessions[0]
    assert agent_of(session).label == session.agent == "OpenClaw"
    assert (session.window.value, session.window.source) == (200_000, Provenance.RECORDER)
    assert [call.prompt_tokens for call in session.calls] == [100, 1_000, 120]
    assert [(item.at, item.base) for item in session.compactions] == [(4, (Inserted(0), Span(2, 4)))]
    assert {event.line for event in session.events} == {None}
    assert (recording.facts.model_calls, recording.facts.compactions) == (6, 2)


def test_a_file_of_the_database_is_recognised(database, tmp_path):
    database(turns(1_000))
    assert read_file(tmp_path / "openclaw-agent.sqlite").sessions[0].agent == "OpenClaw"
    assert first_look(tmp_path / "openclaw-agent.sqlite") is None


def test_results_that_are_sent_cut_are_shown_as_they_are_sent(database):
    sent = {"key": "tool:call1:1790000000000", "sourceHash": "h", "texts": ["[... 5 more characters truncated]"]}
    uncut = {"key": "tool:call2:1790000000000", "sourceHash": "h"}
    *before, last = turns(1_000)[:4] + turns(1_000)[5:]
    before[-1] = {**before[-1], "parentId": "e3"}
    data = {"prunedToolResults": [], "frozenToolResults": [sent, uncut]}
    again = [
        entry("c1", "e4", "custom", customType="openclaw.cache-ttl", data=data),
        entry("c2", "c1", "custom", customType="openclaw.cache-ttl", data=data),
    ]
    session = read_as(FORMAT, database([*before, *again, {**last, "parentId": "c2"}]), strict=True).sessions[0]
    assert [(item.at, item.kind) for item in session.compactions] == [(5, "edit")]
    ledger, shown = Ledger.of(session), []
    for step in (1, 2):
        view, epoch = ledger.recorded_view(step)
        parts = (part for event in materialise(view, session, epoch) for part in event.parts)
        shown += [part.content for part in parts if isinstance(part, ToolResultPart)]
    assert shown == ["a.txt", "[... 5 more characters truncated]"]


@pytest.mark.parametrize(
    ("window", "threshold", "formula"),
    [(200_000, 180_000, "200,000 − 20,000 (reserve)"), (64_000, 48_000, "64,000 − 16,000 (reserve)")],
)  # 2026.9.6, run
def test_its_own_rule_counts_the_message_before_which_it_compacts(database, window, threshold, formula):
    verdicts = []
    for prompt in (threshold - 11, threshold - 10):  # and 7 tokens of the answer, and 3 of the message
        explained = explain(read_as(FORMAT, database(turns(prompt), window=window)).sessions[0])
        rule, (judged,) = explained.rules[0], explained.compactions
        assert (rule.threshold, rule.relation, rule.formula) == (threshold, ">=", formula)
        assert judged.decision_tokens == prompt + 10
        verdicts.append(judged.verdict.value)
    assert verdicts == ["other threshold", "agrees"]


def test_what_compacts_within_a_turn_is_not_compared():
    first, second = turns(1_000)[:3], turns(1_000)[4]
    within = {**second, "parentId": "e2"}
    entries = [*first, within, entry("e3", "k1", message=assistant("Done", 500))]
    (judged,) = explain(read_as(FORMAT, lines(HEADER, *entries)).sessions[0], typed={"window": "200000"}).compactions
    assert judged.verdict.value == "not modelled"
    assert judged.reason.endswith(
        "by an estimate of the next request, after a refused one, or because a person asked for it"
    )


def test_behind_results_its_estimate_compacted_though_the_message_is_sent_once_more():
    entries = [*turns(1_000)[:3], {**turns(1_000)[4], "parentId": "e2"}, *turns(1_000)[5:]]
    explained = explain(read_as(FORMAT, lines(HEADER, *entries)).sessions[0], typed={"window": "200000"})
    (judged,) = explained.compactions
    assert (judged.decision_tokens, judged.verdict.value) == (None, "not modelled")
    assert judged.reason == "its estimate of the next request, by which it compacts within a turn, is not in the file"


def test_lines_are_openclaws_where_it_noted_the_model():
    noted = entry("m1", None, "custom", customType="model-snapshot", data={"modelId": "m"})
    entries = [noted, entry("e0", "m1", message=user("Hi")), entry("e1", "e0", message=assistant("Hello"))]
    assert read_as(FORMAT, lines(HEADER, *entries)).sessions[0].agent == "OpenClaw"


def test_lines_that_openclaw_marked_are_its_own_and_others_are_pis():
    assert read_as(FORMAT, lines(HEADER, *turns(1_000))).sessions[0].agent == "OpenClaw"
    entries = [entry("e0", None, message=user("Hi")), entry("e1", "e0", message=assistant("Hello"))]
    assert read_as(FORMAT, lines(HEADER, *entries)).sessions[0].agent == "pi"


def test_a_damaged_row_is_named_or_left_out(database, tmp_path):
    database(turns(1_000))
    path = tmp_path / "openclaw-agent.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE transcript_events SET event_zstd = x'28b52ffd00ff' WHERE seq = 1")
    with pytest.raises(DamagedRecording, match="event 1 of session s1: the zstd frame is damaged"):
        read_as(FORMAT, path.read_bytes(), strict=True)
    recording = read_as(FORMAT, path.read_bytes())
    assert recording.notes.problem_count == 1
    assert len(recording.sessions[0].events) == 5


@pytest.mark.parametrize("damaged", [("s1",), ("s2",)])
def test_a_session_of_which_no_row_can_be_read_leaves_the_others_as_they_are(database, tmp_path, damaged):
    database(turns(1_000), turns(2_000))
    path = tmp_path / "openclaw-agent.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        values = "event_json = NULL, event_zstd = x'28b52ffd00ff'"
        connection.execute(f"UPDATE transcript_events SET {values} WHERE session_id = ?", damaged)
    recording = read_file(path)
    assert [session.source_id for session in recording.sessions] == [{"s1": "s2", "s2": "s1"}[damaged[0]]]
    assert (len(recording.sessions[0].events), recording.facts.model_calls) == (6, 3)
    assert DAMAGED not in recording.sessions[0].notes
    assert "session without an entry that can be read" in recording.notes.skipped


def test_a_database_of_which_nothing_can_be_read_says_why(database, tmp_path):
    database(turns(1_000))
    path = tmp_path / "openclaw-agent.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE transcript_events SET event_json = NULL, event_zstd = x'28b52ffd00ff'")
    with pytest.raises(DamagedRecording, match="no session that can be read: event 0 of session s1: the zstd frame is"):
        read_file(path)


def test_a_reserve_of_0_that_was_typed_is_no_change_of_the_rule():
    typed = {"window": "100000", "reserve_tokens": "0", "reserve_tokens_floor": "0"}
    session = read_as(FORMAT, lines(HEADER, *turns(1_000))).sessions[0]
    (stretch,) = stretches_of(session, Sourced(100_000, Provenance.USER, "typed in"))
    unchanged = {item.threshold for item in variants(stretch, typed) if item.changes == 0}
    assert unchanged == {rule(stretch, typed).threshold} == {100000}
