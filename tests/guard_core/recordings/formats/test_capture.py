"""Captured requests: every request is written once, and read back as it was sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard_core.events import TextPart, ToolCallPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.recordings.formats.capture.format import FORMAT
from guard_core.recordings.formats.capture.lines import FULL_EVERY, LISTS, NAME, VERSION, Expander, Shortener
from guard_core.rules import explain
from guard_core.sessions import ToolDefinition
from tests.guard_core.recordings.checks import check_hostile, lines, read_as, recognises, spoiled

HEAD = {"format": NAME, "version": VERSION, "client": "test"}
TOOL = {"name": "ls", "description": "List", "parameters": {"type": "object"}}


def call(api: str, request: dict[str, Any], response: Any, **more: Any) -> dict[str, Any]:
    return {"id": 0, "api": api, "path": "/", "status": 200, "request": request, "response": response, **more}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.lists(st.sampled_from("uvw"), max_size=6)), max_size=70))
def test_whatever_is_written_is_read_back(requests: list[tuple[str, list[str]]]) -> None:
    shortener, expander = Shortener(), Expander()
    for system, texts in requests:
        request = {"system": system, "messages": [user(text) for text in texts], "model": "m"}
        line = json.loads(json.dumps({**shortener.shorten("anthropic", request), "api": "anthropic"}))
        shortener.written("anthropic", request)
        assert expander.expand(line) == request


def test_a_long_conversation_is_written_about_once() -> None:
    shortener, size, messages = Shortener(), 0, []
    for number in range(FULL_EVERY):
        messages.append(user(f"{number} {'x' * 1000}"))
        request = {"messages": list(messages), "tools": [TOOL] * 100}
        size += len(json.dumps(shortener.shorten("chat", request)))
        shortener.written("chat", request)
    assert size < 2 * len(json.dumps(request))


def test_geminis_requests_and_streams_are_read() -> None:
    contents = [
        {"role": "user", "parts": [{"text": "hello"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {"path": "."}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {"output": "a.txt"}}}]},
    ]
    system = {"parts": [{"text": "Be brief."}]}
    usage = {"promptTokenCount": 100, "cachedContentTokenCount": 40, "candidatesTokenCount": 5, "thoughtsTokenCount": 2}
    pieces = [
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "thinking", "thought": True}]}}]},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "Do"}]}}]},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "ne"}]}}], "usageMetadata": usage},
    ]
    stream = "".join(f"data: {json.dumps(piece)}\n\n" for piece in pieces)
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tool = {"name": "ls", "description": "List", "parametersJsonSchema": schema}  # as Gemini CLI spells it
    request = {"contents": contents, "systemInstruction": system, "tools": [{"functionDeclarations": [tool]}]}
    path = "/v1beta/models/gemini-2.5-pro:streamGenerateContent"
    for response in (stream, pieces):
        (session,) = read_as(FORMAT, lines(HEAD, call("gemini", request, response, path=path))).sessions
        (asked,) = session.calls
        assert (asked.model, asked.prompt_tokens, asked.cached_tokens, asked.output_tokens) == (
            "gemini-2.5-pro",
            100,
            40,
            7,
        )
        assert session.system == (TextPart("Be brief."),)
        assert session.tools == (ToolDefinition("ls", "List", schema),)
        kinds = [type(part) for event in session.events for part in event.parts]
        assert kinds[:3] == [TextPart, ToolCallPart, ToolResultPart]
        assert session.events[-1].parts[-1] == TextPart("Done")


def test_tools_that_codex_sends_as_an_item_are_the_requests_tools() -> None:
    added = {"type": "additional_tools", "tools": [{"type": "namespace", "name": "functions", "tools": [TOOL]}]}
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
    response = {"id": "r", "object": "response", "output": [answer], "usage": {"input_tokens": 9, "output_tokens": 1}}
    recording = read_as(FORMAT, lines(HEAD, call("responses", {"model": "m", "input": [added, message]}, response)))
    assert [tool.name for tool in recording.sessions[0].tools or ()] == ["ls"]
    assert not recording.notes.problems


def test_calls_of_several_apis_are_sessions_of_one_recording() -> None:
    chat = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}}], "usage": {"prompt_tokens": 7}}
    claude = {"id": "m", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "b"}]}
    claude["usage"] = {"input_tokens": 3, "cache_read_input_tokens": 2, "output_tokens": 1}
    recording = read_as(
        FORMAT,
        lines(
            HEAD,
            call("chat", {"messages": [user("x")]}, chat),
            call("anthropic", {"messages": [user("y")]}, claude, id=1),
            call("chat", {"messages": [user("x")]}, {"error": {}}, id=2, status=529),
        ),
    )
    assert (recording.facts.model_calls, recording.facts.prompt_tokens_sum, recording.facts.prompt_tokens_max) == (
        2,
        12,
        7,
    )
    assert len(recording.sessions) == 2
    assert {session.title for session in recording.sessions} == {"x", "y"}  # by which they are told apart


def test_a_request_that_the_provider_found_too_long_is_refused() -> None:
    error = {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "prompt is too long: 212345 tokens"},
    }
    request = {"messages": [user("go")], "system": "Be brief.", "model": "m", "max_tokens": 9}
    recording = read_as(FORMAT, lines(HEAD, call("anthropic", request, error, status=400)))
    assert [(session.calls, session.refused) for session in recording.sessions] == [((), (1,))]


def test_a_request_that_begins_like_a_missing_one_is_said_and_left_out() -> None:
    lost = {**call("chat", {"messages": [user("c")]}, {}, id=7), "like": 6, "kept": 1, "same": []}
    recording = read_as(FORMAT, lines(HEAD, call("chat", {"messages": [user("x")]}, {}), lost), strict=False)
    assert "it begins like a request that is not in the file" in str(recording.notes.problems)
    assert len(recording.sessions) == 1


def test_only_its_own_first_line_is_recognised() -> None:
    assert recognises(FORMAT, lines(HEAD))
    assert not recognises(FORMAT, lines(call("chat", {"messages": [user("x")]}, {})))


def test_hostile_lines_raise_nothing_else() -> None:
    good = [*({**call(api, {LISTS[api]: [user("x")]}, {}), "id": at} for at, api in enumerate(LISTS))]
    check_hostile(FORMAT, (lines(HEAD, *bad) for bad in spoiled(good)))


def captured(client: str, agent: str, window_share: float = 0.5) -> Any:
    """Two calls of an agent, the last of which fills so much of 200,000 tokens."""
    usage = {"input_tokens": int(200_000 * window_share), "output_tokens": 5}
    answer = {"role": "assistant", "content": [{"type": "text", "text": "Done."}], "usage": usage}
    request = {"model": "claude-sonnet-4-5", "system": "You code.", "messages": [user("Mend it.")]}
    longer = {**request, "messages": [*request["messages"], {"role": "assistant", "content": "Done."}, user("Go on.")]}
    head = {**HEAD, "client": client, "user_agent": agent}
    calls = [call("anthropic", each, answer, timestamp=1_780_000_000 + n) for n, each in enumerate((request, longer))]
    (session,) = read_as(FORMAT, lines(head, *calls)).sessions
    return session


def test_an_agent_that_was_captured_is_known_with_its_version_and_explained_by_its_own_rule() -> None:
    session = captured("claude", "claude-cli/2.1.330 (external, cli)")
    assert (session.written_by, session.agent_format) == ("claude-code", "claude-code")
    assert session.versions == ((0, "2.1.330"),)
    explanation = explain(session, Ledger.of(session))
    assert [(rule.agent, rule.version) for rule in explanation.rules] == [("Claude Code", "2.1.330")]
    assert session.format != "claude-code"


@pytest.mark.parametrize(
    ("client", "agent", "versions"),
    [
        ("claude", "curl/8.1.0", ()),
        ("claude", "", ()),
        ("codex", "codex_cli_rs/0.169.0 (Linux)", ((0, "0.169.0"),)),
        ("codex", "codex_exec/0.171.0 (Debian 12.0.0; x86_64)", ((0, "0.171.0"),)),
        ("codex", "Codex/0.171.0", ()),
        ("gemini", "GeminiCLI-tui/0.61.0/gemini-2.5-pro (linux; x64; terminal)", ((0, "0.61.0"),)),
    ],
)
def test_a_version_is_taken_from_the_agents_own_name_alone(client: str, agent: str, versions: Any) -> None:
    assert captured(client, agent).versions == versions


def test_a_program_without_a_rule_is_not_taken_for_an_agent() -> None:
    session = captured("", "claude-cli/2.1.330")
    assert (session.written_by, session.agent_format, session.versions) == ("", session.format, ())


USERS = "user_f0ab_account__session_cc9c2a58-ae4e-47f3-9246-0fa95e7b997f"


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"metadata": {"user_id": USERS}}, "cc9c2a58-ae4e-47f3-9246-0fa95e7b997f"),
        ({"metadata": {"user_id": '{"device_id":"d","account_uuid":"","session_id":"344c0526"}'}}, "344c0526"),
        ({"metadata": {"user_id": "{not json"}}, ""),
        ({"metadata": {"user_id": "[" * 10_000}}, ""),
        ({"metadata": {"user_id": "someone"}}, ""),
        ({"metadata": {"sessionId": "qwen-1", "promptId": "p"}}, "qwen-1"),
        ({"request": {"contents": [], "session_id": "gemini-1"}}, "gemini-1"),
        ({"prompt_cache_key": "01a22402-dd2c-7132-a009-719b13c26c6c"}, "01a22402-dd2c-7132-a009-719b13c26c6c"),
        ({"prompt_cache_key": 7, "metadata": []}, ""),
    ],
)
def test_a_captured_session_has_the_name_that_its_agent_gave_it(more: dict[str, Any], name: str) -> None:
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}}]}
    calls = [call("chat", {"messages": [user("x")], **more}, answer)]
    (session,) = read_as(FORMAT, lines(HEAD, *calls)).sessions
    assert session.parent == name
