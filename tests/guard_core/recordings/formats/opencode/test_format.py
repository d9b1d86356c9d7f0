"""Exports of OpenCode."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from guard_core.errors import DamagedRecording, UnknownFormat
from guard_core.events import Role, TextPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.recordings import read
from guard_core.recordings.formats.opencode.format import FORMAT
from guard_core.recordings.formats.opencode.session import CLEARED, QUESTION, RAN
from guard_core.recordings.reading.source import ByteSource
from guard_core.rules import explain
from guard_core.sessions import SubAgent
from guard_core.triggers import AUTOMATIC, trigger_of
from guard_core.views import CHANGED, JOINED, Inserted, Rewritten, Span
from guard_core.windows.window_evidence import judge_session
from tests.guard_core.recordings.checks import (
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

START = 1_770_000_000_000  # milliseconds


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def tool(call: str, output: str = "a.txt", second: int = 0, **state: Any) -> dict[str, Any]:
    time = {"end": START + second * 1000, **state.pop("time", {})}
    values = {"status": "completed", "input": {"path": "."}, "output": output, "time": time, **state}
    return {"type": "tool", "tool": "list", "callID": call, "state": values}


def finish(fresh: int, read: int = 0) -> dict[str, Any]:
    return {"type": "step-finish", "tokens": {"input": fresh, "output": 5, "cache": {"read": read, "write": 0}}}


def user(message: str, second: int, *parts: dict[str, Any]) -> dict[str, Any]:
    info = {"id": message, "role": "user", "time": {"created": START + second * 1000}, "summary": {"diffs": []}}
    return {"info": info, "parts": list(parts)}


def assistant(message: str, second: int, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    info = {"id": message, "role": "assistant", "modelID": "m", "time": {"created": START + second * 1000}, **more}
    return {"info": info, "parts": list(parts)}


def export(*messages: dict[str, Any], **info: Any) -> dict[str, Any]:
    return {"info": {"id": "ses_1", "title": "Files", "time": {"created": START}, **info}, "messages": list(messages)}


TALK = (
    user("m1", 0, text("List files")),
    assistant("m2", 1, {"type": "step-start"}, text("I look"), tool("c1", second=2), finish(60, 40)),
    user("m3", 10, text("And now?")),
    assistant("m4", 11, {"type": "step-start"}, text("The same"), finish(20, 120)),
)
SUMMARY = (
    user("m5", 20, {"type": "compaction", "auto": True, "tail_start_id": "m3"}),
    assistant("m6", 21, {"type": "step-start"}, text("One file was found"), finish(150), summary=True),
)


def session_of(*messages: dict[str, Any], **info: Any):
    session = read_as(FORMAT, export(*messages, **info)).sessions[0]
    check_session(session)
    return session


def test_a_step_is_an_event_with_its_calls_and_one_with_their_results():
    session = session_of(*TALK)
    assert [event.role for event in session.events[:3]] == [Role.USER, Role.MODEL, Role.USER]
    assert session.events[2].parts == (ToolResultPart("list", "a.txt", "c1"),)
    assert [(call.at, call.prompt_tokens, call.cached_tokens) for call in session.calls] == [
        (1, 100, 40),
        (4, 140, 120),
    ]


def test_one_message_may_hold_several_calls():
    first = ({"type": "step-start"}, tool("c1"), finish(10))
    second = ({"type": "step-start"}, tool("c2"), finish(20))
    session = session_of(TALK[0], assistant("m2", 1, *first, *second))
    assert [(call.at, call.prompt_tokens) for call in session.calls] == [(1, 10), (3, 20)]


@pytest.mark.parametrize(
    ("counts", "output"),
    [
        ({"output": 7, "reasoning": 30, "total": 137}, 37),  # 1.4.3 and later
        ({"output": 37, "reasoning": 30, "total": 137}, 37),  # 1.2.16: it is part of the output
        ({"output": 7, "reasoning": 30}, 7),
    ],
)
def test_what_the_model_thought_is_part_of_its_output(counts, output):
    said = {"type": "step-finish", "tokens": {"input": 60, **counts, "cache": {"read": 40, "write": 0}}}
    session = session_of(TALK[0], assistant("m2", 1, {"type": "step-start"}, text("I look"), said))
    assert (session.calls[0].prompt_tokens, session.calls[0].output_tokens) == (100, output)


def test_more_tokens_may_be_cached_than_counted():
    session = session_of(TALK[0], assistant("m2", 1, {"type": "step-start"}, text("I look"), finish(-5, 105)))
    assert session.calls[0].prompt_tokens == 100


@pytest.mark.parametrize(
    ("provider", "model", "window"),
    [
        ("github-copilot", "github-copilot/gpt-5.4", 400_000),
        ("github-copilot-enterprise", "github-copilot/gpt-5.4", 400_000),
        ("openai", "gpt-5.4", 1_050_000),
    ],
)
def test_a_model_that_github_copilot_serves_has_the_window_of_that_service(provider, model, window):
    step = ({"type": "step-start"}, text("I look"), finish(60, 40))
    session = session_of(TALK[0], assistant("m2", 1, *step, modelID="gpt-5.4", providerID=provider))
    assert (session.calls[0].model, judge_session(session).value) == (model, window)


@pytest.mark.parametrize(
    ("model", "costs", "served", "threshold"),
    [
        ("gpt-5.5", (0, 0), "openai-codex/gpt-5.5", 252_000),
        ("gpt-5.5", (0, None), "openai-codex/gpt-5.5", 252_000),  # the second call was interrupted
        ("gpt-5.5", (0.02, 0.03), "gpt-5.5", 968_000),
        ("gpt-5.4", (0, 0), "gpt-5.4", 1_018_000),  # OpenCode has the limits of the API for it
    ],
)
def test_calls_that_cost_nothing_are_those_of_a_subscription_with_the_window_of_that_service(
    model, costs, served, threshold
):
    answers = []
    for place, cost in enumerate(costs):
        end = () if cost is None else ({**finish(60, 40), "cost": cost},)
        begun = ({"type": "step-start"}, text("I look"))
        named = {"modelID": model, "providerID": "openai", "cost": cost or 0}
        answers.append(assistant(f"m{place + 2}", place + 1, *begun, *end, **named))
    session = session_of(TALK[0], *answers)
    assert [call.model for call in session.calls] == [served] * 2
    assert explain(session).rules[-1].threshold == threshold


def test_a_count_that_is_none_is_told():
    odd = {"type": "step-finish", "id": "prt_9", "tokens": {"input": "many", "cache": {"read": 5}}}
    talk = export(TALK[0], assistant("m2", 1, {"type": "step-start"}, text("I look"), odd))
    with pytest.raises(DamagedRecording, match=r'tokens\.input is "many", no count of tokens'):
        read_as(FORMAT, talk, strict=True)
    assert read_as(FORMAT, talk).notes.problem_count == 1


def test_an_interrupted_step_is_a_call_without_tokens():
    pending = tool("c1", status="running", output=None)
    recording = read_as(FORMAT, export(TALK[0], assistant("m2", 1, {"type": "step-start"}, text("I lo"), pending)))
    assert [call.prompt_tokens for call in recording.sessions[0].calls] == [None]
    assert (recording.facts.model_calls, recording.facts.tool_calls, recording.facts.tool_results) == (0, 1, 0)


def test_a_failed_tool_gives_its_error():
    failed = tool("c1", status="error", error="no such file")
    session = session_of(TALK[0], assistant("m2", 1, failed, finish(10)))
    assert session.events[2].parts == (ToolResultPart("list", "no such file", "c1", True),)


def test_a_compaction_keeps_its_tail_behind_question_and_summary():
    session = session_of(*TALK, *SUMMARY, user("m7", 22, text("Continue", synthetic=True)))
    compaction = session.compactions[0]
    assert (compaction.at, compaction.kind, compaction.trigger) == (5, "summary+tail", "auto")
    assert kept(compaction.base) == [3, 4]
    assert [event.parts[0].text for event in compaction.messages] == [QUESTION, "One file was found", "Continue"]
    assert compaction.summariser is not None
    assert compaction.summariser.prompt_tokens == 150
    assert texts(session)[-1] == "The same"


def test_a_tail_from_before_the_last_compaction_holds_what_that_one_put_in():
    again = (
        user("m8", 30, {"type": "compaction", "auto": True, "tail_start_id": "m4"}),
        assistant("m9", 31, text("Still one file"), summary=True),
    )
    going_on = user("m7", 22, text("Continue", synthetic=True))
    session = session_of(*TALK, *SUMMARY, going_on, assistant("m71", 23, text("Go on"), finish(70)), *again)
    compaction = session.compactions[1]
    assert compaction.base == (*map(Inserted, range(2)), Span(4, 5), *map(Inserted, range(2, 5)), Span(5, 6))
    assert [event.parts[0].text for event in compaction.messages] == [
        QUESTION,
        "Still one file",
        QUESTION,
        "One file was found",
        "Continue",
    ]


def test_a_message_without_an_id_begins_no_tail():
    marker = user("m3", 20, {"type": "compaction", "auto": True})
    summary = assistant("m4", 21, text("Summary."), summary=True)
    compaction = session_of(user("", 1, text("Go.")), assistant("m2", 2, text("Done.")), marker, summary).compactions[0]
    assert (compaction.kind, compaction.base) == ("summary", (Inserted(0), Inserted(1)))


def test_an_older_summary_has_no_question_before_it():
    session = session_of(*TALK, SUMMARY[1], user("m7", 22, text("More")))
    compaction = session.compactions[0]
    assert (compaction.kind, compaction.trigger, kept(compaction.base)) == ("summary", "", [])
    assert [event.parts[0].text for event in compaction.messages] == ["One file was found"]


def test_words_said_again_after_an_overflow_are_no_second_turn():
    marker = user("m5", 20, {"type": "compaction", "auto": True, "overflow": True})
    again = user("m7", 22, text("And now?"))
    session = session_of(*TALK, marker, SUMMARY[1], again, assistant("m8", 23, text("Fine"), finish(30)))
    (compaction,) = session.compactions
    assert (compaction.kind, compaction.trigger) == ("summary+tail", "overflow")
    assert compaction.base == (Inserted(0), Inserted(1), Span(3, 4))
    assert texts(session)[-2:] == ["The same", "Fine"]


def test_a_file_of_a_prompt_that_is_sent_again_may_be_left_out():
    marker = user("m3", 20, {"type": "compaction", "auto": True, "overflow": True})
    again = user("m7", 22, text("See", synthetic=True), text("[Attached image/png: file]", synthetic=True))
    (compaction,) = session_of(user("m1", 0, text("See"), IMAGE), marker, SUMMARY[1], again).compactions
    assert [(part.event, part.reason) for part in compaction.base[2:]] == [(0, CHANGED)]


def test_a_tool_that_the_user_ran_is_no_call():
    ran = assistant("m6", 21, tool("c9", second=22), tokens={"input": 0, "output": 0, "cache": {"read": 0, "write": 0}})
    session = session_of(*TALK, user("m5", 20, text("The user ran a tool", synthetic=True)), ran)
    assert len(session.calls) == 2
    assert session.events[-1].parts == (ToolResultPart("list", "a.txt", "c9"),)


@pytest.mark.parametrize("written", [lines, lambda *exports: list(exports)], ids=["lines", "array"])
def test_a_session_that_was_exported_again_is_read_in_its_fullest_state(written):
    """Twice the same, and an earlier state: one session. Another one with the same messages is one of its own."""
    earlier, other = export(*TALK[:2]), export(*TALK, id="ses_2")
    recording = read_as(FORMAT, written(earlier, export(*TALK), other, export(*TALK)))
    assert [(session.source_id, len(session.calls)) for session in recording.sessions] == [("ses_1", 2), ("ses_2", 2)]
    assert (recording.facts.messages, recording.notes.folded) == (8, 2)


def test_exports_whose_ids_were_taken_out_are_sessions_of_their_own():
    assert len(read_as(FORMAT, [export(*TALK[:2], id="[redacted]"), export(*TALK, id="[redacted]")]).sessions) == 2


def test_messages_that_were_taken_back_are_told():
    assert any("m3" in note for note in session_of(*TALK, revert={"messageID": "m3"}).notes)


def test_a_users_summary_object_is_no_compaction():
    assert session_of(*TALK).compactions == ()


def test_the_question_of_a_summary_that_failed_is_sent_with_what_follows():
    failed = assistant("m6", 21, summary=True, error={"name": "APIError"})
    again = (user("m7", 22, text("Go on")), assistant("m8", 23, {"type": "step-start"}, text("Done"), finish(160)))
    recording = read_as(FORMAT, export(*TALK, SUMMARY[0], failed, *again))
    (session,) = recording.sessions
    assert recording.notes.skipped["compaction without a summary"] == 1
    assert (session.compactions, [(call.at, call.prompt_tokens) for call in session.side_calls]) == ((), [(5, None)])
    assert texts(session)[-3:] == ["What did we do so far?", "Go on", "Done"]
    assert [event.starts_turn() for event in session.events[-3:]] == [False, True, False]


def test_a_compaction_whose_summary_was_emptied_is_one():
    emptied = assistant("m6", 21, {"type": "text", "text": ""}, summary=True)
    session = session_of(*TALK, SUMMARY[0], emptied)
    (compaction,) = session.compactions
    assert (compaction.kind, compaction.note) == ("empty", "The summary is empty.")
    assert Ledger.of(session).bases[0].is_empty


def test_cleared_results_are_rewritten_in_the_recorded_view_only():
    cleared = assistant("m2", 1, tool("c1", second=2, time={"compacted": START + 5_000}), finish(60))
    session = session_of(TALK[0], cleared, *TALK[2:])
    edit = session.compactions[0]
    assert (edit.at, edit.kind, edit.trigger) == (3, "edit", "prune")
    placeholder = next(segment for segment in edit.base if isinstance(segment, Rewritten))
    assert placeholder.message.parts[0].content == CLEARED
    assert session.events[2].parts[0].content == "a.txt"


def test_results_that_are_cleared_once_they_are_summarised_are_no_edit_of_what_is_sent():
    cleared = assistant("m2", 1, tool("c1", second=2, time={"compacted": START + 25_000}), finish(60))
    done = (
        assistant(name, time, {"type": "step-start"}, text("Done"), finish(160))
        for name, time in (("m7", 22), ("m9", 31))
    )
    session = session_of(TALK[0], cleared, *TALK[2:], *SUMMARY, next(done), user("m8", 30, text("Go on")), next(done))
    assert [item.kind for item in session.compactions] == ["summary+tail"]


def test_a_later_summary_keeps_cleared_results_cleared_in_its_tail():
    cleared = assistant("m2", 1, tool("c1", second=2, time={"compacted": START + 5_000}), finish(60))
    marker = user("m5", 20, {"type": "compaction", "auto": False, "tail_start_id": "m2"})
    session = session_of(TALK[0], cleared, *TALK[2:], marker, SUMMARY[1])
    assert [item.kind for item in session.compactions] == ["edit", "summary+tail"]
    assert any(isinstance(segment, Rewritten) for segment in session.compactions[1].base)
    assert session.compactions[1].trigger == "manual"


def test_what_opencode_wrote_begins_no_turn():
    session = session_of(user("m1", 0, text("Reminder", synthetic=True)), user("m2", 1, text("Go")))
    assert [event.starts_turn() for event in session.events] == [False, True]


IMAGE = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,QUJD"}


def test_files_are_media_but_for_those_whose_text_stands_beside_them():
    plain = {"type": "file", "mime": "text/plain", "url": "file:///a.txt"}
    words, picture = session_of(user("m1", 0, text("See"), plain, IMAGE)).events[0].parts
    assert (words, picture.size) == (TextPart("See"), 3)


def test_a_command_for_a_sub_agent_is_told_as_opencode_tells_it():
    event = session_of(user("m1", 0, {"type": "subtask", "prompt": "Look", "agent": "general"})).events[0]
    assert (event.parts, event.starts_turn()) == ((TextPart(RAN),), True)


def test_an_answer_that_failed_is_not_sent_again():
    error = {"name": "APIError", "data": {}}
    failed = assistant("m5", 20, {"type": "step-start"}, text("I lo"), tool("c9"), error=error)
    recording = read_as(FORMAT, export(*TALK, failed, user("m6", 21, text("Again"))))
    assert texts(recording.sessions[0])[-2:] == ["The same", "Again"]
    assert recording.sessions[0].calls[-1].response is None
    assert recording.notes.skipped == {"answer that failed": 1}
    assert (recording.facts.tool_calls, recording.facts.tool_results) == (2, 2)


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        ({"name": "ContextOverflowError", "data": {"message": "Input exceeds context window of this model"}}, (5,)),
        ({"name": "APIError", "data": {"message": "prompt is too long: 212345 tokens > 200000 maximum"}}, (5,)),
        ({"name": "APIError", "data": {"message": "Overloaded"}}, ()),
    ],
)
def test_a_request_that_was_too_long_is_recorded_as_refused(error, refused):
    session = session_of(*TALK, assistant("m5", 20, error=error))
    assert (len(session.events), session.refused) == (5, refused)


def test_an_answer_that_the_user_stopped_is():
    stopped = assistant("m5", 20, {"type": "step-start"}, text("I lo"), error={"name": "MessageAbortedError"})
    assert texts(session_of(*TALK, stopped))[-1] == "I lo"


def test_a_tool_that_was_stopped_gives_what_it_had_written():
    stopped = tool("c1", status="error", error="Aborted", metadata={"interrupted": True, "output": "half"})
    assert session_of(TALK[0], assistant("m2", 1, stopped, finish(10))).events[2].parts[0].content == "half"


def test_the_files_of_a_cleared_result_are_not_sent_either():
    shown = tool("c1", second=2, time={"compacted": START + 5_000}, attachments=[IMAGE])
    session = session_of(TALK[0], assistant("m2", 1, shown, tool("c2", second=2), finish(60)), *TALK[2:])
    placeholder = next(segment for segment in session.compactions[0].base if isinstance(segment, Rewritten))
    assert len(session.events[2].parts) == 3
    assert [part.content for part in placeholder.message.parts] == [CLEARED, "a.txt"]


def test_a_sub_agents_session_says_so():
    session = session_of(*TALK, parentID="ses_0")
    assert any("ses_0" in note for note in session.notes)
    assert session.parent == "ses_0"


def test_the_call_of_a_tool_that_started_a_sub_agent_names_its_session():
    started = tool("c7", metadata={"sessionId": "ses_9"})
    session = session_of(TALK[0], assistant("m2", 1, tool("c1"), started, finish(10)))
    assert session.sub_agents == (SubAgent("ses_9", "c7", 1),)


def database(folder: Path, *sessions: dict[str, Any]) -> Path:
    """The database that holds these exports: ids in columns, the rest as JSON in `data`."""
    path = folder / "opencode.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE session (id, parent_id, title, time_created)")
    connection.execute("CREATE TABLE message (id, session_id, time_created, data)")
    connection.execute("CREATE TABLE part (id, message_id, session_id, data)")
    for number, entry in enumerate(sessions):
        key = entry["info"]["id"]
        connection.execute("INSERT INTO session VALUES (?, NULL, ?, ?)", (key, entry["info"]["title"], START + number))
        for message in entry["messages"]:
            info = dict(message["info"])
            row = (info.pop("id"), key, info["time"]["created"], json.dumps(info))
            connection.execute("INSERT INTO message VALUES (?, ?, ?, ?)", row)
            for place, part in enumerate(message["parts"]):
                part_row = (f"{row[0]}-{place}", row[0], key, json.dumps(part))
                connection.execute("INSERT INTO part VALUES (?, ?, ?, ?)", part_row)
    connection.commit()
    connection.close()
    return path


def test_the_database_reads_as_the_export_does(tmp_path):
    exported = export(*TALK, *SUMMARY)
    other = export(user("x1", 0, text("Hi")), id="ses_2", title="Other")
    with ByteSource.open(database(tmp_path, exported, other)) as source:
        assert FORMAT.matches(source)
        stored = FORMAT.read(source)
    assert [session.title for session in stored.sessions] == ["Files", "Other"]
    first = stored.sessions[0]
    same = read_as(FORMAT, exported).sessions[0]
    assert (first.events, [step.prompt_tokens for step in first.calls]) == (same.events, [100, 140])
    assert first.compactions[0].base == same.compactions[0].base


def test_a_database_that_a_program_closed_has_no_problem_but_a_note_of_the_log_that_a_copy_may_lack(tmp_path):
    path = database(tmp_path, export(*TALK))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    with ByteSource.open(path) as source:
        recording = FORMAT.read(source)
    assert recording.notes.problem_count == 0
    assert any("-wal file" in note for note in recording.sessions[0].notes)


@pytest.mark.parametrize("data", [None, "7", "[]"])
def test_data_that_are_no_object_are_told_with_their_row(tmp_path, data):
    path = database(tmp_path, export(*TALK))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE part SET data = ? WHERE id = 'm2-1'", (data,))
    connection.close()
    sentence = "the data of part m2-1 are not an object"
    with ByteSource.open(path, strict=True) as source, pytest.raises(DamagedRecording, match=sentence):
        FORMAT.read(source)
    with ByteSource.open(path) as source:
        assert [problem.message for problem in FORMAT.read(source).notes.problems] == [sentence]


def test_messages_in_the_table_of_a_later_layout_are_told(tmp_path):
    path = database(tmp_path, export(*TALK))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE session_message (id, session_id, data)")
        connection.execute("INSERT INTO session_message VALUES ('x', 'ses_1', '{}')")
    connection.close()
    with ByteSource.open(path) as source:
        assert "1 row of the table session_message" in FORMAT.read(source).notes.problems[0].message


# A prompt with an answer after TALK, which Kilo compacts within this turn, and the message by which it continues.
KILO_TURN = (
    user("k1", 12, text("Sort them")),
    assistant("k2", 13, {"type": "step-start"}, text("I sort"), finish(200)),
    user("k3", 20, {"type": "compaction", "auto": True, "tail_start_id": "m4"}),
    assistant("k4", 21, {"type": "step-start"}, text("One file was found"), finish(150), summary=True),
    user("k5", 22, text("Continue", synthetic=True)),
    assistant("k6", 23, {"type": "step-start"}, text("Sorted"), finish(90)),
)


def kilo_session(tmp_path, *messages: dict[str, Any]):
    """The session of a database that has a table of Kilo."""
    path = database(tmp_path, export(*messages))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE kilo_board (root_session_id)")
        connection.execute("CREATE INDEX recall ON message (json_extract(data, '$.role'))")
    connection.close()
    with ByteSource.open(path) as source:
        assert FORMAT.matches(source)
        (session,) = FORMAT.read(source).sessions
    check_session(session)
    return session


def test_exports_and_lines_with_what_only_kilo_writes_are_kilos():
    measured = finish(60, 40) | {"metrics": {"generation": 27.3, "source": "computed"}}
    step = assistant("m2", 1, {"type": "step-start"}, text("I look"), measured)
    forbids = {"permission": [{"permission": "suggest", "pattern": "*", "action": "deny"}]}
    line = {"type": "step_finish", "sessionID": "ses_1", "part": {**measured, "messageID": "m2"}}
    for session in (session_of(TALK[0], step), session_of(*TALK, **forbids), *read_as(FORMAT, lines(line)).sessions):
        assert session.agent == "Kilo Code"
    assert session_of(*TALK, permission=[{"permission": "question", "action": "deny"}]).agent == "OpenCode"


def test_a_database_with_a_table_of_kilo_is_kilos(tmp_path):
    session = kilo_session(tmp_path, *TALK)
    assert session.agent == "Kilo Code"
    assert any("time and the folder" in note for note in session.notes)


@pytest.mark.parametrize(("version", "agent"), [("7.0.33", "Kilo Code"), ("1.18.33", "OpenCode")])
def test_a_version_that_opencode_has_not_reached_is_kilos(tmp_path, version, agent):
    """As 7.0.33 was seen to write: nothing else of its own, and no time and folder in the user's messages."""
    path = database(tmp_path, export(*TALK))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE session ADD COLUMN version")
        connection.execute("UPDATE session SET version = ?", (version,))
    (stored,) = read(str(path)).sessions
    for session in (stored, session_of(*TALK, version=version)):
        assert session.agent == agent
        assert not any("time and the folder" in note for note in session.notes)


def test_kilo_sends_of_a_tail_at_first_what_belongs_to_the_turn_and_all_of_it_from_the_next_prompt_on(tmp_path):
    """As 7.7.9 did on the wire: a tail that begins within an earlier turn."""
    session = kilo_session(tmp_path, *TALK, *KILO_TURN, user("k7", 30, text("Thanks")))
    compaction, whole = session.compactions
    assert (compaction.at, kept(compaction.base), compaction.trigger) == (7, [5, 6], "auto")
    assert (whole.at, whole.kind, kept(whole.base)) == (8, "edit", [4, 5, 6, 7])
    assert [event.parts[0].text for event in whole.messages] == [QUESTION, "One file was found", "Continue"]
    assert whole.base == (Inserted(0), Inserted(1), Span(4, 5), Span(5, 7), Inserted(2), Span(7, 8))


def test_a_prompt_right_after_a_compaction_of_kilo_has_the_whole_tail(tmp_path):
    session = kilo_session(tmp_path, *TALK, *KILO_TURN[:4], user("k7", 30, text("Thanks")))
    assert [(item.at, kept(item.base)) for item in session.compactions] == [(7, [4, 5, 6])]


def test_opencode_and_a_person_who_compacts_keep_the_whole_tail(tmp_path):
    assert kept(session_of(*TALK, *KILO_TURN).compactions[0].base) == [4, 5, 6]
    asked = user("k3", 20, {"type": "compaction", "auto": False, "tail_start_id": "m4"})
    by_person = kilo_session(tmp_path, *TALK, *KILO_TURN[:2], asked, *KILO_TURN[3:])
    assert kept(by_person.compactions[0].base) == [4, 5, 6]


def test_a_prompt_that_kilo_sends_again_after_a_compaction_has_not_left_the_context(tmp_path):
    """As 7.7.9 writes it, with a reminder behind it."""
    again = user("k5", 22, text("Sort them", synthetic=True), text("The agent is code", synthetic=True))
    session = kilo_session(tmp_path, *TALK, KILO_TURN[0], *KILO_TURN[2:4], again, KILO_TURN[5])
    (compaction,) = session.compactions
    assert [event.parts[0].text for event in compaction.messages] == [QUESTION, "One file was found"]
    (prompt,) = (part for part in compaction.base if isinstance(part, Rewritten))
    assert (prompt.event, prompt.reason) == (5, JOINED)
    assert [part.text for part in prompt.message.parts] == ["Sort them", "The agent is code"]
    assert texts(session)[-2:] == ["Sort them", "Sorted"]


STATUS = {**text("Initializing snapshot…", synthetic=True), "metadata": {"kilocode.lifecycle": "transient"}}


@pytest.mark.parametrize("begun", [(), (STATUS,)])
def test_a_summary_that_kilo_writes_once_it_is_started_again_leaves_the_prompt_in_between(tmp_path, begun):
    """As 7.7.9 did on the wire: it was ended while it waited for the summary, and resumed with a prompt."""
    ended = assistant("k4", 21, *begun, summary=True)
    again = (user("k5", 30, text("Go on")), assistant("k6", 31, text("One file was found"), finish(150), summary=True))
    session = kilo_session(
        tmp_path, *TALK, *KILO_TURN[:3], ended, *again, assistant("k7", 32, text("Done"), finish(80))
    )
    (compaction,) = session.compactions
    assert (compaction.at, compaction.trigger, kept(compaction.base)) == (8, "auto", [5, 6, 7])
    assert [event.parts[0].text for event in compaction.messages] == [QUESTION, "One file was found"]
    assert texts(session)[-3:] == ["I sort", "Go on", "Done"]


def test_what_kilo_says_that_it_does_is_no_part_of_its_answer(tmp_path):
    session = kilo_session(tmp_path, *TALK, user("k1", 12, text("Go")), assistant("k2", 13, STATUS))
    assert texts(session)[-1] == "Go"


def test_what_kilo_compacts_before_it_sends_a_prompt_has_a_trigger_of_its_own(tmp_path):
    unsent = assistant("k2", 13, tokens={"input": 0, "output": 0, "cache": {"read": 0, "write": 0}})
    session = kilo_session(tmp_path, *TALK, KILO_TURN[0], unsent, *KILO_TURN[2:])
    (compaction,) = session.compactions
    assert (compaction.trigger, trigger_of(compaction)) == ("preflight", AUTOMATIC)
    (compaction,) = session_of(*TALK, KILO_TURN[0], unsent, *KILO_TURN[2:]).compactions
    assert compaction.trigger == "auto"


def run_lines(message: str, *parts: dict[str, Any]) -> list[dict[str, Any]]:
    kinds = {"tool": "tool_use", "step-start": "step_start", "step-finish": "step_finish"}
    return [
        {"type": kinds.get(part["type"], part["type"]), "sessionID": "ses_1", "part": {**part, "messageID": message}}
        for part in parts
    ]


def test_the_lines_of_a_run_are_the_assistants_messages():
    first = run_lines("m2", {"type": "step-start"}, text("I look"), tool("c1"), finish(60, 40))
    second = run_lines("m4", {"type": "step-start"}, text("The same"), finish(20, 120))
    error = {"type": "error", "sessionID": "ses_1", "error": {"name": "APIError"}}
    recording = read_as(FORMAT, lines(*first, *second, error))
    session = recording.sessions[0]
    assert texts(session) == ["I look", "", "The same"]
    assert [call.prompt_tokens for call in session.calls] == [100, 140]
    assert "The user's messages are not in the file." in session.notes
    assert (recording.facts.messages, recording.notes.skipped) == (2, {"error line": 1})


def test_several_exports_are_several_sessions():
    other = export(user("x1", 0, text("Hi")), id="ses_2")
    assert len(read_as(FORMAT, [export(*TALK), other]).sessions) == 2
    assert len(read_as(FORMAT, lines(export(*TALK), other)).sessions) == 2


@pytest.mark.parametrize(
    ("kind", "file"),
    [
        ("session", {"id": "ses_1", "version": "1.0.1", "title": "Files", "time": {"created": START}}),
        ("message", {"id": "msg_1", "sessionID": "ses_1", "role": "user", "time": {"created": START}}),
        ("part", {"id": "prt_1", "messageID": "msg_1", "sessionID": "ses_1", "type": "text", "text": "Hi"}),
    ],
)
def test_a_single_file_of_the_storage_folder_is_told_what_to_do(kind, file):
    with pytest.raises(UnknownFormat, match=f"one {kind} of OpenCode's storage folder.*opencode export ses_1"):
        read(json.dumps(file, indent=2).encode())


def test_a_database_without_messages_is_refused_with_a_sentence(tmp_path):
    with ByteSource.open(database(tmp_path)) as source, pytest.raises(DamagedRecording, match="no session"):
        FORMAT.read(source)


def test_it_does_not_take_other_json():
    assert not recognises(FORMAT, {"messages": [{"role": "user", "content": "Hi"}]})
    assert not recognises(FORMAT, {"info": {}, "messages": [{"role": "user"}]})


def test_wrong_types_anywhere_are_survived():
    messages = [*TALK[:2], *SUMMARY]
    for index, message in enumerate(messages):
        rest = (export(*messages[:index], bad, *messages[index + 1 :]) for bad in spoiled(message))
        check_hostile(FORMAT, [json.dumps(item).encode() for item in rest])


def test_the_facts_of_the_samples_are_equal():
    check_sample_facts(FORMAT, "opencode")
