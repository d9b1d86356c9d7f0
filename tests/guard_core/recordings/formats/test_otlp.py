"""Traces in OTLP/JSON and what is like it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard_core import recordings
from guard_core.context.report import context_report
from guard_core.errors import DamagedRecording
from guard_core.events import MediaPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from guard_core.findings.facts import Facts
from guard_core.recordings.formats.otlp.content import RepeatedTexts, read_content
from guard_core.recordings.formats.otlp.format import FORMAT
from guard_core.recordings.formats.otlp.spans import TraceSpan
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import ANSWERS_ONLY, NO_CONTENT
from tests.guard_core.recordings.checks import (
    check_hostile,
    check_sample_facts,
    lines,
    read_as,
    recognises,
    spoiled,
    texts,
)


def value(item: Any) -> dict[str, Any]:
    if isinstance(item, bool):
        return {"boolValue": item}
    return {"intValue": str(item)} if isinstance(item, int) else {"stringValue": str(item)}


def span(name: str, start: int, parent: str = "", trace: str = "t1", **rest: Any) -> dict[str, Any]:
    attributes = [{"key": key, "value": value(item)} for key, item in rest.pop("attributes", {}).items()]
    own = {"traceId": trace, "spanId": f"{trace}-{start}", "parentSpanId": parent, "name": name}
    return {**own, "startTimeUnixNano": str(start * 10**9), "attributes": attributes, **rest}


def export(*spans: dict[str, Any], service: str = "explorer") -> dict[str, Any]:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "lib"}, "spans": list(spans)}]}]}


def said(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "content": content}


CALL = {"type": "tool_call", "id": "c1", "name": "bash", "arguments": {"command": "ls"}}
RESULT = {"type": "tool_call_response", "id": "c1", "response": "a.txt"}
FIRST, LOOK, FOUND = said("user", text("List")), said("assistant", text("Look"), CALL), said("tool", RESULT)


def chat(
    start: int, messages: list[Any], output: Any, prompt: int = 100, cached: int = 0, **rest: Any
) -> dict[str, Any]:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m-1",
        "gen_ai.usage.input_tokens": prompt,
        "gen_ai.usage.cache_read.input_tokens": cached,
        "gen_ai.input.messages": json.dumps(messages),
        "gen_ai.output.messages": json.dumps([output]),
        **rest.pop("more", {}),
    }
    return span("chat m-1", start, attributes=attributes, **rest)


def tool(start: int, result: str = "a.txt", name: str = "execute_tool bash", **rest: Any) -> dict[str, Any]:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "bash",
        "gen_ai.tool.call.result": result,
    }
    return span(name, start, attributes=attributes, **rest)


TALK = (chat(1, [FIRST], LOOK), tool(2), chat(3, [FIRST, LOOK, FOUND], said("assistant", text("Done")), 150, 90))


def test_gen_ai_spans_are_calls_over_one_log():
    more = {"gen_ai.system_instructions": json.dumps([text("Be brief.")])}
    more["gen_ai.tool.definitions"] = json.dumps([{"type": "function", "name": "bash", "parameters": {}}])
    session = read_as(FORMAT, export(chat(1, [FIRST], LOOK, more=more), *TALK[1:])).sessions[0]
    assert texts(session) == ["List", "Look", "", "Done"]
    assert [(call.at, call.prompt_tokens, call.cached_tokens) for call in session.calls] == [(1, 100, 0), (3, 150, 90)]
    assert session.events[1].parts[1] == ToolCallPart("bash", {"command": "ls"}, "c1")
    assert session.events[2].parts == (ToolResultPart("bash", "a.txt", "c1"),)
    assert session.system == (TextPart("Be brief."),)
    assert session.tools[0].name == "bash"


def test_facts_count_leaf_calls_and_tool_spans():
    facts = read_as(FORMAT, lines(*(export(item) for item in TALK))).facts
    assert (facts.model_calls, facts.prompt_tokens_sum, facts.messages) == (2, 250, 0)
    assert (facts.tool_calls, facts.tool_results, facts.largest_tool_result_chars) == (1, 1, 5)


def test_a_span_around_model_spans_may_carry_sums_and_is_no_call():
    agent = span(
        "invoke_agent", 0, attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 999}
    )
    outer = chat(1, [FIRST], LOOK, 999)
    inner = span("raw", 2, "t1-1", attributes={"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 70})
    recording = read_as(FORMAT, export(agent, outer, inner))
    assert [call.prompt_tokens for call in recording.sessions[0].calls] == [70]
    assert texts(recording.sessions[0]) == ["List", "Look"]
    assert recording.facts.prompt_tokens_sum == 70


def test_the_merged_tool_span_of_adk_is_not_counted():
    recording = read_as(FORMAT, export(*TALK, tool(5, name="execute_tool (merged)")))
    assert recording.facts.tool_calls == 1


def test_cached_tokens_beside_the_input_are_added_for_the_whole_instrumentation():
    recording = read_as(FORMAT, export(chat(1, [FIRST], LOOK, 10, 500), chat(2, [FIRST, LOOK, FOUND], LOOK, 600, 510)))
    assert [call.prompt_tokens for call in recording.sessions[0].calls] == [510, 1110]


def test_conversations_join_traces_and_traces_without_one_are_sessions():
    shared = {"gen_ai.conversation.id": "conv"}
    follow = [FIRST, LOOK, FOUND, said("assistant", text("Done")), said("user", text("More"))]
    joined = chat(9, follow, said("assistant", text("Sure")), trace="t2", more=shared)
    first = [chat(1, [FIRST], LOOK, more=shared), *TALK[1:]]
    assert [len(session.calls) for session in read_as(FORMAT, export(*first, joined)).sessions] == [3]
    other = chat(9, [said("user", text("Else"))], LOOK, trace="t3")
    assert len(read_as(FORMAT, export(*TALK, other)).sessions) == 2


def test_calls_of_another_conversation_are_counted_whatever_ids_they_have():
    named = [{"gen_ai.conversation.id": name} for name in ("one", "two")]
    spans = [chat(1, [FIRST], LOOK, more=more, trace=more["gen_ai.conversation.id"]) for more in named]
    assert read_as(FORMAT, export(*spans)).facts.tool_calls == 2
    tools = [tool(2, trace=more["gen_ai.conversation.id"]) for more in named]
    for item in tools:
        item["attributes"].append({"key": "gen_ai.tool.call.id", "value": {"stringValue": "c1"}})
    facts = read_as(FORMAT, export(*spans, *tools)).facts
    assert (facts.tool_calls, facts.tool_results) == (2, 2)


def inference(start: int, first: int, roles: list[str], **rest: Any) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for number, role in enumerate(roles, first):
        attributes[f"llm.input_messages.{number}.message.role"] = role
        attributes[f"llm.input_messages.{number}.message.content"] = f"{role} {number}"
    count = first + len(roles)
    attributes |= {
        "llm.token_count.prompt": 100 + start,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": f"assistant {count}",
        "openinference.span.kind": "LLM",
    }
    return span("ChatCompletion", start, attributes=attributes | rest.pop("more", {}), **rest)


def test_open_inference_is_read_with_calls_and_images():
    more = {
        "llm.input_messages.0.message.contents.0.message_content.type": "image",
        "llm.input_messages.0.message.contents.0.message_content.image.image.url": "data:image/png;base64,AAAA",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "bash",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"command": "ls"}',
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
        "llm.tools.0.tool.json_schema": '{"type": "function", "function": {"name": "bash"}}',
    }
    session = read_as(FORMAT, export(inference(1, 0, ["user"], more=more))).sessions[0]
    assert session.events[0].parts[1] == MediaPart("image/png", 3)
    assert session.events[1].parts[1] == ToolCallPart("bash", {"command": "ls"}, "c1")
    assert session.tools[0].name == "bash"


def test_dropped_first_messages_are_put_back_from_earlier_calls():
    first = inference(1, 0, ["system", "user"])
    later = inference(2, 3, ["user"], droppedAttributesCount=6)
    session = read_as(FORMAT, export(first, later)).sessions[0]
    assert texts(session) == ["user 1", "assistant 2", "user 3", "assistant 4"]
    assert [call.at for call in session.calls] == [1, 3]
    assert session.compactions == ()


def test_a_message_that_lost_its_role_is_lost_and_the_gap_is_told():
    cut = inference(1, 5, ["assistant", "user"])
    cut["attributes"] = [item for item in cut["attributes"] if item["key"] != "llm.input_messages.5.message.role"]
    session = read_as(FORMAT, export(cut)).sessions[0]
    assert texts(session) == ["user 6", "assistant 7"]
    assert "first 6 messages" in session.notes[0]


def test_the_whole_request_is_read_where_the_messages_were_dropped():
    request = {"messages": [{"role": "user", "content": "Whole"}, {"role": "user", "content": "More"}]}
    session = read_as(FORMAT, export(inference(1, 1, ["user"], more={"input.value": json.dumps(request)}))).sessions[0]
    assert texts(session)[:2] == ["Whole", "More"]


def test_a_call_whose_messages_were_cut_keeps_its_place_in_the_curve():
    cut = chat(2, [], LOOK, 130, more={"gen_ai.input.messages": '[{"role": "user", "parts": [{"ty'})
    later = [FIRST, LOOK, FOUND, said("assistant", text("Done"))]
    session = read_as(FORMAT, export(chat(1, [FIRST], LOOK), cut, chat(3, later, LOOK, 150))).sessions[0]
    assert [call.prompt_tokens for call in session.calls] == [100, 130, 150]
    assert [call.at for call in session.calls] == [1, 3, 4]
    assert session.compactions == ()


def test_open_llmetry_attributes_are_read():
    attributes = {
        "llm.request.type": "chat",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "List",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.tool_calls.0.name": "bash",
        "gen_ai.completion.0.tool_calls.0.arguments": "{}",
        "gen_ai.usage.prompt_tokens": 12,
    }
    session = read_as(FORMAT, export(span("openai.chat", 1, attributes=attributes))).sessions[0]
    assert texts(session)[0] == "List"
    assert session.events[1].parts[0].name == "bash"
    assert session.calls[0].prompt_tokens == 12


def test_span_events_of_older_conventions_are_read():
    events = [
        {"name": "gen_ai.user.message", "attributes": [{"key": "content", "value": {"stringValue": "List"}}]},
        {"name": "gen_ai.choice", "attributes": [{"key": "message", "value": {"stringValue": '{"content": "Done"}'}}]},
    ]
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 9}
    session = read_as(FORMAT, export(span("chat", 1, attributes=attributes, events=events))).sessions[0]
    assert texts(session) == ["List", "Done"]


def test_details_in_several_events_are_put_together_and_results_of_text_blocks_are_text():
    returned = said("user", {**RESULT, "response": [{"text": "a.txt"}]})
    details = {
        "gen_ai.system_instructions": [text("Be brief.")],
        "gen_ai.input.messages": [FIRST, LOOK, returned],
        "gen_ai.output.messages": [said("assistant", text("Done"))],
    }
    events = [
        {
            "name": "gen_ai.client.inference.operation.details",
            "attributes": [{"key": key, "value": {"stringValue": json.dumps(listed)}}],
        }
        for key, listed in details.items()
    ]
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 9}
    session = read_as(FORMAT, export(span("chat", 1, attributes=attributes, events=events))).sessions[0]
    assert session.system == (TextPart("Be brief."),)
    assert session.events[2].parts == (ToolResultPart("bash", "a.txt", "c1"),)
    assert texts(session)[-1] == "Done"


def test_events_in_an_attribute_are_read():
    events = [
        {"event.name": "gen_ai.user.message", "content": "List", "role": "user"},
        {"event.name": "gen_ai.choice", "message": {"role": "assistant", "content": "Done"}},
    ]
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 9, "events": json.dumps(events)}
    assert texts(read_as(FORMAT, export(span("chat", 1, attributes=attributes))).sessions[0]) == ["List", "Done"]


@pytest.mark.parametrize("more", [{"refusal": "Sorry"}, {"function_call": {"name": "Sorry", "arguments": "{}"}}])
def test_an_answer_in_an_event_that_has_no_text_but_something_else_is_read(more):
    events = [
        {"event.name": "gen_ai.user.message", "content": "List", "role": "user"},
        {"event.name": "gen_ai.choice", "message": {"role": "assistant", "content": None, **more}},
    ]
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 9, "events": json.dumps(events)}
    (session,) = read_as(FORMAT, export(span("chat", 1, attributes=attributes))).sessions
    assert "Sorry" in str(session.events[-1].parts)


def test_adk_1_requests_are_read():
    request = {
        "config": {"system_instruction": "Be brief.", "tools": [{"function_declarations": [{"name": "bash"}]}]},
        "contents": [{"role": "user", "parts": [{"text": "List"}]}],
    }
    response = {
        "content": {"role": "model", "parts": [{"text": "Hm", "thought": True}, {"function_call": {"name": "bash"}}]}
    }
    attributes = {
        "gen_ai.usage.input_tokens": 5,
        "gcp.vertex.agent.llm_request": json.dumps(request),
        "gcp.vertex.agent.llm_response": json.dumps(response),
    }
    session = read_as(FORMAT, export(span("call_llm", 1, attributes=attributes))).sessions[0]
    assert session.system == (TextPart("Be brief."),)
    assert session.tools[0].name == "bash"
    assert session.events[1].parts[0] == ReasoningPart("Hm")


def test_vercels_spans_are_read_and_the_outer_ones_are_no_calls():
    tool_call = {"type": "tool-call", "toolCallId": "c1", "toolName": "bash", "input": {"command": "ls"}}
    got = {"type": "tool-result", "toolCallId": "c1", "toolName": "bash", "output": "a.txt"}
    asked = {"role": "user", "content": [{"type": "text", "text": "List"}]}
    steps = [asked, {"role": "assistant", "content": [tool_call]}, {"role": "tool", "content": [got]}]
    inner = {"ai.operationId": "ai.streamText.doStream", "ai.usage.promptTokens": 50}
    first = {"ai.prompt.messages": json.dumps([asked]), "ai.response.toolCalls": json.dumps([tool_call])}
    second = {"ai.prompt.messages": json.dumps(steps), "ai.response.text": "Done"}
    outer = span("ai.streamText", 1, attributes={"ai.operationId": "ai.streamText", "ai.usage.promptTokens": 100})
    tool_span = span("ai.toolCall", 3, attributes={"ai.operationId": "ai.toolCall", "ai.toolCall.result": '"a.txt"'})
    calls = [span("do", at, "t1-1", attributes=inner | own) for at, own in ((2, first), (4, second))]
    recording = read_as(FORMAT, export(outer, calls[0], tool_span, calls[1]))
    session = recording.sessions[0]
    assert [call.prompt_tokens for call in session.calls] == [50, 50]
    assert session.events[1].parts == (ToolCallPart("bash", {"command": "ls"}, "c1"),)
    assert session.events[2].parts == (ToolResultPart("bash", "a.txt", "c1"),)
    assert (texts(session)[3], recording.facts.tool_calls) == ("Done", 1)


def test_ids_that_are_positions_pair_by_order():
    call = {**CALL, "id": "bash_1"}
    result = {**RESULT, "id": "bash_0"}
    steps = [said("assistant", text("Look"), call), said("user", result)]
    session = read_as(FORMAT, export(chat(1, [FIRST], steps[0]), chat(2, [FIRST, *steps], LOOK))).sessions[0]
    tool_call, answered = session.events[1].parts[1], session.events[2].parts[0]
    assert tool_call.id == answered.call_id
    assert answered.name == "bash"


def test_streamed_pieces_before_the_final_message_are_left_out():
    pieces = [
        said("assistant", text("Do")) | {"finish_reason": ""},
        said("assistant", text("Done")) | {"finish_reason": "stop"},
    ]
    item = chat(1, [FIRST], LOOK, more={"gen_ai.output.messages": json.dumps(pieces)})
    assert texts(read_as(FORMAT, export(item)).sessions[0]) == ["List", "Done"]


def test_results_behind_the_last_call_are_in_the_log():
    session = read_as(FORMAT, export(chat(1, [FIRST], LOOK), tool(2, "b.txt"))).sessions[0]
    assert session.events[-1].parts == (ToolResultPart("bash", "b.txt", "c1"),)


def test_spans_without_content_still_give_the_curve():
    bare = [
        span("chat", at, attributes={"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": at}) for at in (3, 5)
    ]
    session = read_as(FORMAT, export(bare[0], tool(4, ""), bare[1])).sessions[0]
    assert [(call.at, call.prompt_tokens) for call in session.calls] == [(0, 3), (2, 5)]
    assert session.notes[0] == NO_CONTENT


def test_what_answers_without_content_cost_is_not_called_text_of_the_model():
    calls = [
        span("chat", 2 * at, attributes={"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 900 + 250 * at})
        for at in range(1, 6)
    ]
    session = read_as(FORMAT, export(*calls)).sessions[0]
    report = context_report(session, Facts.of(session), 4)
    assert {name for name, tokens in zip(report.classes, report.now, strict=True) if tokens} - {"unexplained"} == {
        "not in this file", "messages without content"
    }  # fmt: skip


def test_flat_and_console_and_jaeger_exports_are_read():
    phoenix = {
        "name": "ChatCompletion",
        "context.trace_id": "t",
        "context.span_id": "s",
        "start_time": "2026-03-01T10:00:00Z",
        "attributes.openinference.span.kind": "LLM",
        "attributes.llm.token_count.prompt": 42,
        "attributes.llm.input_messages": [{"message.role": "user", "message.content": "List"}],
    }
    console = {
        "name": "chat",
        "context": {"trace_id": "0xt", "span_id": "0xs"},
        "start_time": "2026-03-01T10:00:00Z",
        "attributes": {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 42},
    }
    tags = [{"key": "gen_ai.operation.name", "value": "chat"}, {"key": "gen_ai.usage.input_tokens", "value": 42}]
    jaeger = {
        "data": [{"traceID": "t", "spans": [{"traceID": "t", "spanID": "s", "operationName": "chat", "tags": tags}]}]
    }
    for item in ([phoenix], console, jaeger):
        assert read_as(FORMAT, item).sessions[0].calls[0].prompt_tokens == 42
    assert texts(read_as(FORMAT, [phoenix]).sessions[0]) == ["List"]


def test_a_span_exported_twice_counts_once():
    recording = read_as(FORMAT, lines(export(*TALK), export(TALK[0])))
    assert (recording.facts.model_calls, recording.notes.folded) == (2, 1)


def test_traces_without_a_model_are_damaged():
    with pytest.raises(DamagedRecording, match="no calls"):
        read_as(FORMAT, export(span("GET /", 1)))


def test_other_objects_are_not_taken():
    assert not recognises(FORMAT, {"data": [{"role": "user"}]})
    assert not recognises(FORMAT, lines({"type": "session.start", "data": {}}))


def test_traces_that_go_on_with_each_other_are_one_conversation():
    last = chat(
        4, [FIRST, LOOK, FOUND, said("assistant", text("Done")), said("user", text("Thanks"))], LOOK, trace="t3"
    )
    again = (
        chat(11, [FIRST], LOOK, trace="t4"),
        chat(12, [FIRST, LOOK, FOUND], said("assistant", text("Done")), trace="t5"),
    )
    one, two = read_as(
        FORMAT,
        export(
            chat(1, [FIRST], LOOK),
            chat(3, [FIRST, LOOK, FOUND], said("assistant", text("Done")), trace="t2"),
            last,
            *again,
        ),
    ).sessions
    assert [len(session.calls) for session in (one, two)] == [3, 2]
    assert one.notes == ("3 traces were put together as one conversation, which none of them names.",)


def test_a_short_answer_that_comes_again_does_not_join_traces():
    def asked(*words: str) -> list[Any]:
        return [said(("user", "assistant")[at % 2], text(word)) for at, word in enumerate(words)]

    done = said("assistant", text("Done"))
    other = chat(5, asked("Sing", "Done", "Dance"), done, trace="t2")
    assert len(read_as(FORMAT, export(chat(1, asked("List"), done), other)).sessions) == 2
    more = chat(5, asked("In short: listed", "Done", "Dance", "Done", "Rest"), done, trace="t2")
    joined = read_as(FORMAT, export(chat(1, asked("List", "Look", "Dance"), done), more)).sessions
    assert [len(session.calls) for session in joined] == [2]


def test_a_trace_that_repeats_an_unanswered_request_goes_on():
    failed = chat(1, [FIRST], None, trace="t0")
    session = read_as(FORMAT, export(failed, chat(2, [FIRST], LOOK))).sessions[0]
    assert [call.response for call in session.calls] == [None, 1]


@pytest.mark.parametrize(
    ("service", "agent"),
    [
        ("explorer", "explorer"),
        ("unknown_service:python", ""),
        ("unknown_service", ""),
        ("unknown_services_finder", "unknown_services_finder"),
    ],
)
def test_a_program_without_a_name_of_its_own_is_no_agent(service, agent):
    (read,) = read_as(FORMAT, export(chat(1, [FIRST], LOOK), service=service)).sessions
    assert (read.agent, read.title) == (agent, "List")


def test_traces_without_content_of_one_service_are_one_session():
    usage = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 7}
    spans = [span("chat", start, trace=f"t{start}", attributes=usage) for start in (1, 2, 3)]
    sessions = read_as(FORMAT, export(*spans)).sessions
    assert [len(session.calls) for session in sessions] == [3]


def test_answers_whose_requests_were_lost_are_one_session_that_says_so():
    """As OpenLLMetry 0.62 writes them where it cannot store an image of the request."""
    spans = [chat(start, [], LOOK, 100 * start, trace=f"t{start}") for start in (1, 2, 3)]
    for item in spans:
        item["attributes"] = [one for one in item["attributes"] if one["key"] != "gen_ai.input.messages"]
        tools = {"stringValue": json.dumps([{"type": "function", "name": "bash"}])}
        item["attributes"].append({"key": "gen_ai.tool.definitions", "value": tools})
    (session,) = read_as(FORMAT, export(*spans)).sessions
    assert [(call.at, call.prompt_tokens) for call in session.calls] == [(0, 100), (1, 200), (2, 300)]
    assert [tool.name for tool in session.tools] == ["bash"]
    assert ANSWERS_ONLY in session.notes


def test_two_spans_of_one_response_are_one_call():
    sdk = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 100, "gen_ai.response.id": "r1"}
    recording = read_as(
        FORMAT,
        export(span("sdk", 1, trace="t2", attributes=sdk), chat(2, [FIRST], LOOK, more={"gen_ai.response.id": "r1"})),
    )
    assert recording.facts.model_calls == 1
    assert texts(recording.sessions[0]) == ["List", "Look"]
    assert recording.notes.skipped == {"second model span of one response": 1}


def test_an_id_that_every_response_has_tells_nothing():
    same = {"gen_ai.response.id": "r"}
    spans = (chat(1, [FIRST], LOOK, more=same), chat(3, [FIRST, LOOK, FOUND], LOOK, more=same), chat(5, [FIRST], LOOK))
    assert read_as(FORMAT, export(*spans)).facts.model_calls == 3


def test_a_run_of_langchain_and_the_span_of_its_client_are_one_call():
    message = {"response_metadata": {"id": "chatcmpl-1"}}
    answers = ({"generations": [[{"message": message}]]}, {"id": "chatcmpl-1", "choices": []})
    attributes = {"openinference.span.kind": "LLM", "llm.token_count.prompt": 9}
    spans = [
        span(f"s{at}", at, trace=f"t{at}", attributes={**attributes, "output.value": json.dumps(answer)})
        for at, answer in enumerate(answers, start=1)
    ]
    assert read_as(FORMAT, export(*spans)).facts.model_calls == 1


def test_messages_may_be_log_records_of_their_own():
    usage = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 7}
    call = span("chat", 1, attributes=usage)

    def record(name: str, **body: str) -> dict[str, Any]:
        values = [{"key": key, "value": {"stringValue": item}} for key, item in body.items()]
        own = {"traceId": "t1", "spanId": "t1-1", "eventName": name}
        return {**own, "body": {"kvlistValue": {"values": values}}}

    records = [record("gen_ai.user.message", content="List"), record("gen_ai.choice", message='{"content": "Look"}')]
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}
    recording = read_as(FORMAT, lines(logs, export(call)))
    assert texts(recording.sessions[0]) == ["List", "Look"]
    assert recording.notes.skipped == {}


def any_value(item: Any) -> dict[str, Any]:
    """A value as a log record has it."""
    if isinstance(item, str):
        return {"stringValue": item}
    if isinstance(item, list):
        return {"arrayValue": {"values": [any_value(inner) for inner in item]}}
    return {"kvlistValue": {"values": [{"key": key, "value": any_value(inner)} for key, inner in item.items()]}}


def test_messages_of_vertex_ai_have_the_roles_of_their_names_and_googles_parts():
    usage = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 7}
    calls = export(span("chat", 1, attributes=usage), span("chat", 2, attributes=usage))
    asked = {"function_call": {"name": "read", "args": {"path": "a"}}}
    begin = [
        ("gen_ai.system.message", {"role": "user", "content": [{"text": "Be brief."}]}),
        ("gen_ai.user.message", {"role": "user", "content": [{"text": "Read a"}]}),
    ]
    then = [
        ("gen_ai.assistant.message", {"role": "model", "content": [asked]}),
        ("gen_ai.tool.message", {"role": "user", "id": "read_0", "content": {"output": "x = 1"}}),
    ]
    answers = [("gen_ai.choice", {"message": {"role": "model", "content": [part]}}) for part in (asked, {"text": "Ok"})]
    records = [
        {"traceId": "t1", "spanId": f"t1-{number}", "eventName": name, "body": any_value(body)}
        for number, said in ((1, [*begin, answers[0]]), (2, [*begin, *then, answers[1]]))
        for name, body in said
    ]
    (session,) = read_as(FORMAT, lines(calls, {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]})).sessions
    assert session.system == (TextPart("Be brief."),)
    _, call, result, _ = (event.parts[0] for event in session.events)
    assert (call.name, call.arguments) == ("read", {"path": "a"})
    assert (result.content, result.call_id) == ({"output": "x = 1"}, call.id)
    assert texts(session) == ["Read a", "", "", "Ok"]


def test_log_records_without_content_are_as_if_they_were_not_there():
    """The events that instrumentations send by default, with the recording of content switched off."""
    usage = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 7}
    calls = export(span("chat", 1, attributes=usage), span("chat", 2, attributes=usage))
    function = {"kvlistValue": {"values": [{"key": "name", "value": {"stringValue": "read"}}]}}
    call = {"kvlistValue": {"values": [{"key": "function", "value": function}]}}
    named = [{"key": "tool_calls", "value": {"arrayValue": {"values": [call]}}}]
    records = [
        {"traceId": "t1", "spanId": f"t1-{number}", "eventName": name, "body": {"kvlistValue": {"values": values}}}
        for number in (1, 2)
        for name, values in (
            ("gen_ai.user.message", []),
            ("gen_ai.assistant.message", named),
            ("gen_ai.tool.message", [{"key": "id", "value": {"stringValue": "c1"}}]),
            ("gen_ai.choice", [{"key": "message", "value": {"kvlistValue": {"values": named}}}]),
        )
    ]
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}
    (alone,), (with_logs,) = (read_as(FORMAT, some).sessions for some in (calls, lines(calls, logs)))
    assert with_logs.notes[0] == NO_CONTENT
    assert [event.parts for event in with_logs.events] == [event.parts for event in alone.events]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"gen_ai.input.messages": '[{"role": "us'}, "the JSON in gen_ai.input.messages is cut or damaged"),
        ({"gen_ai.output.messages": "[{"}, "the JSON in gen_ai.output.messages is cut or damaged"),
        (
            {"gen_ai.usage.input_tokens": "9" * 21},
            f"gen_ai.usage.input_tokens is '{'9' * 21}', which is not a count of tokens",
        ),
    ],
)
def test_an_attribute_that_cannot_be_read_is_told(more, reason):
    content = lines(export(*TALK), export(chat(9, [FIRST], LOOK, more=more)))
    notes = read_as(FORMAT, content).notes
    assert [(problem.message, problem.line) for problem in notes.problems] == [(f"span t1-9: {reason}", 2)]
    with pytest.raises(DamagedRecording, match="line 2"):
        read_as(FORMAT, content, strict=True)


def test_dropped_attributes_are_told():
    session = read_as(FORMAT, export(chat(1, [FIRST], LOOK, droppedAttributesCount=12))).sessions[0]
    assert session.notes == ("The recorder dropped 12 attributes of the spans, the oldest first.",)


def test_the_messages_of_one_response_are_one_answer():
    def message(place: str, number: int, role: str, **rest: Any) -> dict[str, Any]:
        given = {"role": role, **rest}
        return {f"llm.{place}_messages.{number}.message.{key}": item for key, item in given.items()}

    call = {"tool_calls.0.tool_call.id": "c1", "tool_calls.0.tool_call.function.name": "ls"}
    attributes = {"openinference.span.kind": "LLM", "llm.token_count.prompt": 9}
    user, look, ask = message("input", 0, "user", content="List"), {"content": "Look"}, call
    first = {
        **attributes,
        **user,
        **message("output", 0, "assistant", **look),
        **message("output", 1, "assistant", **ask),
    }
    tool_result = message("input", 3, "tool", content="a.txt", tool_call_id="c1")
    sent = {
        **user,
        **message("input", 1, "assistant", **look),
        **message("input", 2, "assistant", **ask),
        **tool_result,
    }
    recording = read_as(FORMAT, export(span("a", 1, attributes=first), span("b", 2, attributes={**attributes, **sent})))
    assert [len(event.parts) for event in recording.sessions[0].events] == [1, 2, 1]
    assert recording.facts.tool_calls == 1


def test_a_call_inside_an_agent_inside_a_call_is_one_more():
    agent = span("invoke_agent helper", 2, "t1-1", attributes={"gen_ai.operation.name": "invoke_agent"})
    recording = read_as(FORMAT, export(chat(1, [FIRST], LOOK), agent, chat(3, [FIRST], LOOK, 70, parent="t1-2")))
    assert (recording.facts.model_calls, recording.facts.prompt_tokens_sum) == (2, 170)


def test_the_oldest_spans_of_adk_have_usage_in_the_response_and_tools_in_the_name():
    request = {
        "contents": [{"role": "user", "parts": [{"text": "List"}]}],
        "config": {"system_instruction": "Be brief."},
    }
    part = {"function_call": {"name": "bash", "args": {}}}
    usage = {"prompt_token_count": 90, "cached_content_token_count": 30, "candidates_token_count": 5}
    response = {"content": {"role": "model", "parts": [part]}, "usage_metadata": usage}
    key = "gcp.vertex.agent.llm_re"
    call = span("call_llm", 1, attributes={f"{key}quest": json.dumps(request), f"{key}sponse": json.dumps(response)})
    empty = {f"{key}quest": "{}", f"{key}sponse": "{}", "gcp.vertex.agent.tool_response": "a.txt"}
    tools = [span(name, 2 + at, attributes=empty) for at, name in enumerate(("tool_response [bash]", "tool_response"))]
    recording = read_as(FORMAT, export(call, *tools))
    (session,) = recording.sessions
    assert [(step.prompt_tokens, step.cached_tokens, step.output_tokens) for step in session.calls] == [(90, 30, 5)]
    assert session.events[2].parts == (ToolResultPart("bash", "a.txt", "call-1-0"),)
    assert (recording.facts.tool_calls, recording.facts.tool_results) == (1, 1)


def test_content_that_adk_kept_back_is_taken_from_the_span_around():
    inner = span("generate_content", 2, "t1-1", attributes={"gen_ai.operation.name": "generate_content"})
    inner["events"] = [
        {"name": name, "attributes": [{"key": "event.body", "value": {"stringValue": '{"content": "<elided>"}'}}]}
        for name in ("gen_ai.user.message", "gen_ai.choice")
    ]
    session = read_as(FORMAT, export(chat(1, [FIRST], LOOK), inner)).sessions[0]
    assert texts(session) == ["List", "Look"]


def test_blocks_of_anthropic_inside_a_prompt_are_calls_results_and_reasoning():
    used = {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "ls"}}
    asked = json.dumps([{"type": "thinking", "thinking": "Hm", "signature": "QUJD"}, used])
    blocks = json.dumps([{"type": "tool_result", "tool_use_id": "c1", "content": "a.txt"}])
    prompts = {"0.role": "user", "0.content": "List", "1.role": "assistant", "1.content": asked}
    prompts |= {"2.role": "user", "2.content": blocks}
    attributes = {f"gen_ai.prompt.{key}": item for key, item in prompts.items()}
    usage = {"llm.request.type": "completion", "gen_ai.usage.prompt_tokens": 9}
    session = read_as(FORMAT, export(span("anthropic.chat", 1, attributes=attributes | usage))).sessions[0]
    assert session.events[1].parts == (ReasoningPart("Hm", 3), ToolCallPart("bash", {"command": "ls"}, "c1"))
    assert session.events[2].parts == (ToolResultPart("bash", "a.txt", "c1"),)


def test_wrong_types_anywhere_are_survived():
    check_hostile(FORMAT, (lines(bad) for bad in spoiled(export(TALK[0], inference(2, 0, ["user"])))))
    for bad in spoiled([FIRST, LOOK, FOUND]):
        check_hostile(FORMAT, [lines(export(chat(1, bad, LOOK), chat(2, [FIRST], bad)))])


def test_the_facts_of_the_samples_are_equal():
    check_sample_facts(FORMAT, "otel")


TOO_LONG = "prompt is too long: 208310 tokens > 200000 maximum"
RAISED = {"name": "exception", "attributes": [{"key": "exception.message", "value": value(TOO_LONG)}]}


@pytest.mark.parametrize(
    "more",
    [
        {"status": {"code": 2, "message": TOO_LONG}},
        {"events": [RAISED]},
        {"more": {"error.type": "context_length_exceeded"}},
    ],
)
@pytest.mark.parametrize("has_content", [True, False])
def test_a_span_that_the_provider_refused_as_too_long_is_no_call(more, has_content):
    asked = [FIRST, LOOK, FOUND, said("user", text("More"))]
    refused = chat(3, asked, said("assistant"), **more)
    counted = ("gen_ai.usage.input_tokens", "gen_ai.usage.cache_read.input_tokens", "gen_ai.output.messages")
    missing = counted if has_content else (*counted, "gen_ai.input.messages")
    refused["attributes"] = [item for item in refused["attributes"] if item["key"] not in missing]
    answered = chat(1, [FIRST], LOOK)
    if not has_content:
        answered["attributes"] = [item for item in answered["attributes"] if not item["key"].endswith(".messages")]
    session = read_as(FORMAT, json.dumps(export(answered, refused)).encode()).sessions[0]
    assert [call.prompt_tokens for call in session.calls] == [100]
    assert len(session.refused) == 1


def test_a_span_that_failed_for_another_reason_was_not_refused():
    failed = chat(3, [FIRST, LOOK, FOUND], said("assistant"), status={"code": 2, "message": "overloaded"})
    assert read_as(FORMAT, json.dumps(export(chat(1, [FIRST], LOOK), failed)).encode()).sessions[0].refused == ()


def test_the_status_of_a_flat_span_says_that_it_was_refused():
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps([FIRST])}
    context = {"trace_id": "t1", "span_id": "a"}
    flat = {"name": "chat", "context": context, "attributes": attributes, "start_time": "2026-03-01T10:00:00Z"}
    (session,) = read_as(FORMAT, json.dumps([{**flat, "status_message": TOO_LONG}]).encode()).sessions
    assert (session.calls, session.refused) == ((), (1,))


def test_a_refused_request_beside_the_conversation_is_survived():
    aside = chat(2, [said("user", text("Summarise"))], said("assistant"), status={"code": 2, "message": TOO_LONG})
    aside["attributes"] = [item for item in aside["attributes"] if "usage" not in item["key"]]
    file = export(chat(1, [FIRST], LOOK), aside, chat(3, [FIRST, LOOK, FOUND], said("assistant", text("Done"))))
    session = read_as(FORMAT, json.dumps(file).encode()).sessions[0]
    assert (len(session.calls), session.refused) == (2, ())


USAGE = {"input": 20, "cache_read_input_tokens": 70, "input_cached_tokens": 10, "output": 5, "total": 105}
ASKED = [{"role": "user", "content": "List"}]
MADE = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
LOOKED = {"role": "assistant", "content": None, "tool_calls": [MADE]}
RUN = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "HumanMessage"], "kwargs": ASKED[0]}
MADE_RUN = {**RUN, "id": [*RUN["id"][:-1], "AIMessage"], "kwargs": {"content": "", "tool_calls": [MADE]}}
GENAI_USAGE = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 5}


@pytest.mark.parametrize(
    "attributes",
    [
        {
            **GENAI_USAGE,
            "gen_ai.request.model": "m-1",
            "request_data": json.dumps({"model": "m-1", "messages": ASKED}),
            "response_data": json.dumps({"message": LOOKED, "usage": {"prompt_tokens": 100}}),
        },
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.model.name": "m-1",
            "langfuse.observation.input": json.dumps(ASKED),
            "langfuse.observation.output": json.dumps(LOOKED),
            "langfuse.observation.usage_details": json.dumps(USAGE),
        },
        {
            "mlflow.spanType": json.dumps("CHAT_MODEL"),
            "gen_ai.request.model": "m-1",
            "mlflow.spanInputs": json.dumps({"messages": ASKED}),
            "mlflow.spanOutputs": json.dumps({"choices": [{"message": LOOKED}]}),
            "mlflow.chat.tokenUsage": json.dumps({"input_tokens": 100, "output_tokens": 5, "total_tokens": 105}),
        },
        {
            **GENAI_USAGE,
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "m-1",
            "gen_ai.prompt": json.dumps({"messages": [[RUN]]}),
            "gen_ai.completion": json.dumps({"generations": [[{"text": "", "message": MADE_RUN}]]}),
        },
    ],
    ids=["Logfire", "Langfuse", "MLflow", "LangSmith"],
)
def test_sdks_with_the_whole_request_in_one_attribute(attributes):
    recording = recordings.read(lines(export(span("a call", 1, attributes=attributes))))
    session = recording.sessions[0]
    [call] = session.calls
    assert (call.at, call.response, call.prompt_tokens, call.output_tokens, call.model) == (1, 1, 100, 5, "m-1")
    assert session.events[0].parts == (TextPart("List"),)
    assert session.events[1].parts == (ToolCallPart("bash", {}, "c1"),)
    assert recording.notes.problem_count == 0


def test_mlflows_input_tokens_hold_the_cached_ones():
    usage = {"input_tokens": 100, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 20, "output_tokens": 5}
    attributes = {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.chat.tokenUsage": json.dumps(usage)}
    attributes |= {"mlflow.spanInputs": json.dumps({"messages": ASKED})}
    [call] = read_as(FORMAT, export(span("a call", 1, attributes=attributes))).sessions[0].calls
    assert (call.prompt_tokens, call.cached_tokens, call.cache_write_tokens, call.output_tokens) == (100, 60, 20, 5)


def test_whole_requests_of_the_responses_api_have_their_items():
    listed = [*ASKED, {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": "{}"}]
    listed.append({"type": "function_call_output", "call_id": "c1", "output": "a.txt"})
    request = {"instructions": "Be brief.", "input": listed}
    answer = {"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Do"}]}]}
    data = {"request_data": json.dumps(request), "response_data": json.dumps(answer)}
    session = read_as(FORMAT, export(span("a call", 1, attributes={**GENAI_USAGE, **data}))).sessions[0]
    assert session.system == (TextPart("Be brief."),)
    assert [event.parts for event in session.events] == [
        (TextPart("List"),),
        (ToolCallPart("bash", {}, "c1"),),
        (ToolResultPart("bash", "a.txt", "c1"),),
        (TextPart("Do"),),
    ]


def test_a_streamed_answer_of_logfire_is_its_text():
    data = {"request_data": json.dumps({"messages": ASKED})}
    data |= {"response_data": json.dumps({"combined_chunk_content": "Do", "chunk_count": 2})}
    session = read_as(FORMAT, export(span("a call", 1, attributes={**GENAI_USAGE, **data}))).sessions[0]
    assert texts(session) == ["List", "Do"]


@pytest.mark.parametrize(
    ("part", "read"),
    [
        ({"type": "binary", "media_type": "image/png", "content": "AAAA"}, MediaPart("image/png", size=3)),
        ({"type": "image-url", "url": "https://a.test/a.png"}, MediaPart(uri="https://a.test/a.png")),
    ],
)
def test_pictures_of_older_pydantic_ai_are_no_text(part: dict[str, Any], read: MediaPart):
    asked = chat(1, [said("user", text("List"), part)], LOOK)
    assert read_as(FORMAT, export(asked)).sessions[0].events[0].parts == (TextPart("List"), read)


def test_sums_and_details_of_pydantic_ai_are_no_unknown_counts():
    sums = {"gen_ai.aggregated_usage.input_tokens": 250, "gen_ai.aggregated_usage.details.cache_read_tokens": 90}
    agent = span("invoke_agent a", 4, attributes={"gen_ai.operation.name": "invoke_agent", **sums})
    more = {"gen_ai.usage.details.text_prompt_tokens": 100, "pydantic_ai.cache.established_tokens": 90}
    recording = recordings.read(lines(export(chat(1, [FIRST], LOOK, more=more), agent)))
    assert (recording.notes.problem_count, recording.facts.prompt_tokens_sum) == (0, 100)


def test_claude_codes_own_spans_count_what_was_cached_apart():
    counts = {"input_tokens": 2, "cache_read_tokens": 800, "cache_creation_tokens": 70, "output_tokens": 9}
    attributes = {"span.type": "llm_request", "session.id": "s1", "gen_ai.request.model": "m-1", **counts}
    tool = span("claude_code.tool", 2, attributes={"span.type": "tool", "session.id": "s1"})
    recording = recordings.read(lines(export(span("claude_code.llm_request", 1, attributes=attributes), tool)))
    [call] = recording.sessions[0].calls
    assert (call.prompt_tokens, call.cached_tokens, call.cache_write_tokens, call.output_tokens) == (872, 800, 70, 9)
    assert (recording.sessions[0].source_id, recording.notes.problem_count) == ("s1", 0)
    look = FORMAT.first_look(ByteSource.open(lines(export(span("x", 1, attributes=attributes)), export(tool))))
    assert list(look.prompt_tokens) == [872]


def test_vercels_counts_of_what_was_cached_are_known():
    details = {"noCacheTokens": 30, "cacheReadTokens": 60, "cacheWriteTokens": 10}
    attributes = {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.prompt.messages": json.dumps(ASKED),
        "ai.usage.inputTokens": 100,
        **{f"ai.usage.inputTokenDetails.{name}": count for name, count in details.items()},
    }
    recording = recordings.read(lines(export(span("ai.generateText.doGenerate", 1, attributes=attributes))))
    [call] = recording.sessions[0].calls
    assert (call.prompt_tokens, call.cached_tokens, call.cache_write_tokens) == (100, 60, 10)
    assert recording.notes.problem_count == 0


def test_blocks_of_bedrock_in_span_events_are_parts():
    def said(name: str, *blocks: Any, key: str = "content") -> dict[str, Any]:
        return {"name": name, "attributes": [{"key": key, "value": value(json.dumps(blocks))}]}

    made = {"toolUse": {"toolUseId": "t1", "name": "bash", "input": {"command": "ls"}}}
    given = {"toolResult": {"toolUseId": "t1", "status": "error", "content": [{"text": "no"}, {"json": {"code": 1}}]}}
    thought = {"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "AAAA"}}}
    first = span("chat", 1, attributes={"gen_ai.operation.name": "chat", **GENAI_USAGE})
    first["events"] = [said("gen_ai.user.message", {"text": "List"})]
    first["events"].append(said("gen_ai.choice", thought, made, key="message"))
    then = span("chat", 3, attributes={"gen_ai.operation.name": "chat", **GENAI_USAGE})
    then["events"] = [said("gen_ai.user.message", {"text": "List"}), said("gen_ai.assistant.message", thought, made)]
    then["events"] += [said("gen_ai.tool.message", given), said("gen_ai.choice", {"text": "Done"}, key="message")]
    session = read_as(FORMAT, export(first, then)).sessions[0]
    assert session.events[1].parts == (ReasoningPart("Hm", 3), ToolCallPart("bash", {"command": "ls"}, "t1"))
    assert session.events[2].parts == (ToolResultPart("bash", 'no\n{"code":1}', "t1", True),)
    assert texts(session) == ["List", "Hm", "", "Done"]


def test_spans_of_unknown_names_are_not_said_to_hold_no_content():
    session = read_as(FORMAT, export(span("a call", 1, attributes={**GENAI_USAGE, "own.prompt": "List"}))).sessions[0]
    assert "looked for under the names that are known here" in session.notes[1]


def test_a_conversation_is_named_by_its_users_first_words_and_has_the_agent_around_it() -> None:
    agent = span("invoke_agent", 0, attributes={"gen_ai.agent.name": "reviewer"})
    around = span("workflow", 1, agent["spanId"])
    asked = chat(2, [said("user", text("Review the parser,\nplease"))], LOOK, parent=around["spanId"])
    (session,) = read_as(FORMAT, export(agent, around, asked)).sessions
    assert (session.title, session.agent) == ("Review the parser, please", "reviewer")
    (alone,) = read_as(FORMAT, export(chat(2, [FIRST], LOOK, parent="gone"))).sessions
    assert (alone.title, alone.agent) == ("List", "explorer")
    (silent,) = read_as(FORMAT, export(chat(2, [], said("assistant")))).sessions
    assert (silent.title, silent.agent) == ("explorer", "explorer")


MESSAGES = [FIRST, LOOK, FOUND, said("user", text('],"parts":[')), said("user", text("x")), "no message"]


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(MESSAGES), max_size=4),
            st.sampled_from(["{}", "{},", "{} ", " {}", "{},5]", "{}]", "[{}]"]),
            st.booleans(),
        ),
        max_size=6,
    )
)
def test_a_request_is_read_the_same_whatever_was_read_before_it(requests):
    texts = RepeatedTexts()
    for number, (messages, around, cut) in enumerate(requests):
        body = around.replace("{}", json.dumps(messages))
        attributes = {"gen_ai.input.messages": body[: -1 - number] if cut else body}
        again, alone = (TraceSpan("", "", "", "", None, attributes) for _ in range(2))
        assert read_content(again, texts, "c") == read_content(alone, RepeatedTexts(), "")
        assert again.damaged == alone.damaged


def test_messages_that_a_request_repeats_are_read_once():
    texts, bodies = RepeatedTexts(), [json.dumps([FIRST, LOOK, FOUND][:count]) for count in (1, 3)]
    first, second = (
        read_content(TraceSpan("", "", "", "", None, {"gen_ai.input.messages": body}), texts, "c").messages
        for body in bodies
    )
    assert second[0] is first[0]
    assert len(second) == 3
