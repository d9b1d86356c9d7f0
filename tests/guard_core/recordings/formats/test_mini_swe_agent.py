"""mini-swe-agent trajectories."""

from __future__ import annotations

from typing import Any

import pytest

from guard_core.events import TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.formats.mini_swe_agent import FORMAT
from tests.guard_core.recordings.checks import check_hostile, check_sample_facts, lines, read_as, recognises, spoiled

SYSTEM = {"role": "system", "content": "Finish with echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}
TASK = {"role": "user", "content": "Fix it"}
OBSERVED = {"role": "user", "content": "<returncode>0</returncode>\n<output>a</output>"}


def answer(text: str, prompt: int | None = None, **extra: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 60}}
    response = {"id": "r1", "model": "m-1", "usage": usage}
    with_response = {} if prompt is None else {"extra": {"response": response, "timestamp": 1760000000.5}}
    return {"role": "assistant", "content": text, **with_response, **extra}


def trajectory(*messages: dict[str, Any]) -> dict[str, Any]:
    info = {"mini_version": "1.14", "config": {"model": {"model_name": "vendor/m-1"}}}
    return {"info": info, "messages": [SYSTEM, TASK, *messages], "trajectory_format": "mini-swe-agent-1.1"}


def test_the_kept_response_gives_the_prompt_tokens_of_its_call():
    recording = read_as(FORMAT, trajectory(answer("ls", 100), OBSERVED, answer("done", 150)))
    session = recording.sessions[0]
    assert [(call.at, call.prompt_tokens, call.cached_tokens) for call in session.calls] == [(1, 100, 60), (3, 150, 60)]
    assert (recording.facts.model_calls, recording.facts.prompt_tokens_max) == (2, 150)
    assert session.system == (TextPart(SYSTEM["content"]),)


def test_a_response_of_litellm_says_what_the_cache_wrote():
    usage = {"prompt_tokens": 936, "completion_tokens": 22, "cache_creation_input_tokens": 50}
    reply = answer("Look", 936)
    reply["extra"]["response"]["usage"] = usage | {"cache_read_input_tokens": 640}
    [call] = read_as(FORMAT, trajectory(reply)).sessions[0].calls
    assert (call.prompt_tokens, call.cached_tokens, call.cache_write_tokens, call.output_tokens) == (936, 640, 50, 22)


def test_observations_start_no_turn():
    session = read_as(FORMAT, trajectory(answer("ls", 100), OBSERVED)).sessions[0]
    assert [event.starts_turn() for event in session.events] == [True, False, False]


def test_a_bare_array_is_recognised_by_the_agents_own_words_and_has_no_tokens():
    recording = read_as(FORMAT, [SYSTEM, TASK, answer("ls"), OBSERVED])
    assert recording.facts.messages == 4
    assert recording.facts.model_calls == 0
    assert "no tokens per call" in recording.sessions[0].notes[0]


def test_a_plain_chat_is_not_taken():
    assert not recognises(FORMAT, [{"role": "system", "content": "Hi"}, TASK, answer("ls")])
    assert not recognises(FORMAT, {"messages": [TASK, answer("ls")]})


def test_tool_calls_of_version_2_pair_with_their_results():
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    result = {"role": "tool", "tool_call_id": "c1", "content": "a.txt"}
    recording = read_as(FORMAT, trajectory(answer("", 100, tool_calls=[call]), result))
    session = recording.sessions[0]
    assert session.events[1].parts == (ToolCallPart("bash", {"command": "ls"}, "c1"),)
    assert session.events[2].parts == (ToolResultPart("bash", "a.txt", "c1"),)
    assert (recording.facts.tool_calls, recording.facts.largest_tool_result_chars) == (1, 5)


@pytest.mark.parametrize(("status", "refused"), [("ContextWindowExceededError", (3,)), ("Submitted", ())])
def test_a_run_that_ended_with_a_prompt_that_is_too_long_was_refused(status, refused):
    value = {**trajectory(answer("ls", 120), {"role": "user", "content": "a.txt"})}
    value["info"] = {**value["info"], "exit_status": status}
    assert read_as(FORMAT, value).sessions[0].refused == refused


def test_responses_items_are_read_with_their_usage():
    items = [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look"}]},
        {"type": "function_call", "name": "bash", "arguments": "{}", "call_id": "c9"},
    ]
    usage = {"input_tokens": 70, "input_tokens_details": {"cached_tokens": 10}, "output_tokens": 3}
    reply = {"object": "response", "output": items, "usage": usage}
    output = {"type": "function_call_output", "call_id": "c9", "output": "ok"}
    session = read_as(FORMAT, trajectory(reply, output)).sessions[0]
    assert session.calls[0].prompt_tokens == 70
    assert session.events[2].parts == (ToolResultPart("bash", "ok", "c9"),)


def test_an_answer_without_an_action_is_a_call_whose_answer_is_not_in_the_log():
    complaint = {"role": "user", "content": "No tool calls found", "extra": {"interrupt_type": "FormatError"}}
    complaint["extra"]["response"] = {"id": "r0", "model": "m-1", "usage": {"prompt_tokens": 100}}
    recording = read_as(FORMAT, trajectory(complaint, answer("ls", 120)))
    calls = recording.sessions[0].calls
    assert [(call.at, call.response, call.prompt_tokens) for call in calls] == [(1, None, 100), (2, 2, 120)]
    assert recording.facts.model_calls == 2
    assert [event.starts_turn() for event in recording.sessions[0].events] == [True, False, False]


def test_a_refused_request_is_no_call_without_a_trace():
    """mini-swe-agent counts it among its calls."""
    value = trajectory(answer("ls", 100))
    value["info"] = {**value["info"], "exit_status": "ContextWindowExceededError", "model_stats": {"api_calls": 2}}
    assert read_as(FORMAT, value).sessions[0].notes == ()


def test_calls_without_a_trace_are_told():
    value = trajectory(answer("ls", 100))
    value["info"]["model_stats"] = {"api_calls": 3}
    notes = read_as(FORMAT, value).sessions[0].notes
    assert notes == ("The agent made 3 calls, 2 of them without a trace in the file.",)


def test_messages_of_a_wrong_kind_are_told():
    recording = read_as(FORMAT, trajectory({"role": "user", "content": 7}, "junk", answer("ls", 10**18)))  # type: ignore[arg-type]
    counted, *others = [problem.message for problem in recording.notes.problems]
    assert f"usage.prompt_tokens is {10**18}, no count of tokens" in counted
    assert others == ["message 4 is text and no object, left out", "a message whose content is a number, left out"]


def test_the_message_that_ends_the_run_is_not_sent():
    recording = read_as(FORMAT, trajectory(answer("ls", 100), {"role": "exit", "content": "Submitted"}))
    assert len(recording.sessions[0].events) == 2
    assert recording.notes.skipped == {"message of role exit": 1}


def test_wrong_types_anywhere_are_survived():
    value = trajectory(answer("ls", 100), OBSERVED)
    check_hostile(FORMAT, (lines(bad) for bad in spoiled(value)))


def test_the_facts_of_the_samples_are_equal():
    check_sample_facts(FORMAT, "mini-swe-agent")
