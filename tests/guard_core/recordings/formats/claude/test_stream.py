"""What Claude Code prints without a screen: stream-json and json."""

import json

import pytest

from guard_core.errors import DamagedRecording
from guard_core.events import Role, ToolCallPart, ToolResultPart
from guard_core.recordings import read as read_any
from guard_core.recordings.formats.claude.stream import FORMAT
from guard_core.sessions import Evidence, Provenance, SubAgent
from guard_core.views import Inserted, Span
from tests.guard_core.recordings.checks import check_hostile, check_session, lines, read_as, recognises, spoiled, texts

INIT = {"type": "system", "subtype": "init", "session_id": "s", "cwd": "/w", "tools": ["Bash"], "model": "model-1"}
SUMMARY = "This session is being continued from a previous conversation that ran out of context. We did X."


def line(kind, message, **about):
    return {"type": kind, "message": message, "parent_tool_use_id": None, "session_id": "s", **about}


def user(content="Look", **about):
    return line("user", {"role": "user", "content": content}, **about)


def answer(*blocks, id="m1", prompt=100, **about):
    usage = {"input_tokens": 3, "cache_read_input_tokens": prompt - 10, "cache_creation_input_tokens": 7}
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    message = {"id": id, "type": "message", "role": "assistant", "model": "model-1", "content": content, "usage": usage}
    return line("assistant", message, **about)


def call(id, name="Bash", **arguments):
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def result(id, content="text", **about):
    return user([{"type": "tool_result", "tool_use_id": id, "content": content}], **about)


def ended(**about):
    usage = {"input_tokens": 6, "cache_read_input_tokens": 190, "cache_creation_input_tokens": 14}
    used = {"model-1[1m]": {"inputTokens": 6, "contextWindow": 1_000_000}}
    done = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 2, "session_id": "s"}
    return {**done, "result": "Done", "usage": usage, "modelUsage": used, **about}


def boundary(uuid="b", **details):
    metadata = {"trigger": "manual", "pre_tokens": 13_302, "post_tokens": 2_749, **details}
    about = {"session_id": "s", "uuid": uuid, "compact_metadata": metadata}
    return {"type": "system", "subtype": "compact_boundary", **about}


TALK = (INIT, answer("I look"), answer(call("t1")), result("t1"), answer("Done", id="m2", prompt=110), ended())


def read(*objects, **options):
    return read_as(FORMAT, lines(*objects), **options)


def session(*objects):
    return read(*objects).sessions[0]


def test_the_lines_of_one_message_are_one_event_and_one_call():
    recording = read(*TALK, strict=True)
    session = recording.sessions[0]

    assert [event.role for event in session.events] == [Role.MODEL, Role.USER, Role.MODEL]
    assert [(step.at, step.response, step.prompt_tokens) for step in session.calls] == [(0, 0, 100), (2, 2, 110)]
    assert (recording.facts.model_calls, recording.facts.messages, recording.facts.prompt_tokens_sum) == (2, 3, 210)
    assert (session.source_id, session.model, session.events[1].line) == ("s", "model-1", 4)


def test_the_result_tells_the_window_of_the_model():
    log = session(*TALK)

    assert (log.window.value, log.window.source) == (1_000_000, Provenance.RECORDER)


def test_what_is_not_printed_is_named():
    log = session(*TALK)

    assert (log.system, log.tools) == (None, None)
    assert log.notes[0].startswith("The system prompt, the schemas of the tools")
    assert log.notes[1].startswith("The user's prompt is not in the file")


def test_a_replayed_prompt_is_in_the_log_and_not_missed():
    log = session(INIT, user("Look", uuid="u", isReplay=True), answer("Done"), user("Look", uuid="u", isReplay=True))

    assert texts(log) == ["Look", "Done"]
    assert log.events[0].starts_turn()
    assert len(log.notes) == 1


def test_pieces_are_passed_over():
    piece = {"type": "stream_event", "event": {"type": "message_start", "message": {"id": "m1"}}, "session_id": "s"}
    recording = read(INIT, piece, piece, answer("Done"))

    assert texts(recording.sessions[0]) == ["Done"]
    assert recording.notes.skipped["line kind stream_event"] == 2


def test_a_sub_agent_is_a_session_of_its_own_and_its_calls_count_apart():
    inside = {"parent_tool_use_id": "t1", "task_description": "look around"}
    recording = read(
        INIT,
        answer(call("t1", "Task")),
        answer(call("t2"), id="m2", prompt=40, **inside),
        result("t2", **inside),
        answer("Found", id="m3", prompt=50, **inside),
        result("t1", "Found"),
        answer("Done", id="m4", prompt=120),
    )
    main, part = recording.sessions

    assert [step.prompt_tokens for step in main.calls] == [100, 120]
    assert [(step.at, step.prompt_tokens) for step in main.side_calls] == [(1, 40), (1, 50)]
    assert [step.prompt_tokens for step in part.calls] == [40, 50]
    assert (part.title, part.source_id, part.parent) == ("Sub-agent look around", "t1", main.source_id)
    assert main.sub_agents == (SubAgent("t1", "t1", 0),)
    assert "The sub-agent's prompt is in the call that started it." in part.notes
    assert recording.facts.prompt_tokens_sum == 220


def test_the_last_answer_of_a_sub_agent_may_be_missing():
    inside = {"parent_tool_use_id": "t1"}
    prompt, asked = user("Look around", **inside), answer(call("t2"), id="m2", **inside)
    part = read(INIT, answer(call("t1", "Task")), prompt, asked, result("t2", **inside), result("t1")).sessions[1]

    assert texts(part)[0] == "Look around"
    assert part.notes[-1].startswith("The sub-agent's last answer is not in the file")


def test_a_compaction_is_its_boundary_the_summary_and_the_messages_that_were_kept():
    preserved = {"anchor_uuid": "u2", "uuids": ["a2"], "all_uuids": ["a2"]}
    recording = read(
        INIT,
        user("Look", uuid="u1"),
        answer("I look", uuid="a1"),
        answer("More", id="m2", uuid="a2"),
        boundary(preserved_messages=preserved),
        user(SUMMARY, uuid="u2", isSynthetic=True),
        user("Go on", uuid="u3"),
        answer("Done", id="m3", uuid="a3", prompt=60),
    )
    session = recording.sessions[0]
    compaction = session.compactions[0]

    assert (compaction.at, compaction.evidence, compaction.kind) == (3, Evidence.DECLARED, "summary+tail")
    assert compaction.base == (Inserted(0), Span(2, 3))
    assert (compaction.trigger, compaction.tokens_before, compaction.tokens_after) == ("manual", 13_302, 2_749)
    assert texts(session) == ["Look", "I look", "More", "Go on", "Done"]
    assert recording.facts.compactions == 1


def test_a_boundary_without_a_summary_is_opaque():
    log = session(INIT, answer("I look"), boundary(), answer("Done", id="m2"))

    assert [(item.at, item.kind) for item in log.compactions] == [(1, "opaque")]


def test_the_wording_of_a_summary_without_a_boundary_is_a_quotation():
    log = session(INIT, user(SUMMARY), answer("Done"))

    assert (len(log.events), log.compactions) == (2, ())


def test_runs_of_two_sessions_in_one_file_are_two_sessions():
    other = {"session_id": "s2"}
    recording = read(*TALK, {**INIT, **other}, {**answer("Again", id="m9"), **other})

    assert [session.source_id for session in recording.sessions] == ["s", "s2"]
    assert texts(recording.sessions[1]) == ["Again"]


def test_an_error_in_the_models_place_is_no_event():
    synthetic = answer("API Error: Connection refused", error="server_error")
    synthetic["message"]["model"] = "<synthetic>"
    log = session(*TALK, synthetic, ended(is_error=True, subtype="error_during_execution"))

    assert texts(log)[-1] == "Done"
    assert log.notes[-1] == "Runs that ended with an error: 1, the first with error_during_execution"


@pytest.mark.parametrize("layout", [{}, {"indent": 1}])
def test_an_array_says_the_same_without_lines(layout):
    of_lines, of_array = session(*TALK), read_any(json.dumps(TALK, **layout).encode(), strict=True).sessions[0]

    assert [event.parts for event in of_array.events] == [event.parts for event in of_lines.events]
    assert [step.prompt_tokens for step in of_array.calls] == [100, 110]
    assert {item.line for item in (*of_array.events, *of_array.calls)} == {None}


def test_a_result_alone_is_an_answer_whose_tokens_are_no_calls():
    recording = read_as(FORMAT, ended(), strict=True)
    session = recording.sessions[0]

    assert texts(session) == ["Done"]
    assert [step.prompt_tokens for step in session.calls] == [None]
    assert "210 prompt tokens" in session.notes[-1]
    assert (recording.facts.model_calls, session.model) == (0, "model-1[1m]")
    assert session.prompt_tokens_total == 210
    assert read_any(json.dumps(ended()).encode(), strict=True).notes.problems == []
    assert read_as(FORMAT, lines(*TALK)).sessions[0].prompt_tokens_total is None


def test_lines_of_the_first_versions_have_neither_uuids_nor_parents():
    objects = [{key: value for key, value in item.items() if key != "parent_tool_use_id"} for item in TALK]
    log = session(*objects)

    assert [len(event.parts) for event in log.events] == [2, 1, 1]
    assert isinstance(log.events[0].parts[1], ToolCallPart)
    assert isinstance(log.events[1].parts[0], ToolResultPart)
    assert log.events[1].parts[0].name == "Bash"


@pytest.mark.parametrize("numbered", [True, False])
def test_a_damaged_message_is_told_by_its_place(numbered):
    objects = [*TALK, line("user", "no object")]
    content = lines(*objects) if numbered else json.dumps(objects).encode()

    with pytest.raises(DamagedRecording, match='"message" of a user line is missing') as caught:
        read_as(FORMAT, content, strict=True)
    lenient = read_as(FORMAT, content)

    assert caught.value.line == (7 if numbered else None)
    assert ("item 7" in str(caught.value)) is not numbered
    assert (len(lenient.sessions[0].events), lenient.notes.problem_count) == (3, 1)


def test_a_run_without_any_answer_is_told():
    with pytest.raises(DamagedRecording, match="holds no message"):
        read(INIT, {"type": "system", "subtype": "api_retry", "session_id": "s"})


TRANSCRIPT = {"type": "user", "uuid": "u", "parentUuid": None, "sessionId": "s", "session_id": "s", "message": {}}
COUSIN = {"type": "assistant", "message": {"role": "assistant", "content": []}, "session_id": "s"}


@pytest.mark.parametrize("other", [TRANSCRIPT, COUSIN, {"type": "init", "session_id": "s", "model": "m"}])
def test_other_lines_are_left_to_others(other):
    assert not recognises(FORMAT, lines(other, other))


def test_hostile_values_never_break_a_reading():
    started = answer(call("t2"), id="m3", parent_tool_use_id="t1", uuid="a")
    record = [*TALK[2:4], started, boundary(preserved_messages={"uuids": ["a"]}), user(SUMMARY), ended()]
    check_hostile(FORMAT, (lines(INIT, *bad) for bad in spoiled(record) if all(isinstance(x, dict) for x in bad)))
    for session in read(*TALK).sessions:
        check_session(session)
