"""Results of runs and saved states of AutoGen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guard_core import recordings
from guard_core.events import MediaPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.formats.autogen import FORMAT
from tests.guard_core.recordings.checks import check_hostile, read_as, recognises, spoiled, texts

CALL = {"id": "c1", "arguments": '{"path": "."}', "name": "ls"}
RESULT = {"content": "a.txt", "name": "ls", "call_id": "c1", "is_error": False}


def said(source: str, kind: str, content: Any, prompt: int | None = None) -> dict[str, Any]:
    """A message of a result; `prompt`: the tokens that its call had."""
    usage = {"prompt_tokens": prompt, "completion_tokens": 5} if prompt else None
    about = {"id": "1", "metadata": {}, "created_at": "2026-11-29T16:34:11.329133Z", "models_usage": usage}
    return {**about, "source": source, "type": kind, "content": content}


TASK = said("user", "TextMessage", "List files")
THOUGHT = said("one", "ThoughtEvent", "I look")
CALLED = said("one", "ToolCallRequestEvent", [CALL], 100)
LISTED = said("one", "ToolCallExecutionEvent", [RESULT])
SAID = said("one", "TextMessage", "One file", 200)
TEAM = [
    TASK,
    THOUGHT,
    CALLED,
    LISTED,
    SAID,
    said("two", "TextMessage", "Yes", 50),
    said("one", "TextMessage", "Bye", 300),
]


def state(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"type": "AssistantAgentState", "version": "1.0.0", "llm_context": {"messages": list(messages)}}


def context(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": kind, "content": content, **more}


ASKED = context("UserMessage", "List files", source="user")
CONTEXT = (
    ASKED,
    context("AssistantMessage", [CALL], thought="I look", source="one"),
    context("FunctionExecutionResultMessage", [RESULT]),
    context("AssistantMessage", "One file", thought=None, source="one"),
)


def team(thread: list[dict[str, Any]], **agents: dict[str, Any]) -> dict[str, Any]:
    held = {
        name: {"type": "ChatAgentContainerState", "agent_state": own, "message_buffer": []}
        for name, own in agents.items()
    }
    manager = {"type": "RoundRobinManagerState", "message_thread": thread, "current_turn": 0}
    return {"type": "TeamState", "version": "1.0.0", "agent_states": {**held, "RoundRobinGroupChatManager": manager}}


def test_a_result_and_a_state_give_the_same_context():
    result = read_as(FORMAT, {"messages": [TASK, THOUGHT, CALLED, LISTED, SAID], "stop_reason": None}, strict=True)
    saved = read_as(FORMAT, state(*CONTEXT), strict=True)
    for session in (*result.sessions, *saved.sessions):
        assert session.events[1].parts == (TextPart("I look"), ToolCallPart("ls", {"path": "."}, "c1"))
        assert session.events[2].parts == (ToolResultPart("ls", "a.txt", "c1"),)
        assert [(call.at, call.response) for call in session.calls] == [(1, 1), (3, 3)]
        assert session.agent == "AutoGen"
    assert [call.prompt_tokens for call in result.sessions[0].calls] == [100, 200]
    assert [call.prompt_tokens for call in saved.sessions[0].calls] == [None, None]
    assert any("no counts of tokens" in note for note in saved.sessions[0].notes)


def test_each_agent_of_a_team_has_heard_what_others_said_and_not_what_they_did():
    one, two = read_as(FORMAT, {"messages": TEAM, "stop_reason": None}, strict=True).sessions
    assert (one.title, texts(one)) == ("one", ["List files", "I look", "", "One file", "Yes", "Bye"])
    assert (two.title, texts(two)) == ("two", ["List files", "One file", "Yes", "Bye"])
    assert [event.starts_turn() for event in two.events] == [True, False, False, False]
    assert [(call.at, call.prompt_tokens) for call in two.calls] == [(2, 50)]


def test_the_thread_of_a_team_gives_the_calls_of_its_states_their_tokens():
    other = state(
        ASKED, context("UserMessage", "One file", source="one"), context("AssistantMessage", "Yes", source="two")
    )
    value = team(TEAM[:6], one=state(*CONTEXT), two=other)
    one, two = read_as(FORMAT, value, strict=True).sessions
    assert [call.prompt_tokens for call in one.calls] == [100, 200]
    assert [call.prompt_tokens for call in two.calls] == [50]
    assert [event.starts_turn() for event in two.events] == [True, False, False]


def test_a_thread_with_other_calls_than_a_state_gives_it_none():
    recording = recordings.read(json.dumps(team(TEAM, one=state(*CONTEXT))).encode(), strict=True)
    assert [call.prompt_tokens for call in recording.sessions[0].calls] == [None, None]
    assert any("no counts of tokens" in note for note in recording.sessions[0].notes)


def test_a_summary_of_calls_is_said_to_others_alone():
    summary = said("one", "ToolCallSummaryMessage", "a.txt")
    one, two = read_as(
        FORMAT, [TASK, CALLED, LISTED, summary, said("two", "TextMessage", "Yes", 50)], strict=True
    ).sessions
    assert texts(one) == ["List files", "", "", "Yes"]
    assert texts(two) == ["List files", "a.txt", "Yes"]


def test_the_thought_before_a_text_is_its_reasoning():
    session = read_as(FORMAT, [TASK, THOUGHT, SAID], strict=True).sessions[0]
    assert session.events[1].parts == (ReasoningPart("I look"), TextPart("One file"))


def test_pictures_are_known_by_their_size():
    session = read_as(
        FORMAT, [said("user", "MultiModalMessage", ["Look", {"data": "AAAA"}]), SAID], strict=True
    ).sessions[0]
    assert session.events[0].parts == (TextPart("Look"), MediaPart("image", size=3))


@pytest.mark.parametrize(
    "other",
    [
        {"messages": [{"role": "user", "content": "Hi"}]},
        {"messages": [{"type": "TextMessage", "content": "Hi"}]},
        {"type": "TeamState", "agent_states": {}},
        [],
    ],
)
def test_other_values_are_not_taken(other):
    assert not recognises(FORMAT, other)


def test_wrong_types_anywhere_are_survived():
    for value in ({"messages": TEAM}, team(TEAM[:6], one=state(*CONTEXT))):
        check_hostile(FORMAT, (json.dumps(bad).encode() for bad in spoiled(value)))
