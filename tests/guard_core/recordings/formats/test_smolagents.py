"""Steps of agents of smolagents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guard_core.events import TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.formats.smolagents import FORMAT
from tests.guard_core.recordings.checks import check_hostile, read_as, recognises, spoiled, texts
from tests.recordings.seeds import SEEDS

TASK = {"task": "List files", "task_images": None}
TIMING = {"start_time": 1_790_000_000.0, "end_time": 1_790_000_002.0, "duration": 2.0}
PLAN = {"model_input_messages": [], "model_output_message": None, "plan": "1. Look", "timing": TIMING}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": f"{name}-1", "type": "function", "function": {"name": name, "arguments": arguments}}


def step(number: int, *calls: dict[str, Any], sent: int = 0, **more: Any) -> dict[str, Any]:
    """The step of an action; `sent`: messages of its request, where the step is a full one."""
    request = [{"role": "system", "content": [{"type": "text", "text": "Be brief."}]}, *[{"role": "user"}] * (sent - 1)]
    about = {"step_number": number, "timing": TIMING, "model_input_messages": request if sent else None, "error": None}
    said = {"tool_calls": list(calls), "model_output": "I look", "observations": "a.txt", "action_output": None}
    return {**about, **said, "token_usage": {"input_tokens": 100 * number, "output_tokens": 7}, **more}


LOOKED = step(1, call("ls", path="."), sent=2)
DONE = step(2, call("final_answer", answer="One file"), sent=5, observations="One file")


def only(*steps: dict[str, Any]) -> Any:
    return read_as(FORMAT, list(steps), strict=True).sessions[0]


def test_each_step_is_a_call_with_its_tokens_and_what_its_tools_gave_back():
    for value in ([TASK, LOOKED, DONE], {"output": "One file", "state": "success", "steps": [TASK, LOOKED, DONE]}):
        session = read_as(FORMAT, value, strict=True).sessions[0]
        assert session.events[1].parts == (TextPart("I look"), ToolCallPart("ls", {"path": "."}, "ls-1"))
        assert session.events[2].parts == (ToolResultPart("ls", "a.txt", "ls-1"),)
        counts = [(call.at, call.response, call.prompt_tokens, call.output_tokens) for call in session.calls]
        assert counts == [(1, 1, 100, 7), (3, 3, 200, 7)]
        assert session.system == (TextPart("Be brief."),)
        assert not any("changed the memory" in note for note in session.notes)


def test_without_requests_the_system_prompt_is_not_known():
    session = only(TASK, {key: value for key, value in LOOKED.items() if key != "model_input_messages"})
    assert session.system is None
    assert "The system prompt is not in the file: full steps have it." in session.notes


def test_one_text_for_several_calls_belongs_to_the_first():
    session = only(TASK, step(1, call("ls", path="."), call("pwd")))
    assert session.events[2].parts == (ToolResultPart("ls", "a.txt", "ls-1"),)


def test_a_plan_is_asked_for_beside_the_conversation_and_becomes_a_part_of_it():
    session = only(TASK, {**PLAN, "token_usage": {"input_tokens": 50, "output_tokens": 9}}, step(1, call("ls"), sent=4))
    assert texts(session)[:3] == ["List files", "1. Look", "Now proceed and carry out this plan."]
    assert [(call.at, call.prompt_tokens) for call in session.side_calls] == [(1, 50)]
    assert [call.at for call in session.calls] == [3]
    assert not any("changed the memory" in note for note in session.notes)


def test_a_call_whose_tool_failed_leaves_its_error_alone():
    error = {"type": "AgentToolExecutionError", "message": "no such file"}
    failed = step(1, sent=2, model_output=None, observations=None, error=error)
    session = only(TASK, failed, step(2, call("ls"), sent=3))
    assert (session.calls[0].at, session.calls[0].response, session.calls[0].prompt_tokens) == (1, None, 100)
    assert (texts(session)[1], session.events[1].meta) == ("no such file", True)
    assert not any("changed the memory" in note for note in session.notes)


def test_a_refused_request_is_known_by_its_words():
    words = "Error in generating model output: prompt is too long: 210000 tokens > 200000 maximum"
    error = {"type": "AgentGenerationError", "message": words}
    session = only(TASK, step(1, model_output=None, observations=None, token_usage=None, error=error))
    assert session.refused == (1,)


def test_requests_that_the_steps_do_not_explain_are_counted():
    session = only(TASK, LOOKED, {**DONE, "model_input_messages": DONE["model_input_messages"][:3]})
    assert any(note.startswith("1 request with another number of messages") for note in session.notes)


@pytest.mark.parametrize(
    "other",
    [
        [],
        [TASK],
        {"steps": []},
        {"steps": [{"step_id": 1}]},
        json.loads(SEEDS["atif"]),
        json.loads(SEEDS["openai-chat"]),
    ],
)
def test_other_values_are_not_taken(other):
    assert not recognises(FORMAT, other)


def test_wrong_types_anywhere_are_survived():
    steps = [TASK, PLAN, step(1, call("ls"), sent=2, error={"type": "E", "message": "m"}), DONE]
    check_hostile(FORMAT, (json.dumps(bad).encode() for bad in spoiled(steps)))
