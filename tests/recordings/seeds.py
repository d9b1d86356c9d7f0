"""One small good recording of every format, in which a user says WORDS: what `damaged_formats` damages."""

from __future__ import annotations

import io
import json
import sqlite3
import zipfile
from contextlib import closing
from typing import Any

WORDS = "List files"
TIME = "2026-03-01T10:00:00.000Z"
CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "."}'}}
USAGE = {"prompt_tokens": 100, "completion_tokens": 5}
INPUT = {"input_tokens": 100, "output_tokens": 5}
CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": WORDS},
    {"role": "assistant", "content": "I look", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "a.txt"},
    {"role": "assistant", "content": "Done"},
]


def lines(*objects: Any) -> bytes:
    """JSON Lines."""
    return b"".join(json.dumps(item).encode() + b"\n" for item in objects)


def database(tables: dict[str, list[dict[str, Any]]]) -> bytes:
    """A SQLite file of these rows; the columns of a table are those of its first row."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for name, rows in tables.items():
            connection.execute(f"CREATE TABLE {name} ({', '.join(rows[0])})")
            for row in rows:
                holes = ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO {name} ({', '.join(row)}) VALUES ({holes})", tuple(row.values()))
        connection.commit()
        return bytes(connection.serialize())


def archive(entries: dict[str, bytes]) -> bytes:
    """A zip of these entries."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name, data in entries.items():
            target.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _text(words: str, kind: str = "text") -> list[dict[str, str]]:
    return [{"type": kind, "text": words}]


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _native() -> bytes:
    from guard_core.recordings.formats import native
    from tests.builders import model, session, tool_call, tool_result, user

    return native.write(session(user(WORDS), tool_call("ls", "c1"), tool_result({"n": 1}, "ls", "c1"), model("Done")))


def _capture() -> bytes:
    """A capture in which the second request repeats the first."""
    from guard_core.recordings.formats.capture.lines import NAME, VERSION, Shortener

    shortener, out = Shortener(), [{"format": NAME, "version": VERSION, "client": "test"}]
    for end, answer in ((2, CHAT[2]), (4, CHAT[4])):
        request = {"model": "m-1", "messages": CHAT[:end], "tools": []}
        response = {"id": f"r{end}", "model": "m-1", "choices": [{"index": 0, "message": answer}], "usage": USAGE}
        line = {"timestamp": 1772359200.0 + end, "api": "chat", "path": "/v1/chat/completions", "status": 200}
        out.append({**shortener.shorten("chat", request), **line, "response": response})
        shortener.written("chat", request)
    return lines(*out)


def _lhar() -> bytes:
    """An archive of Context Lens with one call of two messages and an answer."""
    request = {"model": "m-1", "messages": CHAT[:2], "tools": []}
    response = {"id": "r1", "model": "m-1", "choices": [{"index": 0, "message": CHAT[4]}], "usage": USAGE}
    entry = {
        "type": "entry",
        "trace_id": "t",
        "timestamp": TIME,
        "source": {"tool": "aider"},
        "gen_ai": {"system": "openai", "usage": {"input_tokens": 100, "output_tokens": 5, "total_tokens": 105}},
        "usage_ext": {"cache_read_tokens": 0, "cache_write_tokens": 0, "thinking_tokens": 0, "cost_usd": 0.1},
        "http": {"url": "https://host/v1/chat/completions", "status_code": 200, "api_format": "chat-completions"},
        "raw": {"request_body": request, "response_body": response},
    }
    return lines({"type": "session", "trace_id": "t", "started_at": TIME, "tool": "aider", "model": "m-1"}, entry)


def _claude() -> bytes:
    user = {"type": "user", "uuid": "n1", "parentUuid": None, "sessionId": "s", "message": CHAT[1]}
    answer = {"id": "m1", "role": "assistant", "model": "m", "content": _text("Done"), "usage": INPUT}
    return lines(user, {"type": "assistant", "uuid": "n2", "parentUuid": "n1", "sessionId": "s", "message": answer})


def _adk_event(role: str, words: str, at: float) -> dict[str, Any]:
    content = {"role": role, "parts": [{"text": words}]}
    usage = {"promptTokenCount": 100} if role == "model" else None
    return {"id": f"e{at}", "author": role, "timestamp": at, "content": content, "usageMetadata": usage}


_ADK = [_adk_event("user", WORDS, 1.0), _adk_event("model", "Done", 2.0)]


def _adk_database() -> bytes:
    rows = [
        {"id": f"e{n}", "app_name": "a", "user_id": "u", "session_id": "s", "timestamp": n, "event_data": _json(event)}
        for n, event in enumerate(_ADK)
    ]
    rows = [{**row, "event_data": row["event_data"].decode()} for row in rows]  # type: ignore[attr-defined]
    head = {"app_name": "a", "user_id": "u", "id": "s", "state": "{}", "create_time": 1, "update_time": 2}
    return database({"sessions": [head], "events": rows, "app_states": [{"app_name": "a", "state": "{}"}]})


def _codex() -> bytes:
    def item(kind: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": TIME, "type": kind, "payload": payload}

    info = {"last_token_usage": INPUT, "total_token_usage": INPUT, "model_context_window": 200_000}
    return lines(
        item("session_meta", id="s1", cwd="/repo", timestamp=TIME),
        item("response_item", type="message", role="user", content=_text(WORDS, "input_text")),
        item("response_item", type="message", role="assistant", content=_text("Done", "output_text")),
        item("event_msg", type="token_count", info=info),
    )


def _pi() -> bytes:
    usage = {"input": 100, "cacheRead": 0, "cacheWrite": 0, "output": 7}
    answer = {"role": "assistant", "content": _text("Done"), "usage": usage, "model": "m", "stopReason": "stop"}
    entry = {"type": "message", "timestamp": TIME}
    return lines(
        {"type": "session", "version": 3, "id": "s1", "timestamp": TIME, "cwd": "/repo"},
        {**entry, "id": "e0", "parentId": None, "message": {"role": "user", "content": _text(WORDS)}},
        {**entry, "id": "e1", "parentId": "e0", "message": answer},
    )


def _claude_stream() -> bytes:
    about = {"parent_tool_use_id": None, "session_id": "s"}
    answer = {"id": "m1", "role": "assistant", "model": "m", "content": _text("Done"), "usage": INPUT}
    return lines(
        {"type": "system", "subtype": "init", "session_id": "s", "model": "m", "tools": ["ls"]},
        {"type": "user", "message": CHAT[1], **about},
        {"type": "assistant", "message": answer, **about},
        {"type": "result", "is_error": False, "num_turns": 1, "session_id": "s", "result": "Done", "usage": INPUT},
    )


def _codex_exec() -> bytes:
    return lines(
        {"type": "thread.started", "thread_id": "t"},
        {"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": WORDS}},
        {"type": "item.completed", "item": {"id": "item_1", "type": "command_execution", "aggregated_output": "a.txt"}},
        {"type": "turn.completed", "usage": INPUT},
    )


def _codex_envelopes() -> bytes:
    messages = ({"type": "agent_message", "message": "Done"}, {"type": "token_count", **INPUT})
    settings = {"model": "m", "provider": "p", "sandbox": "none", "approval": "never", "workdir": "/repo"}
    return lines(settings, {"prompt": WORDS}, *({"id": "0", "msg": message} for message in messages))


def _gemini_printed() -> bytes:
    model = {"api": {"totalRequests": 1, "totalErrors": 0}, "tokens": {"prompt": 100, "candidates": 5}}
    stats = {"models": {"m": model}, "tools": {"totalCalls": 0}}
    return _json({"session_id": "s", "response": WORDS, "stats": stats})


def _pi_events() -> bytes:
    usage = {"input": 100, "cacheRead": 0, "cacheWrite": 0, "output": 7}
    answer = {"role": "assistant", "content": _text("Done"), "usage": usage, "model": "m", "stopReason": "stop"}
    return lines(
        {"type": "agent_start"},
        {"type": "message_end", "message": {"role": "user", "content": _text(WORDS)}},
        {"type": "message_end", "message": answer},
    )


def _opencode() -> bytes:
    end = {"type": "step-finish", "tokens": {"input": 100, "output": 5, "cache": {"read": 0, "write": 0}}}
    info = {"id": "m1", "role": "user", "time": {"created": 1_770_000_000_000}}
    answer = {"info": {**info, "id": "m2", "role": "assistant", "modelID": "m"}, "parts": [*_text("Done"), end]}
    talk = [{"info": info, "parts": _text(WORDS)}, answer]
    return _json({"info": {"id": "ses_1", "title": "Files", "time": {"created": 1_770_000_000_000}}, "messages": talk})


def _opencode_database() -> bytes:
    messages = [
        {"id": f"m{n}", "session_id": "s", "time_created": n, "data": json.dumps({"role": role, "modelID": "m"})}
        for n, role in enumerate(("user", "assistant"))
    ]
    parts = [
        {"id": f"p{n}", "message_id": f"m{n}", "session_id": "s", "data": json.dumps(_text(words)[0])}
        for n, words in enumerate((WORDS, "Done"))
    ]
    return database({"session": [{"id": "s", "title": "Files"}], "message": messages, "part": parts})


def _responses() -> list[dict[str, Any]]:
    call = {"type": "function_call", "name": "ls", "arguments": '{"path": "."}', "call_id": "c1"}
    done = {"type": "message", "role": "assistant", "content": _text("Done", "output_text")}
    return [CHAT[1], call, {"type": "function_call_output", "call_id": "c1", "output": "a.txt"}, done]


def _bedrock() -> bytes:
    """Two calls in Bedrock's log of the Converse API."""
    asked = {"role": "user", "content": [{"text": WORDS}]}
    used = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "ls", "input": {"path": "."}}}]}
    result = {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "a.txt"}]}}]}
    done = {"role": "assistant", "content": [{"text": "Done"}]}
    about = {"schemaType": "ModelInvocationLog", "timestamp": TIME, "operation": "Converse", "modelId": "m-1"}

    def record(sent: list[Any], answer: dict[str, Any]) -> dict[str, Any]:
        response = {"output": {"message": answer}, "usage": {"inputTokens": 100, "outputTokens": 5}}
        return {**about, "input": {"inputBodyJson": {"messages": sent}}, "output": {"outputBodyJson": response}}

    return lines(record([asked], used), record([asked, used, result], done))


def _ai_sdk() -> bytes:
    used = {"type": "tool-ls", "toolCallId": "c1", "state": "output-available", "input": {"path": "."}}
    parts = [{"type": "step-start"}, {**used, "output": "a.txt"}, {"type": "step-start"}, *_text("Done")]
    return _json([{"role": "user", "parts": _text(WORDS)}, {"role": "assistant", "parts": parts}])


def _goose_messages() -> list[dict[str, Any]]:
    call = {"status": "success", "value": {"name": "ls", "arguments": {"path": "."}}}
    result = {"status": "success", "value": {"content": _text("a.txt"), "isError": False}}
    return [
        {"role": "user", "created": 1, "content": _text(WORDS)},
        {"role": "assistant", "created": 2, "content": [{"type": "toolRequest", "id": "c1", "toolCall": call}]},
        {"role": "user", "created": 3, "content": [{"type": "toolResponse", "id": "c1", "toolResult": result}]},
        {"role": "assistant", "created": 4, "content": _text("Done")},
    ]


def _goose() -> bytes:
    """The lines of an older version."""
    return lines({"working_dir": "/repo", "description": "Files", "message_count": 4, **INPUT}, *_goose_messages())


def _goose_database() -> bytes:
    """Two calls, with their counts in a table of their own."""
    rows = [
        {"session_id": "s", "role": message["role"], "content_json": json.dumps(message["content"])}
        for message in _goose_messages()
    ]
    session = {"id": "s", "name": "Files", "working_dir": "/repo", "created_at": TIME, "model_config_json": "{}"}
    ledger = [{"session_id": "s", "model": "m-1", **INPUT, "is_compaction": 0}] * 2
    return database({"sessions": [session], "messages": rows, "usage_ledger": ledger})


def _smolagents() -> bytes:
    """The full steps of an agent that listed files and then answered."""

    def step(number: int, call: dict[str, Any], observed: str, sent: int) -> dict[str, Any]:
        request = [{"role": "system", "content": _text("Be brief.")}, *[{"role": "user", "content": []}] * (sent - 1)]
        about = {"step_number": number, "timing": {"start_time": 1.0, "end_time": 2.0}, "error": None}
        usage = {"input_tokens": 100, "output_tokens": 5, "total_tokens": 105}
        answer = {"tool_calls": [call], "model_output": "I look", "observations": observed, "action_output": None}
        return {
            **about,
            "model_input_messages": request,
            **answer,
            "token_usage": usage,
            "is_final_answer": number == 2,
        }

    done = {"id": "c2", "type": "function", "function": {"name": "final_answer", "arguments": {"answer": "Done"}}}
    return _json([{"task": WORDS, "task_images": None}, step(1, CALL, "a.txt", 2), step(2, done, "Done", 5)])


def _autogen() -> bytes:
    """The result of a run of one agent."""

    def said(source: str, kind: str, content: Any, used: bool = False) -> dict[str, Any]:
        about = {"source": source, "created_at": TIME, "metadata": {}, "models_usage": USAGE if used else None}
        return {**about, "content": content, "type": kind}

    call = {"id": "c1", "name": "ls", "arguments": '{"path": "."}'}
    result = {"content": "a.txt", "name": "ls", "call_id": "c1", "is_error": False}
    messages = [
        said("user", "TextMessage", WORDS),
        said("helper", "ToolCallRequestEvent", [call], used=True),
        said("helper", "ToolCallExecutionEvent", [result]),
        said("helper", "TextMessage", "Done", used=True),
    ]
    return _json({"messages": messages, "stop_reason": None})


def _chatgpt() -> bytes:
    """A conversation of ChatGPT in which Python ran between the question and the answer."""

    def node(number: int, role: str, kind: str, **more: Any) -> dict[str, Any]:
        author = {"role": role, "name": more.pop("name", None), "metadata": {}}
        about = {"id": f"m{number}", "author": author, "recipient": more.pop("recipient", "all"), "create_time": 1.8e9}
        message = {**about, "content": {"content_type": kind, **more}, "metadata": {"model_slug": "m-1"}}
        children = [f"m{number + 1}"] if number < 4 else []
        return {"id": f"m{number}", "parent": f"m{number - 1}", "children": children, "message": message}

    nodes = (
        {"id": "m0", "parent": None, "children": ["m1"], "message": None},
        node(1, "user", "text", parts=[WORDS]),
        node(2, "assistant", "code", language="unknown", text="ls()", recipient="python"),
        node(3, "tool", "execution_output", text="a.txt", name="python"),
        node(4, "assistant", "text", parts=["Done"]),
    )
    mapping = {node["id"]: node for node in nodes}
    return _json([{"conversation_id": "s", "title": "Files", "current_node": "m4", "mapping": mapping}])


def _gptme() -> bytes:
    usage = {**INPUT, "cache_read_tokens": 0}
    about = {"timestamp": TIME}
    return lines(
        {**CHAT[0], **about, "pinned": True, "hide": True},
        {**CHAT[1], **about},
        {"role": "assistant", "content": '@ls(c1): {"path": "."}', **about, "metadata": {"model": "m", "usage": usage}},
        {"role": "system", "content": "a.txt", **about, "call_id": "c1", "metadata": {"tool": "ls"}},
    )


def _claude_ai() -> bytes:
    """A conversation of Claude.ai whose answer has a call and its result."""
    call = {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "."}}
    result = {"type": "tool_result", "tool_use_id": "c1", "name": "ls", "content": _text("a.txt"), "is_error": False}

    def message(uuid: str, parent: str, sender: str, *blocks: dict[str, Any]) -> dict[str, Any]:
        about = {"uuid": uuid, "parent_message_uuid": parent, "sender": sender, "created_at": TIME}
        return {**about, "text": "", "content": list(blocks), "attachments": [], "files": []}

    messages = [
        message("m1", "m0", "human", *_text(WORDS)),
        message("m2", "m1", "assistant", call, result, *_text("Done")),
    ]
    return _json([{"uuid": "s", "name": "Files", "created_at": TIME, "chat_messages": messages}])


def _pydantic_ai() -> bytes:
    usage = {"input_tokens": 100, "cache_read_tokens": 0, "output_tokens": 5}
    about = {"model_name": "m-1", "timestamp": TIME, "kind": "response", "usage": usage}
    called = {"tool_name": "ls", "args": '{"path": "."}', "tool_call_id": "c1", "part_kind": "tool-call"}
    returned = {"tool_name": "ls", "content": "a.txt", "tool_call_id": "c1", "part_kind": "tool-return"}
    prompt = {"content": "Be brief.", "part_kind": "system-prompt"}
    return _json(
        [
            {"parts": [prompt, {"content": WORDS, "part_kind": "user-prompt"}], "kind": "request"},
            {"parts": [{"content": "I look", "part_kind": "text"}, called], **about},
            {"parts": [returned], "kind": "request"},
            {"parts": [{"content": "Done", "part_kind": "text"}], **about},
        ]
    )


def _langfuse() -> bytes:
    """A trace of Langfuse with two calls and the run of a tool between them."""
    place = {"traceId": "t1", "parentObservationId": None, "startTime": TIME, "modelParameters": {}, "name": "ls"}
    call = {"type": "GENERATION", "model": "m-1", "usageDetails": {"input": 100, "output": 5}}
    listed = [
        {"id": "o1", **place, **call, "input": {"messages": CHAT[:2]}, "output": CHAT[2]},
        {"id": "o2", **place, "type": "TOOL", "input": {"path": "."}, "output": "a.txt"},
        {"id": "o3", **place, **call, "input": {"messages": CHAT[:4]}, "output": CHAT[4]},
    ]
    return _json({"id": "t1", "sessionId": "s", "htmlPath": "/t", "observations": listed})


def _agents_database() -> bytes:
    rows = [{"id": n, "session_id": "s", "message_data": json.dumps(item)} for n, item in enumerate(_responses())]
    return database({"agent_sessions": [{"session_id": "s"}], "agent_messages": rows})


def _anthropic() -> bytes:
    reply = {"type": "message", "id": "m1", "role": "assistant", "model": "m", "content": _text("Done"), "usage": INPUT}
    return lines({"request": {"model": "m", "system": "Be brief.", "messages": [CHAT[1]]}, "response": reply})


def _chat_log() -> bytes:
    reply = {"id": "r1", "choices": [{"message": CHAT[4]}], "usage": USAGE, "created": 1_770_000_000}
    return lines({"request": {"model": "m", "messages": CHAT[:2]}, "response": reply})


def _cline() -> bytes:
    asked = json.dumps({"request": WORDS, "tokensIn": 100, "tokensOut": 5, "cacheWrites": 0, "cacheReads": 0})
    head = {"ts": 1_770_000_000_000, "type": "say", "say": "text", "text": WORDS}
    return _json([head, {**head, "say": "api_req_started", "text": asked}, {**head, "text": "Done"}])


def _gemini() -> bytes:
    answer = {"type": "gemini", "content": "Done", "model": "g", "tokens": {"input": 100, "output": 5, "cached": 0}}
    return lines(
        {"sessionId": "s1", "projectHash": "h", "startTime": TIME, "lastUpdated": TIME},
        {"id": "u1", "timestamp": TIME, "type": "user", "content": [{"text": WORDS}]},
        {"id": "g1", "timestamp": TIME, **answer},
    )


def _qwen() -> bytes:
    place = {"sessionId": "s1", "timestamp": TIME, "cwd": "/p", "version": "0.24.4"}
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 5, "totalTokenCount": 105, "cachedContentTokenCount": 0}
    call = {"functionCall": {"id": "c1", "name": "ls", "args": {"path": "."}}}
    result = {"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "a.txt"}}}
    answer = {"model": "m", "usageMetadata": usage, "contextWindowSize": 1_000_000}
    records = (
        {"type": "user", "message": {"role": "user", "parts": [{"text": WORDS}]}},
        {"type": "assistant", **answer, "message": {"role": "model", "parts": [call]}},
        {"type": "tool_result", "message": {"role": "user", "parts": [result]}},
        {"type": "assistant", **answer, "message": {"role": "model", "parts": [{"text": "Done"}]}},
    )
    linked = [{"uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None, **place} for n in range(len(records))]
    return lines(*({**link, **record} for link, record in zip(linked, records, strict=True)))


def _qwen_chat() -> bytes:
    answer = {"type": "qwen", "content": "Done", "model": "m", "tokens": {"input": 100, "output": 5, "cached": 0}}
    asked = {"id": "u1", "timestamp": TIME, "type": "user", "content": WORDS}
    head = {"sessionId": "s1", "projectHash": "h", "startTime": TIME, "lastUpdated": TIME}
    return _json({**head, "messages": [asked, {"id": "q1", "timestamp": TIME, **answer}]})


def _kimi_context() -> bytes:
    call = {"type": "function", "id": "c1", "function": {"name": "ReadFile", "arguments": '{"path": "a.txt"}'}}
    return lines(
        {"role": "_system_prompt", "content": "Be brief."},
        {"role": "_checkpoint", "id": 0},
        {"role": "user", "content": WORDS},
        {"role": "_checkpoint", "id": 1},
        {"role": "_usage", "token_count": 100},
        {"role": "assistant", "content": [], "tool_calls": [call]},
        {"role": "_usage", "token_count": 105},
        {"role": "tool", "content": _text("a.txt"), "tool_call_id": "c1"},
        {"role": "_checkpoint", "id": 2},
        {"role": "_usage", "token_count": 140},
        {"role": "assistant", "content": _text("Done")},
        {"role": "_usage", "token_count": 145},
    )


def _kimi_wire() -> bytes:
    def shown(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        return {"timestamp": 1_770_000_000.5, "message": {"type": kind, "payload": payload}}

    def usage(prompt: int) -> dict[str, Any]:
        counts = {"input_other": prompt, "output": 5, "input_cache_read": 0, "input_cache_creation": 0}
        status = {"context_tokens": prompt, "max_context_tokens": 262_144, "token_usage": counts, "message_id": "m"}
        return shown("StatusUpdate", status)

    call = {"type": "function", "id": "c1", "function": {"name": "ReadFile", "arguments": '{"path": "a.txt"}'}}
    result = {"is_error": False, "output": "a.txt", "message": "1 line read.", "display": []}
    return lines(
        {"type": "metadata", "protocol_version": "1.9"},
        shown("TurnBegin", {"user_input": WORDS}),
        shown("StepBegin", {"n": 1}),
        shown("ToolCall", call),
        usage(100),
        shown("ToolResult", {"tool_call_id": "c1", "return_value": result}),
        shown("StepBegin", {"n": 2}),
        shown("ContentPart", {"type": "text", "text": "Done"}),
        usage(140),
        shown("TurnEnd", {}),
    )


def _sample() -> dict[str, Any]:
    talk = [{**message, "id": f"m{n}"} for n, message in enumerate((*CHAT[:2], CHAT[4]))]
    output = {"model": "m", "choices": [{"message": talk[2]}], "usage": INPUT}
    event = {"event": "model", "model": "m", "input": talk[:2], "tools": [], "output": output}
    return {"id": "s0", "epoch": 1, "messages": talk, "events": [event], "target": ""}


_EVAL = {"task": "explore", "model": "m", "created": "2026-03-01T10:00:00+00:00"}


def _otlp() -> bytes:
    asked = [{"role": "user", "parts": [{"type": "text", "content": WORDS}]}]
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": "Done"}]}]
    values = {
        "gen_ai.operation.name": {"stringValue": "chat"},
        "gen_ai.usage.input_tokens": {"intValue": "100"},
        "gen_ai.input.messages": {"stringValue": json.dumps(asked)},
        "gen_ai.output.messages": {"stringValue": json.dumps(answer)},
    }
    span = {"traceId": "t", "spanId": "a", "name": "chat m", "startTimeUnixNano": "1000000000"}
    span["attributes"] = [{"key": key, "value": value} for key, value in values.items()]  # type: ignore[assignment]
    return _json({"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"spans": [span]}]}]})


_HERMES = {
    "id": "s1",
    "system_prompt": "Be brief.",
    "model": "m",
    "started_at": 100.0,
    "input_tokens": 60,
    "api_call_count": 1,
}


def _hermes_rows() -> list[dict[str, Any]]:
    row = {"tool_call_id": None, "tool_calls": None, "tool_name": None, "reasoning": None, "active": 1, "compacted": 0}
    answer = (("user", WORDS), ("assistant", "Done"))
    return [
        {"id": n, "session_id": "s1", "role": role, "content": words, "timestamp": 100.0 + n, **row}
        for n, (role, words) in enumerate(answer)
    ]


def _crush() -> bytes:
    session = {"id": "s1", "parent_session_id": None, "title": "Files", "message_count": 2, "prompt_tokens": 900}
    session |= {"completion_tokens": 20, "created_at": 1, "summary_message_id": None}
    answer = (("user", WORDS), ("assistant", "Done"))
    rows = [
        {
            "id": f"m{n}",
            "session_id": "s1",
            "role": role,
            "parts": json.dumps([{"type": "text", "data": {"text": words}}]),
            "model": "m",
            "created_at": n,
            "is_summary_message": 0,
        }
        for n, (role, words) in enumerate(answer)
    ]
    return database({"sessions": [session], "messages": rows})


def _langchain() -> bytes:
    own = {"content": "Done", "usage_metadata": INPUT, "response_metadata": {"model_name": "m"}}
    return _json([{"type": "human", "data": {"content": WORDS}}, {"type": "ai", "data": {**own, "type": "ai"}}])


def _swe() -> bytes:
    step = {"action": "ls", "observation": "a.txt", "response": "I look", "thought": "I look"}
    talk = [{**message, "agent": "primary"} for message in (*CHAT[:2], CHAT[4])]
    stats = {"tokens_sent": 900, "tokens_received": 20, "api_calls": 3}
    return _json({"environment": "main", "trajectory": [step], "history": talk, "info": {"model_stats": stats}})


def _mini() -> bytes:
    reply = {"id": "r1", "model": "m", "usage": USAGE}
    answer = {**CHAT[4], "extra": {"response": reply, "timestamp": 1_760_000_000.5}}
    info = {"mini_version": "1.14", "config": {"model": {"model_name": "m"}}}
    return _json({"info": info, "messages": [*CHAT[:2], answer], "trajectory_format": "mini-swe-agent-1.1"})


def _managed_agents() -> bytes:
    def event(number: int, kind: str, **more: Any) -> dict[str, Any]:
        return {"id": f"sevt_{number}", "type": kind, "processed_at": TIME, **more}

    return lines(
        event(1, "user.message", content=_text(WORDS)),
        event(2, "span.model_request_start"),
        event(3, "agent.message", content=_text("I look")),
        event(4, "agent.tool_use", name="ls", input={"path": "."}),
        event(5, "span.model_request_end", model_usage=INPUT, is_error=False),
        event(6, "agent.tool_result", tool_use_id="sevt_4", content=_text("a.txt"), is_error=False),
    )


def _trae() -> bytes:
    call = {"call_id": "c1", "name": "ls", "arguments": {"path": "."}, "id": None}
    result = {"call_id": "c1", "success": True, "result": "a.txt", "error": None, "id": None}

    def interaction(said: str, calls: Any, *messages: dict[str, Any]) -> dict[str, Any]:
        answer = {"content": said, "model": "m", "finish_reason": "stop", "usage": INPUT, "tool_calls": calls}
        about = {"timestamp": TIME, "provider": "openai", "model": "m", "tools_available": ["ls"]}
        return {**about, "input_messages": list(messages), "response": answer}

    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": WORDS}]
    told = {"role": "user", "content": None, "tool_result": result}
    run = {"task": WORDS, "start_time": TIME, "provider": "openai", "model": "m", "max_steps": 20}
    calls = [interaction("I look", [call], *asked), interaction("Done", None, told)]
    return _json({**run, "llm_interactions": calls, "agent_steps": [], "success": True})


def _openhands() -> bytes:
    event = {"timestamp": TIME, "action": "message"}
    metrics = {"accumulated_token_usage": USAGE}
    return _json(
        [
            {"id": 0, "source": "user", "args": {"content": WORDS}, "message": WORDS, **event},
            {
                "id": 1,
                "source": "agent",
                "args": {"content": "Done"},
                "message": "Done",
                **event,
                "llm_metrics": metrics,
            },
        ]
    )


def _atif() -> bytes:
    answer = {"step_id": 2, "source": "agent", "message": "Done", "metrics": USAGE}
    steps = [{"step_id": 1, "source": "user", "message": WORDS}, answer]
    agent = {"name": "terminus", "version": "2", "model_name": "m"}
    return _json({"schema_version": "ATIF-v1.6", "session_id": "s", "agent": agent, "steps": steps})


def _copilot() -> bytes:
    def event(kind: str, **data: Any) -> dict[str, Any]:
        return {"type": kind, "id": kind, "timestamp": TIME, "data": data}

    return lines(
        event("session.start", sessionId="s1", version=1),
        event("user.message", content=WORDS),
        event("assistant.usage", inputTokens=100, outputTokens=5),
        event("assistant.message", messageId="m1", content="Done"),
    )


def _kimi_code() -> bytes:
    def record(name: str, **rest: Any) -> dict[str, Any]:
        return {"type": name, "agentId": "main", **rest, "time": 1_772_359_200_000}

    def step(kind: str, **rest: Any) -> dict[str, Any]:
        return record("context.append_loop_event", event={"type": kind, "stepUuid": "s1", "uuid": "s1", **rest})

    usage = {"inputOther": 100, "output": 5, "inputCacheRead": 0, "inputCacheCreation": 0}
    user = {"role": "user", "content": _text(WORDS), "toolCalls": [], "origin": {"kind": "user"}}
    return lines(
        {"type": "metadata", "protocol_version": "1.5", "created_at": 1_772_359_200_000},
        record("context.append_message", message=user),
        step("step.begin", step=1),
        record("llm.request", kind="loop", model="m", maxTokens=262_144),
        step("tool.call", toolCallId="c1", name="ls", args={"path": "."}),
        step("tool.result", toolCallId="c1", result={"output": "a.txt"}),
        step("step.end", finishReason="tool_use", usage=usage),
    )


def _vibe() -> bytes:
    def record(name: str, **payload: Any) -> dict[str, Any]:
        return {"type": name, "sequence": 1, "recovery_journal_record_version": 1, "payload": payload}

    sent = {"type": "replace", "revision": 1, "messages": [{"role": "user", "content": _text(WORDS)}]}
    request = {"purpose": "agent", "model_input": {"messages": sent}}
    call = {"type": "tool_call", "id": "c1", "name": "ls", "arguments_json": '{"path": "."}'}
    answer = {"parts": [call], "usage": {**INPUT, "total_tokens": 105}}
    result = {"type": "completion_succeeded", "action_id": "a1", "result": answer}
    return lines(
        record("action_intent", action_id="a1", kind="completion", request=request),
        record("action_result", action_id="a1", result=result, state="succeeded"),
    )


def _vibe_log() -> bytes:
    answer = {"role": "assistant", "content": "I look", "injected": False, "tool_calls": [CALL], "message_id": "m2"}
    return lines({"role": "user", "content": WORDS, "injected": False, "message_id": "m1"}, answer)


def _aider() -> bytes:
    head = "# aider chat started at 2026-03-01 10:00:00"
    return f"{head}\n\n#### {WORDS}\n\nDone.\n\n> Tokens: 4k sent, 1k received.\n".encode()


SEEDS: dict[str, bytes] = {
    "compaction-inspector": _native(),
    "capture": _capture(),
    "lhar": _lhar(),
    "claude-code": _claude(),
    "claude-code as printed": _claude_stream(),
    "claude-code on the web": _json({"loglines": [json.loads(line) for line in _claude().splitlines()]}),
    "adk": _json({"id": "s", "appName": "a", "userId": "u", "state": {}, "events": _ADK}),
    "codex": _codex(),
    "codex as printed": _codex_exec(),
    "codex as printed in envelopes": _codex_envelopes(),
    "pi": _pi(),
    "pi as printed": _pi_events(),
    "opencode": _opencode(),
    "openai-responses": _json(_responses()),
    "anthropic-messages": _anthropic(),
    "openai-chat": _json(CHAT),
    "openai-chat log": _chat_log(),
    "cline": _cline(),
    "gemini-cli": _gemini(),
    "gemini-cli as printed": _gemini_printed(),
    "qwen-code": _qwen(),
    "qwen-code of one value": _qwen_chat(),
    "kimi-cli": _kimi_context(),
    "kimi-cli wire": _kimi_wire(),
    "inspect": _json({"version": 2, "status": "success", "eval": _EVAL, "plan": {}, "samples": [_sample()]}),
    "otlp": _otlp(),
    "provider-log": _bedrock(),
    "pydantic-ai": _pydantic_ai(),
    "ai-sdk": _ai_sdk(),
    "goose": _goose(),
    "autogen": _autogen(),
    "smolagents": _smolagents(),
    "chatgpt": _chatgpt(),
    "claude-ai": _claude_ai(),
    "trace-export": _langfuse(),
    "hermes": lines({**_HERMES, "messages": _hermes_rows()}),
    "langchain": _langchain(),
    "swe-agent": _swe(),
    "gptme": _gptme(),
    "mini-swe-agent": _mini(),
    "trae-agent": _trae(),
    "managed-agents": _managed_agents(),
    "openhands": _openhands(),
    "atif": _atif(),
    "copilot-cli": _copilot(),
    "kimi-code": _kimi_code(),
    "mistral-vibe": _vibe(),
    "mistral-vibe log": _vibe_log(),
    "aider": _aider(),
}
DATABASES: dict[str, bytes] = {
    "adk-sqlite": _adk_database(),
    "opencode database": _opencode_database(),
    "openai-agents database": _agents_database(),
    "hermes database": database({"sessions": [_HERMES], "messages": _hermes_rows()}),
    "crush": _crush(),
    "goose database": _goose_database(),
}
ENTRIES = {"header.json": _json({"eval": _EVAL}), "samples/s0_epoch_1.json": _json(_sample())}
EVAL = archive(ENTRIES)
