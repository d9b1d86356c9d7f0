"""ATIF trajectories."""

from __future__ import annotations

from typing import Any

import pytest

from guard_core.errors import DamagedRecording
from guard_core.events import MediaPart, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.formats.atif import FORMAT
from guard_core.sessions import Evidence
from guard_core.views import Inserted, Span
from tests.guard_core.recordings.checks import (
    check_hostile,
    check_sample_facts,
    check_session,
    lines,
    read_as,
    recognises,
    spoiled,
)

CALL = {"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": "ls"}}


def agent_step(number: int, message: str = "I look", prompt: int = 120, **extra: Any) -> dict[str, Any]:
    metrics = {"prompt_tokens": prompt, "cached_tokens": 100, "completion_tokens": 9}
    return {"step_id": number, "source": "agent", "message": message, "metrics": metrics, **extra}


def trajectory(*steps: dict[str, Any], **extra: Any) -> dict[str, Any]:
    agent = {"name": "terminus", "version": "2", "model_name": "m-1"}
    return {"schema_version": "ATIF-v1.6", "session_id": "s", "agent": agent, "steps": list(steps), **extra}


HEAD = (
    {"step_id": 1, "source": "system", "message": "Be brief."},
    {"step_id": 2, "source": "user", "message": "List files"},
)
LOOK = agent_step(
    3,
    reasoning_content="Files first.",
    tool_calls=[CALL],
    observation={"results": [{"source_call_id": "c1", "content": "a.txt"}]},
)


def test_a_step_of_the_agent_is_a_call_with_its_answer_and_results():
    session = read_as(FORMAT, trajectory(*HEAD, LOOK)).sessions[0]
    assert session.system == (TextPart("Be brief."),)
    assert session.events[1].parts == (
        ReasoningPart("Files first."),
        TextPart("I look"),
        ToolCallPart("bash", {"command": "ls"}, "c1"),
    )
    assert session.events[2].parts == (ToolResultPart("bash", "a.txt", "c1"),)
    call = session.calls[0]
    assert (call.at, call.response, call.prompt_tokens, call.cached_tokens) == (1, 1, 120, 100)
    assert session.model == "m-1"


@pytest.mark.parametrize(
    ("extra", "written", "for_an_hour"),
    [
        ({"cache_creation_input_tokens": 9, "cache_creation": {"ephemeral_1h_input_tokens": 4}}, 9, 4),
        ({"cache_write_input_tokens": 9}, 9, None),
        ({"cache_write_tokens": 9}, None, None),
    ],
    ids=["Claude Code", "Codex", "others"],
)
def test_what_the_cache_wrote_is_among_the_agents_own_counts(extra, written, for_an_hour):
    step = agent_step(3)
    step["metrics"]["extra"] = extra
    [call] = read_as(FORMAT, trajectory(*HEAD, step)).sessions[0].calls
    assert (call.cache_write_tokens, call.cache_hour_tokens) == (written, for_an_hour)


@pytest.mark.parametrize(
    ("agent", "prompt", "written"),
    [(name, 129, 9) for name in ("opencode", "mimo", "openclaw", "rovodev-cli")]
    + [("cline-cli", 120, 9), ("another", 120, None)],
)
def test_what_the_cache_wrote_is_a_part_of_the_prompt_or_beside_it(agent, prompt, written):
    step = agent_step(3)
    step["metrics"]["extra"] = {"cache_write_tokens": 9}
    total = {"total_prompt_tokens": 120}
    value = {**trajectory(*HEAD, step), "agent": {"name": agent, "version": "1"}, "final_metrics": total}
    recording = read_as(FORMAT, value)
    [call] = recording.sessions[0].calls
    assert (call.prompt_tokens, call.cached_tokens, call.cache_write_tokens) == (prompt, 100, written)
    assert recording.facts.prompt_tokens_sum == prompt
    assert not any("in calls that are not listed" in note for note in recording.sessions[0].notes)


def test_facts_count_steps_calls_and_results():
    facts = read_as(FORMAT, trajectory(*HEAD, LOOK, agent_step(4, "Done", 150))).facts
    assert (facts.messages, facts.model_calls, facts.prompt_tokens_sum) == (4, 2, 270)
    assert (facts.tool_calls, facts.tool_results, facts.largest_tool_result_chars) == (1, 1, 5)


def test_a_result_without_an_id_answers_by_order():
    step = agent_step(3, tool_calls=[CALL], observation={"results": [{"content": [{"type": "text", "text": "b"}]}]})
    session = read_as(FORMAT, trajectory(*HEAD, step)).sessions[0]
    assert session.events[2].parts == (ToolResultPart("bash", "b", "c1"),)


def test_later_system_steps_stay_in_the_log_and_start_no_turn():
    later = {"step_id": 3, "source": "system", "message": "Workspace added"}
    session = read_as(FORMAT, trajectory(*HEAD, later, agent_step(4))).sessions[0]
    assert session.events[1].role is Role.SYSTEM
    assert not session.events[1].starts_turn()
    assert session.calls[0].at == 2


def test_copied_context_is_in_the_log_but_no_call_of_this_file():
    recording = read_as(FORMAT, trajectory(*HEAD, {**LOOK, "is_copied_context": True}, agent_step(4, "On", 90)))
    session = recording.sessions[0]
    assert [call.prompt_tokens for call in session.calls] == [90]
    assert recording.facts.model_calls == 1
    assert "copied" in session.notes[0]


def test_embedded_sub_agents_are_sessions_of_their_own():
    child = trajectory(*HEAD, agent_step(3, "Sub", 40))
    recording = read_as(FORMAT, trajectory(*HEAD, LOOK, subagent_trajectories=[child]))
    assert [len(session.calls) for session in recording.sessions] == [1, 1]
    assert recording.facts.prompt_tokens_sum == 160


def test_calls_of_a_sub_agent_are_counted_whatever_ids_they_have():
    recording = read_as(FORMAT, trajectory(*HEAD, LOOK, subagent_trajectories=[trajectory(*HEAD, LOOK)]))
    assert (recording.facts.tool_calls, recording.facts.tool_results) == (2, 2)


MARK = {
    "step_id": 4,
    "source": "system",
    "message": "Summarised",
    "extra": {"context_management": {"type": "compaction"}},
}


HANDED = {"step_id": 5, "source": "user", "message": "One file was listed"}


def test_a_marked_compaction_takes_the_next_user_step_for_its_summary():
    value = trajectory(*HEAD, LOOK, MARK, HANDED, agent_step(6, "On", 60))
    session = read_as(FORMAT, value).sessions[0]
    check_session(session)
    compaction = session.compactions[0]
    assert (compaction.at, compaction.evidence, compaction.kind) == (3, Evidence.DECLARED, "summary")
    assert (compaction.base, compaction.messages[0].parts) == ((Inserted(0),), (TextPart("One file was listed"),))
    assert (session.calls[1].at, len(session.events)) == (3, 4)


def test_harbors_own_agent_keeps_its_first_message():
    session = read_as(FORMAT, trajectory(HEAD[1], LOOK, MARK, HANDED, agent_step(6, "On", 60))).sessions[0]
    assert session.compactions[0].base == (Span(0, 1), Inserted(0))


def test_a_compaction_told_in_words_is_matched_and_no_fact():
    words = {**MARK, "extra": None, "message": "Performed context summarization and handoff to continue task."}
    recording = read_as(FORMAT, trajectory(HEAD[1], LOOK, words, HANDED, agent_step(6, "On", 60)))
    assert recording.sessions[0].compactions[0].evidence is Evidence.MATCHED
    assert recording.facts.compactions == 0


def test_a_marked_compaction_without_a_summary_is_opaque():
    recording = read_as(FORMAT, trajectory(*HEAD, LOOK, MARK, agent_step(5, "On", 60), MARK))
    assert [item.kind for item in recording.sessions[0].compactions] == ["opaque", "opaque"]
    assert recording.facts.compactions == 2


def test_a_summary_of_pi_is_a_compaction_with_its_call():
    extra = {"pi_event_type": "compaction", "tokens_before": 900}
    session = read_as(FORMAT, trajectory(*HEAD, LOOK, agent_step(4, "One file", 70, extra=extra))).sessions[0]
    compaction = session.compactions[0]
    assert (compaction.tokens_before, compaction.summariser.prompt_tokens, len(session.calls)) == (900, 70, 1)


def test_tokens_of_several_calls_are_no_calls_own():
    steps = (
        agent_step(3, "Twice", 200, llm_call_count=2),
        {**agent_step(4, "By rule"), "llm_call_count": 0, "metrics": None},
    )
    recording = read_as(FORMAT, trajectory(*HEAD, *steps, final_metrics={"total_prompt_tokens": 500}))
    session = recording.sessions[0]
    assert [call.prompt_tokens for call in session.calls] == [None]
    assert recording.facts.prompt_tokens_sum == 200
    assert ["added up" in session.notes[0], "300 of 500" in session.notes[1]] == [True, True]


def test_pictures_are_known_by_their_place():
    content = [
        {"type": "text", "text": "See"},
        {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}},
    ]
    session = read_as(FORMAT, trajectory(HEAD[0], {"step_id": 2, "source": "user", "message": content}, LOOK)).sessions[
        0
    ]
    assert session.events[0].parts == (TextPart("See"), MediaPart("image/png", uri="a.png"))


def test_a_continuation_in_another_file_is_told():
    session = read_as(FORMAT, trajectory(*HEAD, LOOK, continued_trajectory_ref="next.json")).sessions[0]
    assert "next.json" in session.notes[0]


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((1, 2, 3), []),
        ((2, 3, 4), []),
        ((1, 5, 2), []),
        ((1, 3, 4), ["By its numbers a step is not in the file (step 1 is followed by step 3)"]),
        ((1, 4, 8), ["By their numbers 5 steps are not in the file (step 1 is followed by step 4, and so on: 2 gaps)"]),
    ],
)
def test_steps_that_their_numbers_skip_are_named(numbers, words):
    steps = ({"step_id": number, "source": "user", "message": "Look"} for number in numbers)
    notes = read_as(FORMAT, trajectory(*steps)).sessions[0].notes
    assert [note.rpartition(": what ")[0] for note in notes if note.startswith("By ")] == words


def test_tools_are_read_and_missing_ones_are_named_as_not_recorded():
    value = trajectory(*HEAD, LOOK)
    assert read_as(FORMAT, value).sessions[0].tools is None
    value["agent"]["tool_definitions"] = [{"type": "function", "function": {"name": "bash", "parameters": {}}}]
    assert read_as(FORMAT, value).sessions[0].tools[0].name == "bash"


def test_steps_and_counts_of_a_wrong_kind_are_told():
    recording = read_as(FORMAT, trajectory(*HEAD, "junk", agent_step(4, prompt="many")))  # type: ignore[arg-type]
    counted, junk = [problem.message for problem in recording.notes.problems]
    assert counted.startswith('steps.metrics.prompt_tokens is "many", no count of tokens')
    assert junk == "step 3 is text and no object, left out"


def test_all_sums_of_its_specification_are_known():
    """FinalMetrics of ATIF has them since version 1.0."""
    sums = dict.fromkeys(("total_prompt_tokens", "total_completion_tokens", "total_cached_tokens"), 10)
    recording = read_as(FORMAT, trajectory(*HEAD, agent_step(3), final_metrics={**sums, "total_cost_usd": 0.1}))
    assert recording.notes.problems == []


def test_many_trajectories_are_a_session_each():
    many = [trajectory(*HEAD, agent_step(3, prompt=number), session_id=f"s{number}") for number in (120, 140)]
    recording = read_as(FORMAT, lines(*many))
    assert [session.source_id for session in recording.sessions] == ["s120", "s140"]
    assert (recording.facts.model_calls, recording.facts.prompt_tokens_sum) == (2, 260)
    assert read_as(FORMAT, many).sessions == recording.sessions
    assert read_as(FORMAT, [*many, {"rows": 2}]).notes.skipped == {"object that is not a trajectory": 1}


def test_of_a_trajectory_that_was_written_again_its_fullest_state_counts():
    shorter, other = trajectory(*HEAD, LOOK), trajectory(*HEAD, session_id="other")
    recording = read_as(FORMAT, lines(shorter, other, trajectory(*HEAD, LOOK, agent_step(4))))
    assert [len(session.calls) for session in recording.sessions] == [0, 2]
    assert (recording.facts.model_calls, recording.notes.folded) == (2, 1)


def test_unknown_sources_are_counted():
    recording = read_as(FORMAT, trajectory(*HEAD, {"step_id": 3, "source": "referee", "message": "Foul"}))
    assert recording.notes.skipped == {"step of source referee": 1}


def test_a_trajectory_without_steps_is_damaged():
    with pytest.raises(DamagedRecording, match="no steps"):
        read_as(FORMAT, trajectory())


def test_it_does_not_take_other_objects():
    assert not recognises(FORMAT, {"steps": [{"action": "x"}]})
    assert not recognises(FORMAT, {"trajectory": [], "history": []})


def test_wrong_types_anywhere_are_survived():
    value = trajectory(*HEAD, LOOK, MARK, HEAD[1], subagent_trajectories=[trajectory(HEAD[1])])
    check_hostile(FORMAT, (lines(bad) for bad in spoiled(value)))


def test_the_facts_of_the_samples_are_equal():
    check_sample_facts(FORMAT, "atif")
