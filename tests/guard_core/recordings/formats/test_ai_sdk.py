"""Messages of Vercel's AI SDK."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guard_core import recordings
from guard_core.events import MediaPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.formats.ai_sdk import FORMAT
from tests.guard_core.recordings.checks import check_hostile, lines, read_as, recognises, spoiled

ASKED: dict[str, Any] = {"id": "1", "role": "user", "parts": [{"type": "text", "text": "List files"}]}
STEP = {"type": "step-start"}
SAID = {"type": "text", "text": "One file", "state": "done"}
OLD = {"toolCallId": "c1", "toolName": "ls", "args": {"path": "."}, "state": "result", "result": "a.txt"}


def tool(**more: Any) -> dict[str, Any]:
    about = {"type": "tool-ls", "toolCallId": "c1", "state": "output-available", "input": {"path": "."}}
    return {**about, "output": "a.txt", **more}


def answer(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "2", "role": "assistant", "parts": list(parts), **more}


def of_model(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages that a model is given."""
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "ls"}
    return [
        {"role": "user", "content": "List files"},
        {"role": "assistant", "content": [{**call, "input": {"path": "."}}]},
        {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "ls", **result}]},
        {"role": "assistant", "content": [{"type": "text", "text": "One file"}]},
    ]


CHATS: dict[str, Any] = {
    "a chat": [ASKED, answer(STEP, tool(), STEP, SAID)],
    "a request of a chat": {"id": "chat", "messages": [ASKED, answer(STEP, tool(), STEP, SAID)]},
    "lines": lines(ASKED, answer(STEP, tool(), STEP, SAID)),
    "without marks of steps": [ASKED, answer(tool(), SAID)],
    "a tool known at run time only": [ASKED, answer(STEP, tool(type="dynamic-tool", toolName="ls"), STEP, SAID)],
    "version 4": [ASKED, answer({"type": "tool-invocation", "toolInvocation": OLD}, SAID, content="One file")],
    "version 4 without parts": [
        {"role": "user", "content": "List files"},
        {"role": "assistant", "content": "One file", "toolInvocations": [OLD]},
    ],
    "for a model": of_model({"output": {"type": "text", "value": "a.txt"}}),
    "for a model, version 4": of_model({"result": "a.txt"}),
}


@pytest.mark.parametrize("name", CHATS)
def test_each_step_is_a_call_and_each_output_its_result(name):
    content = CHATS[name] if isinstance(CHATS[name], bytes) else json.dumps(CHATS[name]).encode()
    recording = recordings.read(content)
    session = recording.sessions[0]
    assert [event.parts for event in session.events] == [
        (TextPart("List files"),),
        (ToolCallPart("ls", {"path": "."}, "c1"),),
        (ToolResultPart("ls", "a.txt", "c1"),),
        (TextPart("One file"),),
    ]
    assert [(call.at, call.response, call.prompt_tokens) for call in session.calls] == [(1, 1, None), (3, 3, None)]
    assert (recording.format, recording.notes.problems) == ("ai-sdk", [])
    assert (recording.facts.tool_calls, recording.facts.tool_results) == (1, 1)


def test_reasoning_and_files_are_no_text():
    picture = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA"}
    asked = {**ASKED, "parts": [*ASKED["parts"], picture]}
    shown = [{"type": "source-url", "sourceId": "s", "url": "https://a.test"}, {"type": "data-weather", "data": {}}]
    session = read_as(FORMAT, [asked, answer(STEP, {"type": "reasoning", "text": "Look"}, SAID, *shown)]).sessions[0]
    assert session.events[0].parts == (TextPart("List files"), MediaPart("image/png", size=3))
    assert session.events[1].parts == (ReasoningPart("Look"), TextPart("One file"))


def test_a_system_message_at_the_head_is_the_system_prompt():
    system = {"id": "0", "role": "system", "parts": [{"type": "text", "text": "Be brief."}]}
    assert read_as(FORMAT, [system, ASKED, answer(SAID)]).sessions[0].system == (TextPart("Be brief."),)


@pytest.mark.parametrize("state", ["input-streaming", "input-available", "approval-requested"])
def test_a_call_without_an_output_has_no_result(state):
    session = read_as(FORMAT, [ASKED, answer(STEP, tool(state=state))]).sessions[0]
    assert [type(part) for event in session.events for part in event.parts] == [TextPart, ToolCallPart]


def test_errors_of_tools_are_failed_results():
    ui = read_as(FORMAT, [ASKED, answer(tool(state="output-error", errorText="no such file"))]).sessions[0]
    model = read_as(FORMAT, of_model({"output": {"type": "error-text", "value": "no such file"}})).sessions[0]
    failed = (ToolResultPart("ls", "no such file", "c1", True),)
    assert (ui.events[2].parts, model.events[2].parts) == (failed, failed)


def test_a_call_whose_input_could_not_be_parsed_keeps_it():
    failed = tool(state="output-error", input=None, rawInput='{"path', errorText="invalid input")
    session = read_as(FORMAT, [ASKED, answer(STEP, failed, STEP, SAID)]).sessions[0]
    assert session.events[1].parts == (ToolCallPart("ls", '{"path', "c1"),)


@pytest.mark.parametrize(("reason", "words"), [("not now", "not now"), (None, "Tool execution denied.")])
def test_a_call_that_the_user_denied_has_the_result_that_the_model_is_given(reason, words):
    denied = tool(state="output-denied", output=None, approval={"id": "a1", "approved": False, "reason": reason})
    session = read_as(FORMAT, [ASKED, answer(STEP, denied, STEP, SAID)]).sessions[0]
    assert session.events[2].parts == (ToolResultPart("ls", words, "c1", True),)


def test_a_result_of_several_contents_has_its_media():
    content = [{"type": "text", "text": "a.png"}, {"type": "media", "data": "AAAA", "mediaType": "image/png"}]
    session = read_as(FORMAT, of_model({"output": {"type": "content", "value": content}})).sessions[0]
    assert session.events[2].parts == (ToolResultPart("ls", "a.png", "c1"), MediaPart("image/png", size=3))


def test_sums_of_the_application_are_noted_and_not_taken_for_those_of_calls():
    counted = answer(STEP, tool(), STEP, SAID, metadata={"totalUsage": {"inputTokens": 900, "outputTokens": 5}})
    recording = recordings.read(json.dumps([ASKED, counted]).encode(), strict=True)
    assert (recording.facts.model_calls, recording.notes.problems) == (0, [])
    assert any("counted tokens of 1 message in their metadata" in note for note in recording.sessions[0].notes)


@pytest.mark.parametrize(
    "other",
    [
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}],
        [{"role": "user", "parts": [{"text": "Hi"}]}],
        [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}],
        {"info": {"id": "s"}, "messages": [{"info": {"role": "user"}, "parts": [{"type": "text", "text": "Hi"}]}]},
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}],
    ],
)
def test_other_messages_are_not_taken(other):
    assert not recognises(FORMAT, other)


def test_wrong_types_anywhere_are_survived():
    for chat in ([ASKED, answer(STEP, tool(), SAID)], CHATS["version 4"], CHATS["for a model"]):
        check_hostile(FORMAT, (json.dumps(bad).encode() for bad in spoiled(chat)))
