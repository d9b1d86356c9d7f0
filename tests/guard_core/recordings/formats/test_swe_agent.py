"""SWE-agent trajectories."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guard_core.errors import DamagedRecording
from guard_core.events import ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.formats.swe_agent import FORMAT
from guard_core.sessions import Evidence
from guard_core.views import Rewritten, Span
from tests.guard_core.recordings.checks import (
    check_hostile,
    check_sample_facts,
    check_session,
    lines,
    read_as,
    recognises,
    spoiled,
    texts,
)

STEP = {"action": "ls", "observation": "a.txt", "response": "I look\n```\nls\n```", "thought": "I look"}
TEXT_HISTORY = [
    {"role": "system", "content": "You fix bugs.", "agent": "primary"},
    {"role": "user", "content": "Fix it", "agent": "primary"},
    {"role": "assistant", "content": "I look\n```\nls\n```", "agent": "primary"},
    {"role": "user", "content": "a.txt\nbash-$", "agent": "primary"},
]
CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
CALL_HISTORY = [
    *TEXT_HISTORY[:2],
    {"role": "assistant", "message_type": "action", "content": "I look", "tool_calls": [CALL]},
    {"role": "tool", "message_type": "observation", "content": "a.txt", "tool_call_ids": ["c1"]},
]


def trajectory(history: list[dict[str, Any]] | None = None, **extra: Any) -> dict[str, Any]:
    stats = {"tokens_sent": 900, "tokens_received": 20, "api_calls": 3}
    value = {"environment": "main", "trajectory": [STEP], "info": {"model_stats": stats}, **extra}
    return value if history is None else {**value, "history": history}


def test_observations_are_automatic_messages_that_start_no_turn():
    session = read_as(FORMAT, trajectory(TEXT_HISTORY)).sessions[0]
    assert session.system == (TextPart("You fix bugs."),)
    assert [event.starts_turn() for event in session.events] == [True, False, False]
    assert [(call.at, call.response, call.prompt_tokens) for call in session.calls] == [(1, 1, None)]


@pytest.mark.parametrize(
    ("agent", "settings"),
    [
        ({"history_processors": [{"type": "last_n_observations", "n": 5, "polling": 2}]}, {"n": 5, "polling": 2}),
        ({"history_processor": {"type": "last_n_observations", "n": 3}}, {"n": 3, "polling": 1}),
        ({"history_processors": [{"type": "cache_control"}]}, {"n": 0}),
        ({"name": "main"}, {}),
    ],
)
def test_what_its_history_processors_leave_whole_is_in_its_configuration(agent, settings):
    config = json.dumps({"agent": agent})
    session = read_as(FORMAT, trajectory(TEXT_HISTORY, replay_config=config)).sessions[0]
    assert {item.name: item.value for item in session.settings} == settings


def test_function_calls_pair_with_their_results():
    session = read_as(FORMAT, trajectory(CALL_HISTORY)).sessions[0]
    assert session.events[1].parts == (TextPart("I look"), ToolCallPart("bash", {"command": "ls"}, "c1"))
    assert session.events[2].parts == (ToolResultPart("bash", "a.txt", "c1"),)


def test_what_the_model_thought_is_there_once():
    thought = CALL_HISTORY[2] | {"thinking_blocks": [{"type": "thinking", "thinking": "Files first."}]}
    session = read_as(FORMAT, trajectory([*CALL_HISTORY[:2], thought, CALL_HISTORY[3]])).sessions[0]
    assert session.events[1].parts[:2] == (ReasoningPart("Files first."), TextPart("I look"))


def test_totals_are_told_and_never_given_to_calls():
    session = read_as(FORMAT, trajectory(TEXT_HISTORY)).sessions[0]
    assert "900 prompt tokens in 3 calls" in session.notes[0]
    assert read_as(FORMAT, trajectory(TEXT_HISTORY)).facts.model_calls == 0


def test_a_history_processor_is_named_from_json_text_too():
    config = {"agent": {"history_processors": [{"type": "cache_control"}], "model": {"name": "gpt-x"}}}
    session = read_as(FORMAT, trajectory(TEXT_HISTORY, replay_config=json.dumps(config))).sessions[0]
    assert "cache_control" in session.notes[1]
    assert session.model == "gpt-x"


def test_steps_are_read_where_there_is_no_history():
    step = {**STEP, "query": [{"role": "system", "content": "S"}, {"role": "user", "content": "Fix it"}]}
    session = read_as(FORMAT, trajectory(None, trajectory=[step, STEP])).sessions[0]
    assert texts(session)[0] == "Fix it"
    assert [call.at for call in session.calls] == [1, 3]


def test_what_a_request_elided_is_an_edit_of_the_history():
    again = {"role": "assistant", "content": "Once more", "agent": "primary"}
    history = [*TEXT_HISTORY, again, TEXT_HISTORY[3], {**again, "content": "Done"}]
    elided = {**TEXT_HISTORY[3], "content": "Old output omitted"}
    queries = [TEXT_HISTORY[:2], [*TEXT_HISTORY[:3], elided], [*TEXT_HISTORY[:3], elided, *history[4:6]]]
    value = trajectory(history, trajectory=[{**STEP, "query": query} for query in queries])
    recording = read_as(FORMAT, value)
    session = recording.sessions[0]
    check_session(session)
    compactions = session.compactions
    assert [(item.at, item.evidence, item.kind) for item in compactions] == [(3, Evidence.INFERRED, "edit")]
    kept, changed = compactions[0].base
    assert (kept, changed.event, changed.message.parts) == (Span(0, 2), 2, (TextPart("Old output omitted"),))
    assert compactions[0].messages == ()
    assert recording.facts.compactions == 0


def masked(count: int = 6, **processor: Any) -> Any:
    """A run with so many observations behind the task, masked by its configuration, and its session."""
    answer = {"role": "assistant", "message_type": "action", "content": "I look", "agent": "main"}
    seen = {"role": "user", "message_type": "observation", "agent": "main"}
    history: list[dict[str, Any]] = [
        {"role": "system", "message_type": "system_prompt", "content": "S", "agent": "main"},
        {**seen, "content": "Show it", "is_demo": True},
        {**seen, "content": "Fix it"},
    ]
    for number in range(count):
        history += [answer, {**seen, "content": f"{number}\nseen"}]
    history[4]["tags"] = ["keep_output"]
    history[-1]["tags"] = ["remove_output"]
    history.append(answer)
    config = {"agent": {"history_processors": [{"type": "last_n_observations", **processor}]}}
    session = read_as(FORMAT, trajectory(history, replay_config=config)).sessions[0]
    check_session(session)
    return session


def omitted(session: Any) -> list[list[str]]:
    """The first lines of the observations that each request has in other words, by what they were."""
    requests = []
    for call in session.calls:
        edits = [item for item in session.compactions if item.at <= call.at]
        changed = [part for part in edits[-1].base if isinstance(part, Rewritten)] if edits else []
        assert {part.message.parts[0].text for part in changed} <= {"Old environment output: (2 lines omitted)"}
        requests.append([session.events[part.event].parts[0].text.split()[0] for part in changed])
    return requests


def test_what_its_configuration_masks_is_missing_in_each_request():
    """The newest two stay, and the task; the demonstration is none of them, a tag keeps the first, another hides the
    last."""
    session = masked(n=2)
    assert omitted(session) == [[], [], [], [], ["1"], ["1", "2"], ["1", "2", "3", "5"]]
    assert {item.evidence for item in session.compactions} == {Evidence.INFERRED}
    assert "follows from its settings in the file" in session.notes[1]
    assert len(session.notes) == 2


def test_masking_in_steps_and_with_other_tags():
    assert omitted(masked(n=1, polling=3, always_keep_output_for_tags=[])) == [
        [],
        [],
        ["0"],
        ["0"],
        ["0"],
        ["0", "1", "2", "3"],
        ["0", "1", "2", "3", "5"],
    ]


def test_a_result_of_a_tool_is_masked_in_its_place_with_its_pictures():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    results = [{**CALL_HISTORY[3], "content": [{"type": "text", "text": "a\nb"}, picture]}]
    task = {"role": "user", "message_type": "observation", "content": "Fix it"}
    again = {**CALL_HISTORY[2], "tool_calls": [{**CALL, "id": "c2"}]}
    history = [task, CALL_HISTORY[2], *results, again, {**CALL_HISTORY[3], "tool_call_ids": ["c2"]}, CALL_HISTORY[2]]
    config = {"agent": {"history_processors": [{"type": "last_n_observations", "n": 1}, {"type": "closed_window"}]}}
    session = read_as(FORMAT, trajectory(history, replay_config=config)).sessions[0]
    check_session(session)
    (edit,) = session.compactions
    (changed,) = [part for part in edit.base if isinstance(part, Rewritten)]
    text = "Old environment output: (2 lines omitted) (1 images omitted)"
    assert (changed.event, changed.message.parts) == (2, (ToolResultPart("", text, "c1"),))
    assert session.notes[-1].endswith("leave no trace in the file: closed_window.")


def test_the_history_of_several_agents_is_masked_by_no_configuration():
    session = masked(n=1)
    assert session.compactions
    config = {"agent": {"history_processors": [{"type": "last_n_observations", "n": 1}]}}
    seen = {"role": "user", "message_type": "observation", "content": "x"}
    answer = {"role": "assistant", "content": "y"}
    history = [{**item, "agent": name} for item, name in zip([seen, answer] * 4, "abababab", strict=True)]
    other = read_as(FORMAT, trajectory(history, replay_config=config)).sessions[0]
    assert other.compactions == ()
    assert "leave no trace in the file: last_n_observations" in other.notes[-1]


def test_other_attempts_are_sessions_behind_the_chosen_one():
    other, chosen = trajectory(CALL_HISTORY[:3]), trajectory(TEXT_HISTORY)
    value = {**chosen, "attempts": [other, chosen], "info": {**chosen["info"], "best_attempt_idx": 1}}
    recording = read_as(FORMAT, value)
    assert [len(session.events) for session in recording.sessions] == [3, 2]
    assert recording.facts.messages == 4
    assert len(read_as(FORMAT, {"attempts": [other, chosen]}).sessions) == 2


def test_facts_count_messages_and_the_longest_observation():
    facts = read_as(FORMAT, trajectory(CALL_HISTORY)).facts
    assert (facts.messages, facts.largest_tool_result_chars) == (4, 5)
    assert (facts.tool_calls, facts.tool_results) == (0, 0)


def test_a_trajectory_without_anything_is_damaged():
    with pytest.raises(DamagedRecording, match="neither"):
        read_as(FORMAT, {"trajectory": [], "history": []})


def test_it_does_not_take_other_trajectories():
    assert not recognises(FORMAT, {"trajectory": [{"source": "agent", "action": "run", "observation": ""}]})
    assert not recognises(FORMAT, {"steps": []})


def test_wrong_types_anywhere_are_survived():
    value = trajectory(CALL_HISTORY, replay_config={"agent": {"history_processor": {"type": "x"}}})
    asked = [{**STEP, "query": [TEXT_HISTORY[0], {**TEXT_HISTORY[1], "content": "Fix"}]}]
    tried = {**trajectory(TEXT_HISTORY, trajectory=asked), "attempts": [value]}
    check_hostile(FORMAT, (lines(bad) for content in (value, tried) for bad in spoiled(content)))


def test_the_facts_of_the_samples_are_equal():
    check_sample_facts(FORMAT, "swe-agent")
