"""What `codex exec --json` prints, in items and in the envelopes of older versions."""

import pytest

from guard_core import recordings
from guard_core.errors import DamagedRecording
from guard_core.events import MediaPart, OtherPart, ReasoningPart, Role, TextPart, ToolCallPart
from guard_core.recordings.formats.codex.exec import FORMAT
from guard_core.sessions import Evidence
from guard_core.windows.window_evidence import stated_windows
from tests.guard_core.recordings.checks import check_hostile, check_session, lines, read_as, recognises, spoiled, texts

STARTED, TURN = {"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"}
SETTINGS = {"model": "model-1", "workdir": "/w", "provider": "p", "sandbox": "none", "approval": "never"}


def item(number, kind, phase="completed", **about):
    return {"type": f"item.{phase}", "item": {"id": f"item_{number}", "type": kind, **about}}


def command(number, output="", code=0, phase="completed"):
    status = {"started": "in_progress"}.get(phase, "failed" if code else "completed")
    about = {"command": f"cat {number}", "aggregated_output": output, "exit_code": code, "status": status}
    return item(number, "command_execution", phase, **about)


def ended(tokens=900):
    return {"type": "turn.completed", "usage": {"input_tokens": tokens, "cached_input_tokens": 400, "output_tokens": 9}}


def told(kind, envelope="0", **about):
    return {"id": envelope, "msg": {"type": kind, **about}}


def count(prompt, total):
    usage = {"input_tokens": prompt, "cached_input_tokens": prompt // 2, "output_tokens": 5, "total_tokens": prompt + 5}
    info = {"total_token_usage": {"input_tokens": total}, "last_token_usage": usage, "model_context_window": 272_000}
    return told("token_count", info=info)


def ran(call_id, output, code=0):
    return (
        told("exec_command_begin", call_id=call_id, command=["cat", call_id]),
        told("exec_command_output_delta", call_id=call_id, chunk="YWI="),
        told("exec_command_end", call_id=call_id, stdout=output, stderr="", exit_code=code),
    )


ITEMS = (
    STARTED,
    TURN,
    item(0, "reasoning", text="Hm"),
    item(1, "agent_message", text="I look"),
    command(2, phase="started"),
    command(3, phase="started"),
    command(3, "no file", 2),
    command(2, "alpha"),
    item(4, "agent_message", text="Done"),
    ended(),
)
ENVELOPES = (
    SETTINGS,
    {"prompt": "Look"},
    told("task_started", model_context_window=272_000),
    told("agent_reasoning", text="Hm"),
    *ran("c1", "alpha"),
    *ran("c2", "no file", 2),
    count(100, 100),
    told("agent_message", message="Done"),
    count(120, 220),
    count(120, 220),
)


def read(*objects, **options):
    return read_as(FORMAT, lines(*objects), **options)


def session(*objects):
    return read(*objects).sessions[0]


def test_items_are_answers_and_results():
    recording = read(*ITEMS, strict=True)
    session = recording.sessions[0]

    assert [event.role for event in session.events] == [Role.MODEL, Role.USER, Role.USER, Role.MODEL]
    assert [type(part) for part in session.events[0].parts] == [ReasoningPart, TextPart, ToolCallPart, ToolCallPart]
    results = [event.parts[0] for event in session.events[1:3]]
    assert [(part.content, part.is_error, part.name) for part in results] == [
        ("no file", True, "command_execution"),
        ("alpha", False, "command_execution"),
    ]
    assert session.events[0].parts[2].arguments == {"command": "cat 2"}
    assert (recording.facts.tool_calls, recording.facts.tool_results, recording.facts.messages) == (2, 2, 2)


def test_a_total_of_a_turn_is_no_calls_prompt():
    recording = read(*ITEMS)
    session = recording.sessions[0]

    assert [step.prompt_tokens for step in session.calls] == [None, None]
    assert recording.facts.model_calls == 0
    assert any("900 input tokens" in note for note in session.notes)
    assert (session.prompt_tokens_total, session.total_calls) == (900, None)
    again = read(*ITEMS, TURN, item(0, "agent_message", text="Again"), ended(500)).sessions[0]
    assert again.prompt_tokens_total is None  # no running sum
    assert "The user's prompt is not in the file." in session.notes


def test_what_follows_a_result_is_the_next_answer():
    log = session(STARTED, TURN, command(0, "a"), command(1, "b"), item(2, "agent_message", text="Done"))

    assert [(step.at, step.response) for step in log.calls] == [(0, 0), (2, 2), (4, 4)]


def test_a_resumed_thread_goes_on_and_its_items_begin_anew():
    sessions = read(*ITEMS, STARTED, TURN, command(2, "more"), item(3, "agent_message", text="Again")).sessions

    assert len(sessions) == 1
    assert [part.content for event in sessions[0].events for part in event.parts if hasattr(part, "content")] == [
        "no file",
        "alpha",
        "more",
    ]
    ids = [part.id for event in sessions[0].events for part in event.parts if isinstance(part, ToolCallPart)]
    assert len(set(ids)) == 3


def test_another_thread_is_another_session():
    other = {"type": "thread.started", "thread_id": "t2"}
    recording = read(*ITEMS, other, TURN, item(0, "agent_message", text="Hello"))

    assert [(session.source_id, texts(session)[-1]) for session in recording.sessions] == [
        ("t", "Done"),
        ("t2", "Hello"),
    ]


def test_calls_of_other_kinds_are_told_too():
    blocks = [{"type": "text", "text": "found"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}]
    asked = {"server": "docs", "tool": "find", "arguments": {"q": "x"}, "result": {"content": blocks}}
    log = session(
        STARTED,
        item(0, "mcp_tool_call", status="completed", **asked),
        item(1, "file_change", status="completed", changes=[{"path": "a", "kind": "add"}]),
        item(2, "web_search", query="x"),
    )

    assert [(part.name, part.arguments) for event in log.events[::2][:2] for part in event.parts] == [
        ("docs__find", {"q": "x"}),
        ("file_change", {"changes": [{"path": "a", "kind": "add"}]}),
    ]
    assert log.events[1].parts[0].content == "found"
    assert isinstance(log.events[1].parts[1], MediaPart)
    assert isinstance(log.events[4].parts[0], OtherPart)


def test_a_search_with_two_ids_is_read_as_codex_writes_it():
    said = b'"type":"web_search","id":"ws_1","query":"x","action":{"type":"other"}}}'
    search = b'{"type":"item.%s","item":{"id":"item_3",' + said
    quoted = item(4, "agent_message", text='{"item":{"id":"item_3","type":"web_search","id":"ws_1"}}')
    log = lines(STARTED) + search % b"started" + b"\n" + search % b"completed" + b"\n" + lines(quoted)
    recording = read_as(FORMAT, log, strict=True)
    searched, spoken = (part for event in recording.sessions[0].events for part in event.parts)
    assert searched == OtherPart("web_search", {"query": "x", "action": {"type": "other"}})
    assert spoken == TextPart('{"item":{"id":"item_3","type":"web_search","id":"ws_1"}}')


def test_only_a_new_plan_is_a_call():
    first, second = [{"text": "one", "completed": False}], [{"text": "one", "completed": True}]
    recording = read(
        STARTED,
        item(0, "todo_list", "started", items=first),
        item(0, "todo_list", "updated", items=second),
        item(0, "todo_list", items=second),
        item(1, "agent_message", text="Done"),
    )

    assert (recording.facts.tool_calls, recording.facts.tool_results) == (2, 0)
    assert len(recording.sessions[0].calls) == 3


def test_envelopes_tell_the_prompt_and_the_tokens_of_each_call():
    recording = read(*ENVELOPES, strict=True)
    session = recording.sessions[0]

    assert [event.role for event in session.events] == [Role.USER, Role.MODEL, Role.USER, Role.USER, Role.MODEL]
    assert [(step.at, step.prompt_tokens, step.cached_tokens) for step in session.calls] == [(1, 100, 50), (4, 120, 60)]
    assert [event.parts[0].is_error for event in session.events[2:4]] == [False, True]
    assert (session.model, session.window.value, recording.notes.folded) == ("model-1", 272_000, 1)
    assert (recording.facts.model_calls, recording.facts.prompt_tokens_sum) == (2, 220)
    assert session.notes == ("The system prompt and the schemas of the tools are not in the file.",)


def test_each_call_has_the_window_that_was_printed_for_it():
    def counted(prompt, total, window):
        info = {**count(prompt, total)["msg"]["info"], "model_context_window": window}
        return told("token_count", info=info)

    session = read_as(
        FORMAT,
        lines(
            SETTINGS,
            {"prompt": "Look"},
            told("agent_message", message="One"),
            counted(100, 100, 272_000),
            told("session_configured", model="model-2"),
            told("agent_message", message="Two"),
            counted(120, 220, 128_000),
            told("task_started", model_context_window=272_000),
            told("agent_message", message="Three"),
            counted(130, 350, 272_000),
        ),
    ).sessions[0]
    check_session(session)
    assert [call.model for call in session.calls] == ["model-1", "model-2", "model-2"]
    assert stated_windows(session) == [272_000, 128_000, 272_000]
    assert session.window.value == 272_000


def test_counts_without_a_running_total_are_one_call_each():
    plain = told("token_count", input_tokens=100, cached_input_tokens=0, output_tokens=5)
    answer = told("agent_message", message="Done")
    recording = read(SETTINGS, {"prompt": "Look"}, answer, plain, {"prompt": "Again"}, answer, plain)

    assert [step.prompt_tokens for step in recording.sessions[0].calls] == [100, 100]


def test_the_output_that_the_model_got_is_the_result():
    done = told("exec_command_end", call_id="c", stdout="a" * 9, formatted_output="aa[...]", exit_code=0)
    log = session(SETTINGS, {"prompt": "Look"}, done, count(9, 9))

    assert log.events[2].parts[0].content == "aa[...]"


@pytest.mark.parametrize(
    ("objects", "evidence"),
    [
        ((*ENVELOPES, told("agent_message", "auto-compact-0", message="Compact task completed")), Evidence.DECLARED),
        ((*ITEMS, item(5, "agent_message", text="Compact task completed")), Evidence.MATCHED),
    ],
    ids=["envelopes", "items"],
)
def test_a_notice_of_a_compaction_is_no_answer(objects, evidence):
    recording = read(*objects)
    session = recording.sessions[0]

    assert [(item.at, item.kind, item.evidence) for item in session.compactions] == [
        (len(session.events), "opaque", evidence)
    ]
    assert (texts(session)[-1], recording.facts.compactions) == ("Done", 1)


def test_a_failed_run_is_told():
    failed = {"type": "turn.failed", "error": {"message": "no quota"}}

    assert session(*ITEMS[:-1], failed).notes[-1] == "The run ended with an error: no quota"


def test_a_run_that_said_nothing_is_told():
    with pytest.raises(DamagedRecording, match="holds no message"):
        read(STARTED, TURN, {"type": "error", "message": "Reconnecting"})


def test_a_wrong_count_is_told_by_its_line():
    with pytest.raises(DamagedRecording, match='input_tokens is "many", no count of tokens') as caught:
        read(*ENVELOPES, count(9, 9), told("token_count", input_tokens="many"), strict=True)

    assert caught.value.line == len(ENVELOPES) + 2


RPC = {"id": "1", "msg": {"type": "hello"}}


@pytest.mark.parametrize("other", [RPC, {"type": "error", "message": "x"}, {"prompt": "Look"}, SETTINGS])
def test_other_lines_are_left_to_others(other):
    assert not recognises(FORMAT, lines(other, other))


def test_hostile_values_never_break_a_reading():
    more = [item(5, "mcp_tool_call", server="s", tool="t", result={"content": []}), item(6, "todo_list", items=[])]
    patch = told("patch_apply_begin", call_id="p", changes={}), told("patch_apply_end", call_id="p", success=True)
    for record in (ITEMS[2:6], [*more, ended()], ENVELOPES[2:6], [*patch, count(9, 9)]):
        spoilt = (bad for bad in spoiled(list(record)) if all(isinstance(each, dict) for each in bad))
        check_hostile(FORMAT, (lines(STARTED, SETTINGS, *bad) for bad in spoilt))
    for objects in (ITEMS, ENVELOPES):
        check_session(session(*objects))


def test_short_turns_of_a_resumed_thread_are_not_taken_for_records_of_kimi_code():
    usage = {"input_tokens": 900, "cached_input_tokens": 0, "output_tokens": 9}
    rows = [{"type": "thread.started", "thread_id": "t"}]
    for number in range(3):
        answer = {"id": f"item_{number}", "type": "agent_message", "text": "All is well."}
        rows += [{"type": "turn.started"}, {"type": "item.completed", "item": answer}]
        rows += [{"type": "turn.completed", "usage": usage}]
    assert recordings.read(lines(*rows)).format == FORMAT.name
