"""LangChain messages and LangSmith runs."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from guard_core.errors import DamagedRecording
from guard_core.events import TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.formats.langchain.format import FORMAT
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.recordings.reading.summary_words import LANGCHAIN
from guard_core.sessions import Evidence
from guard_core.views import Inserted
from tests.guard_core.recordings.checks import (
    check_hostile,
    check_sample_facts,
    lines,
    read_as,
    recognises,
    spoiled,
    texts,
)

CALL = {"name": "bash", "args": {"command": "ls"}, "id": "c1", "type": "tool_call"}


def human(text: str, **data: Any) -> dict[str, Any]:
    return {"type": "human", "data": {"content": text, "type": "human", **data}}


def ai(text: str, prompt: int = 100, calls: tuple[Any, ...] = (), **data: Any) -> dict[str, Any]:
    usage = {"input_tokens": prompt, "output_tokens": 5, "input_token_details": {"cache_read": 60}}
    own = {
        "content": text,
        "tool_calls": list(calls),
        "usage_metadata": usage,
        "response_metadata": {"model_name": "m-1"},
    }
    return {"type": "ai", "data": {**own, "type": "ai", **data}}


def tool(text: str, call: str = "c1", **data: Any) -> dict[str, Any]:
    return {"type": "tool", "data": {"content": text, "tool_call_id": call, "name": "bash", "type": "tool", **data}}


SYSTEM = {"type": "system", "data": {"content": "Be brief.", "type": "system"}}
TALK = [SYSTEM, human("List"), ai("Look", 100, (CALL,)), tool("a.txt"), ai("Done", 150)]


@pytest.mark.parametrize(
    ("details", "written"),
    [
        ({"cache_creation": 7}, 7),
        ({"cache_creation": 0, "ephemeral_5m_input_tokens": 40, "ephemeral_1h_input_tokens": None}, 40),
        ({"cache_creation": 0, "ephemeral_5m_input_tokens": 40, "ephemeral_1h_input_tokens": 2}, 42),
        ({"cache_creation": 0, "ephemeral_5m_input_tokens": 0}, 0),
        ({}, None),
    ],
)
def test_what_the_cache_wrote_is_the_sum_of_its_parts_where_they_are_known(details, written):
    usage = {"input_tokens": 100, "output_tokens": 5, "input_token_details": details}
    [call] = read_as(FORMAT, [human("List"), ai("Done", usage_metadata=usage)]).sessions[0].calls
    assert (call.prompt_tokens, call.cache_write_tokens) == (100, written)


def test_messages_have_real_tokens_with_the_cached_ones():
    recording = read_as(FORMAT, TALK)
    session = recording.sessions[0]
    assert session.system == (TextPart("Be brief."),)
    assert session.events[1].parts == (TextPart("Look"), ToolCallPart("bash", {"command": "ls"}, "c1"))
    assert session.events[2].parts == (ToolResultPart("bash", "a.txt", "c1"),)
    assert [(call.at, call.prompt_tokens, call.cached_tokens) for call in session.calls] == [(1, 100, 60), (3, 150, 60)]
    assert (recording.facts.messages, recording.facts.prompt_tokens_sum) == (5, 250)


def test_serialised_and_flat_messages_are_read_alike():
    classes = {"system": "SystemMessage", "human": "HumanMessage", "ai": "AIMessageChunk", "tool": "ToolMessage"}
    serialised = [
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", classes[item["type"]]],
            "kwargs": item["data"] | {"type": ""},
        }
        for item in TALK
    ]
    flat = {"messages": [item["data"] for item in TALK]}
    assert read_as(FORMAT, serialised).sessions[0].events == read_as(FORMAT, TALK).sessions[0].events
    assert read_as(FORMAT, flat).facts == read_as(FORMAT, TALK).facts


def test_the_state_of_a_thread_has_its_messages():
    state = {"values": {"messages": TALK}, "next": [], "checkpoint": {"thread_id": "t"}, "metadata": {}}
    assert read_as(FORMAT, state).sessions[0].events == read_as(FORMAT, TALK).sessions[0].events
    assert not recognises(FORMAT, {"values": {"messages": TALK}})


def constructor(name: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": kwargs}


def escaped(value: Any) -> dict[str, Any]:
    """A value of the user's that looks like LangChain's own, as `langchain_core.load.dumps` writes it."""
    return {"__lc_escaped__": value}


def test_what_langchain_escaped_is_read_as_it_was():
    asked = constructor("HumanMessage", {"content": "List", "type": "human"})
    call = {**CALL, "args": escaped({"lc": 1, "command": "ls"})}
    metadata = escaped({"lc": 1, "model_name": "m-1", "token_usage": {"prompt_tokens": 100, "completion_tokens": 5}})
    answered = constructor("AIMessage", {"content": "", "tool_calls": [call], "response_metadata": metadata})
    for messages in ([asked, answered], [escaped(asked), escaped(answered)], lines(escaped(asked), escaped(answered))):
        session = read_as(FORMAT, messages).sessions[0]
        assert session.events[1].parts == (ToolCallPart("bash", {"lc": 1, "command": "ls"}, "c1"),)
        assert [(item.prompt_tokens, item.model) for item in session.calls] == [(100, "m-1")]


def test_messages_that_were_escaped_in_a_run_keep_their_tokens():
    model = run("llm", "a", 1, inputs={"messages": [[escaped(constructor("HumanMessage", {"content": "List"}))]]})
    message = constructor("AIMessage", {"content": "Done", "usage_metadata": {"input_tokens": 100, "output_tokens": 5}})
    model["outputs"] = {"generations": [[{"text": "Done", "message": escaped(message)}]]}
    session = read_as(FORMAT, lines(model)).sessions[0]
    assert (texts(session), session.calls[0].prompt_tokens) == (["List", "Done"], 100)


def test_usage_of_the_provider_stands_in():
    plain = ai("Hi") | {}
    plain["data"] |= {
        "usage_metadata": None,
        "response_metadata": {"usage": {"input_tokens": 5, "cache_read_input_tokens": 90}},
    }
    assert read_as(FORMAT, [human("x"), plain]).sessions[0].calls[0].prompt_tokens == 95


@pytest.mark.parametrize(
    "written",
    [
        {"prompt_tokens_details": {"cached_tokens": 60, "cache_creation_tokens": 30}},
        {"prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30}},
        {"cache_read_input_tokens": 60, "cache_creation_input_tokens": 30},
    ],
)
def test_usage_of_a_gateway_has_what_the_cache_wrote(written: dict[str, Any]):
    plain = ai("Hi") | {}
    usage = {"prompt_tokens": 100, "completion_tokens": 5, **written}
    plain["data"] |= {"usage_metadata": None, "response_metadata": {"token_usage": usage}}
    call = read_as(FORMAT, [human("x"), plain]).sessions[0].calls[0]
    assert (call.prompt_tokens, call.cached_tokens, call.cache_write_tokens, call.output_tokens) == (100, 60, 30, 5)


def test_calls_that_could_not_be_parsed_keep_their_text():
    broken = ai("Look", invalid_tool_calls=[{"name": "bash", "args": '{"command": ', "id": "c2", "error": "x"}])
    session = read_as(FORMAT, [human("x"), broken]).sessions[0]
    assert session.events[1].parts[1] == ToolCallPart("bash", '{"command": ', "c2")


def test_the_middlewares_summary_is_declared_and_its_wording_only_matched():
    summary = human(f"{LANGCHAIN}\n\nWe listed.")
    matched = read_as(FORMAT, [summary, *TALK[2:]]).sessions[0]
    assert (matched.compactions[0].evidence, matched.compactions[0].base) == (Evidence.MATCHED, (Inserted(0),))
    assert texts(matched)[0] == "Look"
    assert matched.compactions[0].kind == "summary"
    assert read_as(FORMAT, [human(LANGCHAIN), *TALK[2:]]).sessions[0].compactions[0].kind == "empty"
    marked = human("We listed.", additional_kwargs={"lc_source": "summarization"})
    assert read_as(FORMAT, [marked, *TALK[2:]]).sessions[0].compactions[0].evidence is Evidence.DECLARED


def test_a_marker_in_a_tool_result_is_no_compaction():
    session = read_as(FORMAT, [*TALK[:3], tool(LANGCHAIN)]).sessions[0]
    assert session.compactions == ()


def run(kind: str, name: str, start: int, parent: str = "", **rest: Any) -> dict[str, Any]:
    time = f"2026-03-01T10:00:{start:02d}Z"
    own = {"id": name, "run_type": kind, "start_time": time, "trace_id": "t1", "parent_run_id": parent or None}
    return {**own, **rest}


def model_run(name: str, start: int, inputs: dict[str, Any], message: dict[str, Any], **rest: Any) -> dict[str, Any]:
    serialised = {"lc": 1, "type": "constructor", "id": ["AIMessage"], "kwargs": message["data"]}
    outputs = {"generations": [[{"text": "", "message": serialised}]]}
    extra = {"invocation_params": {"model": "m-1", "tools": [{"type": "function", "function": {"name": "bash"}}]}}
    return run("llm", name, start, inputs=inputs, outputs=outputs, extra=extra, **rest)


FOUND = run("tool", "t", 2, outputs={"output": TALK[3]["data"]})
RUNS = [
    run("chain", "root", 0, inputs={"messages": [TALK[1]["data"]]}),
    model_run("m1", 1, {"messages": [TALK[:2]]}, TALK[2]),
    FOUND,
    model_run("m2", 3, {"messages": [TALK[:4]]}, TALK[4]),
]


def test_model_runs_are_calls_and_chains_are_not_read():
    recording = read_as(FORMAT, lines(*RUNS))
    session = recording.sessions[0]
    assert texts(session) == ["List", "Look", "", "Done"]
    assert [(call.at, call.prompt_tokens) for call in session.calls] == [(1, 100), (3, 150)]
    assert session.tools[0].name == "bash"
    assert recording.notes.skipped == {"chain run": 1}
    assert (recording.facts.model_calls, recording.facts.tool_calls, recording.facts.messages) == (2, 1, 0)


def test_rendered_prompts_take_their_messages_from_the_chain_around():
    prompt = "System: Be brief.\nHuman: List"
    chain = run("chain", "node", 1, inputs={"messages": [TALK[1]["data"]]})
    session = read_as(FORMAT, lines(chain, model_run("m1", 1, {"prompts": [prompt]}, TALK[2], parent="node"))).sessions[
        0
    ]
    assert session.system == (TextPart("Be brief."),)
    assert texts(session) == ["List", "Look"]


def test_rendered_prompts_without_a_chain_are_cut_at_their_speakers():
    first = model_run("m1", 1, {"prompts": ["System: Be brief.\nHuman: List"]}, TALK[2])
    second = model_run("m2", 3, {"prompts": ["System: Be brief.\nHuman: List\nAI: Look\nTool: a.txt"]}, TALK[4])
    session = read_as(FORMAT, lines(first, FOUND, second)).sessions[0]
    assert session.events[1].parts[1] == ToolCallPart("bash", {"command": "ls"}, "c1")
    assert session.events[2].parts == (ToolResultPart("bash", "a.txt", "c1"),)
    assert texts(session)[3] == "Done"


def test_threads_join_traces_and_child_runs_may_be_nested():
    extra = {"metadata": {"thread_id": "th"}}
    later = [*TALK, human("More")]
    second = model_run("m9", 9, {"messages": [later]}, ai("Sure", 170)) | {"trace_id": "t2"}
    runs = [item | {"extra": {**item.get("extra", {}), **extra}} for item in (*RUNS, second)]
    assert [len(session.calls) for session in read_as(FORMAT, lines(*runs)).sessions] == [3]
    nested = runs[0] | {"child_runs": runs[1:4]}
    assert len(read_as(FORMAT, nested).sessions[0].calls) == 2


def test_results_behind_the_last_call_are_in_the_log():
    session = read_as(FORMAT, lines(*RUNS[:3])).sessions[0]
    assert session.events[-1].parts == (ToolResultPart("bash", "a.txt", "c1"),)


def test_a_failed_run_is_a_call_without_an_answer_and_repeats_are_folded():
    failed = RUNS[1] | {"id": "m0", "outputs": None, "error": "rate limit"}
    recording = read_as(FORMAT, lines(failed, *RUNS, RUNS[1]))
    assert [call.response for call in recording.sessions[0].calls] == [None, 1, 3]
    assert recording.notes.folded == 1


def test_a_run_that_failed_as_too_long_is_a_refused_request():
    error = "BadRequestError(\"Error code: 400 - {'error': {'code': 'context_length_exceeded'}}\")Traceback …"
    failed = RUNS[1] | {"id": "m0", "outputs": None, "error": error}
    session = read_as(FORMAT, lines(RUNS[0], failed, *RUNS[1:])).sessions[0]
    assert (len(session.refused), len(session.calls)) == (1, len(read_as(FORMAT, lines(*RUNS)).sessions[0].calls))


def test_what_was_posted_at_the_start_is_completed_by_what_was_patched_at_the_end():
    def patch(item: dict[str, Any]) -> dict[str, Any]:
        return {key: item.get(key) for key in ("id", "trace_id", "outputs", "end_time")}

    posts = [item | {"outputs": None, "end_time": None} for item in RUNS]
    whole = read_as(FORMAT, lines(*RUNS))
    assert read_as(FORMAT, lines(*posts, *map(patch, RUNS))).sessions == whole.sessions
    batches = lines({"post": posts}, {"patch": [patch(item) for item in RUNS]})
    assert read_as(FORMAT, batches).facts == whole.facts


def test_outermost_runs_alone_are_read_as_the_messages_they_ended_with():
    root = RUNS[0] | {"parent_run_id": None, "outputs": {"messages": [item["data"] for item in TALK]}}
    recording = read_as(FORMAT, [root])
    assert texts(recording.sessions[0]) == ["List", "Look", "", "Done"]
    assert recording.facts.prompt_tokens_sum == 250


def test_what_a_dump_left_out_of_a_run_is_taken_from_its_dotted_order():
    unknown = {"lc": 1, "type": "not_implemented", "id": ["uuid", "UUID"]}
    names = [f"0190000{at}-0000-7000-8000-000000000000" for at in range(len(RUNS))]
    orders = [f"20260301T10000{at}123456Z{name}" for at, name in enumerate(names)]
    orders = [orders[0], *(f"{orders[0]}.{order}" for order in orders[1:])]
    lost = {"id": unknown, "trace_id": unknown, "parent_run_id": unknown, "start_time": unknown}
    runs = [item | lost | {"dotted_order": order} for item, order in zip(RUNS, orders, strict=True)]
    session = read_as(FORMAT, lines(*reversed(runs))).sessions[0]
    assert [(step.prompt_tokens, step.timestamp) for step in session.calls] == [
        (100, 1_772_359_201.123456),
        (150, 1_772_359_203.123456),
    ]


def test_lines_of_messages_are_a_session():
    assert read_as(FORMAT, lines(*TALK)).facts == read_as(FORMAT, TALK).facts


def test_runs_without_a_model_are_damaged():
    with pytest.raises(DamagedRecording, match="no calls"):
        read_as(FORMAT, lines(RUNS[0]))


def test_other_lists_are_not_taken():
    assert not recognises(FORMAT, [{"role": "user", "content": "x"}])
    assert not recognises(FORMAT, [{"type": "message", "role": "user", "content": []}])


@pytest.mark.parametrize("put", [list, lambda messages: {"messages": messages}])
def test_to_know_a_large_file_of_another_format_nothing_of_it_is_copied(put):
    messages = put({"role": "user", "content": [{"type": "text", "text": "x"}]} for _ in range(20_000))
    with ByteSource.open(json.dumps(messages, default=list).encode()) as source:
        assert source.shape is SourceShape.JSON
        source.json(allow_nan=True)  # both are kept, for every format that asks
        tracemalloc.start()
        assert not FORMAT.matches(source)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 500_000


def test_wrong_types_anywhere_are_survived():
    check_hostile(FORMAT, (lines(bad) for bad in spoiled(TALK[:4])))
    for index, record in enumerate(RUNS):
        rest = [lines(*RUNS[:index], bad, *RUNS[index + 1 :]) for bad in spoiled(record)]
        check_hostile(FORMAT, rest)


def test_the_facts_of_the_samples_are_equal():
    check_sample_facts(FORMAT, "langchain")


WRAPPED_USAGE = {"input_tokens": 100, "output_tokens": 5, "input_token_details": {"cache_read": 60}}
BLOCKS = [{"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "ls"}}]
ASKED = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
SCHEMA = {"name": "bash", "input_schema": {"type": "object"}}


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        (
            {
                "model": "m",
                "tools": [SCHEMA],
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "List"},
                    {"role": "assistant", "content": BLOCKS},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a.txt"}]},
                ],
            },
            {"role": "assistant", "content": "Done", "tool_calls": None},
        ),
        (
            {
                "model": "m",
                "tools": [SCHEMA],
                "instructions": "Be brief.",
                "input": [
                    {"role": "user", "content": "List"},
                    {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"command": "ls"}'},
                    {"type": "function_call_output", "call_id": "c1", "output": "a.txt"},
                ],
            },
            {
                "object": "response",
                "output": [
                    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done"}]}
                ],
            },
        ),
        (
            {
                "model": "m",
                "tools": [SCHEMA],
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "List"},
                    {"role": "assistant", "content": None, "tool_calls": [ASKED]},
                    {"role": "tool", "tool_call_id": "c1", "content": "a.txt"},
                ],
            },
            {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Done"}}]},
        ),
    ],
    ids=["Anthropic", "Responses", "Chat Completions"],
)
@pytest.mark.parametrize("named", [True, False])
def test_runs_of_wrapped_clients_are_read_in_the_words_of_their_provider(inputs, outputs, named):
    name = "01900000-0000-7000-8000-000000000000"
    order = f"20260301T100000123456Z{name}"
    about = {"trace_id": name, "dotted_order": order, "extra": {"metadata": {"ls_invocation_params": {"tools": True}}}}
    post = {"id": name, "run_type": "llm", "inputs": inputs, **about}
    patch = {"outputs": {"model": "m-1", "usage_metadata": WRAPPED_USAGE, **outputs}, **about}
    recording = read_as(FORMAT, lines({"post": [post], "patch": [{**patch, "id": name} if named else patch]}))
    [session] = recording.sessions
    assert (session.system, [tool.name for tool in session.tools or ()]) == ((TextPart("Be brief."),), ["bash"])
    assert [event.parts for event in session.events] == [
        (TextPart("List"),),
        (ToolCallPart("bash", {"command": "ls"}, "c1"),),
        (ToolResultPart("bash", "a.txt", "c1"),),
        (TextPart("Done"),),
    ]
    [call] = session.calls
    assert (call.prompt_tokens, call.cached_tokens, call.output_tokens, call.model) == (100, 60, 5, "m-1")
    assert recording.notes.problems == []
    with ByteSource.open(lines({"post": [post]}, {"patch": [patch]})) as source:
        looked = FORMAT.first_look(source)
    assert looked == FirstLook((100,), model="m-1")
