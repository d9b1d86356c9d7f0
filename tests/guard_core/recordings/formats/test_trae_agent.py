"""Trajectories of Trae Agent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guard_core.errors import DamagedRecording
from guard_core.events import TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.formats.trae_agent import FORMAT
from tests.guard_core.recordings.checks import check_hostile, read_as, recognises, spoiled, texts
from tests.recordings.seeds import SEEDS

ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "List files"}]
CALL = {"call_id": "c1", "name": "bash", "arguments": {"command": "ls"}, "id": None}


def result(words: str | None = "a.txt", error: str | None = None) -> dict[str, Any]:
    told = {"call_id": "c1", "success": error is None, "result": words, "error": error, "id": None}
    return {"role": "user", "content": None, "tool_result": told}


def interaction(*messages: dict[str, Any], said: str = "", calls: Any = None, **counts: int) -> dict[str, Any]:
    response = {"content": said, "model": "m-1", "finish_reason": "stop", "usage": counts, "tool_calls": calls}
    return {"timestamp": "2026-03-01T10:00:00", "input_messages": list(messages), "response": response}


def trajectory(*interactions: dict[str, Any], provider: str = "openai", error: str | None = None) -> dict[str, Any]:
    calls = [{"provider": provider, "model": "m", "tools_available": ["bash"], **item} for item in interactions]
    about = {"task": "List files", "start_time": "2026-03-01T10:00:00", "provider": provider, "model": "m"}
    return {**about, "llm_interactions": calls, "agent_steps": [{"step_number": 1, "error": error}]}


LOOKED = interaction(*ASKED, said="I look", calls=[CALL], input_tokens=100, output_tokens=5, cache_read_input_tokens=60)
DONE = interaction(result(), said="One file", input_tokens=130, output_tokens=7, cache_read_input_tokens=90)


def only(*interactions: dict[str, Any], **more: Any) -> Any:
    return read_as(FORMAT, trajectory(*interactions, **more), strict=True).sessions[0]


def test_an_interaction_is_a_call_whose_messages_are_new_in_its_request():
    session = only(LOOKED, DONE)
    assert session.system == (TextPart("Be brief."),)
    assert texts(session) == ["List files", "I look", "", "One file"]
    assert session.events[1].parts == (TextPart("I look"), ToolCallPart("bash", {"command": "ls"}, "c1"))
    assert session.events[2].parts == (ToolResultPart("bash", "a.txt", "c1"),)
    assert [(call.at, call.response, call.prompt_tokens) for call in session.calls] == [(1, 1, 100), (3, 3, 130)]
    assert (session.calls[0].model, session.model) == ("m-1", "m")


@pytest.mark.parametrize(("provider", "prompt"), [("anthropic", 160), ("openai", 100), ("openrouter", 100)])
def test_only_anthropics_count_lacks_the_cached_tokens(provider, prompt):
    call = only(LOOKED, provider=provider).calls[0]
    assert (call.prompt_tokens, call.cached_tokens) == (prompt, 60)


def test_zeros_are_no_counts():
    assert only(interaction(*ASKED, said="Hi", input_tokens=0, output_tokens=0)).calls[0].prompt_tokens is None


@pytest.mark.parametrize(
    ("words", "sent"),
    [("a.txt", "a.txt\nTool call failed with error:\nno"), (None, "Tool call failed with error:\nno")],
)
def test_a_tool_that_failed_says_so_in_the_agents_words(words, sent):
    session = only(LOOKED, interaction(result(words, "no"), said="I see", input_tokens=150))
    assert session.events[2].parts == (ToolResultPart("bash", sent, "c1", True),)


def test_a_step_that_ended_because_the_request_was_too_long_was_refused():
    session = only(LOOKED, error="prompt is too long: 210000 tokens > 200000 maximum")
    assert session.refused == (2,)


def test_other_json_is_not_taken_for_it():
    assert not recognises(FORMAT, {"task": "a", "model": "m", "llm_interactions": []})


def test_a_trajectory_without_messages_is_damaged():
    with pytest.raises(DamagedRecording, match="no messages"):
        read_as(FORMAT, trajectory())


def test_it_survives_hostile_content():
    check_hostile(FORMAT, (json.dumps(value).encode() for value in spoiled(trajectory(LOOKED, DONE))))
    check_hostile(FORMAT, [SEEDS["trae-agent"][:-40]])


def test_a_message_of_which_nothing_is_known_is_reported():
    told = {"role": "user", "content": None, "told": {"call_id": "c1", "result": "a.txt"}}
    recording = read_as(FORMAT, trajectory(LOOKED, interaction(told, said="One file", input_tokens=130)))
    assert "'told', left out" in recording.notes.problems[0].message
