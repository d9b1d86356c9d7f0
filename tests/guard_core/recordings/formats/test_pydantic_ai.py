"""Messages of Pydantic AI."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guard_core import recordings
from guard_core.events import MediaPart, OtherPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.formats.pydantic_ai import FORMAT
from guard_core.sessions import Evidence
from guard_core.views import Inserted
from tests.guard_core.recordings.checks import check_hostile, lines, read_as, recognises, spoiled

TIME = "2026-03-01T10:00:01.500000Z"


def request(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    about = {"instructions": "Be brief.", "conversation_id": "talk-1", "run_id": "run-1", "state": "complete"}
    return {"parts": list(parts), "timestamp": TIME, **about, "kind": "request", **more}


def response(*parts: dict[str, Any], usage: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    about = {"model_name": "m-1", "timestamp": TIME, "provider_response_id": "r1", "provider_details": None}
    return {"parts": list(parts), "usage": usage or {}, **about, "kind": "response", **more}


def part(kind: str, content: Any = None, **more: Any) -> dict[str, Any]:
    return {"content": content, **more, "part_kind": kind}


def usage(prompt: int, **more: int) -> dict[str, Any]:
    return {"input_tokens": prompt, "cache_read_tokens": 60, "cache_write_tokens": 0, "output_tokens": 5, **more}


def called(name: str = "ls", call_id: str = "c1", args: Any = '{"path": "."}') -> dict[str, Any]:
    return {"tool_name": name, "args": args, "tool_call_id": call_id, "part_kind": "tool-call"}


def returned(content: Any = "a.txt", outcome: str = "success") -> dict[str, Any]:
    return part("tool-return", content, tool_name="ls", tool_call_id="c1", outcome=outcome, metadata={"x": 1})


def talk() -> list[dict[str, Any]]:
    return [
        request(part("system-prompt", "You list files."), part("user-prompt", "List files")),
        response(part("thinking", "Look", signature="AAAA"), called(), usage=usage(100, cache_write_tokens=30)),
        request(returned()),
        response(part("text", "One file"), usage=usage(150)),
    ]


def test_each_response_is_a_call_with_its_usage():
    recording = read_as(FORMAT, talk())
    session = recording.sessions[0]
    first, second = session.calls
    assert (first.prompt_tokens, first.cached_tokens, first.cache_write_tokens, first.output_tokens) == (100, 60, 30, 5)
    assert (second.at, second.response, second.prompt_tokens, second.model) == (3, 3, 150, "m-1")
    assert second.timestamp == 1772359201.5
    assert (recording.facts.model_calls, recording.facts.prompt_tokens_sum, recording.facts.messages) == (2, 250, 4)


def test_messages_have_their_parts():
    session = read_as(FORMAT, talk()).sessions[0]
    assert session.system == (TextPart("You list files."), TextPart("Be brief."))
    assert [event.parts for event in session.events] == [
        (TextPart("List files"),),
        (ReasoningPart("Look", opaque_bytes=3), ToolCallPart("ls", {"path": "."}, "c1")),
        (ToolResultPart("ls", "a.txt", "c1"),),
        (TextPart("One file"),),
    ]
    assert (session.source_id, session.model, session.agent) == ("talk-1", "m-1", "Pydantic AI")


@pytest.mark.parametrize("content", [{"messages": talk()}, lines(*talk())], ids=["wrapped", "lines"])
def test_other_places_of_the_same_messages(content):
    parts = [event.parts for event in read_as(FORMAT, content).sessions[0].events]
    assert parts == [event.parts for event in read_as(FORMAT, talk()).sessions[0].events]
    assert read_as(FORMAT, content).facts.prompt_tokens_sum == 250


@pytest.mark.parametrize(
    ("older", "counts"),
    [
        (
            {"requests": 1, "request_tokens": 100, "response_tokens": 5, "details": {"cached_tokens": 60}},
            (100, 60, None, 5),
        ),
        (
            {
                "request_tokens": 100,
                "response_tokens": 5,
                "details": {"input_tokens": 10, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30},
            },
            (100, 60, 30, 5),
        ),
        ({"request_tokens": None, "response_tokens": None, "details": None}, (None, None, None, None)),
        ({"input_tokens": 0, "output_tokens": 0, "cache_read_tokens": 0}, (None, None, None, None)),
    ],
    ids=["OpenAI", "Anthropic", "without", "zeros"],
)
def test_older_usage_has_the_cached_tokens_in_its_details(older, counts):
    recording = recordings.read(json.dumps([talk()[0], response(part("text", "Done"), usage=older)]).encode())
    [call] = recording.sessions[0].calls
    assert (call.prompt_tokens, call.cached_tokens, call.cache_write_tokens, call.output_tokens) == counts
    assert recording.notes.problems == []


def test_media_are_no_text():
    image = {"kind": "binary", "data": "AAAA", "media_type": "image/png", "identifier": "x"}
    place = {"kind": "document-url", "url": "https://a.test/a.pdf", "media_type": "application/pdf"}
    asked = part("user-prompt", ["See", image, place, {"kind": "cache-point", "ttl": "5m"}])
    session = read_as(FORMAT, [request(asked), response(called()), request(returned(["a.png", image]))]).sessions[0]
    png, pdf = MediaPart("image/png", size=3), MediaPart("application/pdf", uri="https://a.test/a.pdf")
    assert session.events[0].parts == (TextPart("See"), png, pdf)
    assert session.events[2].parts == (ToolResultPart("ls", "a.png", "c1"), png)


@pytest.mark.parametrize(
    "answer",
    [
        returned("wrong", "retried"),
        returned("wrong", "failed"),
        part("retry-prompt", "wrong", tool_name="ls", tool_call_id="c1"),
    ],
)
def test_a_retry_is_the_failed_result_of_its_call(answer):
    session = read_as(FORMAT, [talk()[0], response(called()), request(answer)]).sessions[0]
    assert session.events[2].parts == (ToolResultPart("ls", "wrong", "c1", True),)


def test_feedback_without_a_call_is_text():
    errors = [{"type": "missing", "loc": ["a"], "msg": "Field required"}]
    said = request(part("retry-prompt", errors, tool_name=None, tool_call_id="x"))
    session = read_as(FORMAT, [talk()[0], response(part("text", "?")), said]).sessions[0]
    assert "Field required" in session.events[2].parts[0].text


def test_a_summary_of_the_provider_takes_the_place_of_what_was_before():
    made = part("compaction", "What was done", provider_name="anthropic")
    later = response(part("text", "lost"), made, part("text", "On"), usage=usage(40))
    session = read_as(FORMAT, [*talk(), request(part("user-prompt", "Go on")), later]).sessions[0]
    [compaction] = session.compactions
    assert (compaction.at, compaction.kind, compaction.evidence) == (5, "summary", Evidence.DECLARED)
    assert (compaction.base, compaction.messages[0].parts) == ((Inserted(0),), (TextPart("What was done"),))
    assert session.events[5].parts == (TextPart("On"),)
    assert (session.calls[2].at, session.calls[2].prompt_tokens) == (5, 40)


def test_a_response_that_only_compacts_is_the_summarisers():
    sealed = part("compaction", None, provider_name="openai", provider_details={"encrypted_content": "AAAA"})
    recording = read_as(FORMAT, [*talk(), response(sealed, usage=usage(160)), request(part("user-prompt", "Go on"))])
    [compaction] = recording.sessions[0].compactions
    assert (compaction.at, compaction.kind, compaction.summariser.prompt_tokens) == (4, "opaque", 160)
    assert compaction.messages[0].parts == (ReasoningPart("", opaque_bytes=3),)
    assert (len(recording.sessions[0].calls), recording.facts.compactions, recording.facts.model_calls) == (2, 1, 3)


def test_a_history_may_begin_with_a_summary_of_the_application():
    first = request(part("system-prompt", "You list files."), part("compaction", "What was done"))
    session = read_as(FORMAT, [first, *talk()[1:]]).sessions[0]
    [compaction] = session.compactions
    assert (compaction.at, compaction.messages[0].parts) == (0, (TextPart("What was done"),))
    inside = [*talk(), request(part("compaction", "What was done"))]
    within = read_as(FORMAT, inside).sessions[0]
    assert (within.compactions, within.events[4].parts) == ((), (TextPart("What was done"),))


def test_other_instructions_later_are_noted():
    session = read_as(FORMAT, [*talk(), request(part("user-prompt", "On"), instructions="Be long.")]).sessions[0]
    assert any("The instructions changed: 1 other text in later requests" in note for note in session.notes)


def test_a_history_without_instructions_has_no_change_of_them():
    messages = [request(part("user-prompt", "On"), instructions=None), response(part("text", "Well"))]
    assert read_as(FORMAT, messages).sessions[0].notes == ("The schemas of the tools are not in the file.",)


def test_attempts_before_the_answer_count():
    words = "ModelHTTPError: prompt is too long: 210000 tokens > 200000 maximum"
    failed = {"model_name": "m-0", "outcome": "error", "error": words, "timestamp": TIME, "usage": None}
    rejected = {"model_name": "m-0", "outcome": "rejected", "error": None, "timestamp": TIME, "usage": usage(90)}
    answer = response(part("text", "One file"), usage=usage(150), failed_attempts=[failed, rejected])
    session = read_as(FORMAT, [*talk()[:3], answer]).sessions[0]
    assert (session.refused, session.refusals[0].limit) == ((3,), 200_000)
    assert [(call.model, call.prompt_tokens) for call in session.side_calls] == [("m-0", 90)]


def test_what_a_provider_ran_itself_is_kept_as_it_is():
    ran = {**called("web_search", "w1"), "part_kind": "builtin-tool-call"}
    session = read_as(FORMAT, [talk()[0], response(ran, part("text", "Found"))]).sessions[0]
    assert session.events[1].parts == (OtherPart("builtin-tool-call", ran), TextPart("Found"))


def test_accounts_of_instructions_and_tools_are_not_sent():
    kept = [
        part("instruction-baseline", instructions=[]),
        {"tools_added": ["ls"], "part_kind": "tool-availability-delta"},
    ]
    recording = read_as(FORMAT, [request(*kept, part("user-prompt", "List files"))])
    assert recording.sessions[0].events[0].parts == (TextPart("List files"),)
    assert recording.notes.skipped == {
        "part of the kind instruction-baseline": 1,
        "part of the kind tool-availability-delta": 1,
    }


@pytest.mark.parametrize(
    "other",
    [
        [{"kind": "request", "parts": [{"text": "Hi"}]}],
        [{"role": "user", "parts": [{"part_kind": "text"}]}],
        {"kind": "request", "parts": []},
        [{"role": "user", "content": "Hi"}],
        [{"kind": ["request"], "parts": []}],
    ],
)
def test_other_messages_are_not_taken(other):
    assert not recognises(FORMAT, other)


def test_wrong_types_anywhere_are_survived():
    check_hostile(FORMAT, (json.dumps(bad).encode() for bad in spoiled(talk()[:3])))
    compacted = [response(part("compaction", "x"), failed_attempts=[{"error": "e", "usage": usage(9)}])]
    check_hostile(FORMAT, (json.dumps(bad).encode() for bad in spoiled(compacted)))
