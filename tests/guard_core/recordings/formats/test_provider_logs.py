"""Logs of requests that a provider keeps for its customer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guard_core import recordings
from guard_core.events import MediaPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.formats.provider_logs.format import FORMAT
from guard_core.sessions import ANSWERS_ONLY
from tests.guard_core.recordings.checks import check_hostile, lines, read_as, recognises, spoiled

SPEC = {"name": "ls", "description": "lists", "inputSchema": {"json": {"type": "object"}}}
ASKED: list[dict[str, Any]] = [{"role": "user", "content": [{"text": "List files"}]}]
USED = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "ls", "input": {"path": "."}}}]}
RESULT = {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "a.txt"}]}}]}
ANSWER = {"role": "assistant", "content": [{"text": "One file"}]}


def bedrock(second: int, operation: str, given: Any, made: Any) -> dict[str, Any]:
    """A record of Bedrock's model invocation log."""
    about = {"schemaType": "ModelInvocationLog", "schemaVersion": "1.0", "timestamp": f"2026-03-01T10:00:0{second}Z"}
    sent = {"inputContentType": "application/json", "inputBodyJson": given, "inputTokenCount": 10}
    cached = {"cacheReadInputTokenCount": 60, "cacheWriteInputTokenCount": 30}
    received = {"outputContentType": "application/json", "outputBodyJson": made, "outputTokenCount": 5}
    return {**about, "operation": operation, "modelId": "m-1", "input": {**sent, **cached}, "output": received}


def converse(second: int, messages: list[Any], answer: dict[str, Any], *, usage: bool = True) -> dict[str, Any]:
    request = {
        "messages": messages,
        "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
        "toolConfig": {"tools": [{"toolSpec": SPEC}]},
        "inferenceConfig": {"maxTokens": 500},
    }
    counts = {"inputTokens": 10, "cacheReadInputTokens": 60, "cacheWriteInputTokens": 30, "outputTokens": 5}
    response = {"output": {"message": answer}, "stopReason": "end_turn", **({"usage": counts} if usage else {})}
    return bedrock(second, "Converse", request, response)


TALK = [converse(1, ASKED, USED), converse(2, [*ASKED, USED, RESULT], ANSWER)]
BLOCKS = [{"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "."}}]
OWN_RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a.txt"}]}


def own(messages: list[Any]) -> dict[str, Any]:
    tools = [{"name": "ls", "input_schema": {"type": "object"}}]
    about = {"anthropic_version": "bedrock-2023-05-31", "system": "Be brief."}
    return {**about, "messages": messages, "tools": tools}


def message(name: str, content: list[Any]) -> dict[str, Any]:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30, "output_tokens": 5}
    return {"id": name, "type": "message", "role": "assistant", "model": "m-1", "content": content, "usage": usage}


FIRST = [{"role": "user", "content": "List files"}]
INVOKED = [
    bedrock(1, "InvokeModel", own(FIRST), message("r1", BLOCKS)),
    bedrock(
        2,
        "InvokeModel",
        own([*FIRST, {"role": "assistant", "content": BLOCKS}, OWN_RESULT]),
        message("r2", [{"type": "text", "text": "One file"}]),
    ),
]
GOOGLE = [{"role": "user", "parts": [{"text": "List files"}]}]
GOOGLE_USED = {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "ls", "args": {"path": "."}}}]}
GOOGLE_RESULT = {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "ls", "response": "a.txt"}}]}


def google(contents: list[Any], parts: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    tools = [{"functionDeclarations": [{"name": "ls", "parameters": {"type": "OBJECT"}}]}]
    request = {"contents": contents, "systemInstruction": {"parts": [{"text": "Be brief."}]}, "tools": tools}
    counts = {"promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 5}
    content = {"role": "model", "parts": parts}
    return request, {"candidates": [{"content": content}], "usageMetadata": counts, "modelVersion": "m-1"}


PAIRS = [google(GOOGLE, GOOGLE_USED["parts"]), google([*GOOGLE, GOOGLE_USED, GOOGLE_RESULT], [{"text": "One file"}])]
CLIENT = [{"request": request, "response": response} for request, response in PAIRS]
BATCH = [{"key": f"k{at}", **pair} for at, pair in enumerate(CLIENT)]


def row(second: int, pair: tuple[Any, Any], *, older: bool = False) -> dict[str, Any]:
    """A row that Vertex AI logs to BigQuery."""
    about = {"logging_time": f"2026-03-01 10:00:0{second} UTC", "model": "m-1", "api_method": "GenerateContent"}
    if older:
        request, response = ([json.dumps(part)] for part in pair)
        return {**about, "request_payload": request, "response_payload": response}
    return {**about, "full_request": pair[0], "full_response": pair[1], "request_payload": [], "response_payload": []}


ROWS = [row(at, pair) for at, pair in enumerate(PAIRS, start=1)]
LOGS: dict[str, Any] = {
    "Converse": lines(*TALK),
    "Converse in an array": TALK,
    "Converse in CloudWatch": {"events": [{"timestamp": 1, "message": json.dumps(record)} for record in TALK]},
    "Converse in a query of CloudWatch": [{"@timestamp": "x", "@message": record} for record in TALK],
    "InvokeModel": lines(*INVOKED),
    "Gemini": lines(*CLIENT),
    "Gemini, a batch": lines(*BATCH),
    "Vertex AI": lines(*ROWS),
    "Vertex AI, older": [row(at, pair, older=True) for at, pair in enumerate(PAIRS, start=1)],
}


@pytest.mark.parametrize("name", LOGS)
def test_requests_have_their_messages_tools_and_counts(name):
    recording = recordings.read(LOGS[name] if isinstance(LOGS[name], bytes) else json.dumps(LOGS[name]).encode())
    [session] = recording.sessions
    counts = [(call.prompt_tokens, call.cached_tokens, call.output_tokens, call.model) for call in session.calls]
    assert counts == [(100, 60, 5, "m-1")] * 2
    assert (session.system, [tool.name for tool in session.tools or ()]) == ((TextPart("Be brief."),), ["ls"])
    assert [event.parts for event in session.events] == [
        (TextPart("List files"),),
        (ToolCallPart("ls", {"path": "."}, "c1"),),
        (ToolResultPart("ls", "a.txt", "c1"),),
        (TextPart("One file"),),
    ]
    assert (recording.format, recording.notes.problems) == ("provider-log", [])
    assert session.format == ("anthropic-messages" if name == "InvokeModel" else "provider-log")


@pytest.mark.parametrize("name", ["Converse", "InvokeModel", "Vertex AI", "Vertex AI, older"])
def test_the_record_says_when_the_call_was(name):
    session = read_as(FORMAT, LOGS[name]).sessions[0]
    assert [call.timestamp for call in session.calls] == [1772359201.0, 1772359202.0]


def test_what_the_cache_took_is_counted():
    assert [call.cache_write_tokens for call in read_as(FORMAT, lines(*TALK)).sessions[0].calls] == [30, 30]


def test_counts_of_the_record_stand_in_for_those_of_a_response():
    [call] = read_as(FORMAT, lines(converse(1, ASKED, ANSWER, usage=False))).sessions[0].calls
    assert (call.prompt_tokens, call.cached_tokens, call.cache_write_tokens, call.output_tokens) == (100, 60, 30, 5)


def test_a_body_that_is_kept_elsewhere_leaves_the_counts():
    record = bedrock(1, "Converse", None, None)
    del record["input"]["inputBodyJson"], record["output"]["outputBodyJson"]
    record["input"]["inputBodyS3Path"] = "s3://a/b"
    session = read_as(FORMAT, lines(record)).sessions[0]
    assert [call.prompt_tokens for call in session.calls] == [100]
    assert ANSWERS_ONLY in session.notes


def test_a_streamed_answer_is_put_together():
    pieces = [
        {"type": "message_start", "message": {**message("r1", [])}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "One file"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 10}},
    ]
    session = read_as(FORMAT, lines(bedrock(1, "InvokeModelWithResponseStream", own(FIRST), pieces))).sessions[0]
    assert session.events[1].parts == (TextPart("One file"),)
    assert session.calls[0].prompt_tokens == 100


def test_blocks_of_bedrock_are_read_in_full():
    picture = {"image": {"format": "png", "source": {"bytes": "AAAA"}}}
    failed = {"toolUseId": "c1", "content": [{"json": {"n": 1}}, picture], "status": "error"}
    thought = {"reasoningContent": {"reasoningText": {"text": "Look", "signature": "AAAA"}}}
    used = {"role": "assistant", "content": [thought, *USED["content"]]}
    sent = [
        {"role": "user", "content": [{"text": "See"}, picture]},
        used,
        {"role": "user", "content": [{"toolResult": failed}]},
    ]
    events = read_as(FORMAT, lines(converse(1, sent, ANSWER))).sessions[0].events
    png = MediaPart("image/png", size=3)
    assert events[0].parts == (TextPart("See"), png)
    assert events[1].parts[0] == ReasoningPart("Look", opaque_bytes=3)
    assert events[2].parts == (ToolResultPart("ls", '{"n":1}', "c1", True), png)


def test_a_request_that_was_too_long_is_refused():
    words = "Input is too long for requested model."
    failed = {**converse(3, [*ASKED, USED, RESULT, ANSWER, ASKED[0]], {}), "errorCode": "ValidationException"}
    failed["output"] = {"outputBodyJson": {"message": words}}
    assert read_as(FORMAT, lines(*TALK, failed)).sessions[0].refused == (5,)


def test_what_a_client_wrote_of_the_converse_api_is_read():
    request = {"messages": ASKED, "system": [{"text": "Be brief."}]}
    counts = {"inputTokens": 10, "cacheReadInputTokens": 60, "outputTokens": 5}
    logged = {"request": {"modelId": "m-1", **request}, "response": {"output": {"message": USED}, "usage": counts}}
    messages = [*ASKED, USED, RESULT, ANSWER]
    [call] = read_as(FORMAT, lines(logged)).sessions[0].calls
    assert (call.prompt_tokens, call.cached_tokens, call.model) == (70, 60, "m-1")
    for content in (messages, {**request, "messages": messages}):
        events = read_as(FORMAT, content).sessions[0].events
        assert events[1].parts == (ToolCallPart("ls", {"path": "."}, "c1"),)
        assert events[2].parts == (ToolResultPart("ls", "a.txt", "c1"),)


def recorded(response: Any, status: int = 200) -> dict[str, Any]:
    """A request and its response as nock records HTTP."""
    where = {"scope": "https://bedrock-runtime.us-east-1.amazonaws.com:443", "method": "POST"}
    body = {"messages": ASKED, "system": [{"text": "Be brief."}]}
    return {**where, "path": "/model/m-1%3A0/converse", "body": body, "status": status, "response": response}


def test_what_a_recorder_of_http_wrote_of_the_converse_api_is_read():
    counts = {"inputTokens": 10, "cacheReadInputTokens": 60, "outputTokens": 5, "totalTokens": 75}
    recording = recordings.read(json.dumps([recorded({"output": {"message": USED}, "usage": counts})]).encode())
    [session] = recording.sessions
    assert (recording.format, recording.notes.problems) == ("provider-log", [])
    assert session.events[1].parts == (ToolCallPart("ls", {"path": "."}, "c1"),)
    assert [(call.prompt_tokens, call.model) for call in session.calls] == [(70, "m-1:0")]
    words = "Input is too long for requested model."
    refused = recorded({"message": words}, 400)
    refused["body"]["messages"] = [*ASKED, USED, RESULT]
    both = [recorded({"output": {"message": USED}, "usage": counts}), refused]
    assert recordings.read(json.dumps(both).encode()).sessions[0].refused == (3,)


def test_bytes_of_a_stream_in_hexadecimal_are_no_words_of_the_model():
    recording = recordings.read(json.dumps([recorded("000000b8" * 40)]).encode())
    assert [problem.message for problem in recording.notes.problems] == ["a response that is neither JSON nor a stream"]
    assert len(recording.sessions[0].events) == 1


# Of more cached tokens than the input has, none are within it, whatever the total says.
@pytest.mark.parametrize(("total", "fresh", "prompt"), [(105, 100, 100), (195, 100, 190), (45, 40, 130)])
def test_messages_of_strands_have_the_counts_in_their_metadata(total, fresh, prompt):
    counts = {"inputTokens": fresh, "outputTokens": 5, "totalTokens": total, "cacheReadInputTokens": 90}
    counted = {**ANSWER, "metadata": {"usage": counts, "metrics": {"latencyMs": 7}}, "tracking_id": "t"}
    recording = recordings.read(json.dumps([*ASKED, USED, RESULT, counted]).encode(), strict=True)
    first, last = recording.sessions[0].calls
    assert (first.prompt_tokens, recording.facts.model_calls) == (None, 1)
    assert (last.prompt_tokens, last.cached_tokens, last.output_tokens) == (prompt, 90, 5)


def test_results_of_a_batch_hold_what_came_back():
    results = [
        {
            "custom_id": "a",
            "result": {"type": "succeeded", "message": message("r1", [{"type": "text", "text": "Yes"}])},
        },
        {"custom_id": "b", "result": {"type": "errored", "error": {"type": "error", "error": {"message": "no"}}}},
        {"custom_id": "c", "result": {"type": "expired"}},
    ]
    recording = read_as(FORMAT, lines(*results))
    assert [(call.prompt_tokens, call.cached_tokens) for call in recording.sessions[0].calls] == [(100, 60)]
    assert ANSWERS_ONLY in recording.sessions[0].notes
    assert recording.notes.skipped == {"record of no call that can be read": 2}


@pytest.mark.parametrize(
    "other",
    [
        {"events": [{"message": "text"}]},
        [{"role": "user", "parts": [{"text": "Hi"}]}],
        {"request": {"messages": FIRST}, "response": message("r1", [])},
        {"custom_id": "a", "params": {"messages": FIRST}},
        {"request": {"contents": ["x"]}, "response": {}},
        [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        [{"role": "user", "content": '[{"text": "Hi"}]'}],
    ],
)
def test_other_logs_are_not_taken(other):
    assert not recognises(FORMAT, other)


@pytest.mark.parametrize("record", [TALK[0], INVOKED[0], ROWS[0]])
def test_wrong_types_anywhere_are_survived(record):
    check_hostile(FORMAT, (json.dumps(bad).encode() for bad in spoiled(record)))
