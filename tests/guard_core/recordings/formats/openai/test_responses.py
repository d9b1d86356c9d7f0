"""Items and responses of OpenAI's Responses API."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

from guard_core import recordings
from guard_core.events import ReasoningPart, Role, TextPart, ToolCallPart
from guard_core.recordings.formats.openai.responses import FORMAT
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import Evidence
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

USER = {"role": "user", "content": "List files"}
THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}], "encrypted_content": "QUJD"}
CALL = {"type": "function_call", "name": "ls", "arguments": '{"path": "."}', "call_id": "c1"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "a.txt"}
DONE = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One file"}]}
ITEMS = [USER, THOUGHT, CALL, OUTPUT, DONE]


def response(response_id: str, prompt: int, *output: dict[str, Any], **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": prompt, "input_tokens_details": {"cached_tokens": prompt // 2}, "output_tokens": 5}
    return {"object": "response", "id": response_id, "model": "m", "output": list(output), "usage": usage, **more}


def logged(given: Any, answer: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"request": {"model": "m", "input": given, **more}, "response": answer}


def session_of(content: Any):
    session = read_as(FORMAT, content).sessions[0]
    check_session(session)
    return session


def test_items_that_the_api_lists_newest_first_are_turned_around():
    in_order = session_of(ITEMS)
    page = {"object": "list", "data": ITEMS[::-1], "first_id": "b", "last_id": "a", "has_more": False}
    for content in (page, ITEMS[::-1], {**page, "data": ITEMS}):
        assert [event.parts for event in session_of(content).events] == [event.parts for event in in_order.events]


def test_items_of_a_page_of_the_api_are_not_said_to_be_left_out():
    page = {"object": "list", "data": ITEMS, "first_id": "a", "last_id": "b", "has_more": False}
    assert recordings.read(json.dumps(page).encode()).notes.problems == []


def test_only_a_page_of_the_api_is_turned_around_for_its_first_and_last_message():
    newest_first = [DONE, {"type": "message", **USER}]
    page = {"object": "list", "data": newest_first, "has_more": False}
    assert texts(session_of(page)) == ["List files", "One file"]
    assert texts(session_of(newest_first)) == ["One file", "List files"]


def test_items_of_one_response_are_one_event():
    session = session_of(ITEMS)
    assert [event.role for event in session.events] == [Role.USER, Role.MODEL, Role.USER, Role.MODEL]
    assert session.events[1].parts == (ReasoningPart("Hm", 3), ToolCallPart("ls", {"path": "."}, "c1"))
    assert [(step.at, step.prompt_tokens) for step in session.calls] == [(1, None), (3, None)]


def test_a_result_may_be_a_list_with_a_picture():
    output = [
        {"type": "input_text", "text": "seen"},
        {"type": "input_image", "image_url": "data:image/png;base64,QUJD"},
    ]
    parts = session_of([USER, CALL, {**OUTPUT, "output": output}]).events[2].parts
    assert parts[0].content == "seen"
    assert parts[1].size == 3


def test_a_request_body_brings_instructions_and_tools():
    tools = [{"type": "function", "name": "ls", "description": "List", "parameters": {"type": "object"}}]
    session = session_of({"model": "m", "instructions": "Be brief.", "tools": tools, "input": ITEMS})
    assert session.system == (TextPart("Be brief."),)
    assert session.tools is not None
    assert session.model == "m"


def test_responses_alone_have_tokens_but_no_requests():
    recording = read_as(FORMAT, [response("r1", 100, CALL), response("r2", 140, DONE)])
    session = recording.sessions[0]
    assert [(step.prompt_tokens, step.cached_tokens) for step in session.calls] == [(100, 50), (140, 70)]
    assert recording.facts.tool_results == 0
    assert any("only what came back" in note for note in session.notes)


def test_what_the_cache_wrote_is_read_however_long_it_is_kept():
    """As openai-python 3.54 knows it."""
    kept_for = {"ttl_12h_tokens": 1, "ttl_30m_tokens": 2}
    details = {"cached_tokens": 4, "cache_write_tokens": 3, "cache_write_tokens_details": kept_for}
    reply = {**response("r1", 100, DONE), "usage": {"input_tokens": 9, "input_tokens_details": details}}
    recording = read_as(FORMAT, lines(logged([USER], reply)))
    [call] = recording.sessions[0].calls
    assert (call.prompt_tokens, call.cached_tokens, call.cache_write_tokens) == (9, 4, 3)
    assert recording.notes.problems == []


def test_answers_that_follow_each_other_in_a_request_are_an_event_each():
    def said(words: str) -> dict[str, Any]:
        return {**DONE, "content": [{"type": "output_text", "text": words}]}

    first, second = (said("Part one"),), (THOUGHT, said("Part two"))
    again = (said("Part one"), CALL)  # begins like the first
    records = [logged([USER], response("r1", 100, *first)), logged([USER, *first], response("r2", 140, *second))]
    records += [logged([USER, *first, *second], response("r3", 180, *again))]
    records += [logged([USER, *first, *second, *again, OUTPUT], response("r4", 220, DONE))]
    session = session_of(lines(*records))
    assert (session.compactions, [call.at for call in session.calls]) == ((), [1, 2, 3, 5])
    assert [len(event.parts) for event in session.events] == [1, 1, 2, 2, 1, 1]


def test_a_log_of_whole_histories_is_one_session():
    log = [logged([USER], response("r1", 100, CALL)), logged([USER, CALL, OUTPUT], response("r2", 140, DONE))]
    session = session_of(lines(*log))
    assert [(step.at, step.response, step.prompt_tokens) for step in session.calls] == [(1, 1, 100), (3, 3, 140)]
    assert session.compactions == ()


def test_requests_with_new_items_only_are_put_together():
    follow = logged([OUTPUT], response("r2", 140, DONE), previous_response_id="r1")
    session = session_of(lines(logged("List files", response("r1", 100, CALL)), follow))
    assert [(step.at, step.prompt_tokens) for step in session.calls] == [(1, 100), (3, 140)]
    assert len(session.events) == 4


def test_a_missing_earlier_response_is_named():
    session = session_of(lines(logged([OUTPUT], response("r2", 140, DONE), previous_response_id="r1")))
    assert any("not in the file" in note for note in session.notes)


def test_a_compaction_item_drops_what_stands_before_it():
    sealed = {"type": "compaction", "id": "cmp", "encrypted_content": "QUJDRA=="}
    recording = read_as(FORMAT, [*ITEMS, sealed, {"role": "user", "content": "Go on"}])
    compaction = recording.sessions[0].compactions[0]
    assert (compaction.at, compaction.evidence, compaction.kind) == (4, Evidence.DECLARED, "opaque")
    assert kept(compaction.base) == []
    assert compaction.messages[0].parts == (ReasoningPart(opaque_bytes=4),)
    assert recording.facts.compactions == 1


def test_a_compacted_window_keeps_its_user_messages():
    compaction = session_of([USER, {"type": "compaction", "encrypted_content": "QUJDRA=="}, DONE]).compactions[0]
    assert kept(compaction.base) == [0]


def test_the_sessions_of_a_database_are_read(tmp_path):
    path = tmp_path / "agents.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE agent_sessions (session_id)")
    connection.execute("CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id, message_data)")
    rows = [("one", json.dumps(item)) for item in ITEMS] + [("two", json.dumps(USER)), ("two", "{broken")]
    connection.executemany("INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)", rows)
    connection.commit()
    connection.close()
    with ByteSource.open(path) as source:
        assert FORMAT.matches(source)
        recording = FORMAT.read(source)
    assert [(session.source_id, len(session.events)) for session in recording.sessions] == [("one", 4), ("two", 1)]
    assert recording.notes.problem_count == 1


def test_sessions_that_were_written_at_the_same_time_count_their_own_calls(tmp_path):
    path = tmp_path / "agents.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE agent_sessions (session_id)")
        connection.execute("CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id, message_data)")
        rows = [(name, json.dumps(item)) for item in ITEMS for name in ("one", "two")]
        connection.executemany("INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)", rows)
        connection.commit()
    recording = recordings.read(path)
    alone = read_as(FORMAT, list(ITEMS)).facts
    assert [session.source_id for session in recording.sessions] == ["one", "two"]
    assert recording.facts.tool_calls == 2 * alone.tool_calls > 0
    assert recording.facts.tool_results == 2 * alone.tool_results > 0


def test_a_database_brings_times_sums_by_turn_and_a_word_about_its_newest_rows(tmp_path):
    path = tmp_path / "agents.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE agent_sessions (session_id)")
    connection.execute("CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id, message_data, created_at)")
    connection.execute("CREATE TABLE turn_usage (id INTEGER PRIMARY KEY, session_id, requests, input_tokens)")
    add = "INSERT INTO agent_messages (session_id, message_data, created_at) VALUES ('one', ?, '2026-03-01 10:00:00')"
    connection.executemany(add, [(json.dumps(item),) for item in ITEMS])
    connection.execute("INSERT INTO turn_usage (session_id, requests, input_tokens) VALUES ('one', 2, 300)")
    connection.commit()
    connection.close()
    with ByteSource.open(path) as source:
        recording = FORMAT.read(source)
    (session,) = recording.sessions
    assert session.started_at == session.calls[1].timestamp == 1_772_359_200.0
    assert "Tokens are counted by turn only: 300 input tokens in 2 calls." in session.notes
    assert any("-wal file" in note for note in session.notes)
    assert recording.notes.problem_count == 0


def test_it_does_not_take_other_json():
    assert not recognises(FORMAT, [USER, {"role": "assistant", "content": "Hi"}])
    assert not recognises(FORMAT, lines({"type": "response_item", "payload": CALL}))
    assert not recognises(FORMAT, {"messages": [USER]})


def test_a_streamed_response_is_put_together():
    whole = response("r1", 100, CALL)
    pieces = [
        {"type": "response.created", "response": {**whole, "output": [], "usage": None}},
        {"type": "response.output_item.done", "item": CALL},
    ]
    end = {"type": "response.completed", "response": whole}
    log = lines(
        {"request": {"input": [USER]}, "response": [*pieces, end]},
        logged([USER, CALL, OUTPUT], response("r2", 140, DONE)),
    )
    session = session_of(log)
    assert [(step.at, step.prompt_tokens) for step in session.calls] == [(1, 100), (3, 140)]
    broken = session_of(lines({"request": {"input": [USER]}, "response": pieces}, logged([USER], whole)))
    assert [(step.at, step.response, step.prompt_tokens) for step in broken.calls] == [(1, None, None), (1, 1, 100)]


def test_a_conversation_that_the_provider_keeps_is_put_together():
    log = [logged([USER], response("r1", 100, CALL), conversation="conv_1")]
    log += [logged([OUTPUT], response("r2", 140, DONE, conversation={"id": "conv_1"}))]
    session = session_of(lines(*log))
    assert [(step.at, step.response, step.prompt_tokens) for step in session.calls] == [(1, 1, 100), (3, 3, 140)]


def test_a_failed_request_is_a_call_without_an_answer():
    failed = {"request": {"model": "m", "input": [USER]}, "response": None, "error": {"message": "overloaded"}}
    session = session_of(lines(failed, logged([USER], response("r1", 100, CALL))))
    assert [(step.response, step.prompt_tokens) for step in session.calls] == [(None, None), (1, 100)]


def test_a_request_that_was_too_long_is_refused():
    error = {"code": "context_length_exceeded", "message": "Your input exceeds the context window of this model."}
    refused = {"request": {"model": "m", "input": "go"}, "response": {"id": "r1", "status": "failed", "error": error}}
    session = read_as(FORMAT, lines(refused)).sessions[0]
    assert (session.calls, session.refused) == ((), (1,))


def test_everything_that_a_response_brought_is_its_answer():
    listed = {"type": "mcp_list_tools", "id": "l1", "tools": []}
    own = {"type": "shell_call_output", "call_id": "s1", "output": [{"stdout": "a.txt"}]}
    session = session_of(lines(logged([USER], response("r1", 100, listed, THOUGHT, own, DONE))))
    assert [part for part in session.events[1].parts if isinstance(part, TextPart)] == [TextPart("One file")]


SEALED = {"type": "compaction", "id": "k1", "encrypted_content": "QUJD"}


def test_a_compaction_asked_for_is_declared_and_its_call_is_the_summariser():
    window = [{**USER, "type": "message"}, SEALED]
    asked = {
        "request": {"input": [USER, CALL, OUTPUT]},
        "response": {**response("r2", 150, *window), "object": "response.compaction"},
    }
    new = {"role": "user", "content": "And now?"}
    log = [logged([USER], response("r1", 100, CALL)), asked, logged([*window, new], response("r3", 60, DONE))]
    recording = read_as(FORMAT, lines(*log))
    (session,) = recording.sessions
    check_session(session)
    (compaction,) = session.compactions
    assert (compaction.at, compaction.evidence, compaction.kind) == (3, Evidence.DECLARED, "opaque")
    assert (kept(compaction.base), len(compaction.messages)) == ([0], 1)
    assert compaction.summariser is not None
    assert compaction.summariser.prompt_tokens == 150
    assert [(step.at, step.prompt_tokens) for step in session.calls] == [(1, 100), (4, 60)]
    assert texts(session)[-2:] == ["And now?", "One file"]
    assert (recording.facts.compactions, recording.facts.model_calls) == (1, 3)


def test_a_compaction_by_the_provider_drops_what_stands_before_its_item():
    log = [
        logged([USER], response("r1", 100, CALL)),
        logged([USER, CALL, OUTPUT], response("r2", 150, SEALED, DONE)),
        logged([USER, CALL, OUTPUT, SEALED, DONE, {"role": "user", "content": "Thanks"}], response("r3", 40, DONE)),
        logged([SEALED, DONE, {"role": "user", "content": "Thanks"}, DONE, USER], response("r4", 50, DONE)),
    ]
    session = session_of(lines(*log))
    assert [(item.at, kept(item.base), len(item.messages)) for item in session.compactions] == [(4, [3], 1)]
    assert [step.prompt_tokens for step in session.calls] == [100, 150, 40, 50]
    assert session.compactions[0].trigger == ""
    asked = [{"type": "compaction", "compact_threshold": 120}]
    for entry in log:
        entry["request"]["context_management"] = asked
    assert session_of(lines(*log)).compactions[0].trigger == "auto"


def test_a_log_that_begins_behind_a_compaction_begins_with_it():
    session = session_of(lines(logged([SEALED, USER], response("r1", 40, DONE))))
    assert [(item.at, len(item.messages)) for item in session.compactions] == [(0, 1)]
    assert texts(session) == ["List files", "One file"]


def test_wrong_types_anywhere_are_survived():
    check_hostile(FORMAT, [json.dumps(bad).encode() for bad in spoiled(ITEMS)])
    entry = logged([USER, CALL, OUTPUT], response("r2", 140, DONE), previous_response_id="r1")
    check_hostile(FORMAT, [lines(bad, entry) for bad in spoiled(entry)])
    check_hostile(FORMAT, [lines(bad) for bad in spoiled(response("r1", 100, CALL))])
    compacted = logged([USER, SEALED], {**response("r1", 9, SEALED), "object": "response.compaction"})
    check_hostile(FORMAT, [lines(bad, logged([SEALED, DONE], response("r2", 9, DONE))) for bad in spoiled(compacted)])


def test_the_facts_of_the_samples_are_equal():
    check_sample_facts(FORMAT, "openai-responses")
