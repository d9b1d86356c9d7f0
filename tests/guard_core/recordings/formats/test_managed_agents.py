"""Events of sessions of Claude Managed Agents."""

from __future__ import annotations

from typing import Any

import pytest

from guard_core.errors import DamagedRecording
from guard_core.events import ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.formats.managed_agents import FORMAT
from guard_core.sessions import Evidence
from tests.guard_core.recordings.checks import check_hostile, lines, read_as, recognises, spoiled, texts
from tests.recordings.seeds import SEEDS


def event(number: int, kind: str, **more: Any) -> dict[str, Any]:
    return {"id": f"sevt_{number}", "type": kind, "processed_at": f"2026-08-16T18:00:{number:02}Z", **more}


def words(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


def ended(number: int, fresh: int, cached: int = 0, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": fresh, "cache_read_input_tokens": cached, "cache_creation_input_tokens": 7}
    return event(number, "span.model_request_end", model_usage={**usage, "output_tokens": 5}, **more)


ASKED = event(1, "user.message", content=words("List files"))
FIRST = [
    event(2, "span.model_request_start"),
    event(3, "agent.thinking"),
    event(4, "agent.message", content=words("I look")),
    event(5, "agent.tool_use", name="bash", input={"command": "ls"}),
    ended(6, 100),
]
LISTED = event(7, "agent.tool_result", tool_use_id="sevt_5", content=words("a.txt"), is_error=False)
SECOND = [
    event(8, "span.model_request_start"),
    event(9, "agent.message", content=words("One file")),
    ended(10, 20, 107),
]
EVENTS = [ASKED, event(20, "session.status_running"), *FIRST, LISTED, *SECOND]


def only(*events: dict[str, Any], strict: bool = True) -> Any:
    return read_as(FORMAT, list(events), strict=strict).sessions[0]


@pytest.mark.parametrize(
    "content",
    [
        EVENTS,
        {"data": EVENTS, "next_page": None},
        {"session": {"agent": {"model": {"id": "claude-opus-4-7"}}}, "events": EVENTS},
        lines(*EVENTS),
        lines(*({"role": "agent", "raw": item} for item in EVENTS)),
    ],
)
def test_a_span_is_a_call_and_what_was_said_in_it_its_answer(content):
    recording = read_as(FORMAT, content, strict=True)
    session = recording.sessions[0]
    assert [(call.at, call.response, call.prompt_tokens, call.cached_tokens) for call in session.calls] == [
        (1, 1, 107, 0),
        (3, 3, 134, 107),
    ]
    assert session.events[1].parts == (
        ReasoningPart(),
        TextPart("I look"),
        ToolCallPart("bash", {"command": "ls"}, "sevt_5"),
    )
    assert session.events[2].parts == (ToolResultPart("bash", "a.txt", "sevt_5"),)
    assert (recording.facts.model_calls, recording.facts.prompt_tokens_sum) == (2, 241)
    assert (recording.facts.tool_calls, recording.facts.tool_results) == (1, 1)
    assert not any("not known here" in problem.message for problem in recording.notes.problems)


def test_the_model_is_that_of_the_session_beside_the_events():
    value = {"session": {"agent": {"model": {"id": "claude-opus-4-7"}}}, "events": EVENTS}
    assert read_as(FORMAT, value).sessions[0].model == "claude-opus-4-7"


def test_a_compaction_is_declared_without_its_summary():
    recording = read_as(FORMAT, [ASKED, *FIRST, LISTED, event(11, "agent.thread_context_compacted"), *SECOND])
    (compaction,) = recording.sessions[0].compactions
    assert (compaction.at, compaction.kind, compaction.evidence) == (3, "opaque", Evidence.DECLARED)
    assert compaction.note == "Neither the summary nor what was kept is in the file."
    assert recording.facts.compactions == 1


def test_results_of_custom_and_mcp_tools_name_their_calls():
    session = only(
        ASKED,
        event(2, "span.model_request_start"),
        event(3, "agent.custom_tool_use", name="ask", input={"q": "x"}),
        event(4, "agent.mcp_tool_use", name="find", input={}, mcp_server_name="m"),
        ended(5, 50),
        event(6, "user.custom_tool_result", custom_tool_use_id="sevt_3", content=words("yes")),
        event(7, "agent.mcp_tool_result", mcp_tool_use_id="sevt_4", content=words("none"), is_error=True),
    )
    assert [item.parts[0] for item in session.events[2:]] == [
        ToolResultPart("ask", "yes", "sevt_3"),
        ToolResultPart("find", "none", "sevt_4", True),
    ]


@pytest.mark.parametrize("place", [3, 4, 5])
def test_what_arrives_while_a_request_runs_is_not_in_it_and_follows_its_answer(place):
    more = event(11, "user.message", content=words("And sizes"))
    session = only(ASKED, *FIRST[: place - 1], more, *FIRST[place - 1 :], LISTED, *SECOND)
    assert texts(session) == ["List files", "", "And sizes", "", "One file"]
    assert [(call.at, call.response, call.prompt_tokens) for call in session.calls] == [(1, 1, 107), (4, 4, 134)]


def test_what_a_failed_request_had_said_comes_before_what_arrived_meanwhile():
    failed = event(6, "span.model_request_end", is_error=True, model_usage={"input_tokens": 0, "output_tokens": 0})
    session = only(ASKED, *FIRST[:3], event(11, "user.message", content=words("Wait")), failed, *SECOND)
    assert texts(session) == ["List files", "", "Wait", "One file"]
    assert [(call.at, call.prompt_tokens) for call in session.calls] == [(1, None), (3, 134)]


def test_an_outcome_asks_as_a_message_does():
    session = only(event(1, "user.define_outcome", description="Audit it", outcome_id="outc_1"), *FIRST)
    assert (session.events[0].role, texts(session)[0]) == (Role.USER, "Audit it")


def test_an_event_that_comes_twice_is_read_once():
    assert only(*EVENTS, *SECOND) == only(*EVENTS)


def test_a_request_that_failed_is_no_call():
    failed = event(8, "span.model_request_end", is_error=True, model_usage={"input_tokens": 0, "output_tokens": 0})
    session = only(ASKED, event(7, "span.model_request_start"), failed, *FIRST)
    assert [(call.at, call.prompt_tokens) for call in session.calls] == [(1, 107)]


def test_copies_of_a_sub_agents_events_are_left_out():
    copy = event(12, "agent.tool_use", name="bash", input={}, session_thread_id="sthr_2")
    recording = read_as(FORMAT, [*EVENTS, copy])
    assert recording.sessions[0] == only(*EVENTS)
    assert recording.notes.skipped == {
        "event session.status_running": 1,
        "copy of a sub-agent's event agent.tool_use": 1,
    }


def test_a_refusal_for_length_is_kept():
    error = event(12, "session.error", error={"type": "unknown", "message": "prompt is too long: 210000 tokens"})
    assert only(*EVENTS, error).refused == (4,)


def test_other_events_are_not_taken_for_it():
    for value in (
        [{"id": "a", "type": "message"}],
        {"data": [{"id": "e", "type": "response.created"}]},
        [{"type": "agent.message", "content": []}],
    ):
        assert not recognises(FORMAT, value)


def test_events_without_a_message_are_damaged():
    with pytest.raises(DamagedRecording, match="no event can be read"):
        read_as(FORMAT, [event(1, "span.model_request_start")])


def test_it_survives_hostile_content():
    check_hostile(FORMAT, (lines(ASKED, item) for item in _spoiled()))
    check_hostile(FORMAT, [SEEDS["managed-agents"][:-40], SEEDS["managed-agents"] * 2])


def _spoiled() -> Any:
    for item in (*FIRST, LISTED, event(11, "agent.thread_context_compacted"), event(1, "user.define_outcome")):
        yield from spoiled(item)
