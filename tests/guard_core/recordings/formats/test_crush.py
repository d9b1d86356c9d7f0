"""Crush and old OpenCode databases."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard

from guard_core.errors import DamagedRecording, RecordingError
from guard_core.events import MediaPart, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings import read
from guard_core.recordings.formats.crush import FORMAT
from guard_core.sessions import Evidence
from guard_core.views import Inserted
from tests.guard_core.recordings.checks import (
    SAMPLES,
    check_sample_facts,
    check_session,
    read_as,
    recognises,
    spoiled,
    texts,
)

SESSION = {
    "id": "s1",
    "title": "Explore",
    "prompt_tokens": 900,
    "completion_tokens": 20,
    "message_count": 9,
    "created_at": 1,
}


def part(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data}


USER = ("user", [part("text", text="List"), part("finish", reason="stop")])
LOOK = ("assistant", [part("text", text="Look"), part("tool_call", id="c1", name="bash", input='{"command": "ls"}')])
FOUND = ("tool", [part("tool_result", tool_call_id="c1", name="", content="a.txt", is_error=False)])
DONE = ("assistant", [part("text", text="Done")])


@pytest.fixture
def database(tmp_path: Path):
    """Write a database of messages `(role, parts)` and session rows; its bytes."""

    def write(*messages: tuple[str, Any], sessions: tuple[dict[str, Any], ...] = (SESSION,), **marks: Any) -> bytes:
        path = tmp_path / "crush.db"
        path.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE goose_db_version (id INTEGER)")
            columns = "id, parent_session_id, title, message_count, prompt_tokens, completion_tokens, created_at"
            connection.execute(f"CREATE TABLE sessions ({columns}, summary_message_id)")
            for row in sessions:
                names = ", ".join(row)
                holes = ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO sessions ({names}) VALUES ({holes})", tuple(row.values()))
            columns = "id, session_id, role, parts, model, created_at, is_summary_message"
            provider = ", provider" if marks.get("provider", True) else ""
            connection.execute(f"CREATE TABLE messages ({columns}{provider})")
            for number, (role, parts) in enumerate(messages):
                text = json.dumps(parts) if isinstance(parts, list) else parts
                values = (
                    f"m{number}",
                    marks.get("session", "s1"),
                    role,
                    text,
                    "m-1",
                    marks.get("start", 1760000000) + number,
                    0,
                )
                connection.execute(f"INSERT INTO messages ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", values)
            if "served_by" in marks:
                connection.execute("UPDATE messages SET model = 'gpt-5.4', provider = ?", (marks["served_by"],))
            if marks.get("model"):
                connection.execute("UPDATE messages SET model = ?", (marks["model"],))
            if marks.get("provider"):
                connection.execute("UPDATE messages SET provider = ?", (marks["provider"],))
            for name in marks.get("summaries", ()):
                connection.execute("UPDATE messages SET is_summary_message = 1 WHERE id = ?", (name,))
        connection.close()
        return path.read_bytes()

    return write


def test_parts_are_read_and_only_the_last_call_has_a_count(database):
    recording = read_as(FORMAT, database(USER, LOOK, FOUND, DONE))
    session = recording.sessions[0]
    assert session.events[1].parts == (TextPart("Look"), ToolCallPart("bash", {"command": "ls"}, "c1"))
    assert session.events[2].parts == (ToolResultPart("bash", "a.txt", "c1"),)
    assert [(call.at, call.response, call.prompt_tokens) for call in session.calls] == [(1, 1, None), (3, 3, 920)]
    assert (session.title, session.model) == ("Explore", "m-1")
    facts = recording.facts
    assert (facts.messages, facts.tool_calls, facts.largest_tool_result_chars, facts.model_calls) == (4, 1, 5, 0)


def test_a_part_that_is_none_is_refused_with_its_message(database):
    with pytest.raises(DamagedRecording, match=r"^message m1: part 2 is text and no object"):
        read(database(USER, ("assistant", [LOOK[1][0], "damaged"])), strict=True)


def test_a_call_that_ended_in_an_error_was_not_answered(database):
    failed = ("assistant", [part("finish", reason="error", message="API Error", details="529 Overloaded")])
    session = read_as(FORMAT, database(USER, LOOK, FOUND, failed, USER, DONE)).sessions[0]
    check_session(session)
    assert [(call.at, call.response) for call in session.calls] == [(1, 1), (3, None), (5, 5)]
    assert session.refused == ()


@pytest.mark.parametrize(("provider", "model"), [("copilot", "github-copilot/gpt-5.4"), ("openai", "gpt-5.4")])
def test_a_model_that_github_copilot_serves_is_called_by_that_service(database, provider, model):
    session = read_as(FORMAT, database(USER, DONE, served_by=provider)).sessions[0]
    assert {call.model for call in session.calls} == {model}


def test_a_request_that_the_provider_refused_as_too_long_is_an_overflow_and_no_call(database):
    refused = ("assistant", [part("finish", reason="error", message="API Error", details="413 Prompt is too long")])
    session = read_as(FORMAT, database(USER, LOOK, FOUND, refused, USER, DONE)).sessions[0]
    check_session(session)
    assert [(call.at, call.response) for call in session.calls] == [(1, 1), (5, 5)]
    assert session.refused == (3,)


def test_the_tokens_of_the_last_call_and_missing_messages_are_told(database):
    notes = read_as(FORMAT, database(USER, LOOK)).sessions[0].notes
    assert "900 prompt and 20 completion tokens" in notes[0]
    assert "taken as the prompt of step 1" in notes[0]
    assert "7 of 9 messages" in notes[1]


@pytest.mark.parametrize(
    ("model", "provider", "taken"),
    [
        ("gemini-3-pro", "gemini", False),
        ("gemini-3-pro", "vertexai", False),
        ("gemini-3-pro", "copilot", True),
        ("google/gemini-3-pro", "openrouter", True),
        ("claude-5", "vertexai", True),
        ("gemini-2.5", None, False),
        ("vertexai.gemini-2.5", None, False),
        ("copilot.gemini-2.5", None, True),
    ],
)
def test_a_count_in_which_cached_tokens_are_twice_is_told_and_not_taken(database, model, provider, taken):
    content = database(USER, DONE, model=model, provider=provider or "")
    session = read_as(FORMAT, content).sessions[0]
    assert session.calls[-1].prompt_tokens == (920 if taken else None)
    assert ("Gemini's cache count twice" in session.notes[0]) is not taken


def test_an_answered_call_before_a_refused_one_has_the_count_of_the_row(database):
    refused = ("assistant", [part("finish", reason="error", message="API Error", details="413 Prompt is too long")])
    session = read_as(FORMAT, database(USER, LOOK, FOUND, refused)).sessions[0]
    assert [call.prompt_tokens for call in session.calls] == [920]


def test_after_a_summary_the_row_counts_no_prompt(database):
    row = {**SESSION, "prompt_tokens": 0, "summary_message_id": "m3"}
    session = read_as(FORMAT, database(USER, LOOK, FOUND, DONE, sessions=(row,))).sessions[0]
    assert [call.prompt_tokens for call in session.calls] == [None]
    assert session.notes[0].endswith("0 prompt and 20 completion tokens.")


def test_a_database_without_providers_is_the_old_opencodes(database):
    assert read_as(FORMAT, database(USER)).sessions[0].agent == "Crush"
    session = read_as(FORMAT, database(USER, provider=False)).sessions[0]
    assert (session.agent, session.notes[0][:29]) == ("OpenCode", "OpenCode keeps no tokens per ")


def test_the_summary_message_is_a_declared_compaction_outside_the_log(database):
    summary = ("assistant", [part("reasoning", thinking="Hm"), part("text", text="We listed.")])
    data = database(USER, LOOK, FOUND, summary, USER, DONE, sessions=({**SESSION, "summary_message_id": "m3"},))
    recording = read_as(FORMAT, data)
    session, compaction = recording.sessions[0], recording.sessions[0].compactions[0]
    assert (compaction.at, compaction.evidence, compaction.base) == (3, Evidence.DECLARED, (Inserted(0),))
    assert compaction.messages[0].role is Role.USER
    assert compaction.messages[0].parts == (TextPart("We listed."),)
    assert texts(session) == ["List", "Look", "", "List", "Done"]
    assert recording.facts.compactions == 1


GOES_ON = "The previous session was interrupted because it got too long, the initial user request was: `List`"
GOES_ON_AFTER_REFUSAL = (
    "The previous session was interrupted because it exceeded the context window and the history was summarized."
    " The initial user request was: `List`"
)


@pytest.mark.parametrize("words", [GOES_ON, GOES_ON_AFTER_REFUSAL])
def test_crushs_own_message_after_a_summary_belongs_to_it_and_says_that_it_was_automatic(database, words):
    goes_on = ("user", [part("text", text=words), part("finish", reason="stop")])
    data = database(USER, LOOK, FOUND, DONE, goes_on, DONE, USER, DONE, summaries=("m3",))
    session = read_as(FORMAT, data).sessions[0]
    check_session(session)
    assert [event.starts_turn() for event in session.events] == [True, False, False, False, True, False]
    [compaction] = session.compactions
    assert (compaction.at, compaction.trigger, compaction.base) == (3, "auto", (Inserted(0), Inserted(1)))
    assert compaction.messages[1].parts == (TextPart(words),)


def test_a_message_that_waited_comes_before_crushs_own(database):
    goes_on = ("user", [part("text", text=GOES_ON)])
    data = database(USER, LOOK, FOUND, DONE, USER, DONE, goes_on, DONE, summaries=("m3",))
    session = read_as(FORMAT, data).sessions[0]
    check_session(session)
    assert [event.starts_turn() for event in session.events] == [True, False, False, True, False, False, False]
    assert [(item.trigger, len(item.messages)) for item in session.compactions] == [("auto", 1)]


def test_who_asked_for_a_summary_is_not_known_where_the_user_goes_on(database):
    session = read_as(FORMAT, database(USER, LOOK, FOUND, DONE, USER, DONE, summaries=("m3",))).sessions[0]
    assert [item.trigger for item in session.compactions] == [""]


def test_every_marked_summary_counts(database):
    summary = ("assistant", [part("text", text="S")])
    session = read_as(FORMAT, database(USER, summary, USER, summary, DONE, summaries=("m1", "m3"))).sessions[0]
    assert [item.at for item in session.compactions] == [1, 2]


def test_a_summary_that_is_gone_is_told_and_counted(database):
    recording = read_as(FORMAT, database(USER, LOOK, sessions=({**SESSION, "summary_message_id": "gone"},)))
    assert recording.facts.compactions == 1
    assert recording.sessions[0].compactions == ()
    assert "no longer in the database" in recording.sessions[0].notes[0]


def test_other_parts_are_kept(database):
    parts = [part("reasoning", thinking="Hm", signature="c2ln"), part("binary", MIMEType="image/png", Data="AAAA")]
    event = read_as(FORMAT, database(USER, ("assistant", [*parts, part("new_kind", x=1)]))).sessions[0].events[1]
    assert event.parts[:2] == (ReasoningPart("Hm", 3), MediaPart("image/png", 3))
    assert event.parts[2].kind == "new_kind"


def test_attached_text_and_shell_commands_are_text_of_the_user(database):
    file = part("binary", Path="a.txt", MIMEType="text/plain", Data="w6k=")
    shell = part("shell_command", command="ls", output="\x1b[31ma.txt\x1b[0m", exit_code=1)
    event = read_as(FORMAT, database(("user", [*USER[1], file, shell]))).sessions[0].events[0]
    assert [piece.text for piece in event.parts] == [
        "List",
        "<file path='a.txt'>\n\né\n</file>\n",
        "$ ls\na.txt\n(exit code 1)",
    ]


def test_a_picture_in_a_result_stands_beside_it(database):
    shown = part("tool_result", tool_call_id="c1", content="See", data="AAAA", mime_type="image/png")
    event = read_as(FORMAT, database(USER, LOOK, ("tool", [shown]))).sessions[0].events[2]
    assert event.parts == (ToolResultPart("bash", "See", "c1"), MediaPart("image/png", 3))


def test_tokens_beside_the_end_of_an_answer_are_those_of_its_call(database):
    ended = part("finish", reason="end_turn", prompt_tokens=900, completion_tokens=20)
    recording = read_as(FORMAT, database(USER, ("assistant", [*DONE[1], ended])))
    assert (recording.facts.model_calls, recording.facts.prompt_tokens_sum) == (1, 900)
    assert recording.sessions[0].calls[0].output_tokens == 20
    assert "no tokens" not in " ".join(recording.sessions[0].notes)


def test_parts_behind_zstd_are_inflated(database):
    packed = zstandard.ZstdCompressor().compress(json.dumps(USER[1]).encode())
    assert texts(read_as(FORMAT, database(("user", packed), DONE)).sessions[0]) == ["List", "Done"]
    with pytest.raises(DamagedRecording, match="the parts of message m0: the zstd frame is damaged"):
        read_as(FORMAT, database(("user", packed[:4] + b"\xff" * 20), DONE), strict=True)


@pytest.mark.parametrize("parts", [None, 7, "", "{}"])
def test_parts_that_are_no_list_are_told_with_their_message(database, parts):
    data = database(USER, ("assistant", parts), DONE)
    with pytest.raises(DamagedRecording, match="the parts of message m1 are not a list"):
        read_as(FORMAT, data, strict=True)
    recording = read_as(FORMAT, data)
    assert texts(recording.sessions[0]) == ["List", "Done"]
    assert [problem.message for problem in recording.notes.problems] == ["the parts of message m1 are not a list"]


def test_a_shown_session_is_read_as_the_database_is(database):
    def shown(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
        return {"id": "m", "role": role, "created": "2025-10-09T08:53:20Z", "model": "m-1", "parts": list(parts)}

    call = {"type": "tool_call", "tool_call_id": "c1", "name": "bash", "input": '{"command": "ls"}'}
    value = {
        "meta": {
            "id": "hash",
            "uuid": "s1",
            "title": "Explore",
            "created": "2025-10-09T08:53:20Z",
            "prompt_tokens": 900,
        },
        "messages": [
            shown("user", {"type": "text", "text": "List"}, {"type": "finish", "reason": "stop"}),
            shown("assistant", {"type": "text", "text": "Look"}, call),
            shown("tool", {"type": "tool_result", "tool_call_id": "c1", "content": "a.txt"}),
            shown(
                "assistant", {"type": "text", "text": "Done"}, {"type": "binary", "mime_type": "image/png", "size": 3}
            ),
        ],
    }
    same = read_as(FORMAT, database(USER, LOOK, FOUND, DONE))
    recording = read_as(FORMAT, value)
    session = recording.sessions[0]
    assert [event.parts for event in session.events[:3]] == [event.parts for event in same.sessions[0].events[:3]]
    assert session.events[3].parts == (TextPart("Done"), MediaPart("image/png", 3))
    assert (session.source_id, session.title, session.started_at) == ("s1", "Explore", 1760000000.0)
    assert recording.facts == same.facts


def test_child_sessions_are_sessions_and_empty_ones_are_counted(database):
    child = {"id": "c", "title": "Sub", "parent_session_id": "s1"}
    recording = read_as(FORMAT, database(USER, sessions=(SESSION, child)))
    assert len(recording.sessions) == 1
    assert recording.notes.skipped == {"session without messages": 1}
    sub = read_as(FORMAT, database(USER, sessions=(SESSION, child), session="c")).sessions[0]
    assert "child session of s1" in sub.notes[1]
    assert sub.parent == "s1"


QUAY = SAMPLES / "crush/quay.db"


@pytest.mark.skipif(not QUAY.exists(), reason="../shared/samples is absent")
def test_the_call_that_started_a_child_session_is_found_by_its_name():
    by_name = {session.source_id: session for session in read(QUAY).sessions}
    child = next(session for session in by_name.values() if session.parent)
    started = by_name[child.parent].sub_agents[0]
    call = next(item for item in by_name[child.parent].events[started.at].parts if isinstance(item, ToolCallPart))
    assert (started.session, started.call) == (child.source_id, call.id)


def test_one_damaged_message_does_not_stop_the_others(database):
    recording = read_as(FORMAT, database(USER, ("assistant", "[{"), DONE))
    assert texts(recording.sessions[0]) == ["List", "Done"]
    assert "m1" in recording.notes.problems[0].message


def test_an_empty_database_is_damaged_and_others_are_not_taken(database, tmp_path):
    with pytest.raises(DamagedRecording):
        read_as(FORMAT, database())
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE messages (role, content)")
    connection.close()
    assert not recognises(FORMAT, path.read_bytes())


def test_wrong_types_anywhere_are_survived(database):
    everything = [*USER[1], *LOOK[1], *FOUND[1], part("binary", Data="AA"), part("reasoning", thinking="x")]
    for bad in spoiled(everything):
        try:
            check_session(read_as(FORMAT, database(("assistant", bad))).sessions[0])
        except RecordingError:
            continue


def test_the_facts_of_the_samples_are_equal():
    check_sample_facts(FORMAT, "crush")


def test_sums_over_all_calls_of_the_first_versions_of_the_old_opencode_are_no_count_of_the_last_one(database):
    """Until May 2025 it added the tokens of every call up in the row of their session."""
    start = 1_746_437_320
    for about, last in (({"provider": False}, None), ({}, 920), ({"provider": False, "start": start + 600_000}, 920)):
        written = database(USER, LOOK, FOUND, DONE, **{"start": start, **about})
        session = read(written).sessions[0]
        assert [call.prompt_tokens for call in session.calls] == [None, last], about
        says = "Before 9 May 2025 it added up those of all calls, cached ones left out: 900 prompt and 20 completion"
        assert any(says in note for note in session.notes) == (last is None)
