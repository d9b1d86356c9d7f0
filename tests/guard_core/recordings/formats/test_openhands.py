"""OpenHands event logs, evaluation rows and trajectories."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest

from guard_core import recordings
from guard_core.events import ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.formats.openhands.format import FORMAT
from guard_core.sessions import Evidence
from guard_core.views import Inserted, Span
from guard_core.windows.window_evidence import stated_windows
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

TIME = "2026-03-01T10:00:00.000001"


def sdk(kind: str, name: str, source: str = "agent", **rest: Any) -> dict[str, Any]:
    return {"id": name, "timestamp": TIME, "source": source, "kind": kind, **rest}


def action(name: str, call: str, response: str, thought: str = "") -> dict[str, Any]:
    message = [{"type": "text", "text": thought}] if thought else []
    call_row = {"id": call, "name": "terminal", "arguments": '{"command": "ls"}'}
    return sdk(
        "ActionEvent",
        name,
        thought=message,
        tool_name="terminal",
        tool_call_id=call,
        tool_call=call_row,
        llm_response_id=response,
    )


def observed(name: str, call: str, text: str = "a.txt") -> dict[str, Any]:
    content = {"content": [{"type": "text", "text": text}], "is_error": False}
    return sdk("ObservationEvent", name, "environment", tool_name="terminal", tool_call_id=call, observation=content)


def stats(prompt: int, turn: int, output: int = 10) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "per_turn_token": turn}
    metrics = {"default": {"model_name": "m-1", "accumulated_token_usage": usage}}
    return sdk("ConversationStateUpdateEvent", "st", "environment", key="stats", value={"usage_to_metrics": metrics})


def message(text: str, name: str = "u1", source: str = "user") -> dict[str, Any]:
    role = "assistant" if source == "agent" else "user"
    return sdk("MessageEvent", name, source, llm_message={"role": role, "content": [{"type": "text", "text": text}]})


def counted(response: str, prompt: int) -> dict[str, Any]:
    return {"response_id": response, "model": "m-1", "prompt_tokens": prompt, "cache_read_tokens": 500}


STATE = {
    "agent": {
        "llm": {"model": "m-0"},
        "condenser": {"kind": "LLMSummarizingCondenser", "max_size": 20, "keep_first": 2, "max_tokens": None},
    },
    "stats": {
        "usage_to_metrics": {
            "agent": {"token_usages": [counted("r1", 900), counted("r2", 700), counted("r3", 800)]},
            "condenser": {"token_usages": [counted("s1", 300)]},
        }
    },
}


def conversation(events: list[Any], state: Any, lost: tuple[int, ...] = ()) -> bytes:
    """The folder of a conversation as a ZIP archive."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        if state is not None:
            archive.writestr("c7/base_state.json", json.dumps(state))
        for number, event in enumerate(events):
            if number not in lost:
                name = f"event-{number:05d}-6d69e577-2244-4feb-9626-1611df0a59a5.json"
                archive.writestr(f"c7/events/{name}", json.dumps(event))
    return packed.getvalue()


PROMPT = sdk(
    "SystemPromptEvent",
    "p",
    system_prompt={"type": "text", "text": "Be brief."},
    tools=[{"type": "function", "function": {"name": "terminal"}}],
)
TALK = (
    PROMPT,
    message("List files"),
    action("a1", "c1", "r1", "I look"),
    observed("o1", "c1"),
    action("a2", "c2", "r2"),
    observed("o2", "c2"),
)


def test_sdk_events_give_prompt_tools_calls_and_results():
    session = read_as(FORMAT, lines(*TALK)).sessions[0]
    assert session.system == (TextPart("Be brief."),)
    assert session.tools[0].name == "terminal"
    assert session.events[1].parts == (TextPart("I look"), ToolCallPart("terminal", {"command": "ls"}, "c1"))
    assert session.events[2].parts == (ToolResultPart("terminal", "a.txt", "c1"),)
    assert [call.at for call in session.calls] == [1, 3]


def test_a_result_of_the_terminal_is_sent_with_its_folder_interpreter_and_exit_code():
    """As 1.58.2 sends it."""
    about = {"exit_code": 0, "working_dir": "/w", "py_interpreter_path": "/bin/python", "prefix": "", "suffix": "\n[x]"}
    terminal = observed("o1", "c1")
    terminal["observation"] |= {"kind": "TerminalObservation", "metadata": about}
    failed = observed("o2", "c1", "no")
    failed["observation"] |= {"kind": "TerminalObservation", "is_error": True, "metadata": {"exit_code": -1}}
    results = [
        read_as(FORMAT, lines(*TALK[:3], item)).sessions[0].events[-1].parts[0].content for item in (terminal, failed)
    ]
    place = "[Current working directory: /w]\n[Python interpreter: /bin/python]\n[Command finished with exit code 0]"
    assert results == [f"a.txt\n[x]\n{place}", "[An error occurred during execution.]\nno"]


def test_a_result_of_the_older_terminal_is_sent_as_that_of_the_newer_one():
    """As 1.0.0a5 sends it."""
    about = {"exit_code": 2, "working_dir": "", "prefix": "[p]\n", "suffix": "\n[x]"}
    item = observed("o1", "c1")
    item["observation"] = {"kind": "ExecuteBashObservation", "output": "no", "error": True, "metadata": about}
    (part,) = read_as(FORMAT, lines(*TALK[:3], item)).sessions[0].events[-1].parts
    head = "[There was an error during command execution.]"
    assert (part.content, part.is_error) == (f"{head}\n[p]\nno\n[x]\n[Command finished with exit code 2]", True)


def test_actions_of_one_response_are_one_answer():
    both = (action("a1", "c1", "r1", "Both"), action("a2", "c2", "r1"), observed("o1", "c1"), observed("o2", "c2"))
    session = read_as(FORMAT, lines(message("Go"), *both)).sessions[0]
    assert len(session.calls) == 1
    assert [type(part) for part in session.events[1].parts] == [TextPart, ToolCallPart, ToolCallPart]


def test_a_difference_of_cumulative_usage_is_the_prompt_of_one_call_when_it_is_confirmed():
    events = (
        message("Go"),
        stats(100, 110),
        action("a1", "c1", "r1"),
        observed("o1", "c1"),
        stats(250, 155, 15),
        action("a2", "c2", "r2"),
    )
    recording = read_as(FORMAT, lines(*events))
    assert [call.prompt_tokens for call in recording.sessions[0].calls] == [100, 150]
    assert recording.facts.model_calls == 0


def test_a_difference_that_folds_several_calls_is_left_out():
    session = read_as(FORMAT, lines(message("Go"), stats(900, 110), action("a1", "c1", "r1"))).sessions[0]
    assert session.calls[0].prompt_tokens is None


def test_a_condensation_is_declared_with_the_summary_at_its_offset():
    cut = sdk("Condensation", "k", forgotten_event_ids=["a1", "o1"], summary="We listed.", summary_offset=2)
    session = read_as(FORMAT, lines(*TALK, cut, message("Bye", "m9", "agent"))).sessions[0]
    compaction = session.compactions[0]
    assert (compaction.at, compaction.evidence, compaction.kind) == (5, Evidence.DECLARED, "summary+tail")
    assert compaction.base == (Span(0, 1), Inserted(0), Span(3, 5))
    assert "We listed." not in texts(session)


def test_later_condensations_forget_what_earlier_ones_did():
    first = sdk("Condensation", "k1", forgotten_event_ids=["a1", "o1"], summary="One", summary_offset=2)
    second = sdk("Condensation", "k2", forgotten_event_ids=["a2", "o2"], summary="Two", summary_offset=2)
    session = read_as(FORMAT, lines(*TALK, first, second)).sessions[0]
    assert session.compactions[1].base == (Span(0, 1), Inserted(0))


def test_a_trim_keeps_the_summary_and_offsets_count_actions_of_one_answer_each():
    both = (action("a1", "c1", "r1", "Both"), action("a2", "c2", "r1"), observed("o1", "c1"), observed("o2", "c2"))
    first = sdk("Condensation", "k1", forgotten_event_ids=["p"], summary="One", summary_offset=3)
    second = sdk("Condensation", "k2", forgotten_event_ids=["o1", "o2"])
    session = read_as(FORMAT, lines(PROMPT, message("Go"), *both, first, second)).sessions[0]
    assert [item.base for item in session.compactions] == [
        (Span(0, 2), Inserted(0), Span(2, 4)),
        (Span(0, 1), Inserted(0)),
    ]
    assert [item.kind for item in session.compactions] == ["summary+tail", "trim"]


def test_calls_and_results_and_the_calls_of_one_answer_are_forgotten_together():
    both = (action("a1", "c1", "r1", "Both"), action("a2", "c2", "r1"), observed("o1", "c1"), observed("o2", "c2"))
    cut = sdk("Condensation", "k", forgotten_event_ids=["a2"])
    session = read_as(
        FORMAT, lines(message("Go"), *both, action("a3", "c3", "r3"), observed("o3", "c3"), cut)
    ).sessions[0]
    assert session.compactions[0].base == (Span(0, 1), Span(4, 6))


def test_the_summariser_is_told_by_the_condensers_own_totals():
    usage = {"prompt_tokens": 70, "completion_tokens": 7, "per_turn_token": 77}
    update = stats(100, 110)
    update["value"]["usage_to_metrics"]["condenser"] = {"accumulated_token_usage": usage}
    cut = sdk("Condensation", "k", forgotten_event_ids=["a1"], summary="S", summary_offset=1, llm_response_id="r9")
    compaction = read_as(FORMAT, lines(*TALK, update, cut)).sessions[0].compactions[0].summariser
    assert (compaction.prompt_tokens, compaction.source_id) == (70, "r9")


def test_confirmed_usage_without_an_answer_is_a_side_call():
    session = read_as(
        FORMAT, lines(message("Go"), stats(60, 70), stats(160, 110, 20), action("a1", "c1", "r1"))
    ).sessions[0]
    assert [call.prompt_tokens for call in session.side_calls] == [60]
    assert [call.prompt_tokens for call in session.calls] == [100]


def test_usage_listed_by_response_belongs_to_its_call():
    listed = [{"response_id": "r1", "prompt_tokens": 90, "completion_tokens": 5, "context_window": 1000}]
    row = {"instance_id": "i1", "history": list(TALK), "metrics": {"token_usages": listed}}
    recording = read_as(FORMAT, lines(row))
    session = recording.sessions[0]
    assert [call.prompt_tokens for call in session.calls] == [90, None]
    assert (session.window.value, recording.facts.prompt_tokens_sum) == (1000, 90)


def test_each_call_has_the_model_and_the_window_that_its_response_states():
    listed = [
        {"response_id": "r1", "model": "m-1", "prompt_tokens": 90, "completion_tokens": 5, "context_window": 128_000},
        {"response_id": "r2", "model": "m-2", "prompt_tokens": 95, "completion_tokens": 5, "context_window": 200_000},
        {"response_id": "r3", "model": "m-1", "prompt_tokens": 99, "completion_tokens": 5, "context_window": 128_000},
    ]
    history = [message("Go"), *(action(f"a{n}", f"c{n}", f"r{n}") for n in (1, 2, 3))]
    totals = {"accumulated_token_usage": {"context_window": 200_000}}
    row = {"instance_id": "i1", "history": history, "metrics": {"token_usages": listed, **totals}}
    session = read_as(FORMAT, lines(row)).sessions[0]
    check_session(session)
    assert [call.model for call in session.calls] == ["m-1", "m-2", "m-1"]
    assert stated_windows(session) == [128_000, 200_000, 128_000]
    assert session.window.value == 128_000


def test_totals_state_the_largest_window_from_where_they_grow():
    def grown(prompt: int, name: str, window: int) -> dict[str, Any]:
        update = stats(prompt, prompt + 10)
        metrics = update["value"]["usage_to_metrics"]["default"]
        metrics["model_name"] = name
        metrics["accumulated_token_usage"]["context_window"] = window
        return update

    session = read_as(
        FORMAT,
        lines(
            message("Go"),
            grown(60, "m-1", 128_000),
            action("a1", "c1", "r1"),
            grown(160, "m-2", 200_000),
            action("a2", "c2", "r2"),
        ),
    ).sessions[0]
    assert [call.model for call in session.calls] == ["m-1", "m-2"]
    assert stated_windows(session) == [128_000, 200_000]


def test_errors_and_rejections_answer_their_call():
    error = sdk("AgentErrorEvent", "e1", "agent", error="no such tool", tool_name="terminal", tool_call_id="c1")
    session = read_as(FORMAT, lines(message("Go"), action("a1", "c1", "r1"), error)).sessions[0]
    assert session.events[2].parts == (ToolResultPart("terminal", "no such tool", "c1", True),)


def test_thinking_is_kept_apart():
    thought = action("a1", "c1", "r1", "I look") | {"reasoning_content": "Files first."}
    session = read_as(FORMAT, lines(message("Go"), thought)).sessions[0]
    assert session.events[1].parts[0] == ReasoningPart("Files first.")


OLD = [
    {"id": 1, "source": "user", "action": "message", "args": {"content": "List files"}},
    {"id": 2, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "I look"}},
    {"id": 3, "source": "agent", "observation": "run", "content": "a.txt"},
]


def test_rows_of_an_evaluation_are_sessions_flat_or_in_pairs():
    rows = [{"instance_id": "i1", "history": OLD}, {"instance_id": "i2", "history": [[OLD[1], OLD[2]]]}]
    recording = read_as(FORMAT, lines(*rows))
    assert [session.title for session in recording.sessions] == ["i1", "i2"]
    assert read_as(FORMAT, rows).facts == recording.facts
    assert (recording.facts.messages, recording.facts.largest_tool_result_chars) == (5, 5)
    assert recording.sessions[0].events[2].parts[0].name == "run"


def test_older_events_with_their_response_have_real_tokens():
    response = {"id": "r1", "model": "m-1", "usage": {"prompt_tokens": 321, "completion_tokens": 4}, "choices": []}
    metadata = {"function_name": "bash", "tool_call_id": "c1", "model_response": response}
    events = [OLD[0], OLD[1] | {"tool_call_metadata": metadata}, OLD[2] | {"tool_call_metadata": metadata}]
    recording = read_as(FORMAT, events)
    assert recording.sessions[0].calls[0].prompt_tokens == 321
    assert (recording.facts.model_calls, recording.facts.tool_calls, recording.facts.tool_results) == (1, 1, 1)


@pytest.mark.parametrize(
    "written",
    [
        {"prompt_tokens_details": {"cached_tokens": 200, "cache_creation_tokens": 80}},
        {"prompt_tokens_details": {"cached_tokens": 200, "cache_write_tokens": 80}},
        {"cache_read_input_tokens": 200, "cache_creation_input_tokens": 80},
    ],
)
def test_older_events_with_their_response_have_what_the_cache_wrote(written: dict[str, Any]):
    response = {"id": "r1", "usage": {"prompt_tokens": 321, "completion_tokens": 4, **written}, "choices": []}
    metadata = {"function_name": "bash", "tool_call_id": "c1", "model_response": response}
    call = read_as(FORMAT, [OLD[0], OLD[1] | {"tool_call_metadata": metadata}]).sessions[0].calls[0]
    assert (call.prompt_tokens, call.cached_tokens, call.cache_write_tokens, call.output_tokens) == (321, 200, 80, 4)


def test_differences_of_accumulated_metrics_are_calls_of_older_events():
    first = OLD[1] | {"llm_metrics": {"accumulated_token_usage": {"prompt_tokens": 100, "completion_tokens": 5}}}
    second = OLD[1] | {
        "id": 4,
        "llm_metrics": {"accumulated_token_usage": {"prompt_tokens": 250, "completion_tokens": 9}},
    }
    recording = read_as(FORMAT, [OLD[0], first, OLD[2], second])
    assert [call.prompt_tokens for call in recording.sessions[0].calls] == [100, 150]
    assert recording.facts.prompt_tokens_sum == 250


def test_an_older_condensation_forgets_a_range_of_ids():
    cut = {
        "id": 4,
        "source": "agent",
        "action": "condensation",
        "args": {"forgotten_events_start_id": 2, "forgotten_events_end_id": 3, "summary": "S", "summary_offset": 1},
    }
    session = read_as(FORMAT, [*OLD, cut]).sessions[0]
    assert session.compactions[0].base == (Span(0, 1), Inserted(0))


def test_what_a_user_ran_and_a_request_to_condense_are_no_answers():
    ran = [{"id": 4, "source": "user", "action": "run", "args": {"command": "pwd"}}]
    ran.append({"id": 5, "source": "agent", "cause": 4, "observation": "run", "content": "/w"})
    message = {"id": 6, "source": "environment", "action": "message", "args": {"content": "Go on"}}
    asked = {"id": 7, "source": "agent", "action": "condensation_request", "args": {}}
    recording = read_as(FORMAT, [*OLD, *ran, message, asked])
    session = recording.sessions[0]
    assert texts(session)[3:] == ["pwd", "/w", "Go on"]
    assert (len(session.calls), recording.notes.skipped) == (1, {"condensation_request event": 1})
    assert [event.starts_turn() for event in session.events[3:]] == [False, False, False]


def test_the_screen_of_a_browser_is_a_picture_of_its_size():
    seen = OLD[2] | {"extras": {"screenshot": "data:image/png;base64," + "A" * 400, "url": "x"}}
    parts = read_as(FORMAT, [*OLD[:2], seen]).sessions[0].events[2].parts
    assert (parts[1].mime, parts[1].size) == ("image/png", 300)


def test_a_conversation_in_a_folder_has_the_settings_and_the_usage_of_its_state():
    rounds = [
        (action(f"a{number}", f"t{number}", f"r{number}"), observed(f"o{number}", f"t{number}")) for number in "12"
    ]
    condensed = sdk("Condensation", "c1", forgotten_event_ids=["a1", "o1"], summary="S", summary_offset=2)
    condensed["llm_response_id"] = "s1"
    events = [PROMPT, message("go"), *rounds[0], condensed, *rounds[1], message("Done.", "u2", "agent")]
    events[-1]["llm_response_id"] = "r3"
    session = read_as(FORMAT, conversation(events, STATE)).sessions[0]
    assert [(call.prompt_tokens, call.cached_tokens) for call in session.calls] == [(900, 500), (700, 500), (800, 500)]
    assert session.compactions[0].summariser.prompt_tokens == 300
    assert {setting.name: setting.value for setting in session.settings} == {"max_size": 20, "keep_first": 2}
    assert (session.source_id, session.model, session.notes) == ("c7", "m-0", ())


def test_an_answer_without_a_response_is_counted_by_the_one_between_its_neighbours():
    events = [PROMPT, message("go"), action("a1", "t1", "r1"), observed("o1", "t1"), message("Yes.", "m1", "agent")]
    events += [message("on", "u2"), action("a2", "t2", "r3"), observed("o2", "t2"), message("Done.", "m2", "agent")]
    session = read_as(FORMAT, conversation(events, STATE)).sessions[0]
    assert [call.prompt_tokens for call in session.calls] == [900, 700, 800, None]


def test_a_folder_without_its_state_or_with_a_lost_event_is_read_and_says_so():
    events = [PROMPT, message("go"), action("a1", "t1", "r1"), observed("o1", "t1")]
    session = read_as(FORMAT, conversation(events, None, lost=(2,))).sessions[0]
    assert len(session.events) == 2
    assert session.settings == ()
    assert "By its numbers a step is not in the file" in session.notes[-1]
    recording = recordings.read(conversation([*events, "no event"], {"agent": "none", "stats": [1]}))
    assert len(recording.sessions[0].events) == 3
    assert not recognises(FORMAT, conversation(["no event"], STATE))


def test_unknown_kinds_are_counted():
    recording = read_as(FORMAT, lines(*TALK, sdk("MoodEvent", "x")))
    assert recording.notes.skipped == {"MoodEvent": 1}


def test_other_files_are_not_taken():
    assert not recognises(FORMAT, {"trajectory": [{"action": "ls", "observation": "a", "thought": ""}]})
    assert not recognises(FORMAT, lines({"history": [{"role": "user", "content": "x"}]}))
    tried = {"attempt": 1, "steps": ["build"], "observation": "step build: it failed, rc=1\nerror: no such class"}
    assert not recognises(FORMAT, {"stage": {"repo": "r"}, "history": [tried, tried]})
    assert not recognises(FORMAT, [{"id": 1, "source": "user", "action": "login"}])


def test_a_file_of_one_event_or_a_page_of_them_is_taken():
    assert recognises(FORMAT, OLD[0])
    assert recognises(FORMAT, message("Hi"))
    assert recognises(FORMAT, {"items": [message("Hi")], "next_page_id": None})


def test_wrong_types_anywhere_are_survived():
    cut = sdk("Condensation", "k", forgotten_event_ids=["a1"], summary="S", summary_offset=1)
    records = [PROMPT, message("Go"), stats(9, 19), TALK[2], TALK[3], cut]
    for index, record in enumerate(records):
        check_hostile(FORMAT, [lines(*records[:index], bad, *records[index + 1 :]) for bad in spoiled(record)])
    check_hostile(FORMAT, [lines(bad) for bad in spoiled({"history": OLD})])


def test_the_facts_of_the_samples_are_equal():
    check_sample_facts(FORMAT, "openhands")


def test_ids_of_tool_calls_count_in_each_row_of_an_evaluation() -> None:
    history = [action("a1", "call_1", "r1"), observed("o1", "call_1")]
    rows = lines(*({"instance_id": name, "history": history} for name in ("one", "two", "three")))
    facts = read_as(FORMAT, rows).facts
    assert (facts.tool_calls, facts.tool_results) == (3, 3)
