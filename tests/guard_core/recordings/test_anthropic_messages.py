"""Anthropic messages and logs of their requests."""

from __future__ import annotations

import json
from typing import Any

from guard_core.events import MediaPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.anthropic_messages import FORMAT
from guard_core.sessions import Evidence
from tests.guard_core.recordings.reading import check_hostile, lines, read_as, recognises, spoiled

USER = {"role": "user", "content": "List files"}
CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "ls", "input": {"path": "."}}]}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"}]}
DONE = {"role": "assistant", "content": [{"type": "text", "text": "One file"}]}
TALK = [USER, CALL, RESULT, DONE]


def logged(messages: list[dict[str, Any]], answer: dict[str, Any], fresh: int, read: int = 0) -> dict[str, Any]:
    usage = {
        "input_tokens": fresh,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": 1,
        "output_tokens": 5,
    }
    response = {"type": "message", "id": f"m{fresh}", "model": "c", "content": answer["content"], "usage": usage}
    return {"request": {"model": "c", "system": "Be brief.", "messages": messages}, "response": response}


def test_blocks_become_parts():
    session = read_as(FORMAT, TALK).sessions[0]
    assert session.events[1].parts == (ToolCallPart("ls", {"path": "."}, "t1"),)
    assert session.events[2].parts == (ToolResultPart("ls", "a.txt", "t1"),)
    assert [(step.at, step.prompt_tokens) for step in session.calls] == [(1, None), (3, None)]
    assert session.system is None


def test_thinking_is_reasoning_and_sealed_thinking_has_a_size_only():
    blocks = [
        {"type": "thinking", "thinking": "Hm", "signature": "QUJD"},
        {"type": "redacted_thinking", "data": "QUJDRA=="},
    ]
    session = read_as(FORMAT, [USER, {"role": "assistant", "content": blocks}]).sessions[0]
    assert session.events[1].parts == (ReasoningPart("Hm", 3), ReasoningPart(opaque_bytes=4))


def test_pictures_in_results_are_media_not_text():
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
    block = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "seen"}, picture]}
    session = read_as(FORMAT, [USER, CALL, {"role": "user", "content": [block]}]).sessions[0]
    assert session.events[2].parts[0].content == "seen"
    assert session.events[2].parts[1] == MediaPart("image/png", 3)


def test_a_request_body_brings_system_and_tools():
    tools = [{"name": "ls", "description": "List", "input_schema": {"type": "object"}}]
    body = {"model": "c", "system": [{"type": "text", "text": "Be brief."}], "tools": tools, "messages": TALK}
    session = read_as(FORMAT, body).sessions[0]
    assert session.system == (TextPart("Be brief."),)
    assert session.tools is not None
    assert session.tools[0].schema == {"type": "object"}


def test_prompt_tokens_of_a_log_are_fresh_read_and_written_together():
    recording = read_as(FORMAT, lines(logged(TALK[:1], CALL, 10, 90), logged(TALK[:3], DONE, 20, 100)))
    session = recording.sessions[0]
    assert [(step.at, step.response, step.prompt_tokens) for step in session.calls] == [(1, 1, 101), (3, 3, 121)]
    assert session.system == (TextPart("Be brief."),)
    assert recording.facts.prompt_tokens_sum == 222


def test_a_history_that_shrank_is_an_inferred_compaction():
    short = [{"role": "user", "content": "<summary>one file</summary>"}, RESULT]
    shrunk = [logged(short, DONE, 40), logged([*short, DONE, USER], DONE, 45)]
    log = [logged(TALK[:1], CALL, 10), logged(TALK[:3], DONE, 90), *shrunk]
    recording = read_as(FORMAT, lines(*log))
    assert recording.facts.compactions == 0  # none that the file declares
    assert recording.sessions[0].compactions[0].evidence is Evidence.INFERRED


def test_messages_may_carry_their_own_usage():
    answered = {**DONE, "usage": {"input_tokens": 7, "cache_read_input_tokens": 3}}
    assert read_as(FORMAT, [USER, CALL, RESULT, answered]).facts.prompt_tokens_sum == 10


def test_it_leaves_plain_chats_to_the_chat_reader():
    assert not recognises(FORMAT, [USER, {"role": "assistant", "content": "Hi"}])
    assert not recognises(FORMAT, {"messages": [USER]})


def test_wrong_types_anywhere_are_survived():
    check_hostile(FORMAT, [json.dumps(bad).encode() for bad in spoiled(TALK)])
    entry = logged(TALK[:3], DONE, 20)
    check_hostile(FORMAT, [lines(bad, entry) for bad in spoiled(entry)])
