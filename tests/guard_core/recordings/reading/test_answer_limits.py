"""What requests allow their answers is kept, whatever the API calls it: the largest limit of a conversation."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from guard_core.recordings import read
from guard_core.sessions import ANSWER_LIMIT
from tests.guard_core.recordings.checks import lines

TURNS = 3


def chat_log(limit):
    """Requests of a chat, each with one message more; `limit(turn)`: further fields of its body."""
    for turn in range(TURNS):
        messages = [{"role": ("user", "assistant")[at % 2], "content": f"message {at}"} for at in range(2 * turn + 1)]
        answer = {"role": "assistant", "content": f"message {2 * turn + 1}"}
        usage = {"prompt_tokens": 100 + turn, "completion_tokens": 5}
        request = {"model": "m", "messages": messages, **limit(turn)}
        yield {"request": request, "response": {"id": f"r{turn}", "choices": [{"message": answer}], "usage": usage}}


def responses_log():
    for turn in range(TURNS):
        sent = [{"role": ("user", "assistant")[at % 2], "content": f"message {at}"} for at in range(2 * turn + 1)]
        text = [{"type": "output_text", "text": f"message {2 * turn + 1}"}]
        output = [{"type": "message", "role": "assistant", "content": text}]
        response = {"id": f"r{turn}", "object": "response", "output": output, "usage": {"input_tokens": 100 + turn}}
        yield {"request": {"model": "m", "input": sent, "max_output_tokens": 700 + turn}, "response": response}


def anthropic_log():
    for turn in range(TURNS):
        messages = [{"role": ("user", "assistant")[at % 2], "content": f"message {at}"} for at in range(2 * turn + 1)]
        content = [{"type": "text", "text": f"message {2 * turn + 1}"}]
        usage = {"input_tokens": 100 + turn, "output_tokens": 5}
        response = {"id": f"r{turn}", "type": "message", "role": "assistant", "content": content, "usage": usage}
        yield {"request": {"model": "m", "system": "s", "messages": messages, "max_tokens": 702}, "response": response}


def gemini_capture():
    yield {"format": "compaction-inspector-capture", "version": 1}
    for turn in range(TURNS):
        sent = [{"role": ("user", "model")[at % 2], "parts": [{"text": f"message {at}"}]} for at in range(2 * turn + 1)]
        content = {"role": "model", "parts": [{"text": f"message {2 * turn + 1}"}]}
        response = {"candidates": [{"content": content}], "usageMetadata": {"promptTokenCount": 100 + turn}}
        request = {"contents": sent, "generationConfig": {"maxOutputTokens": 700 + turn}}
        about = {"api": "gemini", "path": "/v1beta/models/m:generateContent", "status": 200}
        yield {"id": turn, **about, "timestamp": 1.0 + turn, "request": request, "response": response}


def spans():
    for turn in range(TURNS):
        sent = [
            {"role": ("user", "assistant")[at % 2], "parts": [{"type": "text", "content": f"message {at}"}]}
            for at in range(2 * turn + 1)
        ]
        answer = [{"role": "assistant", "parts": [{"type": "text", "content": f"message {2 * turn + 1}"}]}]
        attributes = {
            "gen_ai.operation.name": {"stringValue": "chat"},
            "gen_ai.request.max_tokens": {"intValue": str(700 + turn)},
            "gen_ai.usage.input_tokens": {"intValue": str(100 + turn)},
            "gen_ai.input.messages": {"stringValue": json.dumps(sent)},
            "gen_ai.output.messages": {"stringValue": json.dumps(answer)},
        }
        span = {
            "traceId": "a" * 32,
            "spanId": f"{turn:016x}",
            "name": "chat m",
            "startTimeUnixNano": str(10**18 + turn * 10**9),
            "attributes": [{"key": key, "value": value} for key, value in attributes.items()],
        }
        yield {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


LOGS: dict[str, Iterable[dict[str, Any]]] = {
    "chat": chat_log(lambda turn: {"max_completion_tokens": 700 + turn}),
    "chat, the older name": chat_log(lambda turn: {"max_tokens": 702 - turn}),
    "chat, by a proxy": chat_log(lambda turn: {"optional_params": {"max_tokens": 700 + turn}}),
    "chat, by Ollama": chat_log(lambda turn: {"options": {"num_predict": 700 + turn}}),
    "responses": responses_log(),
    "anthropic": anthropic_log(),
    "gemini": gemini_capture(),
    "spans": spans(),
}


@pytest.mark.parametrize("name", LOGS)
def test_the_largest_limit_of_its_requests_is_a_setting_of_the_session(name):
    (session,) = read(lines(*LOGS[name])).sessions
    assert len(session.calls) == TURNS
    assert [(item.name, item.value) for item in session.settings] == [(ANSWER_LIMIT, 702)]


def test_requests_without_a_limit_give_none():
    (session,) = read(lines(*chat_log(lambda turn: {"options": {"num_predict": -1}}))).sessions
    assert session.settings == ()
