"""Anthropic messages and logs of their requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guard_core.events import MediaPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from guard_core.findings import Facts, recorded_findings
from guard_core.ledger import Ledger
from guard_core.outcomes.bill import CacheReach
from guard_core.recordings.formats.anthropic_messages import CLEARED, FORMAT
from guard_core.recordings.reading.cached_tokens import INSIDE
from guard_core.recordings.reading.fields import HOUR_TOKENS
from guard_core.sessions import Evidence
from guard_core.views import Rewritten
from tests.guard_core.recordings.checks import check_hostile, kept, lines, read_as, recognises, spoiled

USER = {"role": "user", "content": "List files"}
CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "ls", "input": {"path": "."}}]}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"}]}
DONE = {"role": "assistant", "content": [{"type": "text", "text": "One file"}]}
TALK = [USER, CALL, RESULT, DONE]


def logged(messages: list[dict[str, Any]], answer: dict[str, Any], fresh: int, read: int = 0) -> dict[str, Any]:
    usage = {
        "input_tokens": fresh,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": 1,
        "output_tokens": 5,
    }
    response = {"type": "message", "id": f"m{fresh}", "model": "c", "content": answer["content"], "usage": usage}
    return {"request": {"model": "c", "system": "Be brief.", "messages": messages}, "response": response}


def test_blocks_become_parts():
    session = read_as(FORMAT, TALK).sessions[0]
    assert session.events[1].parts == (ToolCallPart("ls", {"path": "."}, "t1"),)
    assert session.events[2].parts == (ToolResultPart("ls", "a.txt", "t1"),)
    assert [(step.at, step.prompt_tokens) for step in session.calls] == [(1, None), (3, None)]
    assert session.system is None


def test_thinking_is_reasoning_and_sealed_thinking_has_a_size_only():
    blocks = [
        {"type": "thinking", "thinking": "Hm", "signature": "QUJD"},
        {"type": "redacted_thinking", "data": "QUJDRA=="},
    ]
    session = read_as(FORMAT, [USER, {"role": "assistant", "content": blocks}]).sessions[0]
    assert session.events[1].parts == (ReasoningPart("Hm", 3), ReasoningPart(opaque_bytes=4))


def test_pictures_in_results_are_media_not_text():
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
    block = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "seen"}, picture]}
    session = read_as(FORMAT, [USER, CALL, {"role": "user", "content": [block]}]).sessions[0]
    assert session.events[2].parts[0].content == "seen"
    assert session.events[2].parts[1] == MediaPart("image/png", 3)


def test_a_request_body_brings_system_and_tools():
    tools = [{"name": "ls", "description": "List", "input_schema": {"type": "object"}}]
    body = {"model": "c", "system": [{"type": "text", "text": "Be brief."}], "tools": tools, "messages": TALK}
    session = read_as(FORMAT, body).sessions[0]
    assert session.system == (TextPart("Be brief."),)
    assert session.tools is not None
    assert session.tools[0].schema == {"type": "object"}


def test_prompt_tokens_of_a_log_are_fresh_read_and_written_together():
    recording = read_as(FORMAT, lines(logged(TALK[:1], CALL, 10, 90), logged(TALK[:3], DONE, 20, 100)))
    session = recording.sessions[0]
    assert [(step.at, step.response, step.prompt_tokens) for step in session.calls] == [(1, 1, 101), (3, 3, 121)]
    assert session.system == (TextPart("Be brief."),)
    assert recording.facts.prompt_tokens_sum == 222


def test_cached_tokens_that_a_gateway_counts_inside_the_input_are_not_added_again():
    said: list[dict[str, Any]] = [{"role": "user", "content": "Look"}]
    log = []
    for number, (tokens, read) in enumerate([(20_000, 0), (24_000, 19_968), (29_000, 23_936)]):
        answer = {"role": "assistant", "content": [{"type": "text", "text": f"Step {number}"}]}
        log.append(logged(list(said), answer, tokens, read))
        said += [answer, {"role": "user", "content": f"And {number}?"}]
    recording = read_as(FORMAT, lines(*log))
    (session,) = recording.sessions
    assert [call.prompt_tokens for call in session.calls] == [20_000, 24_000, 29_000]
    assert recording.facts.prompt_tokens_sum == 73_000
    assert INSIDE.format("3 calls") in session.notes


@pytest.mark.parametrize(("hour", "seconds"), [(None, 0), (0, 300), (1, 3_600)])
def test_how_long_the_cache_keeps_what_was_written_is_read(hour, seconds):
    entry = logged(TALK[:1], CALL, 10, 90)
    if hour is not None:
        entry["response"]["usage"]["cache_creation"] = {"ephemeral_5m_input_tokens": 1 - hour, HOUR_TOKENS: hour}
    session = read_as(FORMAT, entry).sessions[0]
    assert (session.calls[0].cache_hour_tokens, session.cache_seconds) == (hour, seconds)


def test_messages_of_a_log_have_the_time_of_the_request_that_sent_them():
    log = [logged(TALK[:1], CALL, 10), logged(TALK[:3], DONE, 20)]
    stamped = [{"timestamp": when, **entry} for when, entry in zip((1_700_000_000, 1_700_000_400), log, strict=True)]
    session = read_as(FORMAT, lines(*stamped)).sessions[0]
    assert [event.timestamp for event in session.events] == [1_700_000_000] * 2 + [1_700_000_400] * 2
    assert CacheReach.of(Ledger.of(session)).alive.tolist() == [False, False]


def test_a_history_that_shrank_is_an_inferred_compaction():
    short = [{"role": "user", "content": "<summary>one file</summary>"}, RESULT]
    shrunk = [logged(short, DONE, 40), logged([*short, DONE, USER], DONE, 45)]
    log = [logged(TALK[:1], CALL, 10), logged(TALK[:3], DONE, 90), *shrunk]
    recording = read_as(FORMAT, lines(*log))
    assert recording.facts.compactions == 0  # none that the file declares
    assert recording.sessions[0].compactions[0].evidence is Evidence.INFERRED


def test_messages_may_carry_their_own_usage():
    answered = {**DONE, "usage": {"input_tokens": 7, "cache_read_input_tokens": 3}}
    assert read_as(FORMAT, [USER, CALL, RESULT, answered]).facts.prompt_tokens_sum == 10


def test_a_streamed_answer_is_put_together():
    pieces = [
        {
            "type": "message_start",
            "message": {"id": "m1", "model": "c", "usage": {"input_tokens": 9, "output_tokens": 1}},
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "QUJD"}},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "t1", "name": "ls", "input": {}},
        },
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"path"'}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ': "."}'}},
        {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 5, "cache_read_input_tokens": 30}},
    ]
    lines_of_text = "".join(f"event: {piece['type']}\ndata: {json.dumps(piece)}\n\n" for piece in pieces)
    request = {"model": "c", "messages": TALK[:1]}
    line_by_line = {"stream": True, "sse_lines": lines_of_text.splitlines()}
    for response in (pieces, {"status_code": 200, "body_raw": lines_of_text}, line_by_line):
        recording = read_as(FORMAT, lines({"request": {"body": request}, "response": response}))
        (session,) = recording.sessions
        assert session.events[1].parts == (ReasoningPart("Hm", 3), ToolCallPart("ls", {"path": "."}, "t1"))
        assert [(step.prompt_tokens, step.output_tokens) for step in session.calls] == [(39, 5)]


def test_a_request_that_counts_tokens_is_no_call():
    counted = {"request": {"model": "c", "messages": TALK[:1]}, "response": {"input_tokens": 12}}
    recording = read_as(FORMAT, lines(counted, logged(TALK[:1], CALL, 10)))
    assert len(recording.sessions[0].calls) == 1
    assert recording.notes.skipped == {"request that only counts tokens": 1}


def test_a_compaction_by_the_provider_is_declared_in_a_log_and_in_a_bare_array():
    block = {"type": "compaction", "content": "One file was found"}
    answered = {"role": "assistant", "content": [block, *DONE["content"]]}
    thanks = {"role": "user", "content": "Thanks"}
    first = logged(TALK[:1], CALL, 10)
    second = logged(TALK[:3], answered, 50)
    second["response"]["usage"]["iterations"] = [{"type": "compaction", "input_tokens": 180, "output_tokens": 9}]
    second["request"]["context_management"] = {"edits": [{"type": "compact_20260112"}]}
    recording = read_as(FORMAT, lines(first, second, logged([*TALK[:3], answered, thanks], DONE, 60)))
    (session,) = recording.sessions
    (compaction,) = session.compactions
    assert (compaction.at, compaction.kind, compaction.evidence) == (3, "summary", Evidence.DECLARED)
    assert (kept(compaction.base), texts_of(compaction.messages)) == ([], ["One file was found"])
    assert (compaction.trigger, compaction.tokens_before) == ("auto", 180)
    assert [call.at for call in session.calls] == [1, 3, 5]
    assert compaction.summariser is not None
    assert compaction.summariser.prompt_tokens == 180
    assert recording.facts.compactions == 1
    bare = read_as(FORMAT, [*TALK[:3], answered, USER])
    assert [(item.at, texts_of(item.messages)) for item in bare.sessions[0].compactions] == [
        (3, ["One file was found"])
    ]


def texts_of(messages: Any) -> list[str]:
    return [part.text for event in messages for part in event.parts]


def cleared(entry: dict[str, Any], results: int, tokens: int) -> dict[str, Any]:
    """A logged request whose response says that the provider cleared so many tool results."""
    edit = {"type": "clear_tool_uses_20250919", "cleared_tool_uses": results, "cleared_input_tokens": tokens}
    entry["response"]["context_management"] = {"applied_edits": [edit]}
    return entry


def looked(number: int, name: str = "ls") -> list[dict[str, Any]]:
    """A tool call with its result."""
    call = {"type": "tool_use", "id": f"t{number}", "name": name, "input": {}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"file {number} " * 400}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def test_results_that_the_provider_cleared_are_not_in_the_request_that_was_read():
    talk = [USER, *looked(1, "memory"), *looked(2), *looked(3), *looked(4)]
    entries = [
        logged(talk[:5], talk[5], 2_000),
        cleared(logged(talk[:7], talk[7], 2_001), 1, 900),
        cleared(logged(talk, DONE, 2_002), 2, 1_800),
        logged([*talk, DONE, USER], DONE, 4_000),
    ]
    for entry in entries:
        entry["request"]["context_management"] = {"edits": [{"exclude_tools": ["memory"]}]}
    recording = read_as(FORMAT, lines(*entries))
    (session,) = recording.sessions
    views = [
        [(part.event, part.message.parts[0].content) for part in item.base if isinstance(part, Rewritten)]
        for item in session.compactions
    ]
    assert views == [[(4, CLEARED)], [(4, CLEARED), (6, CLEARED)], []]
    assert {(item.kind, item.evidence) for item in session.compactions} == {("edit", Evidence.DECLARED)}
    assert session.compactions[0].note == (
        "The provider cleared the oldest tool result of this request: 900 tokens by its count."
    )
    assert any("up to 2 of one request (1,800 tokens by its count)" in note for note in session.notes)
    assert recording.facts.compactions == 0


def test_no_fall_is_called_unrecorded_where_the_provider_says_that_it_cleared_results():
    talk = [USER, *(message for number in range(8) for message in looked(number))]
    entries = [logged(talk[: 2 * n + 1], talk[2 * n + 1], 2_000 + 1_000 * n) for n in range(7)]
    entries.append(cleared(logged(talk[:15], talk[15], 4_000), 5, 5_000))
    facts = Facts.of(read_as(FORMAT, lines(*entries)).sessions[0])
    assert "silent_truncation" not in {finding.kind for finding in recorded_findings(facts)}


def test_a_document_in_words_is_text_and_pages_found_are_without_what_is_sealed():
    words = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Some words"}}
    page = {"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "QUJD"}
    result = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [page]}
    session = read_as(
        FORMAT, [{"role": "user", "content": [words]}, {"role": "assistant", "content": [result]}]
    ).sessions[0]
    assert session.events[0].parts == (TextPart("Some words"),)
    assert session.events[1].parts[0].value["content"] == [{"type": "web_search_result", "url": "u", "title": "t"}]


def test_it_leaves_plain_chats_to_the_chat_reader():
    assert not recognises(FORMAT, [USER, {"role": "assistant", "content": "Hi"}])
    assert not recognises(FORMAT, {"messages": [USER]})


def test_wrong_types_anywhere_are_survived():
    check_hostile(FORMAT, [json.dumps(bad).encode() for bad in spoiled(TALK)])
    entry = logged(TALK[:3], DONE, 20)
    check_hostile(FORMAT, [lines(bad, entry) for bad in spoiled(entry)])
    compacted = {"role": "assistant", "content": [{"type": "compaction", "content": "One file"}, *DONE["content"]]}
    check_hostile(FORMAT, [lines(entry, bad) for bad in spoiled(logged([*TALK[:3], compacted], compacted, 9))])


def without_thinking(entry: dict[str, Any], turns: int, tokens: int) -> dict[str, Any]:
    """A logged request whose response says that the provider cleared the thinking of so many turns."""
    edit = {
        "type": "clear_thinking_20251015",
        "cleared_thinking_turns": turns,
        "cleared_input_tokens": tokens,
    }
    entry["response"].setdefault("context_management", {"applied_edits": []})["applied_edits"].append(edit)
    return entry


def thought(words: str, block: dict[str, Any]) -> dict[str, Any]:
    thinking = {"type": "thinking", "thinking": f"Perhaps {words}. " * 40, "signature": "s"}
    return {"role": "assistant", "content": [thinking, block]}


def test_thinking_that_the_provider_cleared_is_named_and_not_in_the_request_that_was_read():
    """Of the oldest turns that have any: a turn is what follows from one message of the user to the next."""
    call, result = looked(1)
    first = [USER, thought("ls", call["content"][0]), result, thought("one", {"type": "text", "text": "One."})]
    second = [{"role": "user", "content": "And?"}, thought("two", {"type": "text", "text": "Two."})]
    talk = [*first, *second, {"role": "user", "content": "Thanks"}]
    entries = [
        logged(talk[:3], talk[3], 1_400),
        without_thinking(logged(talk[:5], talk[5], 1_450), 1, 400),
        without_thinking(cleared(logged(talk, DONE, 1_500), 1, 900), 2, 800),
    ]
    recording = read_as(FORMAT, lines(*entries))
    (session,) = recording.sessions
    views = [[part.event for part in item.base if isinstance(part, Rewritten)] for item in session.compactions]
    assert views == [[1, 3], [1, 2, 3, 5]]
    rewritten = [part.message for item in session.compactions for part in item.base if isinstance(part, Rewritten)]
    assert not any(isinstance(part, ReasoningPart) for event in rewritten for part in event.parts)
    assert [item.note for item in session.compactions] == [
        "The provider cleared the thinking of the oldest turn with thinking in this request: 400 tokens by its count.",
        "The provider cleared the oldest tool result of this request: 900 tokens by its count. The provider cleared "
        "the thinking of the oldest 2 turns with thinking in this request: 800 tokens by its count.",
    ]
    assert any("of up to 2 turns with thinking in one request (800 tokens by its count)" in it for it in session.notes)
