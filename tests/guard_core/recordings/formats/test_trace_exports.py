"""Traces in the words of the service that exported them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from guard_core import recordings
from guard_core.errors import UnknownFormat
from guard_core.events import TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.formats.trace_exports.format import FORMAT
from guard_core.sessions import NO_CONTENT
from tests.guard_core.recordings.checks import check_hostile, lines, read_as, recognises, spoiled, texts
from tests.plugins.tiers import mostly_long

CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "."}'}}
CALLED = {"id": "c1", "name": "ls", "arguments": {"path": "."}}
SENT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "List files"}]
ASKED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "a.txt"}
ANSWER = {"role": "assistant", "content": "One file"}
ALL = [*SENT, ASKED, RESULT]
TOOLS = [{"type": "function", "function": {"name": "ls", "parameters": {"type": "object"}}}]


def at(second: int) -> str:
    return f"2026-03-01T10:00:{second:02d}.000Z"


def completion(answer: dict[str, Any], prompt: int) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 60}}
    return {"id": f"r{prompt}", "model": "m-1", "choices": [{"index": 0, "message": answer}], "usage": usage}


def observation(number: int, kind: str, given: Any, output: Any, **more: Any) -> dict[str, Any]:
    """A Langfuse observation as its API gives it."""
    place = {"id": f"o{number}", "traceId": "t1", "parentObservationId": None if number == 1 else "o1"}
    about = {"startTime": at(number), "modelParameters": {}, "level": "DEFAULT", "statusMessage": None}
    return {**place, "type": kind, "name": "a name", **about, "input": given, "output": output, **more}


def observations(**spoil: Any) -> list[dict[str, Any]]:
    """Those of one trace, newest first."""
    counts = [{"input": prompt - 60, "input_cached_tokens": 60, "output": 5} for prompt in (100, 150)]
    about = {"model": "m-1", **spoil}
    request = {"messages": SENT, "tools": TOOLS}
    return [
        observation(4, "GENERATION", ALL, ANSWER, usageDetails=counts[1], **about),
        observation(3, "TOOL", {"path": "."}, "a.txt"),
        observation(2, "GENERATION", request, ASKED, usageDetails=counts[0], **about),
        observation(1, "SPAN", "List files", "One file"),
    ]


TRACE = {
    "id": "t1",
    "name": "my agent",
    "sessionId": "s-1",
    "timestamp": at(0),
    "htmlPath": "/x",
    "input": "List files",
}


def agents_span(number: int, data: dict[str, Any], error: Any = None) -> dict[str, Any]:
    """A span of the OpenAI Agents SDK as its processors export it."""
    place = {"id": f"span_{number}", "trace_id": "trace_1", "parent_id": None if number == 9 else "span_9"}
    return {
        "object": "trace.span",
        **place,
        "started_at": at(number),
        "ended_at": at(number),
        "span_data": data,
        "error": error,
    }


def agents_usage(prompt: int) -> dict[str, Any]:
    details = {"cached_tokens": 60, "cache_write_tokens": 0}
    return {"requests": 1, "input_tokens": prompt, "output_tokens": 5, "input_tokens_details": details}


def agents_records() -> list[dict[str, Any]]:
    """A trace and its spans in the order in which they end."""
    counts = agents_usage(100)
    turn = {"type": "custom", "name": "turn", "data": {"sdk_span_type": "turn", "usage": counts}}
    return [
        {"object": "trace", "id": "trace_1", "workflow_name": "work", "group_id": "s-1", "metadata": None},
        agents_span(2, {"type": "generation", "input": SENT, "output": [ASKED], "model": "m-1", "usage": counts}),
        agents_span(3, {"type": "function", "name": "ls", "input": '{"path": "."}', "output": "a.txt"}),
        agents_span(5, turn),
        agents_span(
            4, {"type": "generation", "input": ALL, "output": [ANSWER], "model": "m-1", "usage": agents_usage(150)}
        ),
        agents_span(9, {"type": "agent", "name": "Lister", "handoffs": [], "tools": ["ls"], "output_type": "str"}),
    ]


def row(number: int, kind: str, given: Any, output: Any, **more: Any) -> dict[str, Any]:
    """A row of Braintrust's logs."""
    place = {"id": f"b{number}", "span_id": f"s{number}", "root_span_id": "s1", "created": at(number)}
    parents = None if number == 1 else ["s1"]
    about = {"span_attributes": {"name": "ls" if kind == "tool" else kind, "type": kind}, "metadata": {}}
    return {**place, "span_parents": parents, "input": given, "output": output, **about, **more}


def rows() -> list[dict[str, Any]]:
    def metrics(prompt: int, number: int) -> dict[str, Any]:
        counts = {"prompt_tokens": prompt, "prompt_cached_tokens": 60, "completion_tokens": 5, "tokens": prompt + 5}
        return {"metrics": {"start": 1772359200.0 + number, **counts}, "metadata": {"model": "m-1", "tools": TOOLS}}

    return [
        row(1, "task", "List files", "One file", metrics={"prompt_tokens": 250, "completion_tokens": 10}),
        row(2, "llm", SENT, [{"index": 0, "message": ASKED, "finish_reason": "tool_calls"}], **metrics(100, 2)),
        row(3, "tool", {"path": "."}, "a.txt", metrics={"start": 1772359203.0}),
        row(4, "llm", ALL, [{"index": 0, "message": ANSWER, "finish_reason": "stop"}], **metrics(150, 4)),
    ]


def weave_call(number: int, request: dict[str, Any], output: Any) -> dict[str, Any]:
    operation = "weave:///team/project/op/openai.chat.completions.create:abc"
    sums = {"usage": {"m-1": {"prompt_tokens": 250, "requests": 2}}}
    place = {"id": f"w{number}", "trace_id": "t1", "parent_id": None if number == 1 else "w1"}
    return {
        **place,
        "op_name": operation,
        "started_at": at(number),
        "inputs": request,
        "output": output,
        "summary": sums,
    }


def weave_calls() -> list[dict[str, Any]]:
    sent: dict[str, Any] = {"model": "m-1", "tools": TOOLS}
    return [
        weave_call(4, {**sent, "messages": ALL}, completion(ANSWER, 150)),
        weave_call(2, {**sent, "messages": SENT}, completion(ASKED, 100)),
        weave_call(1, {"question": "List files"}, "One file"),
    ]


def mlflow_span(number: int, kind: str, request: Any, response: Any, **attributes: Any) -> dict[str, Any]:
    written = {"mlflow.spanType": kind, "mlflow.spanInputs": request, "mlflow.spanOutputs": response, **attributes}
    place = {"trace_id": "dDE=", "span_id": f"c{number}==", "parent_span_id": None if number == 1 else "c1=="}
    start = 1772359200_000000000 + number * 1_000_000_000
    texts_of = {key: json.dumps(value) for key, value in written.items()}
    name = "ls" if kind == "TOOL" else kind
    return {**place, "name": name, "start_time_unix_nano": start, "attributes": texts_of, "status": {"message": ""}}


def mlflow_trace() -> dict[str, Any]:
    def counts(prompt: int) -> dict[str, Any]:
        usage = {"input_tokens": prompt, "output_tokens": 5, "total_tokens": prompt + 5, "cache_read_input_tokens": 60}
        return {"mlflow.chat.tokenUsage": usage, "mlflow.llm.model": "m-1", "mlflow.chat.tools": TOOLS}

    spans = [
        mlflow_span(1, "AGENT", {"question": "List files"}, "One file"),
        mlflow_span(2, "CHAT_MODEL", {"messages": SENT}, completion(ASKED, 100), **counts(100)),
        mlflow_span(3, "TOOL", {"path": "."}, "a.txt"),
        mlflow_span(4, "CHAT_MODEL", {"messages": ALL}, completion(ANSWER, 150), **counts(150)),
    ]
    info = {"trace_id": "tr-1", "trace_metadata": {"mlflow.trace.session": "s-1"}}
    return {"info": info, "data": {"spans": spans}}


def as_text(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Observations whose input and output are JSON as text, as the page of Langfuse downloads them."""
    return [{**item, "input": json.dumps(item["input"]), "output": json.dumps(item["output"])} for item in records]


def snake(record: dict[str, Any]) -> dict[str, Any]:
    """An observation as Langfuse exports it to a bucket."""
    names = {"traceId": "trace_id", "startTime": "start_time", "usageDetails": "usage_details"}
    names |= {"parentObservationId": "parent_observation_id", "model": "provided_model_name"}
    return {names.get(key, key): value for key, value in record.items()}


EXPORTS: dict[str, Any] = {
    "Langfuse, a trace": {**TRACE, "observations": observations()},
    "Langfuse, traces": {"data": [{**TRACE, "observations": observations()}]},
    "Langfuse, as its page downloads a trace": {"trace": TRACE, "observations": as_text(observations())},
    "Langfuse, a list of observations": {"data": observations(), "meta": {"page": 1}},
    "Langfuse, observations in lines": lines(*observations()),
    "Langfuse, from a bucket": lines(*map(snake, observations())),
    "OpenAI Agents SDK, lines": lines(*agents_records()),
    "OpenAI Agents SDK, an array": agents_records(),
    "OpenAI Agents SDK, as sent": {"data": agents_records()},
    "Braintrust, rows": rows(),
    "Braintrust, lines": lines(*rows()),
    "Braintrust, an answer of its API": {"events": rows(), "cursor": None},
    "Weave, lines": lines(*weave_calls()),
    "MLflow, a trace": mlflow_trace(),
    "MLflow, its data": mlflow_trace()["data"],
    "MLflow, traces in lines": lines(mlflow_trace()),
}


@pytest.fixture(params=EXPORTS)
def export(request) -> Iterator[Any]:
    return EXPORTS[request.param]


def test_calls_have_their_counts_times_and_model(export):
    session = read_as(FORMAT, export).sessions[0]
    counts = [(call.prompt_tokens, call.cached_tokens, call.output_tokens, call.model) for call in session.calls]
    assert counts == [(100, 60, 5, "m-1"), (150, 60, 5, "m-1")]
    assert [call.timestamp for call in session.calls] == [1772359202.0, 1772359204.0]


def test_messages_and_tools_are_those_of_the_requests(export):
    [session] = read_as(FORMAT, export).sessions
    assert session.system == (TextPart("Be brief."),)
    assert [event.parts for event in session.events] == [
        (TextPart("List files"),),
        (ToolCallPart("ls", {"path": "."}, "c1"),),
        (ToolResultPart("ls", "a.txt", "c1"),),
        (TextPart("One file"),),
    ]


def test_nothing_in_it_is_reported_as_unknown(export):
    content = export if isinstance(export, bytes) else json.dumps(export).encode()
    recording = recordings.read(content)
    assert (recording.format, recording.notes.problems) == ("trace-export", [])
    assert (recording.facts.model_calls, recording.facts.prompt_tokens_sum) == (2, 250)


@pytest.mark.parametrize("name", [name for name in EXPORTS if name.split(",")[0] in ("MLflow", "Braintrust", "Weave")])
def test_tools_of_a_request_are_kept(name):
    tools = read_as(FORMAT, EXPORTS[name]).sessions[0].tools
    assert tools is not None
    assert [tool.name for tool in tools] == ["ls"]


@pytest.mark.parametrize(
    ("name", "session"),
    [
        ("Langfuse, a trace", "s-1"),
        ("Langfuse, a list of observations", "t1"),
        ("OpenAI Agents SDK, lines", "s-1"),
        ("Braintrust, rows", "s1"),
        ("MLflow, a trace", "s-1"),
    ],
)
def test_the_conversation_has_the_name_that_the_trace_gives_it(name, session):
    assert read_as(FORMAT, EXPORTS[name]).sessions[0].source_id == session


@pytest.mark.parametrize(
    "counts",
    [
        {"usageDetails": {}, "usage": {"unit": "TOKENS", "input": 150, "output": 5, "total": 155}},
        {"usageDetails": {}, "promptTokens": 150, "completionTokens": 5, "totalTokens": 155},
        {"usageDetails": {}, "inputUsage": 150, "outputUsage": 5, "totalUsage": 155},
    ],
)
def test_older_counts_of_langfuse_are_read(counts):
    [call] = read_as(FORMAT, [{**observations()[0], **counts}]).sessions[0].calls
    assert (call.prompt_tokens, call.output_tokens) == (150, 5)


@pytest.mark.parametrize(
    "counts",
    [
        {"usageDetails": {}, "usage": {"unit": "CHARACTERS", "input": 600, "output": 20, "total": 620}},
        {"usageDetails": {"input": 600, "output": 20}, "usage": {"unit": "CHARACTERS", "input": 600, "output": 20}},
        {"usageDetails": {}, "unit": "CHARACTERS", "promptTokens": 600, "completionTokens": 20},
    ],
)
def test_counts_of_characters_are_not_taken_for_tokens(counts):
    [call] = read_as(FORMAT, [{**observations()[0], **counts}]).sessions[0].calls
    assert (call.prompt_tokens, call.output_tokens) == (None, None)


def test_cached_tokens_of_vertex_are_a_part_of_the_prompt():
    counts = {"input": 0, "input_modality_TEXT": 90, "cached_modality_TEXT": 60, "output": 5, "total": 155}
    recording = read_as(FORMAT, [{**observations()[0], "usageDetails": counts}])
    [call] = recording.sessions[0].calls
    assert (call.prompt_tokens, call.cached_tokens, call.output_tokens) == (150, 60, 5)
    assert recording.notes.problems == []


def test_tools_that_langfuse_has_behind_the_messages_of_langchain_are_tools():
    definitions = [{"role": "tool", "content": tool} for tool in TOOLS]
    second, tool, first, span = observations()
    calls = [{**call, "input": [*sent, *definitions]} for call, sent in ((first, SENT), (second, ALL))]
    recording = read_as(FORMAT, [span, tool, *calls])
    [session] = recording.sessions
    assert ([tool.name for tool in session.tools], session.compactions) == (["ls"], ())
    assert texts(session) == texts(read_as(FORMAT, observations()).sessions[0])
    assert recording.notes.problems == []


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (
            [{"role": "user", "content": [{"type": "text", "text": "List files"}]}],
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "."}}]},
        ),
        (
            {"input": "List files", "instructions": "Be brief."},
            {"output": [{"type": "function_call", "call_id": "c1", "name": "ls", "arguments": '{"path": "."}'}]},
        ),
        (
            {"contents": [{"role": "user", "parts": [{"text": "List files"}]}]},
            {
                "candidates": [
                    {
                        "content": {
                            "role": "model",
                            "parts": [{"functionCall": {"id": "c1", "name": "ls", "args": {"path": "."}}}],
                        }
                    }
                ]
            },
        ),
        (
            {"contents": [{"role": "user", "parts": [{"text": "List files"}]}]},
            {
                "content": {
                    "role": "model",
                    "parts": [{"function_call": {"id": "c1", "name": "ls", "args": {"path": "."}}}],
                }
            },
        ),
        (
            [{"role": "user", "parts": [{"type": "text", "content": "List files"}]}],
            [{"role": "assistant", "parts": [{"type": "tool_call", **CALLED}], "finish_reason": "tool_call"}],
        ),
        (
            [{"role": "user", "content": "List files"}],
            {"role": "assistant", "content": "", "additional_kwargs": {"tool_calls": [CALL], "refusal": None}},
        ),
        (
            [{"role": "user", "content": "List files"}],
            [{"role": "assistant", "content": [CALL], "finish_reason": "tool_calls"}],
        ),
        (
            {"messages": [{"role": "user", "content": [{"text": "List files"}]}]},
            {
                "output": {
                    "message": {
                        "role": "assistant",
                        "content": [{"toolUse": {"toolUseId": "c1", "name": "ls", "input": {"path": "."}}}],
                    }
                }
            },
        ),
        (
            [{"role": "user", "content": [{"type": "text", "text": "List files"}]}],
            {
                "role": "assistant",
                "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "ls", "input": {"path": "."}}],
            },
        ),
    ],
    ids=["Anthropic", "Responses", "Google", "Google's content", "GenAI", "LangChain", "Koog", "Bedrock", "AI SDK"],
)
def test_requests_of_other_apis_are_read_in_their_words(request_, answer):
    events = read_as(FORMAT, [{**observations()[0], "input": request_, "output": answer}]).sessions[0].events
    assert [event.parts for event in events] == [(TextPart("List files"),), (ToolCallPart("ls", {"path": "."}, "c1"),)]


def test_results_in_the_words_of_the_convention_answer_calls_whose_ids_are_lists():
    names = ["run_1", "c1"]
    asked = {"role": "assistant", "parts": [{"type": "tool_call", **CALLED, "id": names}]}
    returned = {"role": "tool", "parts": [{"type": "tool_call_response", "id": names, "response": "a.txt"}]}
    recording = read_as(FORMAT, [{**observations()[0], "input": [asked, returned], "output": ANSWER}])
    [session] = recording.sessions
    [called, result, _] = [event.parts[0] for event in session.events]
    assert isinstance(called, ToolCallPart)
    assert called.id
    assert result == ToolResultPart("ls", "a.txt", called.id)
    assert recording.notes.problems == []


def test_a_result_that_is_a_value_is_the_result():
    rows = [{"name": "a.txt", "size": 5}]
    sent = [*SENT, ASKED, {**RESULT, "content": rows}]
    [session] = read_as(FORMAT, [{**observations()[0], "input": sent}]).sessions
    assert session.events[2].parts == (ToolResultPart("ls", rows, "c1"),)


def test_calls_that_are_messages_of_one_answer_are_all_in_it():
    other = {**CALL, "id": "c2"}
    answer = [{"role": "assistant", "content": [call]} for call in (CALL, other)]
    [session] = read_as(FORMAT, [{**observations()[0], "input": SENT, "output": answer}]).sessions
    assert session.events[-1].parts == (
        ToolCallPart("ls", {"path": "."}, "c1"),
        ToolCallPart("ls", {"path": "."}, "c2"),
    )
    choices = [{**ANSWER, "content": "One"}, {**ANSWER, "content": "Two"}]
    [session] = read_as(FORMAT, [{**observations()[0], "input": SENT, "output": choices}]).sessions
    assert texts(session)[-1] == "Two"


def test_an_answer_that_langfuse_counted_no_tokens_of_has_no_count():
    [call] = read_as(FORMAT, [{**observations()[0], "usageDetails": {"input": 150, "total": 150}}]).sessions[0].calls
    assert (call.prompt_tokens, call.output_tokens) == (150, None)


def test_a_number_that_a_tool_returned_under_a_name_of_usage_is_no_bad_count():
    first = {**observations()[0], "usageDetails": {"input": 150, "output": 5}}
    ran = observation(3, "SPAN", {}, {"iterations": 1, "metrics": 3})
    recording = recordings.read(json.dumps([first, ran]).encode(), strict=True)
    assert recording.notes.problems == []


def test_a_call_of_the_responses_api_has_tokens_and_no_message():
    data = {"type": "response", "response_id": "resp_1", "usage": agents_usage(100)}
    ran = agents_span(3, {"type": "function", "name": "ls", "input": "{}", "output": "a.txt"})
    session = read_as(FORMAT, [agents_span(2, data), ran]).sessions[0]
    assert [(call.at, call.prompt_tokens, call.cached_tokens) for call in session.calls] == [(0, 100, 60)]
    assert session.events[1].parts == (ToolResultPart("ls", "a.txt"),)
    assert NO_CONTENT in session.notes


def test_a_call_that_was_too_long_is_refused():
    words = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
    error = {"message": "Error getting response", "data": {"error": words}}
    failed = agents_span(6, {"type": "generation", "input": [*ALL, ANSWER], "output": None, "usage": None}, error)
    session = read_as(FORMAT, [*agents_records(), failed]).sessions[0]
    assert session.refused
    assert session.refusals[0].tokens == 9000
    too_long = observation(5, "GENERATION", [*ALL, ANSWER], None, level="ERROR", statusMessage=words)
    assert read_as(FORMAT, [*observations(), too_long]).sessions[0].refused


def test_a_list_of_traces_without_their_observations_is_refused_with_what_to_do():
    listed = {"data": [{**TRACE, "observations": ["o1", "o2"]}], "meta": {"page": 1}}
    with pytest.raises(UnknownFormat, match=r"Langfuse \(traces without their observations"):
        recordings.read(json.dumps(listed).encode())


@pytest.mark.parametrize(
    "other",
    [
        SENT,
        {"messages": SENT},
        {"data": [completion(ANSWER, 100)]},
        {"object": "trace", "id": "x"},
        {"type": "SPAN", "traceId": "t", "startTime": "x"},
        {"op_name": "x", "trace_id": "t", "inputs": []},
    ],
)
def test_what_no_such_service_writes_is_not_taken(other):
    assert not recognises(FORMAT, other)


RECORDS = (observations()[:2], agents_records()[:3], rows()[:2], weave_calls()[1:], [mlflow_trace()])


@pytest.mark.parametrize("records", mostly_long(RECORDS, short=RECORDS[:2]))
def test_it_holds_against_hostile_values(records):
    check_hostile(FORMAT, (json.dumps(bad).encode() for bad in spoiled(records)))


def test_the_system_prompt_that_braintrust_writes_behind_the_messages_is_the_system_prompt():
    changed = [
        {**item, "input": [*item["input"][1:], SENT[0]]} if isinstance(item["input"], list) else item for item in rows()
    ]
    [session] = read_as(FORMAT, changed).sessions
    [whole] = read_as(FORMAT, rows()).sessions
    assert (session.system, session.compactions) == ((TextPart("Be brief."),), ())
    assert [event.parts for event in session.events] == [event.parts for event in whole.events]


def test_a_call_of_weave_may_have_a_text_as_its_input():
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One file"}]}
    usage = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 60}, "output_tokens": 5}
    output = {"object": "response", "id": "r1", "model": "m-1", "output": [item], "usage": usage}
    session = read_as(FORMAT, [weave_call(2, {"model": "m-1", "input": "List files"}, output)]).sessions[0]
    assert texts(session) == ["List files", "One file"]
    assert [(call.prompt_tokens, call.cached_tokens) for call in session.calls] == [(100, 60)]


def test_calls_of_functions_around_a_call_are_no_calls():
    session = read_as(FORMAT, weave_calls()).sessions[0]
    assert texts(session)[0] == "List files"
    assert len(session.calls) == 2
