"""What `pi --mode json` prints."""

import pytest

from guard_core.errors import DamagedRecording
from guard_core.events import Role, ToolCallPart
from guard_core.recordings.formats.pi import session as pi
from guard_core.recordings.formats.pi.events import FORMAT
from guard_core.views import Inserted
from tests.guard_core.recordings.checks import check_hostile, check_session, lines, read_as, recognises, spoiled, texts

HEADER = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-03-01T10:00:00.000Z", "cwd": "/w"}
TIME = 1_772_000_000_000


def said(message):
    start = {**message, "content": []}
    piece = {"type": "message_update", "assistantMessageEvent": {"type": "text_delta"}, "message": start}
    return {"type": "message_start", "message": start}, piece, {"type": "message_end", "message": message}


def user(text):
    return said({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": TIME})


def answer(*blocks, fresh=60, cached=40, **about):
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    usage = {"input": fresh, "output": 5, "cacheRead": cached, "cacheWrite": 0}
    message = {"role": "assistant", "content": content, "model": "model-1", "usage": usage, "stopReason": "stop"}
    return said({**message, "timestamp": TIME, **about})


def call(id):
    return {"type": "toolCall", "id": id, "name": "read", "arguments": {"path": "a"}}


def result(id, text="alpha"):
    content = [{"type": "text", "text": text}]
    ran = {"toolCallId": id, "toolName": "read"}
    done = {"type": "tool_execution_end", **ran, "result": {"content": content}, "isError": False}
    return done, *said({"role": "toolResult", **ran, "content": content, "isError": False})


def compacted(kind="compaction_end", **about):
    result = {"summary": "We looked.", "firstKeptEntryId": "abcd1234", "tokensBefore": 900}
    return {"type": kind, "result": result, "aborted": False, **about}


TALK = (
    HEADER,
    {"type": "agent_start"},
    *user("Look"),
    *answer("I look", call("c1")),
    *result("c1"),
    {"type": "turn_end", "message": answer("I look", call("c1"))[-1]["message"], "toolResults": []},
    *answer("Done", fresh=90),
    {"type": "agent_end", "messages": [answer("Done")[-1]["message"]]},
)


def read(*objects, **options):
    return read_as(FORMAT, lines(*objects), **options)


def session(*objects):
    return read(*objects).sessions[0]


def test_each_message_counts_once_though_it_is_told_often():
    recording = read(*TALK, strict=True)
    session = recording.sessions[0]

    assert [event.role for event in session.events] == [Role.USER, Role.MODEL, Role.USER, Role.MODEL]
    assert texts(session) == ["Look", "I look", "", "Done"]
    assert [(step.at, step.response, step.prompt_tokens) for step in session.calls] == [(1, 1, 100), (3, 3, 130)]
    assert isinstance(session.events[1].parts[1], ToolCallPart)
    assert session.events[2].parts[0].content == "alpha"
    assert (recording.facts.model_calls, recording.facts.messages, recording.facts.tool_results) == (2, 4, 1)
    assert (session.source_id, session.model, session.events[0].timestamp) == ("s", "model-1", TIME / 1000)


def test_older_versions_print_no_header():
    log = session(*TALK[1:])

    assert (log.source_id, texts(log)[0]) == ("", "Look")


@pytest.mark.parametrize(
    ("begun", "ended"),
    [
        ({"type": "auto_compaction_start", "reason": "threshold"}, compacted("auto_compaction_end")),
        ({"type": "compaction_start", "reason": "threshold"}, compacted(reason="threshold")),
    ],
    ids=["auto", "now"],
)
def test_a_compaction_has_its_summary_and_not_what_was_kept(begun, ended):
    recording = read(*TALK, begun, ended, *user("Go on"), *answer("Done"))
    session = recording.sessions[0]
    compaction = session.compactions[0]

    assert (compaction.at, compaction.kind, compaction.base) == (4, "summary", (Inserted(0),))
    assert (compaction.trigger, compaction.tokens_before) == ("threshold", 900)
    assert compaction.messages[0].parts[0].text == pi.COMPACTED.format("We looked.")
    assert compaction.note == "What was kept besides the summary is not in the file."
    assert recording.facts.compactions == 1


def test_a_compaction_that_failed_is_none():
    recording = read(*TALK, {"type": "compaction_end", "aborted": True}, compacted(result=None))

    assert recording.sessions[0].compactions == ()
    assert recording.notes.skipped["compaction that did not come about"] == 2


def test_system_prompt_and_tools_are_read_where_they_are_printed():
    tools = [{"name": "read", "description": "Reads", "parameters": {"type": "object"}}, {"name": "write"}]
    first = {"role": "system", "content": "", "sections": {"who": "You are pi.", "cwd": "/w"}, "toolsAdded": tools}
    later = {"role": "system", "content": "", "sections": {"cwd": None}, "toolsRemoved": [{"name": "write"}]}
    recording = read(HEADER, *said(first), *user("Look"), *said(later), *answer("Done"))
    session = recording.sessions[0]

    assert session.system[0].text == "You are pi."
    assert [(tool.name, tool.description, tool.schema) for tool in session.tools] == [
        ("read", "Reads", {"type": "object"})
    ]
    assert session.notes == ("Later changes of the system prompt or the tools: 1. The last are shown.",)
    assert recording.facts.messages == 2


def test_what_is_not_printed_is_named():
    assert session(*TALK).notes == ("The system prompt and the schemas of the tools are not in the file.",)


def test_runs_of_two_sessions_in_one_file_are_two_sessions():
    recording = read(*TALK, {**HEADER, "id": "s2"}, *user("Hello"), *answer("Hi"))

    assert [(session.source_id, texts(session)[0]) for session in recording.sessions] == [
        ("s", "Look"),
        ("s2", "Hello"),
    ]
    assert recording.facts.messages == 6


def test_a_resumed_session_goes_on():
    recording = read(*TALK, HEADER, *user("Again"), *answer("Yes"))

    assert [texts(session)[-1] for session in recording.sessions] == ["Yes"]


def test_a_run_that_said_nothing_is_told():
    with pytest.raises(DamagedRecording, match="holds no message"):
        read(HEADER, {"type": "agent_start"}, {"type": "turn_start"})


def test_a_message_that_is_none_is_told_by_its_line():
    objects = [*TALK, {"type": "message_end", "message": "x"}]

    with pytest.raises(DamagedRecording, match='"message" of a message_end is missing') as caught:
        read(*objects, strict=True)
    assert caught.value.line == len(objects)
    assert len(session(*objects).events) == 4


ENTRY = {"type": "message", "id": "a", "parentId": None, "message": {"role": "user", "content": "Hi"}}


def test_session_files_are_left_to_their_own_reader():
    assert not recognises(FORMAT, lines(HEADER, ENTRY))
    assert not recognises(FORMAT, lines(HEADER))
    assert not recognises(pi.FORMAT, lines(*TALK))


def test_hostile_values_never_break_a_reading():
    system = {"role": "system", "content": "", "sections": {"a": "b"}, "toolsAdded": [{"name": "x"}]}
    record = [HEADER, *answer(call("c1"))[2:], *result("c1")[3:], compacted(), *said(system)[2:]]
    spoilt = (bad for bad in spoiled(record) if all(isinstance(each, dict) for each in bad))
    check_hostile(FORMAT, (lines(*bad) for bad in spoilt))
    check_session(session(*TALK))


def test_what_oh_my_pi_prints_is_its_own():
    handoff = compacted("auto_compaction_end", action="handoff")
    session = read_as(FORMAT, lines(*TALK, handoff, *user("More")), strict=True).sessions[0]
    assert session.agent == "oh-my-pi"
    assert texts_of(session.compactions[0]) == ["We looked."]
    assert read_as(FORMAT, lines(*TALK, compacted("auto_compaction_end"))).sessions[0].agent == "pi"


def texts_of(compaction):
    return [part.text for message in compaction.messages for part in message.parts]
