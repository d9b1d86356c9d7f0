"""Sessions of agents that have no reader are refused by name; none is read as the session of an agent that has one."""

from __future__ import annotations

import json

import pytest

from guard_core.errors import UnknownFormat
from guard_core.recordings import read
from tests.guard_core.recordings.checks import lines
from tests.recordings.seeds import database

TIME = "2026-01-20T10:00:00.000Z"


def entry(name, role, *blocks):
    """An entry of Factory Droid, whose lines look like pi's."""
    message = {"role": role, "content": list(blocks)}
    return {"type": "message", "id": name, "timestamp": TIME, "parentId": None, "message": message}


ASKED = entry("m1", "user", {"type": "text", "text": "Read a"})
USED = entry("m2", "assistant", {"type": "tool_use", "id": "c", "name": "Read", "input": {"file_path": "a"}})
DROID_HEADER = {"type": "session_start", "id": "s", "title": "t", "owner": "o", "version": 2, "cwd": "/p"}

AMP_USAGE = {"inputTokens": 10, "cacheReadInputTokens": 13_000, "totalInputTokens": 13_010, "outputTokens": 8}
AMP = {
    "v": 12,
    "id": "T-6f0d9f3a-1111-2222-3333-444455556666",
    "messages": [
        {"role": "user", "messageId": 0, "content": [{"type": "text", "text": "Read a"}]},
        {
            "role": "assistant",
            "messageId": 1,
            "content": [{"type": "tool_use", "id": "t", "name": "Read", "input": {}}],
            "usage": AMP_USAGE,
        },
    ],
}

OBSERVATION = {
    "id": "o1",
    "traceId": "t",
    "type": "GENERATION",
    "startTime": TIME,
    "model": "gpt-4o",
    "modelParameters": {"temperature": 1},
    "input": [{"role": "user", "content": "Hi"}],
    "output": {"role": "assistant", "content": "Yes"},
}

PRINTED = {"type": "system", "subtype": "init", "session_id": "s", "tools": [], "qwen_code_version": "0.24.4"}
SAID = {"type": "assistant", "session_id": "s", "message": {"role": "assistant", "content": [], "usage": {}}}
PRINTED_BY_AMP = {"type": "system", "subtype": "init", "session_id": AMP["id"], "tools": [], "mcp_servers": []}
REFUSED = {
    "Entire": lines(
        {
            "v": 1,
            "agent": "claude-code",
            "cli_version": "0.5.1",
            "type": "user",
            "ts": "a",
            "content": [{"text": "Hi"}],
        },
        {"v": 1, "agent": "claude-code", "cli_version": "0.5.1", "type": "assistant", "ts": "a", "content": []},
    ),
    "Qwen Code, what a run printed": lines(PRINTED, SAID),
    "Qwen Code, printed as one value": json.dumps([PRINTED, SAID]).encode(),
    "Factory Droid": lines(DROID_HEADER, ASKED, USED),
    "Factory Droid without its header": lines(ASKED, USED),
    "Amp": json.dumps(AMP).encode(),
    "Amp, the messages alone": json.dumps(AMP["messages"]).encode(),
    "Amp, what a run printed": lines(PRINTED_BY_AMP, SAID),
    "Mistral's Conversations API": json.dumps({"object": "conversation.history", "entries": []}).encode(),
    "OpenAI's Assistants API": json.dumps({"object": "list", "data": [{"object": "thread.message"}]}).encode(),
    "Open WebUI": json.dumps([{"chat": {"history": {"messages": {"a": {"role": "user"}}, "currentId": "a"}}}]).encode(),
    "Continue": json.dumps({"history": [{"message": {"role": "user", "content": "Hi"}, "contextItems": []}]}).encode(),
    "LM Studio": json.dumps({"messages": [{"versions": [{"role": "user"}], "currentlySelected": 0}]}).encode(),
    "Zed": json.dumps({"messages": [{"User": {}}], "request_token_usage": {}, "cumulative_token_usage": {}}).encode(),
    "Microsoft's Agent Framework": json.dumps({"type": "session", "service_session_id": None, "state": {}}).encode(),
    "LangGraph": json.dumps([{"values": {"messages": []}, "next": [], "parent_config": None, "tasks": []}]).encode(),
    "Factory Droid, what a run printed": lines(
        {"type": "system", "subtype": "init", "session_id": "s", "model": "m", "tools": ["Execute"]},
        {"type": "message", "session_id": "s", "role": "user", "text": "List", "id": "m1"},
        {"type": "tool_call", "session_id": "s", "id": "c", "messageId": "m2", "toolId": "Execute", "parameters": {}},
        {"type": "tool_result", "session_id": "s", "id": "c", "messageId": "m3", "toolId": "Execute", "value": "a"},
    ),
    "Kiro's CLI": lines(
        {"version": "v1", "kind": "Prompt", "data": {"message_id": "m1", "content": [{"kind": "text", "data": "Hi"}]}},
        {"version": "v1", "kind": "AssistantMessage", "data": {"message_id": "m2", "content": []}},
    ),
    "Kiro's or Amazon Q's CLI": json.dumps(
        {"conversation_id": "c", "history": [{"user": {}, "assistant": {}}], "transcript": [], "next_message": None}
    ).encode(),
    "Kiro's or Amazon Q's CLI, its database": database(
        {"conversations": [{"key": "/p", "value": "{}"}], "auth_kv": [{"key": "a", "value": "b"}]}
    ),
    "xAI's Grok CLI": lines(
        {"type": "system", "content": "You are a CLI tool."},
        {"type": "user", "content": [{"type": "text", "text": "Read a"}], "prompt_index": 0},
        {"type": "assistant", "content": "", "tool_calls": [], "model_id": "grok-4.5", "model_fingerprint": "fp"},
        {"type": "tool_result", "tool_call_id": "c", "content": "a"},
    ),
    "CodeBuddy": lines(
        {
            "type": "function_call",
            "sessionId": "s",
            "name": "read",
            "arguments": "{}",
            "providerData": {"rawUsage": {}},
        },
        {"type": "function_call_result", "sessionId": "s", "content": [{"type": "output_text", "text": "a"}]},
    ),
    "Muse Code": lines(
        {"stream": {"kind": "session"}, "sequence": 1, "record_type": "event", "payload_type": "a", "payload": {}}
    ),
    "LangGraph, a database of checkpoints": database(
        {
            "checkpoints": [{"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "c", "checkpoint": "a"}],
            "writes": [{"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "c", "value": "a"}],
        }
    ),
    "Cursor, a store of its CLI": database({"blobs": [{"id": "a", "data": "b"}], "meta": [{"key": "0", "value": "c"}]}),
    "Cursor": database({"ItemTable": [{"key": "a", "value": "b"}], "cursorDiskKV": [{"key": "a", "value": "b"}]}),
    "Cursor, what a run printed": lines(
        {"type": "system", "subtype": "init", "apiKeySource": "env", "session_id": "s", "model": "Composer"},
        {**SAID, "model_call_id": "c-0", "timestamp_ms": 1},
    ),
    "Strands Agents, a message": json.dumps({"message": {}, "message_id": 0, "redact_message": None}).encode(),
    "Strands Agents, an agent": json.dumps({"agent_id": "a", "state": {}, "conversation_manager_state": {}}).encode(),
    "Cursor, a transcript": lines({"role": "user", "message": {"content": [{"type": "text", "text": "Read a"}]}}),
    "Copilot Chat in VS Code": json.dumps({"requesterUsername": "u", "requests": [], "version": 3}).encode(),
    "Copilot Chat in VS Code, with its changes": lines(
        {"kind": 0, "v": {"creationDate": 1, "requests": []}}, {"kind": 1, "k": ["title"], "v": "t"}
    ),
    "iFlow CLI": lines(
        {"type": "user", "uuid": "u", "parentUuid": None, "sessionId": "session-5de701fc-0000-4000-8000-000000000001"}
    ),
    "Google Antigravity, a step of its SDK": lines(
        {"id": "s", "step_index": 0, "source": "MODEL", "type": "TEXT", "status": "DONE", "content": "a"}
    ),
    "Google Antigravity": lines(
        {"step_index": 0, "source": "MODEL", "type": "VIEW_FILE", "status": "DONE", "created_at": TIME, "content": "a"}
    ),
    "Langfuse": json.dumps(
        {"data": [{"id": "t", "sessionId": "s", "htmlPath": "/t", "observations": ["o1"]}]}
    ).encode(),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("strict", [True, False])
def test_it_is_refused_by_the_name_of_its_agent(name, strict):
    agent = name.split(" without")[0].split(" as ")[0].split(",")[0]
    with pytest.raises(UnknownFormat, match=f"written by {agent}.* cannot be imported yet"):
        read(REFUSED[name], strict=strict)


def test_a_list_of_which_only_the_first_is_of_such_an_agent_is_not_refused_by_its_name():
    chat = {"chat": {"history": {"messages": {}, "currentId": None}}}
    with pytest.raises(UnknownFormat) as refused:
        read(json.dumps([chat, {"other": 1}]).encode())
    assert "written by" not in str(refused.value)


@pytest.mark.parametrize(
    "counts",
    [
        {"usageDetails": {"input": 100, "input_cached_tokens": 900, "output": 5, "total": 1005}},
        {"usage": {"input": 1000, "output": 5, "total": 1005, "unit": "TOKENS"}},
        {"promptTokens": 1000, "completionTokens": 5},
    ],
)
def test_a_list_of_langfuse_observations_keeps_its_tokens(counts):
    recording = read(json.dumps([{**OBSERVATION, **counts}, {**OBSERVATION, **counts, "id": "o2"}]).encode())
    assert recording.facts.model_calls == 2
    assert recording.facts.prompt_tokens_max == 1000
    assert recording.sessions[0].calls[0].output_tokens == 5
