"""Chats of the Gemini CLI."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guard_core.errors import DamagedRecording
from guard_core.events import ReasoningPart, Role, ToolCallPart, ToolResultPart
from guard_core.findings import Facts, conclusions
from guard_core.recordings import first_look, look_at, read
from guard_core.recordings.formats.gemini.format import FORMAT
from guard_core.sessions import Evidence, LeftBranches
from guard_core.views import Rewritten, content_count
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

RECORDED = SAMPLES.parent / "rules/gemini-cli/default/session-2026-11-22T07-20-d5c0e2a6.jsonl"
TIME = "2026-03-01T10:00:00.000Z"
HEADER = {"sessionId": "s1", "projectHash": "h", "startTime": TIME, "lastUpdated": TIME}


def user(message: str, words: str) -> dict[str, Any]:
    return {"id": message, "timestamp": TIME, "type": "user", "content": [{"text": words}]}


def gemini(message: str, words: str, prompt: int = 0, *calls: str) -> dict[str, Any]:
    row: dict[str, Any] = {"id": message, "timestamp": TIME, "type": "gemini", "content": words, "model": "g"}
    if prompt:
        row["tokens"] = {"input": prompt, "output": 5, "cached": prompt // 2, "total": prompt + 5}
    if calls:
        row["toolCalls"] = [
            {"id": call, "name": "ls", "args": {"path": "."}, "result": [response(call)], "status": "success"}
            for call in calls
        ]
    return row


def response(call: str, output: str = "a.txt") -> dict[str, Any]:
    return {"functionResponse": {"id": call, "name": "ls", "response": {"output": output}}}


def result(message: str, call: str) -> dict[str, Any]:
    return {"id": message, "timestamp": TIME, "type": "user", "content": [response(call)]}


TALK = (
    user("u1", "List files"),
    gemini("g1", "I look", 100),
    gemini("g1", "I look", 100, "c1"),
    result("u2", "c1"),
    gemini("g2", "Done", 140),
)
SNAPSHOT = user("u9", "<state_snapshot>one file</state_snapshot>")
ASKED = {"functionCall": {"id": "c1", "name": "ls", "args": {"path": "."}}}
REPLY = {"id": "g9", "type": "gemini", "content": [{"text": "Got it."}]}


def session_of(*records: dict[str, Any]):
    session = read_as(FORMAT, lines(HEADER, *records)).sessions[0]
    check_session(session)
    return session


def test_what_is_sent_in_place_of_a_cancelled_answer_is_named_as_missing():
    """0.61, run: where the user writes again after results, in the same program or in a resumed one."""
    loaded = {"$set": {"messages": [*TALK[:1], *TALK[2:4]]}}
    went_on = [user("u3", "Go on"), gemini("g3", "Yes", 150)]
    for records in ([*TALK[:4], *went_on], [*TALK[:4], loaded, *went_on]):
        assert "Cancelled answers to results of tools: 1." in session_of(*records).notes[1]
    assert len(session_of(*TALK, *went_on).notes) == 1


def test_a_message_written_again_is_one_message_and_one_call():
    recording = read_as(FORMAT, lines(HEADER, *TALK))
    session = recording.sessions[0]
    assert [event.role for event in session.events] == [Role.USER, Role.MODEL, Role.USER, Role.MODEL]
    assert session.events[1].parts[1] == ToolCallPart("ls", {"path": "."}, "c1")
    assert [(step.at, step.prompt_tokens, step.cached_tokens) for step in session.calls] == [(1, 100, 50), (3, 140, 70)]
    assert (recording.facts.messages, recording.facts.tool_results) == (4, 1)
    assert recording.notes.folded == 1


def test_results_inside_the_calls_become_the_message_that_was_sent():
    messages = [user("u1", "List files"), gemini("g1", "", 100, "c1", "c2"), gemini("g2", "Done", 140)]
    recording = read_as(FORMAT, {**HEADER, "messages": messages})
    session = recording.sessions[0]
    assert [part.call_id for part in session.events[2].parts if isinstance(part, ToolResultPart)] == ["c1", "c2"]
    assert session.calls[1].at == 3
    assert recording.facts.messages == 3


def test_a_new_state_snapshot_is_an_inferred_compaction():
    history = [SNAPSHOT, REPLY, user("x1", "List files"), {"id": "x2", "type": "gemini", "content": "Done"}]
    recording = read_as(FORMAT, lines(HEADER, *TALK, {"$set": {"messages": history}}, gemini("g3", "More", 60)))
    session = recording.sessions[0]
    compaction = session.compactions[0]
    assert (compaction.at, compaction.evidence, compaction.kind) == (4, Evidence.INFERRED, "summary+tail")
    assert kept(compaction.base) == [0, 3]
    assert [event.source_id for event in compaction.messages] == ["u9", "g9"]
    assert not any("state_snapshot" in text for text in texts(session))
    assert recording.facts.compactions == 1
    assert recording.facts.messages == 9


def test_a_summary_without_the_tag_is_known_by_the_answer_to_it(tmp_path):
    untagged = [user("u9", "The user listed files"), gemini("g9", "Got it. Thanks for the additional context!")]
    again = [*untagged, user("x1", "List files")]
    records = [*TALK, {"$set": {"messages": untagged}}, gemini("g3", "More", 60), {"$set": {"messages": again}}]
    recording = read_as(FORMAT, lines(HEADER, *records))
    assert [item.kind for item in recording.sessions[0].compactions] == ["summary", "edit"]
    assert recording.facts.compactions == 1
    path = tmp_path / "chat.jsonl"
    path.write_bytes(lines(HEADER, *records))
    assert len(first_look(path).compactions) == 1


def test_a_resumed_session_that_begins_with_such_a_summary_has_no_new_one():
    untagged = [user("u9", "The user listed files"), gemini("g9", "Got it. Thanks for the additional context!")]
    again = [*untagged, user("x1", "More")]
    session = session_of(HEADER, *untagged, gemini("g3", "More", 60), {"$set": {"messages": again}})
    assert [item.kind for item in session.compactions] == ["edit"]


def test_a_compaction_comes_after_the_call_whose_answer_was_written_before_it():
    """An answer is written without words first and with its tool call then; the result is sent after the compaction."""
    history = [SNAPSHOT, REPLY, user("x1", "List files"), {**gemini("x2", ""), "content": [ASKED]}]
    session = session_of(
        user("u1", "List files"),
        gemini("g1", "", 900),
        gemini("g1", "", 900, "c1"),
        {"$set": {"messages": history}},
        result("u2", "c1"),
        gemini("g2", "Done", 60),
    )
    (compaction,) = session.compactions
    assert [(call.at, call.response, call.prompt_tokens) for call in session.calls] == [(1, 1, 900), (3, 3, 60)]
    assert (compaction.at, kept(compaction.base)) == (2, [0, 1])
    assert [event.source_id for event in session.events] == ["u1", "g1", "u2", "g2"]


def test_tokens_that_come_with_the_tool_call_are_those_of_one_call():
    session = session_of(user("u1", "List files"), gemini("g1", ""), gemini("g1", "", 900, "c1"), result("u2", "c1"))
    assert [(call.at, call.response, call.prompt_tokens) for call in session.calls] == [(1, 1, 900)]


def written_again(*names: str) -> list[dict[str, Any]]:
    """The history of TALK with a masked result, as 0.61.0 writes it then: under new ids, without tokens."""
    masked = {**result("", "c1"), "content": [response("c1", "<tool_output_masked>a</tool_output_masked>")]}
    looked = [{"text": "I look"}, ASKED]
    asked = {"type": "gemini", "timestamp": TIME, "content": looked, "thoughts": [], "tokens": None}
    messages = [user("", "List files"), asked, masked, {**asked, "content": [{"text": "Done"}]}]
    return [{**message, "id": name} for message, name in zip(messages, names, strict=True)]


def test_a_history_that_is_written_once_more_with_masked_results_is_an_edit_and_no_calls():
    again, touched = written_again("n1", "n2", "n3", "n4"), {"$set": {"lastUpdated": TIME}}
    records = [record for message in again for record in (message, touched)]
    session = session_of(*TALK, *records, {"$set": {"messages": again}}, user("u3", "Go on"), gemini("g3", "Yes", 90))
    assert [call.prompt_tokens for call in session.calls] == [100, 140, 90]
    (edit,) = session.compactions
    assert (edit.kind, edit.trigger, edit.at) == ("edit", "", 4)
    assert (edit.evidence, edit.messages) == (Evidence.DECLARED, ())
    (changed,) = [item for item in edit.base if isinstance(item, Rewritten)]
    assert changed.event == 2
    assert "<tool_output_masked>" in str(changed.message.parts[0])
    assert not any("reloaded" in note for note in session.notes)


OPENING = {"text": "<session_context>The chat opens"}
SUMMARY = {"text": "The user listed files"}
THANKS = {**REPLY, "content": [{"text": "Got it. Thanks for the additional context!"}]}


def opened(name: str, *parts: dict[str, str]) -> dict[str, Any]:
    return {**user(name, ""), "content": list(parts)}


def masked_behind_a_compaction() -> list[dict[str, Any]]:
    """A compaction, and its history once more with a masked result, as 0.61.0 writes it: what opens the chat and the
    summary are one message then."""
    compacted = [opened("o1", OPENING), opened("s1", SUMMARY), THANKS, *TALK[2:]]
    masked = {**result("n3", "c1"), "content": [response("c1", "<tool_output_masked>a</tool_output_masked>")]}
    done = {"id": "n4", "timestamp": TIME, "type": "gemini", "content": [{"text": "Done"}]}
    again = [opened("n1", OPENING, SUMMARY), {**THANKS, "id": "n2"}, masked, done]
    return [{"$set": {"messages": compacted}}, *again, {"$set": {"messages": again}}]


def test_a_summary_that_is_written_once_more_with_masked_results_is_no_second_compaction():
    behind = [*masked_behind_a_compaction(), user("u3", "Go on"), gemini("g3", "Yes", 90)]
    recording = read_as(FORMAT, lines(HEADER, opened("o1", OPENING), *TALK, *behind))
    session = recording.sessions[0]
    assert [item.kind for item in session.compactions] == ["summary+tail", "edit"]
    assert [call.prompt_tokens for call in session.calls] == [100, 140, 90]
    assert recording.facts.compactions == 1


def test_a_resumed_session_that_lost_its_summary_with_what_opens_the_chat_has_no_new_one():
    """0.61.0 leaves out what opened the chat where it loads it again, and the summary that is one message with it."""
    masked = masked_behind_a_compaction()
    loaded = [opened("o2", OPENING), *masked[-1]["$set"]["messages"][1:]]
    records = [*TALK, *masked, {"$set": {"messages": loaded}}, user("u3", "Go on"), gemini("g3", "Yes", 130)]
    session = session_of(opened("o1", OPENING), *records)
    assert [(item.kind, item.trigger) for item in session.compactions] == [
        ("summary+tail", ""),
        ("edit", ""),
        ("edit", "resume"),
    ]


def test_messages_without_tokens_that_no_history_repeats_are_what_they_were():
    again = written_again("n1", "n2", "n3", "n4")
    for last in ([], [{"$set": {"messages": again[1:]}}], [gemini("g3", "Yes", 90)]):
        session = session_of(*TALK, *again, *last)
        assert len(session.events) >= 8
        assert [call.prompt_tokens for call in session.calls][:4] == [100, 140, None, None]


def test_a_resumed_history_with_the_same_snapshot_is_an_edit_and_no_compaction():
    compacted = [SNAPSHOT, REPLY]
    resumed = [SNAPSHOT, REPLY, result("x_response", "c1"), user("u3", "Go on")]
    records = (*TALK, {"$set": {"messages": compacted}}, user("u3", "Go on"), {"$set": {"messages": resumed}})
    recording = read_as(FORMAT, lines(HEADER, *records))
    assert [item.kind for item in recording.sessions[0].compactions] == ["summary", "edit"]
    assert recording.facts.compactions == 1


def test_a_resumed_history_that_is_written_again_with_what_came_since_was_reloaded_once():
    """With contextManagement 0.61.0 writes the whole history again at each answer, results as messages of their own."""
    resumed = [*TALK[:2], result("g1_response", "c1"), *TALK[2:], user("u3", "Go on")]
    answer = gemini("g3", "More", 160)
    first, second, third = ({"$set": {"messages": messages}} for messages in (resumed, resumed, [*resumed, answer]))
    session = session_of(*TALK, user("u3", "Go on"), first, second, answer, third)
    assert [item.kind for item in session.compactions] == ["edit"]
    assert "The history was reloaded once (resumed sessions)." in session.notes


def test_a_history_without_a_snapshot_is_a_compaction_where_the_tokens_fell():
    history = [user("u9", "So far the files were listed."), {"id": "x2", "type": "gemini", "content": "Done"}]
    records = (*TALK, {"$set": {"messages": history}}, user("u3", "Go on"))
    for tokens, kinds in ((60, ["summary+tail"]), (150, ["edit"])):
        recording = read_as(FORMAT, lines(HEADER, *records, gemini("g3", "More", tokens)))
        assert [item.kind for item in recording.sessions[0].compactions] == kinds
        assert recording.facts.compactions == len(kinds) - kinds.count("edit")


def test_a_history_of_the_last_messages_alone_is_a_compaction_where_the_tokens_fell():
    session = session_of(*TALK, {"$set": {"messages": list(TALK[3:])}}, user("u3", "Go on"), gemini("g3", "Yes", 60))
    assert [item.kind for item in session.compactions] == ["trim"]


def test_a_session_that_is_resumed_right_after_a_compaction_is_no_second_one():
    history = [user("s1", "<state_snapshot>files</state_snapshot>"), TALK[-1]]
    reloaded = [TALK[-1]]
    changes = [{"$set": {"messages": messages}} for messages in (history, reloaded)]
    recording = read_as(FORMAT, lines(HEADER, *TALK, *changes, user("u3", "Go on"), gemini("g3", "More", 60)))
    assert [item.kind for item in recording.sessions[0].compactions] == ["summary+tail", "edit"]
    assert recording.facts.compactions == 1


def test_a_shorter_history_that_is_the_beginning_of_the_log_is_no_compaction():
    session = session_of(*TALK, {"$set": {"messages": [TALK[0]]}}, gemini("g3", "Again", 60))
    assert [item.kind for item in session.compactions] == ["edit"]


def test_a_file_without_its_beginning_counts_no_compaction_from_before_it():
    before = [user(f"o{number}", f"from before, {number}") for number in range(4)]
    loaded = {"$set": {"messages": [SNAPSHOT, REPLY, *before]}}
    again = {"$set": {"messages": [user("u8", "<state_snapshot>two</state_snapshot>"), REPLY]}}
    (part,) = read_as(FORMAT, lines(*TALK, loaded, again)).sessions
    assert [item.kind for item in part.compactions] == ["edit", "summary"]
    assert [item.kind for item in session_of(*TALK, loaded, again).compactions] == ["summary", "summary"]


def test_a_file_without_its_middle_counts_no_compaction_from_there():
    """With its header, and after a compaction that it has: the model's messages that were kept are not in the file."""
    unseen = [user("o1", "from the middle"), gemini("o2", "Once"), user("o3", "and more"), gemini("o4", "Twice")]
    loaded = {"$set": {"messages": [SNAPSHOT, REPLY, *unseen]}}
    again = {"$set": {"messages": [user("u8", "<state_snapshot>two</state_snapshot>"), REPLY]}}
    third = {"$set": {"messages": [user("u7", "<state_snapshot>three</state_snapshot>"), REPLY, *unseen[:3], *TALK]}}
    assert [item.kind for item in session_of(*TALK, loaded, again).compactions] == ["edit", "summary"]
    assert [item.kind for item in session_of(*TALK, again, third).compactions] == ["summary", "edit"]


@pytest.mark.skipif(not RECORDED.is_file(), reason="needs ../shared")
def test_a_recording_without_its_middle_counts_the_compactions_that_it_has():
    every = RECORDED.read_bytes().splitlines(keepends=True)
    assert read_as(FORMAT, b"".join(every)).facts.compactions == 3
    for start, stop, left in ((60, 235, 2), (100, 290, 2), (200, 330, 1), (240, 370, 2)):
        assert read_as(FORMAT, b"".join(every[:start] + every[stop:])).facts.compactions == left


def test_a_history_set_to_what_it_is_changes_nothing():
    same = [TALK[0], TALK[2], TALK[3], TALK[4]]
    assert session_of(*TALK, {"$set": {"messages": same}}).compactions == ()


def test_a_first_history_is_the_beginning_of_the_log():
    session = session_of({"$set": {"messages": [user("u0", "<session_context>x"), SNAPSHOT]}}, *TALK)
    assert [event.starts_turn() for event in session.events[:3]] == [False, False, True]
    assert session.compactions == ()


def test_a_rewind_takes_messages_out_of_the_log():
    session = session_of(
        *TALK, user("u3", "Delete"), gemini("g3", "Sure?", 160), {"$rewindTo": "u3"}, user("u4", "Keep")
    )
    assert texts(session)[-2:] == ["Done", "Keep"]
    assert [step.prompt_tokens for step in session.side_calls] == [160]
    assert session.left == LeftBranches(messages=2, largest=160)


def test_a_rewind_into_the_history_that_replaced_another_cuts_it_there():
    answer = gemini("g2", "Done", 140)
    change = {"$set": {"messages": [SNAPSHOT, REPLY, answer]}}
    session = session_of(
        *TALK, change, user("u3", "More"), gemini("g3", "Yes", 60), {"$rewindTo": "g2"}, user("u4", "No")
    )
    assert [item.kind for item in session.compactions] == ["summary+tail", "edit"]
    assert content_count(session.compactions[1].base) == 2
    assert session.compactions[1].trigger == "rewind"
    assert texts(session)[-1] == "No"
    assert [step.prompt_tokens for step in session.side_calls] == [60]
    check_session(session)


def test_a_header_line_may_hold_messages():
    recording = read_as(FORMAT, lines({**HEADER, "messages": list(TALK[:2])}, *TALK[2:]))
    assert recording.facts.messages == 4
    assert texts(recording.sessions[0])[0] == "List files"


def test_a_message_of_a_replaced_history_may_get_its_tokens_later():
    change = {"$set": {"messages": [SNAPSHOT, REPLY]}}
    recording = read_as(FORMAT, lines(HEADER, *TALK, change, {**REPLY, "tokens": {"input": 90}}))
    assert recording.facts.prompt_tokens_sum == 330
    assert [step.response for step in recording.sessions[0].calls] == [1, 3, None]


def test_words_of_an_unknown_shape_are_kept_as_they_stand():
    session = session_of(
        {"id": "u1", "type": "user", "content": 7}, {"id": "u2", "type": "user", "content": [{"text": 8}]}
    )
    assert [event.parts[0].value for event in session.events] == [7, {"text": 8}]
    signed = {
        "id": "g1",
        "type": "gemini",
        "content": [{"text": "", "thoughtSignature": "QQ=="}],
        "tokens": {"input": 9},
    }
    assert len(session_of(user("u1", "Hi"), signed).events) == 1


def test_parts_stand_for_the_content():
    session = session_of(user("u1", "Hi"), {"id": "g1", "type": "model", "parts": [{"text": "Hello"}]})
    assert texts(session) == ["Hi", "Hello"]


def test_a_count_that_is_no_count_is_named():
    bad = gemini("g1", "Yes", 10**17)
    notes = read_as(FORMAT, lines(HEADER, user("u1", "Hi"), bad)).notes
    assert notes.problems[0].line == 3
    with pytest.raises(DamagedRecording, match="input is 100000000000000000"):
        read_as(FORMAT, lines(HEADER, user("u1", "Hi"), bad), strict=True)


def test_a_fall_of_the_tokens_without_a_mark_is_told():
    older = [gemini("g1", "a", 1_000), user("u2", "More"), gemini("g2", "b", 300)]
    assert any("The prompt tokens fell once" in note for note in session_of(user("u1", "Hi"), *older).notes)
    change = {"$set": {"messages": [SNAPSHOT, REPLY]}}
    marked = session_of(user("u1", "Hi"), older[0], change, *older[1:])
    assert not any("fell" in note for note in marked.notes)


def test_calls_of_several_answers_in_one_message_are_answers_of_their_own():
    """0.30.0 adds the calls of an answer without text to the message before; each answer's calls have one time."""
    times = ("10:00:01.000", "10:00:01.001", "10:00:02.000")
    whole = gemini("g1", "Look", 90, "c1", "c2", "c3")
    calls = [{**call, "timestamp": f"2026-03-01T{time}Z"} for call, time in zip(whole["toolCalls"], times, strict=True)]
    value = {**HEADER, "messages": [user("u1", "List"), {**whole, "toolCalls": calls}, gemini("g2", "Done", 120)]}
    recording = read_as(FORMAT, value)
    (session,) = recording.sessions
    assert [call.prompt_tokens for call in session.calls] == [90, None, 120]
    asked = [[part.id for part in event.parts if isinstance(part, ToolCallPart)] for event in session.events]
    assert [ids for ids in asked if ids] == [["c1", "c2"], ["c3"]]
    assert recording.facts.messages == 3
    assert any("without tokens: 1 answer." in note for note in session.notes)
    assert [item.name for item in session.settings] == ["writes_compressions"]
    (twice,) = read_as(FORMAT, lines(value, value)).sessions  # written twice into one file
    assert [call.prompt_tokens for call in twice.calls] == [90, None, 120]
    assert [item.name for item in twice.settings] == ["writes_compressions"]


def test_chats_that_were_put_into_one_file_are_sessions_of_their_own(tmp_path):
    other = {**HEADER, "sessionId": "s2"}
    again = [{**record, "id": f"b{record['id']}"} for record in TALK]
    path = tmp_path / "chats.jsonl"
    path.write_bytes(lines(HEADER, *TALK, other, *again))
    first, second = read(path).sessions
    assert (first.source_id, second.source_id) == ("s1", "s2")
    assert texts(first) == texts(second)
    assert first_look(path) == look_at(first)


def test_an_error_of_a_request_that_was_too_long_is_a_refused_request():
    words = "[API Error: The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).]"
    error = {"id": "e1", "type": "error", "timestamp": TIME, "content": words}
    other = {**error, "id": "e2", "content": "[API Error: quota exceeded]"}
    assert session_of(*TALK[:2], error, error, other, *TALK[2:]).refused == (2,)
    left = session_of(*TALK, user("u3", "All"), error, {"$rewindTo": "u3"}, user("u4", "Less"), gemini("g4", "Yes", 60))
    assert (left.refused, left.left) == ((), LeftBranches(messages=1, refused=1))


def test_a_sub_agent_says_so():
    session = read_as(FORMAT, lines({**HEADER, "kind": "subagent"}, *TALK)).sessions[0]
    assert "A sub-agent's chat." in session.notes


def test_thoughts_are_reasoning_and_notices_are_not_sent():
    thinking = {**gemini("g1", "Yes", 50), "thoughts": [{"subject": "Plan", "description": "look"}]}
    notice = {"id": "i1", "type": "info", "content": "Update available"}
    session = session_of(user("u1", "Go"), notice, thinking)
    assert len(session.events) == 2
    assert session.events[1].parts[0] == ReasoningPart("**Plan** look")


def test_thoughts_are_counted_as_output():
    thinking = {**gemini("g1", "Yes", 50), "tokens": {"input": 50, "output": 5, "thoughts": 40, "total": 95}}
    calls = session_of(user("u1", "Go"), thinking, user("u2", "On"), gemini("g2", "Done", 60)).calls
    assert [call.output_tokens for call in calls] == [45, 5]


def test_a_turn_begins_without_the_thoughts_of_the_turn_before():
    thinking = {**gemini("g1", "Yes", 20_000), "tokens": {"input": 20_000, "output": 5, "thoughts": 6_000}}
    session = session_of(user("u1", "Go"), thinking, user("u2", "On"), gemini("g2", "Done", 14_100))
    findings, verdict = conclusions(Facts.of(session))
    assert "silent_truncation" not in {verdict.kind, *(finding.kind for finding in findings)}


def test_a_saved_checkpoint_is_read_without_tokens():
    contents = [{"role": "user", "parts": [{"text": "Hi"}]}, {"role": "model", "parts": [{"text": "Hello"}]}]
    session = read_as(FORMAT, contents).sessions[0]
    assert texts(session) == ["Hi", "Hello"]
    assert [step.prompt_tokens for step in session.calls] == [None]


STREAM = (
    {"type": "init", "timestamp": TIME, "session_id": "s1", "model": "g"},
    {"type": "message", "role": "user", "content": "List files"},
    {"type": "message", "role": "assistant", "content": "I lo", "delta": True},
    {"type": "message", "role": "assistant", "content": "ok", "delta": True},
    {"type": "tool_use", "tool_name": "ls", "tool_id": "c1", "parameters": {"path": "."}},
    {"type": "tool_result", "tool_id": "c1", "status": "success", "output": "a.txt"},
    {"type": "message", "role": "assistant", "content": "Done", "delta": True},
    {"type": "result", "status": "success", "stats": {"input_tokens": 240}},
)


def test_a_printed_stream_is_joined_and_has_totals_only():
    recording = read_as(FORMAT, lines(*STREAM))
    session = recording.sessions[0]
    assert texts(session) == ["List files", "I look", "", "Done"]
    assert session.events[2].parts == (ToolResultPart("ls", "a.txt", "c1"),)
    assert [step.prompt_tokens for step in session.calls] == [None, None]
    assert (recording.facts.model_calls, recording.facts.messages) == (0, 3)
    assert any("240" in note for note in session.notes)
    assert session.prompt_tokens_total == 240
    assert conclusions(Facts.of(session))[1].sentence == (
        "No call is counted: 240 prompt tokens in total, 120 each if there were 2; the peak is not known."
    )
    assert read(lines(*STREAM), strict=True).notes.problems == []
    assert any("what the screen shows" in note for note in session.notes)


def test_a_printed_stream_that_failed_says_so():
    failed = {"type": "result", "status": "error", "error": {"type": "Error", "message": "no quota"}, "stats": {}}
    assert any("no quota" in note for note in read_as(FORMAT, lines(*STREAM[:-1], failed)).sessions[0].notes)


def test_the_kind_of_a_tools_error_is_not_taken_for_a_part_of_a_tool():
    error = {"type": "invalid_tool_params", "message": "no such file"}
    failed = {"type": "tool_result", "tool_id": "c1", "status": "error", "error": error}
    recording = read(lines(*STREAM[:5], failed))
    assert not recording.notes.problems
    assert recording.sessions[0].events[-1].parts[0].content == "no such file"


def test_pieces_of_an_answer_are_joined_in_order_with_their_calls():
    pieces = [{"type": "message", "role": "assistant", "content": str(n), "delta": True} for n in range(4)]
    call = {"type": "tool_use", "tool_name": "ls", "tool_id": "c1", "parameters": {}}
    session = read_as(FORMAT, lines(STREAM[0], pieces[0], pieces[1], call, pieces[2], pieces[3])).sessions[0]
    assert [getattr(part, "text", "") for part in session.events[0].parts] == ["01", "", "23"]


def test_it_does_not_take_other_json():
    assert not recognises(FORMAT, lines({"type": "user", "uuid": "u", "sessionId": "s", "message": {}}))
    assert not recognises(FORMAT, [{"role": "user", "content": "Hi"}])


def test_wrong_types_anywhere_are_survived():
    records = (HEADER, *TALK, {"$set": {"messages": [SNAPSHOT, REPLY]}}, {"$rewindTo": "u2"})
    for index, record in enumerate(records):
        check_hostile(FORMAT, [lines(*records[:index], bad, *records[index + 1 :]) for bad in spoiled(record)])
    for index, record in enumerate(STREAM):
        check_hostile(FORMAT, [lines(*STREAM[:index], bad, *STREAM[index + 1 :]) for bad in spoiled(record)])
    check_hostile(FORMAT, [json.dumps(bad).encode() for bad in spoiled({**HEADER, "messages": list(TALK)})])


def test_the_facts_of_the_samples_are_equal():
    check_sample_facts(FORMAT, "gemini-cli")


def test_in_acp_mode_calls_belong_to_the_answers_that_made_them():
    """0.61.0, run with --acp: an answer is written with its tokens alone, and the calls of the whole chat are written
    to one message, again and again."""
    rows = [
        HEADER,
        user("u1", "Read them"),
        gemini("a1", "", 1_000),
        gemini("calls", "", 0, "c1"),
        result("r1", "c1"),
        gemini("a2", "", 2_000),
        gemini("calls", "", 0, "c1", "c2"),
        gemini("calls", "", 0, "c1", "c2", "c3"),
        {**result("r2", "c2"), "content": [response("c2"), response("c3")]},
        gemini("a3", "Read.", 3_000),
        user("u2", "And this"),
        gemini("a4", "", 4_000),
        gemini("calls", "", 0, "c1", "c2", "c3", "c4"),
        result("r4", "c4"),
        gemini("a5", "Read, too.", 5_000),
    ]
    (session,) = read_as(FORMAT, lines(*rows)).sessions
    shape = [[getattr(part, "id", None) or getattr(part, "call_id", None) for part in e.parts] for e in session.events]
    assert shape == [[None], ["c1"], ["c1"], ["c2", "c3"], ["c2", "c3"], [None], [None], ["c4"], ["c4"], [None]]
    steps = [(call.at, call.response, call.prompt_tokens) for call in session.calls]
    assert steps == [(1, 1, 1_000), (3, 3, 2_000), (5, 5, 3_000), (7, 7, 4_000), (9, 9, 5_000)]
