"""Hermes databases, exports and trajectories."""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_left
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from guard_core.errors import DamagedRecording, RecordingError
from guard_core.events import ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from guard_core.findings import Facts
from guard_core.recordings.formats.hermes.format import FORMAT
from guard_core.sessions import Evidence
from guard_core.views import Inserted, Rewritten, Span
from guard_core.windows.window_evidence import Status
from tests.guard_core.recordings.checks import (
    SAMPLES,
    check_hostile,
    check_sample_facts,
    check_session,
    kept,
    lines,
    read_as,
    recognises,
    spoiled,
    texts,
)

MARK = "[CONTEXT COMPACTION — REFERENCE ONLY] We listed."
SESSION = {
    "id": "s1",
    "system_prompt": "Be brief.",
    "model": "m-1",
    "started_at": 100.0,
    "input_tokens": 60,
    "cache_read_tokens": 30,
    "cache_write_tokens": 10,
    "api_call_count": 4,
}
COLUMNS = "id, session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp, reasoning, active, compacted"


def row(
    role: str, content: str, time: float, call: str = "", *, compacted: bool = False, **rest: Any
) -> dict[str, Any]:
    values = {
        "role": role,
        "content": content,
        "timestamp": time,
        "active": int(not compacted),
        "compacted": int(compacted),
    }
    if call and role == "assistant":
        function = {"name": "bash", "arguments": '{"command": "ls"}'}
        values["tool_calls"] = json.dumps([{"id": call, "type": "function", "function": function}])
    elif call:
        values |= {"tool_call_id": call, "tool_name": "bash"}
    return values | rest


@pytest.fixture
def database(tmp_path: Path):
    """Write a state.db of message rows and session rows; its bytes."""

    def write(*rows: dict[str, Any], sessions: tuple[dict[str, Any], ...] = (SESSION,), schema: int = 0) -> bytes:
        path = tmp_path / "state.db"
        path.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as connection, connection:
            more = "parent_session_id, end_reason, ended_at, title, model_config"
            connection.execute(f"CREATE TABLE sessions ({', '.join(SESSION)}, {more})")
            connection.execute(f"CREATE TABLE messages ({COLUMNS})")
            if schema:
                connection.execute("CREATE TABLE schema_version (version)")
                connection.execute("INSERT INTO schema_version VALUES (?)", (schema,))
            for table, items in (("sessions", sessions), ("messages", rows)):
                for number, item in enumerate(items, 1):
                    values = {"id": number, "session_id": "s1", **item} if table == "messages" else item
                    names, holes = ", ".join(values), ", ".join("?" * len(values))
                    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({holes})", tuple(values.values()))
        connection.close()
        return path.read_bytes()

    return write


def old(role: str, content: str, time: float, call: str = "") -> dict[str, Any]:
    return row(role, content, time, call, compacted=True)


HISTORY = [
    old("user", "List", 1),
    old("assistant", "Look", 2, "c1"),
    old("tool", "a.txt", 3, "c1"),
    old("assistant", "Mid", 4),
]
AFTER = [
    row("user", "List", 1),
    row("user", MARK, 9),
    row("assistant", "Mid", 4),
    row("user", "Go", 10),
    row("assistant", "On", 11),
]


def test_rows_are_read_and_tokens_are_told_for_the_session(database):
    rows = [row("user", "List", 1), row("assistant", "Look", 2, "c1", reasoning="Hm"), row("tool", "a.txt", 3, "c1")]
    recording = read_as(FORMAT, database(*rows))
    session = recording.sessions[0]
    assert session.system == (TextPart("Be brief."),)
    assert session.events[1].parts == (
        ReasoningPart("Hm"),
        TextPart("Look"),
        ToolCallPart("bash", {"command": "ls"}, "c1"),
    )
    assert session.events[2].parts == (ToolResultPart("bash", "a.txt", "c1"),)
    assert session.calls[0].prompt_tokens is None
    assert "100 prompt tokens (cached ones included) in 4 calls" in session.notes[0]
    assert (session.prompt_tokens_total, session.total_calls, session.mean_prompt_tokens) == (100, 4, 25)
    assert (recording.facts.messages, recording.facts.tool_calls, recording.facts.model_calls) == (3, 1, 0)


@pytest.mark.parametrize("counts", [{"api_call_count": 0}, {"api_call_count": 1}, {"api_call_count": None}])
def test_totals_that_do_not_cover_every_call_of_the_log_are_left_out(database, counts):
    """The columns came with different versions, and a branch counts its own calls only."""
    rows = [row("user", "List", 1), row("assistant", "Look", 2), row("user", "And", 3), row("assistant", "Done", 4)]
    session = read_as(FORMAT, database(*rows, sessions=(SESSION | counts,))).sessions[0]
    assert (session.prompt_tokens_total, session.total_calls, session.mean_prompt_tokens) == (None, None, None)


def test_the_totals_of_a_session_with_one_call_are_the_counts_of_that_call(database):
    rows = [row("user", "List", 1), row("assistant", "Look", 2)]
    recording = read_as(FORMAT, lines(SESSION | {"messages": rows, "api_call_count": 1, "output_tokens": 7}))
    (call,) = recording.sessions[0].calls
    counts = (call.prompt_tokens, call.cached_tokens, call.cache_write_tokens, call.output_tokens)
    assert counts == (100, 30, 10, 7)
    assert recording.sessions[0].prompt_tokens_total is None
    assert "in 1 call." in recording.sessions[0].notes[0]
    assert (recording.facts.model_calls, recording.facts.prompt_tokens_sum) == (1, 100)
    session = read_as(FORMAT, database(*rows, sessions=(SESSION | {"api_call_count": 1},))).sessions[0]
    assert (session.calls[0].prompt_tokens, session.calls[0].output_tokens) == (100, None)


def test_an_export_has_the_totals_of_its_session():
    messages = [row("user", "List", 1), row("assistant", "Look", 2)]
    session = read_as(FORMAT, lines(SESSION | {"messages": messages})).sessions[0]
    assert (session.prompt_tokens_total, session.total_calls) == (100, 4)


def test_a_compaction_in_place_is_declared_and_its_copies_are_no_new_events(database):
    recording = read_as(FORMAT, database(*HISTORY, *AFTER))
    session, compaction = recording.sessions[0], recording.sessions[0].compactions[0]
    assert texts(session) == ["List", "Look", "", "Mid", "Go", "On"]
    assert (compaction.at, compaction.evidence, compaction.kind) == (4, Evidence.DECLARED, "summary+tail")
    assert compaction.base == (Span(0, 1), Inserted(0), Span(3, 4))
    assert [call.at for call in session.calls] == [1, 3, 5]
    assert (recording.facts.messages, recording.facts.compactions, recording.notes.folded) == (9, 1, 2)


def test_a_copy_with_shortened_content_is_told_as_rewritten(database):
    copies = [row("user", MARK, 9), row("assistant", "Look", 2, "c1"), row("tool", "[terminal] 1 line", 3, "c1")]
    base = read_as(FORMAT, database(*HISTORY, *copies)).sessions[0].compactions[0].base
    assert isinstance(base[2], Rewritten)
    assert base[2].event == 2
    assert kept(base) == [1]


def test_a_second_compaction_finds_the_first_originals(database):
    again = [
        row("user", "List", 1, active=0, compacted=1),
        *(item | {"active": 0, "compacted": 1} for item in AFTER[1:]),
    ]
    second = [
        row("user", "List", 1),
        row("user", MARK + " Again.", 20),
        row("assistant", "On", 11),
        row("user", "Bye", 21),
    ]
    session = read_as(FORMAT, database(*HISTORY, *again, *second)).sessions[0]
    assert texts(session) == ["List", "Look", "", "Mid", "Go", "On", "Bye"]
    assert [item.at for item in session.compactions] == [4, 6]
    assert session.compactions[1].base == (Span(0, 1), Inserted(0), Span(5, 6))


def test_rows_that_were_taken_back_are_left_out(database):
    recording = read_as(FORMAT, database(row("user", "Typo", 1, active=0), row("user", "List", 2)))
    assert texts(recording.sessions[0]) == ["List"]
    assert recording.notes.skipped == {"row that was taken back": 1}


def test_a_session_ended_by_compression_goes_on_in_its_child(database):
    sessions = (
        SESSION | {"end_reason": "compression"},
        SESSION | {"id": "s2", "parent_session_id": "s1", "started_at": 200.0},
    )
    first = [row("user", "List", 1), row("assistant", "Look", 2), row("user", "More", 3)]
    child = [row("user", "[CONTEXT SUMMARY]: We looked.", 200), row("user", "More", 201), row("assistant", "Done", 202)]
    rows = [*first, *(item | {"session_id": "s2"} for item in child)]
    recording = read_as(FORMAT, database(*rows, sessions=sessions))
    session = recording.sessions[0]
    assert texts(session) == ["List", "Look", "More", "Done"]
    assert session.compactions[0].base == (Inserted(0), Span(2, 3))
    assert "200 prompt tokens" in session.notes[0]
    assert (session.prompt_tokens_total, session.total_calls) == (200, 8)
    assert (len(recording.sessions), recording.facts.compactions) == (1, 1)


def test_copies_without_a_time_of_their_own_have_that_of_the_summary(database):
    def at_once(*words: str, start: float, role: str = "assistant") -> list[dict[str, Any]]:
        return [row(role, text, start + number / 1e6) for number, text in enumerate(words)]

    written = [
        *HISTORY,
        old("user", "List", 9.0),
        old("user", MARK, 9.000001),
        old("assistant", "Mid", 9.000002),
        old("user", "Go", 10),
        old("assistant", "Mid", 11),
        *at_once("List", MARK, start=20.0, role="user"),
        *at_once("Mid", start=20.000002),
        row("user", "New", 20.000003),
        row("assistant", "On", 21),
    ]
    recording = read_as(FORMAT, database(*written))
    session = recording.sessions[0]
    assert texts(session) == ["List", "Look", "", "Mid", "Go", "Mid", "New", "On"]
    assert [item.at for item in session.compactions] == [4, 7]
    assert session.compactions[0].base == (Span(0, 1), Inserted(0), Span(3, 4))
    assert session.compactions[1].base == (Span(0, 1), Inserted(0), Span(5, 7))
    assert recording.facts.compactions == 2


def test_text_is_what_is_sent_without_the_space_around_it_and_so_one_with_its_copy(database):
    """0.18.2, run: after the session was resumed, a compaction writes the user's text as it is sent."""
    before = [old("user", "List \n", 1), old("assistant", "Mid", 2), old("user", " Go ", 3), old("assistant", "On", 4)]
    first = [old("user", MARK, 9), old("user", " Go ", 9.000001), old("assistant", "On", 9.000002)]
    second = [row("user", MARK + " Again.", 20), row("user", "Go", 9.000001), row("assistant", "On", 9.000002)]
    (session,) = read_as(FORMAT, database(*before, *first, *second)).sessions
    assert texts(session) == ["List", "Mid", "Go", "On"]
    assert [(item.at, item.base) for item in session.compactions] == [(4, (Inserted(0), Span(2, 4)))] * 2


def test_two_compactions_may_follow_each_other_at_once(database):
    first = [old("user", "List", 1), old("user", MARK, 9), old("assistant", "Mid", 4)]
    second = [row("user", "List", 1), row("user", MARK, 12), row("assistant", "On", 13)]
    session = read_as(FORMAT, database(*HISTORY, *first, *second)).sessions[0]
    assert texts(session) == ["List", "Look", "", "Mid", "On"]
    assert [item.base for item in session.compactions] == [
        (Span(0, 1), Inserted(0), Span(3, 4)),
        (Span(0, 1), Inserted(0)),
    ]


def test_a_summary_behind_a_kept_messages_text_is_one(database):
    merged = "[PRIOR CONTEXT — for reference only]\nMid\n\n[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]\n\n" + MARK
    session = read_as(FORMAT, database(*HISTORY, row("user", "List", 1), row("assistant", merged, 4))).sessions[0]
    assert texts(session) == ["List", "Look", "", "Mid"]
    assert session.compactions[0].base == (Span(0, 1), Inserted(0))


def test_compacted_rows_declare_a_compaction_without_a_summary(database):
    session = read_as(FORMAT, database(*HISTORY, row("assistant", "Mid", 4), row("user", "Go", 10))).sessions[0]
    assert texts(session) == ["List", "Look", "", "Mid", "Go"]
    assert [(item.kind, item.at, item.base) for item in session.compactions] == [("trim", 4, (Span(3, 4),))]


def test_a_child_session_names_its_parent(database):
    child = SESSION | {"id": "s2", "parent_session_id": "s1", "started_at": 200.0}
    rows = [row("user", "List", 1), row("user", "Sub", 150, session_id="s2")]
    assert [item.parent for item in read_as(FORMAT, database(*rows, sessions=(SESSION, child))).sessions] == ["", "s1"]


def test_calls_of_another_session_are_counted_whatever_ids_they_have(database):
    rows = [row("user", "List", 1), row("assistant", "Look", 2, "c1"), row("tool", "a.txt", 3, "c1")]
    others = [{**item, "session_id": "s2"} for item in rows]
    facts = read_as(FORMAT, database(*rows, *others, sessions=(SESSION, SESSION | {"id": "s2"}))).facts
    assert (facts.messages, facts.tool_calls, facts.tool_results) == (6, 2, 2)


def test_a_sub_agent_does_not_go_on_with_its_parents_session(database):
    ended = SESSION | {"end_reason": "compression", "ended_at": 200.0}
    child = SESSION | {"parent_session_id": "s1"}
    sessions = (ended, child | {"id": "agent", "started_at": 150.0}, child | {"id": "s2", "started_at": 200.1})
    rows = [
        row("user", "List", 1),
        row("user", "Sub", 150, session_id="agent"),
        row("user", MARK, 201, session_id="s2"),
        row("assistant", "Done", 202, session_id="s2"),
    ]
    recording = read_as(FORMAT, database(*rows, sessions=sessions))
    assert [texts(session) for session in recording.sessions] == [["List", "Done"], ["Sub"]]
    assert recording.facts.compactions == 1


def test_a_session_whose_first_rows_are_lost_says_so(database):
    sessions = (
        SESSION | {"end_reason": "compression"},
        SESSION | {"id": "s2", "parent_session_id": "s1", "started_at": 200.0},
    )
    rows = [row("user", "List", 201), row("user", MARK, 202), row("assistant", "Done", 203)]
    recording = read_as(FORMAT, database(*(item | {"session_id": "s2"} for item in rows), sessions=sessions))
    compaction = recording.sessions[0].compactions[0]
    assert texts(recording.sessions[0]) == ["List", "Done"]
    assert (compaction.at, compaction.base, compaction.evidence) == (1, (Span(0, 1), Inserted(0)), Evidence.DECLARED)
    assert "not in the file" in compaction.note


def chained(*calls: int, **last: Any) -> tuple[dict[str, Any], ...]:
    """Sessions that compressions ended, but for the last one, with so many calls each."""
    rows = [
        SESSION
        | {"id": f"s{number}", "parent_session_id": f"s{number - 1}", "started_at": 100.0 * number}
        | {"ended_at": 100.0 * number + 99, "api_call_count": count, "end_reason": "compression"}
        for number, count in enumerate(calls, 1)
    ]
    return (rows[0] | {"parent_session_id": None}, *rows[1:-1], rows[-1] | {"end_reason": None} | last)


def written(session: str, start: float, *texts: str) -> list[dict[str, Any]]:
    """Messages of a session, in milliseconds of each other: "u" and a text of the user, "a" and one of the model."""
    roles = {"u": "user", "a": "assistant"}
    return [
        row(roles[text[0]], text[2:], start + number / 1000, session_id=session) for number, text in enumerate(texts)
    ]


def test_compactions_within_a_turn_are_placed_by_the_calls_of_their_sessions(database):
    """To 0.16 the messages of a turn are written at its end, into its last session."""
    turn = written("s3", 300, "u List", f"u {MARK}", "a One", "a Two", "a Three")
    recording = read_as(FORMAT, database(*turn, sessions=chained(2, 1, 1)))
    (session,) = recording.sessions
    assert texts(session) == ["List", "One", "Two", "Three"]
    assert [(item.at, item.kind, item.tokens_before) for item in session.compactions] == [
        (2, "opaque", None),
        (3, "summary+tail", 100),
    ]
    assert [item.base for item in session.compactions] == [
        (Span(0, 1), Inserted(0), Span(1, 2)),
        (Span(0, 1), Inserted(0), Span(1, 3)),
    ]
    assert [item.timestamp for item in session.compactions] == [199, 299]
    assert (recording.facts.compactions, session.total_calls) == (2, 4)
    assert "1 compactions within turns no message was written" in session.notes[0]


def test_a_session_that_ends_a_turn_and_begins_the_next_has_calls_of_both(database):
    first = written("s2", 200, "u List", f"u {MARK}", "a One", "a Two")
    second = written("s4", 400, "u List", f"u {MARK}", "u Go", "a Three", "a Four", "a Five")
    (session,) = read_as(FORMAT, database(*first, *second, sessions=chained(1, 2, 1, 1))).sessions
    assert texts(session) == ["List", "One", "Two", "Go", "Three", "Four", "Five"]
    assert [item.at for item in session.compactions] == [2, 5, 6]
    assert [item.tokens_before for item in session.compactions] == [100, None, 100]


def test_compactions_of_an_unfinished_turn_are_at_the_end(database):
    rows = written("s1", 100, "u List", "a One")
    recording = read_as(FORMAT, database(*rows, sessions=chained(1, 1, 1)))
    (session,) = recording.sessions
    assert [(item.at, item.kind, item.base) for item in session.compactions] == [(2, "opaque", (Inserted(0),))] * 2
    assert "Neither the summary nor what was kept" in session.compactions[0].note
    assert recording.facts.compactions == 2


def test_compactions_among_lost_answers_are_behind_them(database):
    turn = written("s3", 300, "u List", "a One", f"u {MARK}", "a Six")
    (session,) = read_as(FORMAT, database(*turn, sessions=chained(2, 3, 1))).sessions
    assert [item.at for item in session.compactions] == [2, 2]
    assert [item.base for item in session.compactions] == [(Span(0, 2), Inserted(0))] * 2


def test_a_call_without_a_result_has_the_words_that_are_sent_for_it(database):
    rows = [row("user", "List", 1), row("assistant", "", 2, "c1"), row("user", "Go", 3), row("assistant", "", 4, "c2")]
    recording = read_as(FORMAT, database(*rows))
    (session,) = recording.sessions
    stub = ToolResultPart("bash", "[Result unavailable — see context summary above]", "c1")
    assert [event.parts for event in session.events[2:4]] == [(stub,), (TextPart("Go"),)]
    assert [call.at for call in session.calls] == [1, 4]  # the call at the end may still get its result
    assert recording.facts.tool_results == 0


def test_an_answer_that_lost_its_call_in_a_compaction_is_the_one_of_its_time(database):
    """0.19, run: after it the kept rows are repeated, all with the time at which they were written."""
    before = [
        old("user", "List", 1),
        old("assistant", "", 2, "c1"),
        old("user", "Go", 3),
        old("assistant", "Look", 4, "c2"),
        old("tool", "a.txt", 5, "c2"),
    ]
    kept = [row("assistant", "Look", 9.000001, "c2"), row("tool", "a.txt", 9.000002, "c2")]
    after = [row("user", MARK, 9), row("assistant", "(tool call removed)", 2), *kept, row("assistant", "Done", 11)]
    (session,) = read_as(FORMAT, database(*before, *after)).sessions
    (compaction,) = session.compactions
    assert [call.at for call in session.calls] == [1, 4, 6]
    removed, tail = compaction.base[1:]
    assert (removed.event, removed.message.parts, tail) == (1, (TextPart("(tool call removed)"),), Span(4, 6))


def test_what_a_child_session_has_that_none_before_it_had_is_behind_the_compaction(database):
    """0.17, run: messages are written before a session ends, those of a child all at its own end."""
    sessions = chained(2, 1)
    before = written("s1", 100, "u List", "a One", "u Go", "a Two")
    child = written("s2", 200, f"u {MARK}", "u Go", "a Two", "a Three")
    (session,) = read_as(FORMAT, database(*before, *child, sessions=sessions, schema=16)).sessions
    assert texts(session) == ["List", "One", "Go", "Two", "Three"]
    assert [(item.at, item.base) for item in session.compactions] == [(4, (Inserted(0), Span(2, 4)))]


def test_a_message_that_a_child_session_has_further_back_is_the_one_of_before(database):
    """0.19, run with `in_place: false`: the user's last message is put behind older answers."""
    before = written("s1", 100, "u List", "a One", "a Two", "a Three")
    child = written("s2", 200, f"u {MARK}", "a Two", "u List", "a Three") + written("s2", 300, "a Four")
    (session,) = read_as(FORMAT, database(*before, *child, sessions=chained(3, 1), schema=22)).sessions
    assert texts(session) == ["List", "One", "Two", "Three", "Four"]
    assert session.compactions[0].base == (Inserted(0), Span(2, 3), Span(0, 1), Span(3, 4))


def test_copies_in_a_child_session_that_are_written_one_by_one_are_no_new_messages(database):
    """0.17, run: some milliseconds lie between two of them, sometimes thirty."""
    before = written("s1", 100, "u List", "a One", "u Go", "a Two", "a Three")
    child = written("s2", 200, f"u {MARK}", "u List", "a One", "u Go")
    child += written("s2", 200.033, "a Two", "a Three")
    after = written("s2", 300, "a Four")
    (session,) = read_as(FORMAT, database(*before, *child, *after, sessions=chained(3, 1), schema=16)).sessions
    assert texts(session) == ["List", "One", "Go", "Two", "Three", "Four"]
    assert [(item.at, item.base) for item in session.compactions] == [(5, (Inserted(0), Span(0, 5)))]


def test_answers_with_the_same_words_on_both_sides_of_a_message_that_was_moved_back_are_those_of_before(database):
    before = written("s1", 100, "u List", "a One", "a Done", "a Two", "a Done", "a Three")
    child = written("s2", 200, f"u {MARK}", "a Done", "u List", "a Done", "a Three") + written("s2", 300, "a Four")
    (session,) = read_as(FORMAT, database(*before, *child, sessions=chained(3, 1), schema=22)).sessions
    assert texts(session) == ["List", "One", "Done", "Two", "Done", "Three", "Four"]
    assert session.compactions[0].base == (Inserted(0), Span(2, 3), Span(0, 1), Span(4, 6))


def test_an_answer_like_an_earlier_one_is_new_if_it_is_later_than_the_child_sessions_first_messages(database):
    """0.19, run with `in_place: false`; a summary merged into a kept answer has the answer's time."""
    merged = "[PRIOR CONTEXT — for reference only]\nOne\n\n[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]\n\n" + MARK
    before = written("s1", 100, "u List", "a One", "a Done", "u Go")
    copies = [row("assistant", merged, 100.001), *written("s2", 200, "a Done", "u Go")]
    child = [item | {"session_id": "s2"} for item in copies] + written("s2", 300, "a Done")
    (session,) = read_as(FORMAT, database(*before, *child, sessions=chained(2, 1), schema=22)).sessions
    assert texts(session) == ["List", "One", "Done", "Go", "Done"]
    assert [(item.at, item.base) for item in session.compactions] == [(4, (Inserted(0), Span(2, 4)))]


@pytest.mark.parametrize(
    ("schema", "version"), [(11, "before 0.18"), (16, "before 0.18"), (17, "0.18"), (19, "0.18"), (22, "")]
)
def test_the_schema_of_a_database_names_the_versions_of_the_agent(database, schema, version):
    assert read_as(FORMAT, database(row("user", "List", 1), schema=schema)).sessions[0].version == version


def test_the_limit_of_the_output_is_a_setting(database):
    config = SESSION | {"model_config": '{"max_tokens": 32000}'}
    (session,) = read_as(FORMAT, database(row("user", "List", 1), sessions=(config,))).sessions
    assert [(item.name, item.value) for item in session.settings] == [("max_output_tokens", 32_000)]


def test_damaged_columns_are_told_with_their_message(database):
    broken = database(row("user", "List", 1), row("assistant", "Look", 2, tool_calls="[{oops"))
    with pytest.raises(DamagedRecording, match="the tool_calls of message 2 are not a list"):
        read_as(FORMAT, broken, strict=True)
    assert read_as(FORMAT, broken).notes.problem_count == 1
    with pytest.raises(DamagedRecording, match="the content of message 1 is not text"):
        read_as(FORMAT, database(row("user", 7, 1)), strict=True)


def test_sessions_that_are_their_own_ancestors_are_still_read(database):
    circle = tuple(
        SESSION | {"id": a, "parent_session_id": b, "end_reason": "compression"}
        for a, b in (("s1", "s2"), ("s2", "s1"))
    )
    assert texts(read_as(FORMAT, database(row("user", "Hi", 1), sessions=circle)).sessions[0]) == ["Hi"]


def export(*rows: dict[str, Any]) -> dict[str, Any]:
    return {**SESSION, "end_reason": None, "messages": list(rows)}


def test_an_export_matches_the_wording_and_keeps_the_tail_before_the_cut():
    head = [row("user", "List", 1), row("user", MARK, 9), row("assistant", "Mid", 4), row("user", "Go", 10)]
    recording = read_as(FORMAT, lines(export(*head)))
    compaction = recording.sessions[0].compactions[0]
    assert texts(recording.sessions[0]) == ["List", "Mid", "Go"]
    assert (compaction.at, compaction.evidence) == (2, Evidence.MATCHED)
    assert compaction.base == (Span(0, 1), Inserted(0), Span(1, 2))
    assert recording.facts.compactions == 0


@pytest.mark.parametrize("written", [lines, lambda *exports: list(exports)], ids=["lines", "array"])
def test_a_session_that_was_exported_again_is_read_in_its_fullest_state(written):
    """Twice the same, and an earlier state: one session. A history that was compacted since is no earlier state."""
    rows = [row("user", "List", 1), row("assistant", "Mid", 4), row("user", "Go", 10)]
    recording = read_as(FORMAT, written(export(*rows), export(*rows[:2]), export(*AFTER), export(*rows)))
    assert [texts(session) for session in recording.sessions] == [["List", "Mid", "Go"], ["List", "Mid", "Go", "On"]]
    assert (recording.facts.messages, recording.notes.folded) == (8, 2)


def test_a_marker_in_a_tool_result_is_no_compaction():
    rows = [row("user", "List", 1), row("assistant", "", 2, "c1"), row("tool", MARK, 3, "c1")]
    session = read_as(FORMAT, lines(export(*rows))).sessions[0]
    assert session.compactions == ()
    assert len(session.events) == 3


def test_older_session_lines_are_read():
    meta = {"role": "session_meta", "model": "m-1", "tools": [{"type": "function", "function": {"name": "bash"}}]}
    session = read_as(
        FORMAT, lines(meta, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"})
    ).sessions[0]
    assert texts(session) == ["Hi", "Ho"]
    assert session.tools[0].name == "bash"


def test_the_line_about_an_older_session_may_stand_further_down():
    talk = [{"role": "user", "content": f"Say {number}"} for number in range(8)]
    meta = {"role": "session_meta", "model": "m-1", "platform": "telegram"}
    recording = read_as(FORMAT, lines(*talk, meta, {"role": "assistant", "content": "Ho"}))
    assert (len(recording.sessions[0].events), recording.sessions[0].model) == (9, "m-1")


TURNS = [
    {"from": "system", "value": 'Tools: <tools>[{"type": "function", "function": {"name": "bash"}}]</tools>'},
    {"from": "human", "value": "List"},
    {
        "from": "gpt",
        "value": '<think>Hm</think>\nLook <tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>',
    },
    {"from": "tool", "value": "<tool_response>\na\n</tool_response>\n<tool_response>\nbb\n</tool_response>"},
    {"from": "gpt", "value": "Done"},
]


def test_trajectories_are_taken_apart_at_their_tags():
    recording = read_as(FORMAT, lines({"conversations": TURNS}, {"conversations": TURNS}))
    session = recording.sessions[0]
    thought, text, call = session.events[1].parts
    assert (thought, text) == (ReasoningPart("Hm"), TextPart("Look"))
    assert (call.name, call.arguments) == ("bash", {"command": "ls"})
    assert [part.content for part in session.events[2].parts] == ["a", "bb"]
    assert session.events[2].parts[0].call_id == call.id
    assert session.tools[0].name == "bash"
    assert (recording.facts.messages, recording.facts.tool_results, len(recording.sessions)) == (10, 4, 2)


def test_calls_of_trajectories_take_the_ids_of_their_results():
    body = json.dumps({"tool_call_id": "c9", "name": "bash", "content": {"output": "a"}})
    answer = '<think>\n</think>\n<tool_call>{"name": "bash", "arguments": {}}</tool_call>'
    turns = [
        TURNS[1],
        {"from": "gpt", "value": answer},
        {"from": "tool", "value": f"<tool_response>{body}</tool_response>"},
    ]
    recording = read_as(FORMAT, turns)
    assert recording.sessions[0].events[1].parts == (ToolCallPart("bash", {}, "c9"),)
    assert recording.sessions[0].events[2].parts == (ToolResultPart("bash", {"output": "a"}, "c9"),)
    assert recording.facts.largest_tool_result_chars == len('{"output":"a"}')


def test_a_summary_in_a_trajectory_is_matched():
    turns = [TURNS[1], {"from": "human", "value": MARK}, TURNS[4]]
    session = read_as(FORMAT, turns).sessions[0]
    assert texts(session) == ["List", "Done"]
    assert (session.compactions[0].base, session.compactions[0].evidence) == (
        (Span(0, 1), Inserted(0)),
        Evidence.MATCHED,
    )


def test_tools_may_stand_beside_a_conversation():
    value = {"conversations": TURNS[1:], "tools": '[{"type": "function", "function": {"name": "bash"}}]'}
    assert read_as(FORMAT, value).sessions[0].tools[0].name == "bash"


def test_a_turn_that_is_no_text_is_told():
    with pytest.raises(DamagedRecording, match="a turn of human whose value is not text"):
        read_as(FORMAT, [TURNS[1], {"from": "human", "value": 7}], strict=True)


def test_a_bare_array_of_turns_is_one_session():
    assert [call.at for call in read_as(FORMAT, TURNS).sessions[0].calls] == [1, 3]


def test_tags_that_are_never_closed_are_text():
    noise = "<think>" * 50_000
    session = read_as(FORMAT, [TURNS[1], {"from": "gpt", "value": noise}]).sessions[0]
    assert session.events[1].parts == (TextPart(noise),)


def test_files_without_messages_are_damaged_and_others_not_taken(database):
    with pytest.raises(DamagedRecording, match="no session"):
        read_as(FORMAT, database())
    assert not recognises(FORMAT, {"messages": [{"role": "user", "content": "x"}]})
    assert not recognises(FORMAT, [{"role": "user", "content": "x"}])


def test_wrong_types_anywhere_are_survived(database):
    check_hostile(FORMAT, (lines(bad) for bad in spoiled(export(*HISTORY[:3], *AFTER[:3]))))
    check_hostile(FORMAT, (lines(bad) for bad in spoiled(TURNS)))
    odd = (None, -1, 1e300, 2**62, "", "x", b"\xff", "[{}]")
    for name in ("role", "content", "timestamp", "tool_calls", "tool_call_id", "compacted", "session_id"):
        for bad in odd:
            try:
                recording = read_as(FORMAT, database(*HISTORY, row("user", MARK, 9) | {name: bad}, *AFTER[2:]))
            except RecordingError:
                continue
            for session in recording.sessions:
                check_session(session)


def test_the_facts_of_the_samples_are_equal():
    check_sample_facts(FORMAT, "hermes")


RULES = SAMPLES / "../rules/hermes/default-200k"


@pytest.mark.skipif(not RULES.is_dir(), reason="../shared/rules is absent")
def test_it_finds_every_compaction_that_the_agent_made_and_where():
    truth = json.loads((RULES / "truth.json").read_text())["compactions"]
    recording = read_as(FORMAT, (RULES / "state.db").read_bytes())
    [session] = recording.sessions
    ats = [call.at for call in session.calls]
    steps = [bisect_left(ats, compaction.at) for compaction in session.compactions]
    # `after_call` counts from 0 over all calls, those that wrote the summaries before it included.
    assert steps == [item["after_call"] + 1 - before for before, item in enumerate(truth)]
    assert recording.facts.compactions == len(truth) == 7


@pytest.mark.skipif(not RULES.is_dir(), reason="../shared/rules is absent")
def test_the_modelled_requests_of_a_real_session_sum_to_its_recorded_total():
    """The stub that answered counted 10,816,853 prompt tokens in 82 calls, the largest of 150,000."""
    facts = Facts.of(read_as(FORMAT, (RULES / "state.db").read_bytes()).sessions[0])
    assert facts.requests.tokens.sum() == pytest.approx(10_816_853, abs=41)
    assert int(facts.requests.tokens.max()) == pytest.approx(150_000, rel=0.05)
    assert facts.window.status is Status.CONTRADICTED
