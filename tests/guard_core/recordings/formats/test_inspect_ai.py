"""Inspect evaluation logs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guard_core.errors import DamagedRecording
from guard_core.events import OtherPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from guard_core.findings import Facts, recorded_findings
from guard_core.recordings.formats.inspect_ai.format import FORMAT
from guard_core.sessions import Evidence
from guard_core.views import Inserted, Span
from tests.guard_core.recordings.checks import (
    check_hostile,
    check_sample_facts,
    lines,
    read_as,
    recognises,
    spoiled,
    texts,
)
from tests.guard_core.recordings.reading.test_zip_entries import archive, zstd_archive

RUN = {"task": "explore", "model": "vendor/m-1", "created": "2026-03-01T10:00:00+00:00"}
SYSTEM = {"id": "s", "role": "system", "content": "Be brief."}
TASK = {"id": "t", "role": "user", "content": "List files"}


def answer(name: str, text: str = "", call: str = "", **extra: Any) -> dict[str, Any]:
    calls = [{"id": call, "function": "bash", "arguments": {"command": "ls"}, "type": "function"}] if call else []
    return {"id": name, "role": "assistant", "content": text, "tool_calls": calls, **extra}


def result(name: str, call: str, text: str = "a.txt") -> dict[str, Any]:
    return {"id": name, "role": "tool", "content": text, "tool_call_id": call, "function": "bash"}


def model(messages: list[dict[str, Any]], reply: dict[str, Any], prompt: int = 100, **extra: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": prompt - 90,
        "input_tokens_cache_read": 60,
        "input_tokens_cache_write": 30,
        "output_tokens": 4,
    }
    output = {"model": "m-1", "choices": [{"message": reply}], "usage": usage}
    tools = [{"name": "bash", "parameters": {}}]
    return {"event": "model", "model": "vendor/m-1", "input": messages, "tools": tools, "output": output, **extra}


def sample(messages: list[dict[str, Any]], events: list[dict[str, Any]], **extra: Any) -> dict[str, Any]:
    return {"id": "s0", "epoch": 1, "messages": messages, "events": events, "target": "", **extra}


def log(*samples: dict[str, Any]) -> dict[str, Any]:
    return {"version": 2, "status": "success", "eval": RUN, "plan": {}, "samples": list(samples)}


LOOK, FOUND, DONE = answer("a1", "I look", "c1"), result("r1", "c1"), answer("a2", "Done")
TALK = [SYSTEM, TASK, LOOK, FOUND, DONE]
EVENTS = [model(TALK[:2], LOOK, 100), {"event": "tool"}, model(TALK[:4], DONE, 150)]


def test_prompt_tokens_are_input_and_both_cache_counts():
    session = read_as(FORMAT, log(sample(TALK, EVENTS))).sessions[0]
    assert [(call.at, call.prompt_tokens, call.cached_tokens) for call in session.calls] == [(1, 100, 60), (3, 150, 60)]
    assert session.system == (TextPart("Be brief."),)
    assert session.tools[0].name == "bash"
    assert session.events[2].parts == (ToolResultPart("bash", "a.txt", "c1"),)


def test_an_archive_of_zstd_entries_has_a_session_per_sample():
    entries = {"header.json": {"eval": RUN}, "samples/s0_epoch_1.json": sample(TALK, EVENTS)}
    entries["samples/s1_epoch_1.json"] = sample(TALK, EVENTS, id="s1")
    recording = read_as(FORMAT, zstd_archive({name: json.dumps(value).encode() for name, value in entries.items()}))
    assert [session.title for session in recording.sessions] == ["explore: s0", "explore: s1"]
    assert (recording.facts.messages, recording.facts.model_calls, recording.facts.tool_calls) == (10, 4, 2)


def test_a_crashed_run_is_read_with_the_journal_and_without_a_directory():
    entries = {"_journal/start.json": {"eval": RUN}, "samples/s0_epoch_1.json": sample(TALK, EVENTS)}
    data = zstd_archive({name: json.dumps(value).encode() for name, value in entries.items()}, directory=False)
    recording = read_as(FORMAT, data)
    assert recording.sessions[0].title == "explore: s0"
    assert "no directory" in recording.notes.problems[0].message
    assert "The run was stopped" in recording.sessions[0].notes[0]


def test_nan_is_read_as_nothing():
    data = json.dumps(log(sample(TALK, EVENTS, score=float("nan")))).encode()
    assert b"NaN" in data
    assert read_as(FORMAT, data, strict=True).facts.model_calls == 2


def test_references_into_the_pool_and_attachments_are_put_back():
    pool = {"messages": [SYSTEM, {**TASK, "content": "attachment://0123456789abcdef"}, LOOK, FOUND], "calls": []}
    events = [model([], LOOK, input_refs=[[0, 2]]), model([], DONE, input_refs=[[0, 2], [2, 4]])]
    extra = {"events_data": pool, "attachments": {"0123456789abcdef": "List files"}}
    session = read_as(FORMAT, log(sample(TALK, events, **extra))).sessions[0]
    assert texts(session) == ["List files", "I look", "", "Done"]
    assert [call.at for call in session.calls] == [1, 3]


def test_a_compaction_is_declared_with_its_summariser_outside_the_log():
    ask = {"id": "q", "role": "user", "content": "Summarise what you did so far."}
    summary = "We listed the files of the repository and found one of them."
    message = {"id": "m", "role": "user", "content": f"[SUMMARY]\n{summary}"}
    declared = {"event": "compaction", "type": "summary", "tokens_before": 900, "tokens_after": 50}
    go = [
        *EVENTS[:2],
        model([*TALK[:4], ask], answer("x", summary), 200),
        declared,
        model([SYSTEM, TASK, message], DONE, 110),
    ]
    recording = read_as(FORMAT, log(sample(TALK, go)))
    session, compaction = recording.sessions[0], recording.sessions[0].compactions[0]
    assert (compaction.at, compaction.evidence, compaction.kind) == (3, Evidence.DECLARED, "summary")
    assert compaction.base == (Span(0, 1), Inserted(0))
    assert (compaction.tokens_before, compaction.tokens_after, compaction.summariser.prompt_tokens) == (900, 50, 200)
    assert texts(session) == ["List files", "I look", "", "Done"]
    assert [call.prompt_tokens for call in session.calls] == [100, 110]
    assert (recording.facts.model_calls, recording.facts.compactions) == (3, 1)


def test_what_a_user_says_behind_a_summary_is_no_part_of_the_compaction():
    declared = {"event": "compaction", "type": "summary", "tokens_before": 900, "tokens_after": 50}
    message = {"id": "m", "role": "user", "content": "[SUMMARY]\nOne file was found."}
    asked = {"id": "n", "role": "user", "content": "And how long is it?"}
    go = [*EVENTS, declared, model([SYSTEM, TASK, message, asked], answer("a3", "Short"), 110)]
    session = read_as(FORMAT, log(sample(TALK, go))).sessions[0]
    (compaction,) = session.compactions
    assert (compaction.base, len(compaction.messages)) == ((Span(0, 1), Inserted(0)), 1)
    assert texts(session) == ["List files", "I look", "", "Done", "And how long is it?", "Short"]


def test_pending_and_failed_calls_are_left_out():
    failed = model(TALK[:2], LOOK) | {"output": {"choices": []}, "error": "rate limit"}
    recording = read_as(FORMAT, log(sample(TALK, [failed, model(TALK[:2], LOOK, pending=True), *EVENTS])))
    assert len(recording.sessions[0].calls) == 2
    assert recording.notes.skipped["pending or failed model call"] == 2


TOO_LONG = "prompt is too long: 208310 tokens > 200000 maximum"


@pytest.mark.parametrize(
    "more",
    [
        {"output": {"choices": [{"message": answer("e", TOO_LONG), "stop_reason": "model_length"}], "usage": None}},
        {"output": {"choices": []}, "error": f"Error code: 400 - {TOO_LONG}"},
        {"output": {"choices": [{"message": answer("e")}], "error": TOO_LONG}},
    ],
)
def test_a_request_that_the_provider_refused_as_too_long_is_no_call(more):
    refused = model([*TALK[:4], {"id": "t2", "role": "user", "content": "More"}], DONE) | more
    session = read_as(FORMAT, log(sample(TALK, [*EVENTS, refused]))).sessions[0]
    assert [call.prompt_tokens for call in session.calls] == [100, 150]
    assert len(session.refused) == 1
    assert "refused" in [finding.kind for finding in recorded_findings(Facts.of(session))]


def test_an_answer_that_filled_the_window_was_not_refused():
    last = EVENTS[-1]
    choices = [{**last["output"]["choices"][0], "stop_reason": "model_length"}]
    full = last | {"output": {**last["output"], "choices": choices}}
    session = read_as(FORMAT, log(sample(TALK, [*EVENTS[:-1], full]))).sessions[0]
    assert (len(session.calls), session.refused) == (2, ())


def test_a_grader_is_a_side_call_and_a_sub_agent_a_session():
    grade = model([{"role": "user", "content": "Grade this"}], answer("g", "C"), 95)
    sub = [{"role": "user", "content": "Sub task"}]
    step = answer("b1", "Sub look", "c7")
    child = [model(sub, step, 91), model([*sub, step, result("r7", "c7")], answer("b2", "Sub done"), 93)]
    sessions = read_as(FORMAT, log(sample(TALK, [*EVENTS, *child, grade]))).sessions
    assert [len(session.calls) for session in sessions] == [2, 2]
    assert [call.prompt_tokens for call in sessions[0].side_calls] == [95]


def test_a_call_that_failed_with_an_empty_answer_is_left_out():
    failed = model(TALK[:2], answer("e"), error="overloaded") | {"output": {"choices": [{"message": answer("e")}]}}
    recording = read_as(FORMAT, log(sample(TALK, [failed, *EVENTS])))
    assert (len(recording.sessions[0].calls), recording.facts.model_calls) == (2, 2)
    assert recording.notes.skipped["pending or failed model call"] == 1


def span(name: str, kind: str = "agent", parent: str | None = None) -> dict[str, Any]:
    return {"event": "span_begin", "id": name, "span_id": name, "parent_id": parent, "type": kind, "name": name}


def end(name: str) -> dict[str, Any]:
    return {"event": "span_end", "id": name, "span_id": name}


def test_an_agent_that_works_for_another_has_a_context_of_its_own():
    back = {"id": "h", "role": "user", "content": "[helper] a.txt"}
    step = answer("b1", "", "c5")
    child = [model([*TALK[:4]], step, 91, span_id="look"), model([*TALK[:4], step, result("r5", "c5")], DONE, 93)]
    child[1]["span_id"] = "helper"
    events = [
        span("main"),
        *(item | {"span_id": "main"} for item in EVENTS[:1]),
        span("helper", parent="main"),
        span("look", "tool", "helper"),
        *child,
        end("helper"),
        model([*TALK[:4], back], DONE, 120, span_id="main"),
    ]
    main, helper = read_as(FORMAT, log(sample([*TALK[:4], back, DONE], events))).sessions
    assert ([call.prompt_tokens for call in main.calls], main.compactions) == ([100, 120], ())
    assert ([call.prompt_tokens for call in helper.calls], helper.title) == (
        [91, 93],
        "explore: s0 · context 2 (helper)",
    )


def test_two_runs_of_an_agent_on_the_same_question_are_apart():
    runs = [
        [span(name), model(TALK[:2], LOOK, 100, span_id=name), model(TALK[:4], DONE, 150, span_id=name), end(name)]
        for name in ("one", "two")
    ]
    sessions = read_as(FORMAT, log(sample(TALK, [*runs[0], *runs[1]]))).sessions
    assert [(len(session.calls), session.compactions) for session in sessions] == [(2, ()), (2, ())]


def test_a_run_that_begins_with_a_finished_conversation_goes_on_with_it():
    more = {"id": "u2", "role": "user", "content": "And now?"}
    second = [span("two"), model([*TALK, more], answer("a3", "Nothing"), 170, span_id="two"), end("two")]
    first = [span("one"), *(item | {"span_id": "one"} for item in EVENTS), end("one")]
    sessions = read_as(FORMAT, log(sample([*TALK, more], [*first, *second]))).sessions
    assert [[call.prompt_tokens for call in session.calls] for session in sessions] == [[100, 150, 170]]


def test_spans_that_are_each_other_s_parents_are_survived():
    events = [span("a", "tool", "b"), span("b", "tool", "a"), model(TALK[:2], LOOK, 100, span_id="a")]
    assert len(read_as(FORMAT, log(sample(TALK, events))).sessions[0].calls) == 1


def test_messages_behind_the_last_answer_are_in_the_log():
    last = answer("a2", "", "c2")
    session = read_as(
        FORMAT, log(sample([*TALK[:4], last, result("r2", "c2", "b")], [EVENTS[0], model(TALK[:4], last)]))
    )
    assert session.sessions[0].events[-1].parts == (ToolResultPart("bash", "b", "c2"),)


def test_a_sample_without_events_gives_its_messages():
    session = read_as(FORMAT, log(sample(TALK, []))).sessions[0]
    assert [(call.at, call.prompt_tokens) for call in session.calls] == [(1, None), (3, None)]
    assert "no model events" in session.notes[0]


def test_typed_content_is_kept():
    content = [
        {"type": "reasoning", "reasoning": "c2VjcmV0", "redacted": True},
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "tool_type": "web_search", "id": "w", "name": "search"},
    ]
    reply = answer("a1") | {"content": content}
    session = read_as(FORMAT, log(sample([TASK], [model([TASK], reply)]))).sessions[0]
    assert session.events[1].parts[:2] == (ReasoningPart(opaque_bytes=6), TextPart("Hi"))
    assert isinstance(session.events[1].parts[2], OtherPart)


def test_one_damaged_sample_does_not_stop_the_others():
    good = json.dumps(sample(TALK, EVENTS)).encode()
    recording = read_as(FORMAT, archive({"header.json": b"{}", "samples/a.json": b'{"id": ', "samples/b.json": good}))
    assert len(recording.sessions) == 1
    assert "samples/a.json" in recording.notes.problems[0].message


@pytest.mark.parametrize("make", [lambda *values: list(values), lambda *values: lines(*values)])
def test_logs_and_samples_in_an_array_or_on_lines_are_read(make):
    for value in (log(sample(TALK, EVENTS)), sample(TALK, EVENTS)):
        assert [len(session.calls) for session in read_as(FORMAT, make(value, value)).sessions] == [2, 2]


def test_a_sample_that_is_no_object_is_told():
    recording = read_as(FORMAT, log(sample(TALK, EVENTS)) | {"samples": [7, sample(TALK, EVENTS)]})
    assert recording.notes.problems[0].message == "sample 1 is not an object"


def test_a_log_of_which_no_sample_can_be_read_names_the_damage():
    with pytest.raises(DamagedRecording, match=r"no sample .* can be read: samples/a.json: JSON that ends too early"):
        read_as(FORMAT, archive({"header.json": b"{}", "samples/a.json": b'{"id": '}))


def test_an_encrypted_or_broken_archive_is_recognised_by_its_names():
    data = bytearray(archive({"header.json": json.dumps({"eval": RUN}).encode(), "samples/a.json": b"{}"}))
    for at in (data.index(b"PK\x01\x02"), data.rindex(b"PK\x01\x02")):
        data[at + 8] |= 1
    with pytest.raises(DamagedRecording, match="is encrypted"):
        read_as(FORMAT, bytes(data))


def test_a_log_without_samples_is_damaged():
    with pytest.raises(DamagedRecording, match="no samples"):
        read_as(FORMAT, log())


def test_other_archives_and_objects_are_not_taken():
    assert not recognises(FORMAT, archive({"word/document.xml": b"<x/>"}))
    assert not recognises(FORMAT, {"messages": [TASK]})


def test_wrong_types_anywhere_are_survived():
    small = [
        model([TASK], LOOK, input_refs=[[0, 1]]),
        {"event": "compaction", "metadata": {}},
        model([TASK, LOOK], DONE),
    ]
    value = log(sample([TASK, LOOK, FOUND], small, events_data={"messages": [TASK]}, attachments={"a": "b"}))
    check_hostile(FORMAT, (lines(bad) for bad in spoiled(value)))


def test_the_facts_of_the_samples_are_equal():
    check_sample_facts(FORMAT, "inspect")


def test_calls_keep_their_arguments():
    session = read_as(FORMAT, log(sample(TALK, EVENTS))).sessions[0]
    assert session.events[1].parts == (TextPart("I look"), ToolCallPart("bash", {"command": "ls"}, "c1"))
