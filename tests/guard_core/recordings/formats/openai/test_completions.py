"""Chat messages and logs of chat requests."""

from __future__ import annotations

import cProfile
import json
from typing import Any

import pytest

from guard_core import recordings
from guard_core.events import MediaPart, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.formats.openai.completions import FORMAT
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import Evidence, Refusal
from tests.guard_core.recordings.checks import (
    check_hostile,
    check_sample_facts,
    kept,
    lines,
    read_as,
    recognises,
    spoiled,
    texts,
)

SYSTEM = {"role": "system", "content": "Be brief."}
USER = {"role": "user", "content": "List the files"}
TOOLS = [{"type": "function", "function": {"name": "ls", "description": "List", "parameters": {"type": "object"}}}]


def call(call_id: str = "c1", arguments: str = '{"path": "."}') -> dict[str, Any]:
    function = {"name": "ls", "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def result(text: Any = "a.txt", call_id: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def answer(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def logged(messages: list[dict[str, Any]], reply: dict[str, Any], prompt: int) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": prompt // 2}}
    response = {"id": f"r{prompt}", "choices": [{"message": reply}], "usage": usage, "created": 1_770_000_000}
    return {"request": {"model": "m", "messages": messages, "tools": TOOLS}, "response": response}


TALK = [SYSTEM, USER, call(), result(), answer("There is a.txt")]


def test_a_bare_array_is_a_session_whose_calls_have_no_tokens():
    recording = read_as(FORMAT, TALK)
    session = recording.sessions[0]
    assert session.system == (TextPart("Be brief."),)
    assert session.tools is None
    assert [(step.at, step.response, step.prompt_tokens) for step in session.calls] == [(1, 1, None), (3, 3, None)]
    assert recording.facts.messages == 5
    assert recording.facts.model_calls == 0


def test_the_counts_that_litellm_repeats_are_no_others():
    record = {**logged(TALK[:2], TALK[2], 100), "metadata": {"usage_object": {"prompt_tokens": 100}}}
    spent = {"additional_usage_values": {"prompt_tokens_details": {"cached_tokens": 50}}}
    recording = recordings.read(lines(record, {**logged(TALK[:4], TALK[4], 150), "metadata": spent}), strict=True)
    assert [call.prompt_tokens for call in recording.sessions[0].calls] == [100, 150]
    assert recording.notes.problem_count == 0


def test_a_log_whose_clock_was_set_back_is_read_in_its_own_order():
    records = [logged(TALK[: 2 + 2 * number], TALK[2 + 2 * number], 100 + number) for number in range(2)]
    later = [*TALK, {"role": "user", "content": "And b?"}]
    records.append(logged(later, answer("No"), 180))
    for record, created in zip(records, (3_000, 1_000, 2_000), strict=True):
        record["response"]["created"] = 1_770_000_000 + created
    recording = read_as(FORMAT, lines(*records))
    assert [call.prompt_tokens for call in recording.sessions[0].calls] == [100, 101, 180]
    turned = read_as(FORMAT, lines(records[1], records[0], records[2]))  # written late: sent in the order of the times
    assert len(turned.sessions) == len(recording.sessions) == 1


def test_wrapped_messages_bring_their_tools_and_model():
    session = read_as(FORMAT, {"messages": TALK, "tools": TOOLS, "model": "m"}).sessions[0]
    assert session.model == "m"
    assert session.tools is not None
    assert session.tools[0].name == "ls"


def test_a_log_of_growing_requests_is_one_session_with_usage_where_its_messages_end():
    log = [logged(TALK[:2], TALK[2], 100), logged(TALK[:4], TALK[4], 140)]
    recording = read_as(FORMAT, lines(*log))
    session = recording.sessions[0]
    assert [(step.at, step.prompt_tokens, step.cached_tokens) for step in session.calls] == [(1, 100, 50), (3, 140, 70)]
    assert len(session.events) == 4
    assert (recording.facts.messages, recording.facts.compactions) == (5, 0)
    assert session.compactions == ()


def test_a_request_that_does_not_extend_the_history_is_an_inferred_compaction():
    more = [{"role": "user", "content": "And now?"}, answer("Nothing new")]
    long = [*TALK, *more, {"role": "user", "content": "Delete a.txt"}]
    short = [SYSTEM, USER, {"role": "user", "content": "[summary] one file was found"}, *long[-2:]]
    log = [logged(TALK[:2], TALK[2], 100), logged(TALK[:4], TALK[4], 140), logged(long, answer("Deleted"), 300)]
    following = [*short, answer("Ok"), {"role": "user", "content": "Thanks"}]
    recording = read_as(FORMAT, lines(*log, logged(short, answer("Ok"), 90), logged(following, answer("Bye"), 99)))
    session = recording.sessions[0]
    assert recording.facts.compactions == 0  # none that the file declares
    assert session.compactions[0].evidence is Evidence.INFERRED
    assert 0 in kept(session.compactions[0].base)
    assert not any("[summary]" in text for text in texts(session))


def test_arguments_that_are_no_json_are_kept_as_text():
    session = read_as(FORMAT, [USER, call(arguments='{"path": ')]).sessions[0]
    assert session.events[1].parts[0].arguments == '{"path": '


def test_empty_ids_are_paired_by_order():
    session = read_as(FORMAT, [USER, call(""), result("one", ""), call(""), result("two", "")]).sessions[0]
    calls = [part.id for event in session.events for part in event.parts if isinstance(part, ToolCallPart)]
    results = [part.call_id for event in session.events for part in event.parts if isinstance(part, ToolResultPart)]
    assert calls == results
    assert len(set(calls)) == 2


def test_ids_that_come_again_are_told_apart():
    session = read_as(FORMAT, [USER, call("c"), result("one", "c"), call("c"), result("two", "c")]).sessions[0]
    ids = [part.call_id for event in session.events for part in event.parts if isinstance(part, ToolResultPart)]
    assert ids == ["c", "c#2"]


def test_a_result_belongs_to_the_newest_call_of_its_id():
    log = [USER, call("c"), {"role": "user", "content": "Again"}, call("c"), result("two", "c")]
    session = read_as(FORMAT, log).sessions[0]
    assert [part.call_id for part in session.events[-1].parts] == ["c#2"]


def test_content_may_be_parts_and_reasoning_stands_before_it():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    asked = {"role": "user", "content": [{"type": "text", "text": "What is this?"}, image]}
    session = read_as(FORMAT, [asked, {**answer("A cat"), "reasoning_content": "Whiskers"}]).sessions[0]
    assert session.events[0].parts == (TextPart("What is this?"), MediaPart("image/png", 3))
    assert session.events[1].parts[0] == ReasoningPart("Whiskers")


def test_system_messages_inside_the_conversation_stay_in_the_log():
    session = read_as(FORMAT, [SYSTEM, USER, {"role": "developer", "content": "Now in French"}]).sessions[0]
    assert [event.role for event in session.events] == [Role.USER, Role.SYSTEM]


def test_lines_of_separate_conversations_are_separate_sessions():
    other = [SYSTEM, {"role": "user", "content": "Write a poem"}, answer("Roses")]
    recording = read_as(FORMAT, lines({"messages": TALK}, {"messages": other}))
    assert [len(session.events) for session in recording.sessions] == [4, 2]
    assert recording.facts.messages == 8


def test_lines_of_single_messages_are_one_session():
    assert len(read_as(FORMAT, lines(*TALK)).sessions[0].events) == 4


def test_a_proxy_log_may_hold_its_request_and_response_as_text():
    entry = logged(TALK[:2], TALK[2], 100)
    record = {"request": json.dumps(entry["request"]), "response": json.dumps(entry["response"])}
    assert read_as(FORMAT, lines(record, record)).sessions[0].calls[0].prompt_tokens == 100


def test_usage_beside_messages_that_end_in_an_answer_belongs_to_that_answer():
    recording = read_as(FORMAT, {"messages": TALK, "usage": {"prompt_tokens": 90}})
    assert [(step.at, step.response, step.prompt_tokens) for step in recording.sessions[0].calls] == [(3, 3, 90)]
    assert recording.facts.messages == 5


def test_a_failed_request_is_a_call_without_an_answer():
    failed = {"request": {"messages": TALK[:2]}, "response": {"error": {"message": "too long"}}}
    session = read_as(FORMAT, lines(failed, logged(TALK[:2], TALK[2], 100))).sessions[0]
    assert [(step.response, step.prompt_tokens) for step in session.calls] == [(None, None), (1, 100)]


@pytest.mark.parametrize("inside", [True, False])
def test_a_request_that_was_too_long_is_refused_and_what_is_dropped_then_is_no_choice(inside):
    error = {
        "error": {"code": "context_length_exceeded", "message": "This model's maximum context length is 30000 tokens"}
    }
    long = [*TALK, {"role": "user", "content": "Delete a.txt"}]
    refused = {"request": {"messages": long}, **({"response": error} if inside else error)}
    log = [logged(TALK[:2], TALK[2], 100), logged(TALK[:4], TALK[4], 290), refused, refused]
    session = read_as(FORMAT, lines(*log, logged([*TALK[:2], long[-1]], answer("Deleted"), 120))).sessions[0]
    assert [step.prompt_tokens for step in session.calls] == [100, 290, 120]
    assert session.refused == (5, 5)
    assert session.refusals == (Refusal(5, 0, 30_000), Refusal(5, 0, 30_000))
    assert [(item.at, item.trigger) for item in session.compactions] == [(5, "overflow")]


def test_a_request_without_an_answer_is_told():
    failed = {"request": {"messages": TALK[:2]}, "error": {"message": "overloaded"}}
    session = read_as(FORMAT, lines(failed, failed, logged(TALK[:2], TALK[2], 100))).sessions[0]
    assert [step.response for step in session.calls] == [None, None, 1]
    assert any(note.startswith("2 requests have no answer") for note in session.notes)


def chunk(delta: dict[str, Any], usage: dict[str, Any] | None = None) -> dict[str, Any]:
    choices = [] if usage else [{"index": 0, "delta": delta}]
    return {"id": "s1", "object": "chat.completion.chunk", "model": "m", "choices": choices, "usage": usage}


PIECES = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"reasoning_content": "Hm"}),
    chunk({"content": "I "}),
    chunk({"content": "look"}),
    chunk({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "ls", "arguments": ""}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"path"'}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": ': "."}'}}]}),
    chunk({}, {"prompt_tokens": 90, "completion_tokens": 5}),
]
WHOLE = (ReasoningPart("Hm"), TextPart("I look"), ToolCallPart("ls", {"path": "."}, "c1"))


@pytest.mark.parametrize(
    "log",
    [
        [{"request": {"messages": TALK[:2]}, "response": PIECES}],
        [{"messages": TALK[:2], "response": "".join(f"data: {json.dumps(piece)}\n\n" for piece in PIECES)}],
        [{"messages": TALK[:2]}, *({"chunk": piece} for piece in PIECES)],
        [{"messages": TALK[:2]}, *PIECES],
    ],
    ids=["a list", "server-sent events", "wrapped records", "records"],
)
def test_a_streamed_answer_is_put_together(log):
    recording = read_as(FORMAT, lines(*log))
    session = recording.sessions[0]
    assert session.events[1].parts == WHOLE
    assert [(step.at, step.response, step.prompt_tokens) for step in session.calls] == [(1, 1, 90)]
    assert recording.facts.tool_calls == 1


def test_streamed_calls_without_numbers_are_told_apart_by_their_ids():
    first = chunk({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "ls", "arguments": "{}"}}]})
    second = chunk({"tool_calls": [{"index": 0, "id": "c2", "function": {"name": "ls", "arguments": "{}"}}]})
    session = read_as(FORMAT, lines({"messages": TALK[:2], "response": [first, second]})).sessions[0]
    assert [part.id for part in session.events[1].parts if isinstance(part, ToolCallPart)] == ["c1", "c2"]


def test_requests_and_responses_may_be_records_of_their_own():
    one, two = logged(TALK[:2], TALK[2], 100), logged(TALK[:4], TALK[4], 140)
    log = [
        {"request_id": "a", "body": one["request"]},
        {"request_id": "b", "body": two["request"]},
        {"request_id": "b", "response": two["response"]},
        {"request_id": "a", "response": one["response"]},
    ]
    session = read_as(FORMAT, lines(*log)).sessions[0]
    assert [(step.at, step.prompt_tokens) for step in session.calls] == [(1, 100), (3, 140)]


def test_records_may_stand_in_the_order_of_their_ends():
    one, two = logged(TALK[:2], TALK[2], 100), logged(TALK[:4], TALK[4], 140)
    log = lines({**two, "startTime": 1_770_000_002.5}, {**one, "startTime": 1_770_000_001.5})
    assert [step.prompt_tokens for step in read_as(FORMAT, log).sessions[0].calls] == [100, 140]


def test_a_failed_request_that_was_counted_as_nothing_has_no_tokens():
    failed = {"messages": TALK[:2], "response": {}, "prompt_tokens": 0, "error_str": "overloaded"}
    recording = read_as(FORMAT, lines(failed, logged(TALK[:2], TALK[2], 100)))
    assert [step.prompt_tokens for step in recording.sessions[0].calls] == [None, 100]
    assert recording.facts.model_calls == 1


def test_interleaved_conversations_are_sessions_and_single_requests_stand_beside():
    other = [SYSTEM, {"role": "user", "content": "Write a poem"}, answer("Roses"), {"role": "user", "content": "More"}]
    title = [{"role": "user", "content": "A title, please"}]
    one, two = (
        [logged(TALK[:2], TALK[2], 100), logged(TALK[:4], TALK[4], 140)],
        [
            logged(other[:2], other[2], 50),
            logged(other, answer("Violets"), 70),
        ],
    )
    recording = read_as(FORMAT, lines(one[0], two[0], logged(title, answer("Files"), 9), one[1], two[1]))
    assert [len(session.calls) for session in recording.sessions] == [2, 2]
    assert [len(session.side_calls) for session in recording.sessions] == [1, 0]
    assert any(
        note.startswith("1 request is not part of the conversation: its tokens") for note in recording.sessions[0].notes
    )
    assert (recording.facts.messages, recording.facts.model_calls) == (10, 5)


def test_a_record_that_stands_twice_is_one_call():
    entry = logged(TALK[:2], TALK[2], 100)
    recording = read_as(FORMAT, lines(entry, entry, logged(TALK[:4], TALK[4], 140)))
    assert (recording.facts.model_calls, recording.notes.folded) == (2, 1)


def test_responses_alone_hold_what_came_back():
    answers = [logged([], TALK[2], 100)["response"], logged([], TALK[4], 140)["response"]]
    recording = read_as(FORMAT, lines(*answers))
    assert [step.prompt_tokens for step in recording.sessions[0].calls] == [100, 140]
    assert "not in the file, only what came back" in recording.sessions[0].notes[0]
    batch = [{"custom_id": "1", "response": {"status_code": 200, "body": answer}} for answer in answers]
    assert read_as(FORMAT, lines(*batch)).facts == recording.facts


def test_an_archive_of_http_requests_is_a_log():
    entry = logged(TALK[:2], TALK[2], 100)
    request, response = (json.dumps(entry[key]) for key in ("request", "response"))
    har = {"startedDateTime": "2026-03-01T10:00:00Z", "request": {"postData": {"text": request}}}
    session = read_as(FORMAT, {"log": {"entries": [{**har, "response": {"content": {"text": response}}}]}}).sessions[0]
    assert [(step.prompt_tokens, step.timestamp) for step in session.calls] == [(100, 1_772_359_200.0)]


def test_an_answer_may_be_plain_words():
    session = read_as(FORMAT, lines({"messages": TALK[:4], "response": "There is a.txt"})).sessions[0]
    assert session.events[3].parts == (TextPart("There is a.txt"),)


def test_a_response_that_is_cut_is_told():
    cut = {"messages": TALK[:2], "response": '{"choices": [{"mess'}
    recording = read_as(FORMAT, lines(cut, logged(TALK[:2], TALK[2], 100)))
    assert [problem.line for problem in recording.notes.problems] == [1]


def test_further_choices_are_counted_and_the_one_that_went_on_is_the_answer():
    entry = logged(TALK[:2], answer("Nothing"), 100)
    entry["response"]["choices"].append({"index": 1, "message": TALK[2]})
    recording = read_as(FORMAT, lines(entry, logged(TALK[:4], TALK[4], 140)))
    assert recording.notes.skipped == {"further choice of an answer": 1}
    assert recording.sessions[0].events[1].parts == (ToolCallPart("ls", {"path": "."}, "c1"),)


def test_a_refusal_and_spoken_words_are_text():
    refused = {"role": "assistant", "refusal": "I will not"}
    spoken = {"role": "assistant", "content": None, "audio": {"id": "audio_1", "data": "QUJD", "transcript": "Hello"}}
    session = read_as(FORMAT, [USER, refused, USER, spoken]).sessions[0]
    assert session.events[1].parts == (TextPart("I will not"),)
    assert session.events[3].parts == (TextPart("Hello"), MediaPart("audio", 3))


def test_custom_tools_take_plain_text():
    call = {"id": "c1", "type": "custom", "custom": {"name": "sh", "input": "ls -l"}}
    session = read_as(FORMAT, [USER, {"role": "assistant", "tool_calls": [call]}]).sessions[0]
    assert session.events[1].parts == (ToolCallPart("sh", "ls -l", "c1"),)


def test_reasoning_may_stand_in_blocks_with_sealed_ones():
    blocks = [{"type": "reasoning.text", "text": "Hm"}, {"type": "reasoning.encrypted", "data": "QUJD"}]
    session = read_as(FORMAT, [USER, {**answer("Yes"), "reasoning_details": blocks}]).sessions[0]
    assert session.events[1].parts == (ReasoningPart("Hm", 3), TextPart("Yes"))


@pytest.mark.parametrize(
    ("usage", "prompt", "cached"),
    [
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}, 9, 4),
        ({"prompt_tokens": 9, "cache_read_input_tokens": 4}, 9, 4),
        ({"prompt_eval_count": 9}, 9, None),
        ({"promptTokens": 9}, 9, None),
    ],
    ids=["DeepSeek", "litellm", "Ollama", "Langfuse"],
)
def test_servers_have_their_own_names_for_tokens(usage, prompt, cached):
    call = read_as(FORMAT, lines({"messages": TALK[:4], "response": TALK[4], "usage": usage})).sessions[0].calls[0]
    assert (call.prompt_tokens, call.cached_tokens) == (prompt, cached)


def test_openrouter_says_what_the_cache_wrote_beside_what_it_read():
    usage = {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3}}
    call = read_as(FORMAT, lines({"messages": TALK[:4], "response": TALK[4], "usage": usage})).sessions[0].calls[0]
    assert (call.prompt_tokens, call.cached_tokens, call.cache_write_tokens) == (9, 4, 3)


def test_counts_that_messages_carry_as_metrics_are_read_and_the_chat_is_not_clines():
    metrics = {"input_tokens": 100, "output_tokens": 5, "total_tokens": 105}
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    answer = {"role": "assistant", "content": "I look", "tool_calls": [call], "metrics": metrics}
    result = {"role": "tool", "tool_call_id": "c1", "content": "a.txt"}
    recording = recordings.read(json.dumps([{"role": "user", "content": "List files"}, answer, result]).encode())
    assert (recording.format, recording.facts.tool_calls, recording.facts.prompt_tokens_sum) == ("openai-chat", 1, 100)


@pytest.mark.parametrize("put", [list, lambda messages: {"messages": messages}], ids=["list", "object"])
def test_a_chat_without_tools_whose_messages_carry_metrics_is_not_clines(put):
    answer = {"role": "assistant", "content": "Hello", "metrics": {"input_tokens": 100, "output_tokens": 5}}
    recording = recordings.read(json.dumps(put([{"role": "user", "content": "Say hello"}, answer])).encode())
    assert (recording.format, recording.facts.prompt_tokens_sum) == ("openai-chat", 100)
    assert recording.notes.problems == []


@pytest.mark.parametrize("name", ["input_cache_creation", "cache_creation_input_tokens", "input_cache_write"])
def test_langfuse_says_what_the_cache_wrote(name):
    counted = {"usageDetails": {"input": 2, "input_cache_read": 4, name: 3, "output": 5, "total": 14}}
    log = lines({"type": "GENERATION", "input": TALK[:4], "output": TALK[4], **counted})
    call = read_as(FORMAT, log).sessions[0].calls[0]
    assert (call.prompt_tokens, call.cached_tokens, call.cache_write_tokens, call.output_tokens) == (9, 4, 3, 5)


def test_an_edited_message_is_counted_once_however_often_it_is_sent():
    cleared = [*TALK[:3], result("[cleared]"), TALK[4], {"role": "user", "content": "And?"}]
    log = [logged(TALK[:4], TALK[4], 140), logged(cleared, answer("Ok"), 90), logged(cleared, answer("Ok"), 90)]
    recording = read_as(FORMAT, lines(*log))
    assert [compaction.kind for compaction in recording.sessions[0].compactions] == ["edit"]
    assert recording.facts.messages == 8


def test_it_does_not_take_other_json():
    assert not recognises(FORMAT, [{"from": "human", "value": "Hi"}])
    assert not recognises(FORMAT, [{"type": "function_call", "call_id": "a"}])
    assert not recognises(FORMAT, {"role": "user"})


def test_wrong_types_anywhere_are_survived():
    entry = logged(TALK[:4], TALK[4], 140)
    check_hostile(FORMAT, [lines(bad, entry) for bad in spoiled(entry)])
    check_hostile(FORMAT, [lines({"messages": TALK[:2], "response": bad}, entry) for bad in spoiled(PIECES[4:])])
    check_hostile(FORMAT, [json.dumps(bad).encode() for bad in spoiled({"messages": TALK, "tools": TOOLS})])


def test_the_facts_of_the_samples_are_equal():
    check_sample_facts(FORMAT, "openai-chat")


@pytest.mark.parametrize(
    "call",
    [
        {"id": "c1", "name": "ls", "arguments": {"path": "."}, "result": "a.txt"},
        {"id": "c1", "tool": "ls", "input": {"path": "."}, "output": "a.txt"},
        {"id": "c1", "function": {"name": "ls", "arguments": '{"path": "."}'}, "response": "a.txt"},
    ],
)
def test_results_that_a_log_keeps_in_its_calls_follow_them(call):
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    messages = [{"role": "user", "content": "List"}, asked, {"role": "assistant", "content": "Done"}]
    for content in ({"messages": messages}, lines(*messages)):
        recording = read_as(FORMAT, content)
        assert [event.parts for event in recording.sessions[0].events] == [
            (TextPart("List"),),
            (ToolCallPart("ls", {"path": "."}, "c1"),),
            (ToolResultPart("ls", "a.txt", "c1"),),
            (TextPart("Done"),),
        ]
        assert (recording.facts.tool_calls, recording.facts.tool_results) == (1, 1)
    apart = {"role": "tool", "tool_call_id": "c1", "content": "a.txt, as it was sent"}
    [session] = read_as(FORMAT, [messages[0], asked, apart, messages[2]]).sessions
    assert session.events[2].parts == (ToolResultPart("ls", "a.txt, as it was sent", "c1"),)
    assert len(session.events) == 4
    both = {**asked, "tool_calls": [call, {**call, "id": "c2"}]}
    [session] = read_as(FORMAT, [messages[0], both, apart, {**apart, "tool_call_id": "c2"}, messages[2]]).sessions
    assert len(session.events) == 5


@pytest.mark.parametrize(
    ("content", "sent"),
    [
        ({"exit": 0}, {"exit": 0}),
        ([{"name": "a.txt"}], [{"name": "a.txt"}]),
        ({"text": "", "exit": 1}, {"text": "", "exit": 1}),
        ({"text": ""}, ""),
        ([{"text": ""}], ""),
        ([{"type": "text", "text": ""}], ""),
    ],
)
def test_a_result_is_the_value_that_a_tool_returned_but_an_empty_text_is_empty(content, sent):
    [session] = read_as(FORMAT, [USER, call(), result(content)]).sessions
    assert session.events[2].parts == (ToolResultPart("ls", sent, "c1"),)


def test_a_log_with_every_result_twice_is_read_in_linear_time():
    """One of 16,000 messages took nine seconds: at each result all earlier ones were looked at."""
    profile, pairs = cProfile.Profile(), 600
    messages = [{"role": "user", "content": "List"}]
    for number in range(pairs):
        call = {"id": f"c{number}", "name": "ls", "arguments": {}, "result": "a.txt"}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": "a.txt"})
    recording = profile.runcall(read_as, FORMAT, lines(*messages))
    assert len(recording.sessions[0].events) == len(messages)
    looks = [entry for entry in profile.getstats() if entry.code == "<built-in method builtins.id>"]
    assert sum(entry.callcount for entry in looks) < 10 * pairs


@pytest.mark.parametrize("place", ["token_usage", "metadata.usage", "meta.usage", "response_metadata.token_usage"])
def test_counts_of_an_answer_are_found_around_it(place):
    counts: Any = {"prompt_tokens": 100, "completion_tokens": 5}
    for key in reversed(place.split(".")):
        counts = {key: counts}
    messages = [{"role": "user", "content": "List"}, {"role": "assistant", "content": "Done", **counts}]
    recording = recordings.read(json.dumps(messages).encode(), strict=True)
    assert [(call.prompt_tokens, call.output_tokens) for call in recording.sessions[0].calls] == [(100, 5)]


def test_counts_beside_a_request_are_found_under_either_name():
    record = {"messages": [{"role": "user", "content": "List"}], "response": {"role": "assistant", "content": "Done"}}
    counts = {"prompt_tokens": 100, "completion_tokens": 5}
    content = lines(*({**record, key: counts} for key in ("usage", "token_usage")))
    recording = recordings.read(content, strict=True)
    assert recording.facts.prompt_tokens_sum == 200
    looked = FORMAT.first_look(ByteSource.open(content))
    assert looked is not None
    assert looked.prompt_tokens == (100, 100)


def test_a_response_of_an_unknown_shape_is_told():
    request = {"messages": [{"role": "user", "content": "List"}]}
    recording = read_as(FORMAT, lines({"request": request, "response": {"final": "a.txt", "review": "none"}}))
    assert [problem.message for problem in recording.notes.problems] == [
        "a response without a message that is known here (it has final, review), left out"
    ]
    failed = {"request": request, "response": {"error": {"message": "overloaded"}}}
    assert read_as(FORMAT, lines(failed)).notes.problems == []
