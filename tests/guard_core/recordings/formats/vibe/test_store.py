"""Session stores of Mistral Vibe: journals, chunks, folders and archives of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guard_core.errors import DamagedRecording
from guard_core.events import Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings import first_look, read
from guard_core.recordings.formats.vibe.format import FORMAT
from guard_core.rules import explain
from guard_core.sessions import Evidence
from guard_core.views import Inserted, Span
from tests.guard_core.recordings.checks import check_hostile, check_session, lines, read_as, spoiled, texts
from tests.recordings.seeds import archive

Record = dict[str, Any]
HEAD_WORDS = "Here are messages.\n\n<previous_user_messages>"
END_WORDS = "</previous_user_messages>\n\n<compaction_summary>\n{}\n</compaction_summary>"


def record(name: str, **payload: Any) -> Record:
    return {"type": name, "sequence": 1, "recovery_journal_record_version": 1, "payload": payload}


def message(role: str, text: str) -> Record:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def called(call: str) -> Record:
    arguments = {"type": "json", "raw": '{"path": "a"}', "value": {"path": "a"}}
    return {"role": "assistant", "content": [{"type": "tool_call", "id": call, "name": "ls", "arguments": arguments}]}


def result(call: str, text: str = "a.txt") -> Record:
    return {**message("tool", text), "name": "ls", "tool_call_id": call, "outcome": "success"}


def asked(action: str, sent: list[Record], *, whole: bool = True, purpose: str = "agent", **rest: Any) -> Record:
    body = {"messages": {"type": "replace" if whole else "append", "messages": sent}, "tool_catalog": {"type": "keep"}}
    request = {"purpose": purpose, "model_input": body, **rest}
    return record("action_intent", kind="completion", action_id=action, request=request)


def answered(action: str, prompt: int, *parts: Record) -> Record:
    usage = {"input_tokens": prompt, "cached_input_tokens": prompt // 2, "output_tokens": 7, "total_tokens": prompt + 7}
    body = {"parts": list(parts), "usage": usage, "finish_reason": "stop"}
    outcome = {"type": "completion_succeeded", "action_id": action, "result": body}
    return record("action_result", action_id=action, result=outcome, state="succeeded")


def tool(call: str) -> Record:
    return {"type": "tool_call", "id": call, "name": "ls", "arguments_json": '{"path": "a"}'}


def settings(threshold: int, time: int = 1_795_333_025_109) -> Record:
    context = {"compaction": {"mode": "automatic", "token_threshold": threshold}}
    command = {"type": "user_message", "turn_id": "t"}
    determinism = {"time_unix_ms": time}
    return record(
        "core_input",
        checkpoint_settings={"context": context},
        input={"command": command, "determinism": determinism},
    )


def compacted_head(summary: str) -> list[Record]:
    return [message("user", HEAD_WORDS), message("user", "Go"), message("user", END_WORDS.format(summary))]


SYSTEM = message("system", "Be brief.")
JOURNAL = [
    settings(1_000),
    asked("a1", [SYSTEM, message("user", "Go")]),
    answered("a1", 500, tool("c1")),
    asked("a2", [called("c1"), result("c1")], whole=False),
    answered("a2", 993, tool("c2")),
    asked(
        "a3",
        [SYSTEM, message("user", "Go"), called("c1"), result("c1"), called("c2"), result("c2"), message("user", "Sum")],
        purpose="compaction",
        trigger="automatic",
    ),
    answered("a3", 1_100, {"type": "text", "text": "the summary of it all"}),
    asked("a4", [SYSTEM, *compacted_head("the summary of it all")]),
    answered("a4", 300, {"type": "text", "text": "Done"}),
]


def session_of(*records: Record):
    (session,) = read_as(FORMAT, lines(*records)).sessions
    check_session(session)
    return session


def test_a_journal_has_every_request_with_its_usage():
    session = session_of(*JOURNAL)
    assert [call.prompt_tokens for call in session.calls] == [500, 993, 300]
    assert [call.at for call in session.calls] == [1, 3, 5]
    assert session.system == (TextPart("Be brief."),)
    assert session.events[1].parts == (ToolCallPart("ls", {"path": "a"}, "c1"),)
    assert session.events[2].parts == (ToolResultPart("ls", "a.txt", "c1"),)
    assert (session.agent, session.settings[0].value) == ("Mistral Vibe", 1_000)


def test_a_compaction_shows_what_it_left_and_its_summariser():
    (item,) = session_of(*JOURNAL).compactions
    assert (item.at, item.trigger, item.summariser.prompt_tokens) == (5, "automatic", 1_100)
    assert item.base == (Inserted(0), Span(0, 1), Inserted(1))
    assert "the summary of it all" in item.messages[1].parts[0].text


def test_a_journal_that_begins_behind_a_compaction_has_the_note_of_the_next_one_written_anew():
    begun = [asked("a0", [SYSTEM, *compacted_head("what was before")]), answered("a0", 400, tool("c0"))]
    since = [called("c0"), result("c0")]
    summed = asked(
        "a1", [SYSTEM, *compacted_head("what was before"), *since, message("user", "Sum")], purpose="compaction"
    )
    rest = [asked("a2", [SYSTEM, *compacted_head("all of it")]), answered("a2", 300, {"type": "text", "text": "Done"})]
    session = session_of(*begun, summed, answered("a1", 1_100, {"type": "text", "text": "all of it"}), *rest)
    (item,) = session.compactions
    assert item.base == (Inserted(0), Span(1, 2), Inserted(1))
    assert item.messages[0].parts == session.events[0].parts


def test_the_last_results_before_a_compaction_are_in_the_log_and_its_instruction_is_not():
    assert texts(session_of(*JOURNAL)) == ["Go", "", "", "", "", "Done"]


def test_it_fires_at_the_threshold_that_the_journal_names():
    explanation = explain(session_of(*JOURNAL))
    assert (explanation.rule.threshold, explanation.auto, explanation.agrees, explanation.missed) == (1_000, 1, 1, ())
    assert explanation.compactions[0].decision_tokens == 1_000
    assert (explanation.inference[0].above, explanation.inference[0].at_most) == (507, 1_000)


@pytest.mark.parametrize(
    ("typed", "threshold"),
    [
        ({}, 1_000),
        ({"auto_compact_threshold": "168000"}, 168_000),
        ({"max_context_length": "262144"}, 209_715),
        ({"max_context_length": "262144", "auto_compact_threshold": "100k"}, 100_000),
        ({"max_context_length": "128000", "auto_compact_threshold": "150k"}, 102_400),
    ],
)
def test_a_typed_setting_is_taken_before_that_of_the_journal(typed, threshold):
    assert explain(session_of(*JOURNAL), typed=typed).rule.threshold == threshold


def test_a_setting_that_is_typed_as_0_is_among_those_that_were_typed():
    explanation = explain(session_of(*JOURNAL), typed={"auto_compact_threshold": "0"})
    assert (explanation.rule.threshold, explanation.typed) == (None, {"auto_compact_threshold": "0"})


def test_without_any_setting_the_default_is_200_000():
    assert explain(session_of(*JOURNAL[1:])).rule.threshold == 200_000


def test_a_journal_of_a_vibe_that_is_switched_off_says_so():
    """2.26.1 and 3.0.2 with `auto_compact_threshold = 0`."""
    off = settings(1_000)
    off["payload"]["checkpoint_settings"]["context"]["compaction"] = {"mode": "disabled"}
    rule = explain(session_of(off, *JOURNAL[1:])).rule
    assert (rule.threshold, rule.reason) == (None, "automatic compaction is switched off")


KEPT_OUTSIDE = "<system>The result of this call is kept outside this summary request.</system>"


def tool_gave(call: str, content: Any) -> Record:
    outcome = {"type": "tool_succeeded", "call_id": call, "result": {"structured_content": content}}
    return record("action_result", action_id=f"tool {call}", result=outcome)


@pytest.mark.parametrize("shown", [KEPT_OUTSIDE, "x" * 4_000])
def test_what_the_summariser_is_not_sent_was_compacted_all_the_same(shown):
    """3.0.3 sends it other words than the last result, 2.26 leaves out the oldest rounds."""
    compaction = asked("a3", [SYSTEM, called("c2"), result("c2", shown), message("user", "Sum")], purpose="compaction")
    session = session_of(*JOURNAL[:5], tool_gave("c2", {"content": "x" * 3_985}), compaction, *JOURNAL[6:])
    assert len(session.compactions) == 1
    assert [len(event.parts[0].content) for event in session.events if event.parts[0].__class__ is ToolResultPart] == [
        5,
        3_999,
    ]


@pytest.mark.parametrize(("usage", "pending"), [({}, 97), ({"cache_write_tokens": 0}, 33_042)])
def test_vibes_own_estimate_of_the_request_counts_where_it_is_more_than_the_answers_total(usage, pending):
    """The request is 1,097 tokens of the estimate; the provider counted 31 times that of the one before it, which 3.0.3
    expects again."""
    first, answer = asked("a1", [SYSTEM, message("user", "Go")]), answered("a1", 993, tool("c1"))
    first["payload"]["request"]["model_input"]["tool_catalog"] = {"type": "replace", "tools": []}
    answer["payload"]["result"]["result"]["usage"] |= usage
    second = asked("a2", [called("c1"), result("c1", "x" * 4_000)], whole=False)
    session = session_of(first, answer, second, answered("a2", 2_000, tool("c2")))
    assert session.calls[1].pending_tokens == pending


def test_a_refused_request_before_a_compaction_is_a_recovery():
    failed = record("action_result", action_id="a2", result={"action_id": "a2", "type": "completion_failed"})
    session = session_of(*JOURNAL[:4], failed, *JOURNAL[5:])
    assert session.compactions[0].trigger == "overflow"


def test_a_request_without_an_answer_shows_what_was_sent():
    session = session_of(*JOURNAL[:4])
    assert (len(session.events), session.calls[-1].prompt_tokens, session.calls[-1].response) == (3, None, None)


def entry(number: int, type_: str, **rest: Any) -> Record:
    time = 1_795_332_000_000 + number
    about = {"turnId": "t0", "sessionId": "s", "generationStatus": "completed"}
    return {"id": f"e{number}", "type": type_, "createdAt": time, "updatedAt": time, **about, **rest}


def effect(number: int, path: str) -> Record:
    detail = {"kind": "tool", "toolName": "file_system.ls", "input": {"path": path}}
    state = {"status": "completed", "output": {"structured_content": {"content": path}, "type": "success"}}
    return {**entry(number, "effect", detail=detail, state=state), "id": f"e{number}{path}"}


def spoken(number: int, role: str, text: str) -> Record:
    return entry(number, "message", **message(role, text))


def checkpoint(number: int) -> Record:
    return entry(number, "checkpoint", kind="compaction", details={"trigger": "automatic"})


# Two answers, a compaction, two more answers; the journal goes on behind them.
CHUNK = [spoken(1, "user", "Go"), effect(2, "a"), effect(2, "b"), effect(3, "c"), checkpoint(4), effect(5, "d")]
LAST = spoken(6, "assistant", "Read")
LATER = [
    settings(1_000),
    asked("a1", [SYSTEM, *compacted_head("sum"), called("c4"), result("c4"), message("assistant", "Read")]),
    answered("a1", 700, {"type": "text", "text": "More"}),
]
FOLDER = {
    "s/CURRENT": b'{"store_format":"mistral.vibe.unified-session-store/v1","generation":"1"}',
    "s/meta.json": json.dumps({"session_id": "s", "config": {"model_name": "devstral"}, "title": "T"}).encode(),
    "s/chunks/1.json": json.dumps(CHUNK).encode(),
    "s/chunks/2.json": json.dumps([CHUNK[-1], LAST]).encode(),
    "s/journal/1.jsonl": lines(*LATER),
    "s/journal/2.jsonl": b"",
}


def test_a_tool_that_failed_tells_the_model_why():
    failed = effect(3, "a")
    error = {"code": "tool_failed", "details": None, "message": "no file"}
    failed["state"] = {"status": "failed", "error": error, "output": {"content": [], "type": "failure"}}
    chunk = [spoken(1, "user", "Go"), failed, checkpoint(95)]
    (session,) = read(archive({**FOLDER, "s/chunks/1.json": json.dumps(chunk).encode()}), strict=True).sessions
    part = session.events[2].parts[0]
    assert (
        part.content == '{"result":{"type":"error","error":{"name":"tool_failed","message":"no file","details":null}}}'
    )
    assert part.is_error


def test_a_tool_that_was_cancelled_tells_the_model_that_it_was():
    """3.0.3, run."""
    cancelled = effect(3, "a")
    cancelled["state"] = {"status": "cancelled", "outputText": "", "reason": "client interrupt"}
    chunk = [spoken(1, "user", "Go"), cancelled, checkpoint(95)]
    (session,) = read(archive({**FOLDER, "s/chunks/1.json": json.dumps(chunk).encode()}), strict=True).sessions
    part = session.events[2].parts[0]
    assert part.content == '{"result":{"type":"error","error":{"name":"Interrupted","message":"client interrupt"}}}'
    assert part.is_error


def test_words_and_the_tools_that_ran_together_behind_them_are_one_answer():
    first, second = effect(3, "a"), effect(4, "b")
    first["updatedAt"] += 5  # still runs when the second begins
    later = effect(90, "c")
    chunk = [spoken(1, "user", "Go"), spoken(2, "assistant", "I look"), first, second, later, checkpoint(95)]
    chunks = {"s/chunks/1.json": json.dumps(chunk).encode(), "s/chunks/2.json": b"[]"}
    (session,) = read(archive({**FOLDER, **chunks}), strict=True).sessions
    assert [len(session.events[call.response].parts) for call in session.calls[:2]] == [3, 1]


def test_an_archive_of_the_folder_has_the_time_before_the_journal_too():
    recording = read(archive(FOLDER), strict=True)
    (session,) = recording.sessions
    check_session(session)
    assert [call.prompt_tokens for call in session.calls] == [None, None, None, None, 700]
    assert len(session.events[1].parts) == 2  # tools that began at one moment
    assert session.events[2].parts[0].content == '{"content":"a"}'
    (item,) = session.compactions
    assert (item.at, item.trigger, len(item.base), len(item.messages)) == (6, "automatic", 3, 2)
    assert (session.source_id, session.model, session.title) == ("s", "devstral", "T")
    assert "4 calls before the journal have no tokens in the file" in session.notes[0]
    assert recording.facts.compactions == 1


def test_the_last_answer_before_the_journal_has_the_tokens_that_the_journal_names():
    usage = {"inputTokens": 650, "cachedInputTokens": 0, "outputTokens": 9, "totalTokens": 659}
    named = record("projection_delta", delta=[{"state": {"session": {"id": "s", "contextUsage": usage}}}])
    (session,) = read(archive({**FOLDER, "s/journal/1.jsonl": lines(named, *LATER)})).sessions
    assert [call.prompt_tokens for call in session.calls] == [None, None, None, 650, 700]
    assert "3 calls before the journal have no tokens in the file" in session.notes[0]


def test_a_compaction_whose_summary_is_lost_still_keeps_the_users_messages():
    more = [CHUNK[0], *CHUNK[1:4], checkpoint(4), effect(5, "d"), checkpoint(7), effect(8, "e")]
    files = {**FOLDER, "s/chunks/1.json": json.dumps(more).encode(), "s/chunks/2.json": b"[]"}
    (session,) = read(archive(files)).sessions
    assert [item.note for item in session.compactions] == ["The summary is not in the file.", ""]
    assert Span(0, 1) in session.compactions[0].base


def test_a_folder_is_read_as_an_archive_of_it(tmp_path):
    for name, content in FOLDER.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert read(str(tmp_path)).sessions == read(archive(FOLDER)).sessions


RUNTIME_STATE = {"core_settings": {"context": {"model_facts": {"compaction_threshold": 50_000}}}}


def test_the_settings_of_the_latest_generation_and_the_format_of_the_store_count():
    current = {"store_format": "mistral.vibe.unified-session-store/v1", "generation": "2", "store_format_minor": 10}
    older = {"core_settings": {"context": {"compaction": {"token_threshold": 30_000}}}}
    files = {
        **FOLDER,
        "s/CURRENT": json.dumps(current).encode(),
        "s/journal/1.jsonl": lines(*LATER[1:]),
        "s/generations/1/runtime-state.json": json.dumps(older).encode(),
        "s/generations/2/runtime-state.json": json.dumps(RUNTIME_STATE).encode(),
    }
    (session,) = read(archive(files), strict=True).sessions
    assert (session.settings[0].value, session.versions) == (50_000, ((0, "store 10"),))
    assert explain(session).rule.counter == "total_pending"


def test_a_session_that_was_resumed_before_any_compaction_has_none():
    """Its history names the calls by ids of its own, the first request of the journal by those of the model."""
    rounds = [item for call in ("c1", "c2", "c3") for item in (called(call), result(call))]
    first = [SYSTEM, message("user", "Go"), *rounds, message("assistant", "Read"), message("user", "More")]
    journal = [settings(1_000), asked("a1", first), answered("a1", 700, {"type": "text", "text": "Done"})]
    chunk = [spoken(1, "user", "Go"), *(effect(place, "a") for place in (2, 3, 4)), spoken(5, "assistant", "Read")]
    files = {"s/chunks/1.json": json.dumps(chunk).encode(), "s/chunks/2.json": b"[]"}
    (session,) = read(archive({**FOLDER, **files, "s/journal/1.jsonl": lines(*journal)})).sessions
    assert (session.compactions, len(session.calls), len(session.events)) == ((), 5, 10)


def test_the_round_that_a_compaction_before_the_journal_kept_is_no_call_of_its_own():
    first = [SYSTEM, *compacted_head("sum"), called("c3"), result("c3", '{"content":"c"}'), called("c4"), result("c4")]
    journal = [asked("a1", first), answered("a1", 700, {"type": "text", "text": "Done"})]
    (session,) = read(archive({**FOLDER, "s/journal/1.jsonl": lines(*journal)})).sessions
    check_session(session)
    assert [call.at for call in session.calls] == [1, 4, 6, 8]  # two before it, one since, and that of the journal
    assert session.compactions[0].base == (Inserted(0), Span(0, 1), Inserted(1), Span(4, 6))


def test_a_damaged_chunk_is_named_and_left_out():
    files = {**FOLDER, "s/chunks/2.json": b'[{"id":'}
    with pytest.raises(DamagedRecording, match=r"chunks/2\.json"):
        read(archive(files), strict=True)
    assert len(read(archive(files)).sessions[0].calls) == 5


@pytest.mark.parametrize("name", ["s/CURRENT", "s/meta.json"])
def test_a_file_without_messages_says_what_to_import(name):
    content = {"s/meta.json": json.dumps({"session_id": "s", "start_time": "", "environment": {}, "git_commit": ""})}
    with pytest.raises(DamagedRecording, match="import a journal, or a zip archive of its folder"):
        read(content[name].encode() if name in content else FOLDER[name])


def test_a_chunk_alone_has_its_messages():
    assert [event.role for event in read(FOLDER["s/chunks/1.json"]).sessions[0].events][:2] == [Role.USER, Role.MODEL]
    context = [{"message": item, "source": "history", "turn_index": 0} for item in (message("user", "Go"), called("c"))]
    (session,) = read(json.dumps(context).encode()).sessions
    assert texts(session) == ["Go", ""]


def test_a_first_look_at_a_journal_is_that_of_the_reading(tmp_path):
    (tmp_path / "1.jsonl").write_bytes(lines(*JOURNAL))
    look = first_look(tmp_path / "1.jsonl")
    assert (look.prompt_tokens, look.compactions) == ((500, 993, 300), (2,))


# -- before 3.0


def old(role: str, text: str, **rest: Any) -> Record:
    return {"role": role, "content": text, "injected": False, "message_id": text[:4], **rest}


def test_an_older_log_has_its_settings_and_totals_beside_it():
    models = {"small": {"alias": "small", "name": "s"}, "devstral-2": {"name": "d", "alias": "devstral-2"}}
    models["devstral-2"]["auto_compact_threshold"] = 150_000
    meta = {
        "session_id": "s",
        "parent_session_id": "before",
        "config": {"active_model": "devstral-2", "models": models},
        "stats": {"session_prompt_tokens": 900, "steps": 3},
        "system_prompt": {"role": "system", "content": "Be brief."},
        "tools_available": [{"type": "function", "function": {"name": "ls", "description": "", "parameters": {}}}],
    }
    summary = old("user", f"{HEAD_WORDS}\n{END_WORDS.format('sum')}")
    messages = [{**summary, "injected": True}, old("assistant", "Done")]
    files = {"x/meta.json": json.dumps(meta).encode(), "x/messages.jsonl": lines(*messages)}
    (session,) = read(archive(files), strict=True).sessions
    assert (session.parent, session.settings[0].value, session.prompt_tokens_total, session.total_calls) == (
        "before",
        150_000,
        None,
        None,
    )
    assert (session.compactions[0].base, len(session.events)) == ((Inserted(0),), 1)
    assert explain(session).rule.threshold == 150_000


def test_an_older_log_of_a_model_that_is_never_compacted_says_so():
    models = [{"alias": "m", "name": "d", "auto_compact_threshold": 0}]
    meta = {"session_id": "s", "config": {"active_model": "m", "models": models, "auto_compact_threshold": 200_000}}
    files = {
        "x/meta.json": json.dumps(meta).encode(),
        "x/messages.jsonl": lines(old("user", "Go"), old("assistant", "k")),
    }
    (session,) = read(archive(files), strict=True).sessions
    rule = explain(session).rule
    assert (rule.threshold, rule.reason) == (None, "automatic compaction is switched off")


@pytest.mark.parametrize(("steps", "total", "calls"), [(3, 900, 2), (4, None, None), (2, None, None)])
def test_an_older_log_says_over_how_many_calls_its_tokens_were_counted_where_it_has_all_steps(steps, total, calls):
    """1.3.5 to 2.22.0 count the user's messages as steps, and nothing of a session's earlier processes."""
    models = [{"alias": "m", "name": "d", "auto_compact_threshold": 150_000}]
    stats = {"session_prompt_tokens": 900, "steps": steps}
    meta = {"session_id": "s", "config": {"active_model": "m", "models": models}, "stats": stats}
    messages = [old("user", "Read a and b"), old("assistant", "I read"), old("assistant", "Done")]
    files = {"x/meta.json": json.dumps(meta).encode(), "x/messages.jsonl": lines(*messages)}
    (session,) = read(archive(files), strict=True).sessions
    assert (session.settings[0].value, session.prompt_tokens_total, session.total_calls) == (150_000, total, calls)


@pytest.mark.parametrize(
    "text",
    [
        "<summary>The files were read.</summary>",
        "The files were read.\n\nLast request from user was: Go\non",
        "## 1. User's Primary Goals and Intent\nTo read.\n\n## 7. Immediate Next Step\nNone.",
    ],
)
def test_the_first_logs_begin_with_the_summary_as_the_model_worded_it(text):
    settings_of_all = {"active_model": "devstral-2", "auto_compact_threshold": 14_000}
    metadata = {"session_id": "s", "start_time": "2025-12-01T00:00:00Z", "agent_config": settings_of_all}
    messages = [old("system", "Be brief."), old("user", text), old("assistant", "Done")]
    (session,) = read(json.dumps({"metadata": metadata, "messages": messages}).encode()).sessions
    assert [item.base for item in session.compactions] == [(Inserted(0),)]
    assert (texts(session), session.system) == (["Done"], (TextPart("Be brief."),))
    assert explain(session).rule.threshold == 14_000


def test_a_log_that_begins_with_the_users_kept_messages_begins_with_their_summary():
    """2.12.1, run."""
    summary = old("user", "Another language model started to solve this problem. To read.")
    log = [old("user", "Read"), old("user", "Go"), summary, old("assistant", "Done"), old("user", "On")]
    (session,) = read(lines(*log)).sessions
    (compaction,) = session.compactions
    assert (compaction.at, compaction.base) == (0, (Inserted(0), Inserted(1), Inserted(2)))
    assert [event.parts[0].text for event in compaction.messages] == ["Read", "Go", summary["content"]]
    assert (texts(session), [call.at for call in session.calls]) == (["Done", "On"], [0])


def test_a_boundary_in_a_log_is_a_compaction_behind_which_nothing_of_before_is_sent():
    """2.24.5 and 2.25.8, run: the log is kept, not begun anew."""
    boundary = {"injected": True, "context_boundary": "compaction"}
    first = old("user", f"{HEAD_WORDS}Go{END_WORDS.format('one')}", **boundary)
    second = old("user", f"{HEAD_WORDS}Go{END_WORDS.format('two')}", **boundary)
    log = [
        old("user", "Go"),
        old("assistant", "Read"),
        first,
        old("assistant", "Seen"),
        second,
        old("assistant", "Done"),
    ]
    recording = read(lines(*log))
    (session,) = recording.sessions
    assert texts(session) == ["Go", "Read", "Seen", "Done"]
    declared = [(item.at, item.base, item.evidence, item.note) for item in session.compactions]
    assert declared == [(2, (Inserted(0),), Evidence.DECLARED, ""), (3, (Inserted(0),), Evidence.DECLARED, "")]
    assert [item.messages[0].parts[0].text for item in session.compactions] == [first["content"], second["content"]]
    assert recording.facts.compactions == 2


def test_a_log_that_begins_with_a_boundary_lacks_what_was_before_it():
    first = old("user", END_WORDS.format("one"), injected=True, context_boundary="compaction")
    (session,) = read(lines(first, old("assistant", "Done"))).sessions
    assert [(item.at, item.evidence) for item in session.compactions] == [(0, Evidence.DECLARED)]
    assert "in the log before this one" in session.compactions[0].note


def test_the_first_logs_were_one_object():
    whole = {"metadata": {"session_id": "s", "start_time": "2025-12-01T00:00:00Z"}, "messages": [old("user", "Go")]}
    assert texts(read(json.dumps(whole).encode()).sessions[0]) == ["Go"]


def test_hostile_values_are_no_tracebacks():
    places = (0, 1, 2, 5)  # one record of each kind
    check_hostile(FORMAT, (lines(*JOURNAL[:n], bad, *JOURNAL[n + 1 :]) for n in places for bad in spoiled(JOURNAL[n])))
    chunks = ([*CHUNK[:n], bad, *CHUNK[n + 1 :]] for n in (0, 1, 4) for bad in spoiled(CHUNK[n]))
    check_hostile(FORMAT, (json.dumps(chunk).encode() for chunk in chunks))
