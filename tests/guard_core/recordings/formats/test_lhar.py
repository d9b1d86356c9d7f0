"""Archives of Context Lens."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guard_core.errors import DamagedRecording
from guard_core.events import TextPart
from guard_core.recordings.formats.lhar import FORMAT
from tests.guard_core.recordings.checks import check_hostile, lines, read_as, recognises, spoiled

SESSION = {"type": "session", "trace_id": "t", "started_at": "2026-02-10T12:00:00.000Z", "tool": "claude", "model": "m"}
USAGE = {"input_tokens": 3, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 7, "output_tokens": 5}


def entry(request: Any, response: Any, kind: str = "anthropic-messages", **http: Any) -> dict[str, Any]:
    return {
        "type": "entry",
        "trace_id": "t",
        "timestamp": "2026-02-10T12:00:01.000Z",
        "gen_ai": {"system": "anthropic", "usage": {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8}},
        "usage_ext": {"cache_read_tokens": 90, "cache_write_tokens": 7, "thinking_tokens": 0, "cost_usd": None},
        "http": {"url": "https://host/v1/messages", "status_code": 200, "api_format": kind, **http},
        "context_lens": {"window_size": 200_000, "system_tokens": 1, "composition": [{"tokens": 4}]},
        "raw": {"request_body": request, "response_body": response},
    }


def asked(*texts: str) -> dict[str, Any]:
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    return {"model": "claude-opus-4-5", "system": "Be brief.", "messages": messages, "tools": []}


def answered(text: str) -> dict[str, Any]:
    about = {"id": f"msg_{text}", "type": "message", "role": "assistant", "model": "claude-opus-4-5"}
    return {**about, "content": [{"type": "text", "text": text}], "usage": USAGE}


def test_the_calls_of_an_archive_are_one_conversation_with_the_counts_of_their_answers():
    content = lines(SESSION, entry(asked("a"), answered("b")), entry(asked("a", "b", "c"), answered("d")))
    recording = read_as(FORMAT, content)
    (session,) = recording.sessions
    assert [(call.prompt_tokens, call.cached_tokens) for call in session.calls] == [(100, 90), (100, 90)]
    assert [event.parts[0].text for event in session.events] == ["a", "b", "c", "d"]
    assert session.system == (TextPart("Be brief."),)
    assert not recording.notes.problems
    assert session.calls[0].timestamp == 1770724801.0


def test_a_stream_is_put_together_wherever_the_archive_has_it():
    start = {**answered(""), "content": [], "usage": USAGE}
    events = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "b"}},
        {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 9}},
    ]
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    for response in (stream, {"streaming": True, "chunks": stream}):
        (session,) = read_as(FORMAT, lines(SESSION, entry(asked("a"), response))).sessions
        assert (session.calls[0].prompt_tokens, session.calls[0].output_tokens) == (100, 9)
        assert session.events[1].parts == (TextPart("b"),)


def test_the_object_around_an_export_is_read_like_the_lines():
    wrapped = {"lhar": {"version": "0.1.0", "sessions": [SESSION], "entries": [entry(asked("a"), answered("b"))]}}
    assert read_as(FORMAT, wrapped).facts.model_calls == 1


def test_an_archive_without_bodies_says_what_to_set():
    with pytest.raises(DamagedRecording, match="CONTEXT_LENS_PRIVACY=full"):
        read_as(FORMAT, lines(SESSION, entry(None, None)))


def test_a_failed_request_is_a_call_without_an_answer():
    failed = entry(asked("a"), {"type": "error", "error": {}}, status_code=529)
    (session,) = read_as(FORMAT, lines(SESSION, failed, entry(asked("a"), answered("b")))).sessions
    assert [call.prompt_tokens for call in session.calls] == [None, 100]


def test_lines_of_other_formats_are_not_taken():
    assert not recognises(FORMAT, lines({"type": "session", "id": "x", "timestamp": "2026"}))
    assert not recognises(FORMAT, {"log": {"entries": []}})


def test_hostile_entries_raise_nothing_else():
    check_hostile(FORMAT, (lines(SESSION, bad) for bad in spoiled(entry(asked("a"), answered("b")))))
