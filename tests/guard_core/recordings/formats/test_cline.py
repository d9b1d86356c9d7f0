"""Task files of Cline and Roo Code."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest

from guard_core.errors import DamagedRecording
from guard_core.events import ReasoningPart, ToolResultPart
from guard_core.recordings.formats.cline.format import FORMAT
from guard_core.recordings.formats.cline.screen import FORKS_NOTE
from guard_core.sessions import Evidence
from guard_core.views import Inserted, Span
from tests.guard_core.recordings.checks import (
    check_hostile,
    check_sample_facts,
    check_session,
    kept,
    read_as,
    recognises,
    spoiled,
    texts,
)

START = 1_770_000_000_000  # milliseconds


def user(second: int, words: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": words}], "ts": START + second * 1000, **more}


def assistant(second: int, words: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": words}], "ts": START + second * 1000, **more}


def metrics(prompt: int, cached: int) -> dict[str, Any]:
    return {"metrics": {"tokens": {"prompt": prompt, "completion": 5, "cached": cached}}, "modelInfo": {"modelId": "m"}}


TASK = user(0, "<task>List files</task>")


def session_of(*messages: dict[str, Any]):
    session = read_as(FORMAT, list(messages)).sessions[0]
    check_session(session)
    return session


def test_cached_tokens_that_exceed_the_prompt_stand_apart_from_it():
    session = session_of(
        TASK, assistant(1, "Yes", **metrics(4, 90)), user(2, "Go"), assistant(3, "Ok", **metrics(50, 40))
    )
    assert [(step.at, step.prompt_tokens) for step in session.calls] == [(1, 94), (3, 90)]
    assert session.calls[0].model == "m"


def test_cached_tokens_within_the_prompt_are_a_part_of_it():
    session = session_of(TASK, assistant(1, "Yes", **metrics(94, 90)))
    assert session.calls[0].prompt_tokens == 94


def test_a_known_provider_tells_whether_cached_tokens_stand_apart():
    def told(provider):
        more = metrics(94, 90) | {"modelInfo": {"modelId": "m", "providerId": provider}}
        return session_of(TASK, assistant(1, "Yes", **more)).calls[0].prompt_tokens

    assert (told("openai"), told("openrouter")) == (94, 184)


def test_each_provider_of_a_task_counts_cached_tokens_its_own_way():
    def answer(at, provider, *counts):
        return assistant(at, "Yes", **metrics(*counts) | {"modelInfo": {"modelId": "m", "providerId": provider}})

    session = session_of(TASK, answer(1, "anthropic", 4, 90), user(2, "Go"), answer(3, "openai", 150, 100))
    assert [step.prompt_tokens for step in session.calls] == [94, 150]


def test_a_message_that_an_sdk_compaction_left_stands_for_all_before_it():
    about = {"kind": "compaction_summary", "summary": "One file", "tokensBefore": 900, "generatedAt": START + 4000}
    summary = {"role": "user", "content": [{"type": "text", "text": "Context summary: One file"}], "metadata": about}
    value = {"version": 1, "conversation_id": "s", "messages": [summary, assistant(3, "I look", **metrics(4, 90))]}
    session = read_as(FORMAT, value).sessions[0]
    check_session(session)
    compaction = session.compactions[0]
    assert (compaction.at, compaction.tokens_before, compaction.base) == (0, 900, (Inserted(0),))
    assert (texts(session), session.source_id) == (["I look"], "s")


def archive(**files: Any) -> bytes:
    """A ZIP archive of JSON files of the session "s"."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as packed:
        for name, value in files.items():
            packed.writestr(f"s/s.{name}.json", json.dumps(value))
    return stream.getvalue()


def test_an_archive_of_an_sdk_session_has_the_compaction_that_lies_beside_it():
    """After it, 3.0.65 sent the summary and the newest messages."""
    about = {"kind": "compaction_summary", "tokensBefore": 900, "generatedAt": START + 3000}
    summary = {"role": "user", "content": [{"type": "text", "text": "Context summary: one"}], "metadata": about}
    log = [user(0, "List", id="m1"), assistant(1, "Look", id="m2"), user(2, "Go", id="m3"), assistant(4, "On", id="m4")]
    origin = {"version": 1, "sessionId": "s", "agent": "lead", "origin": {"version": "3.0.65"}}
    left = {"conversation_id": "s", "source_message_count": 3, "messages": [summary, *log[1:3]]}
    recording = read_as(FORMAT, archive(messages={**origin, "messages": log}, compaction=left))
    (session,) = recording.sessions
    check_session(session)
    assert texts(session) == ["List", "Look", "Go", "On"]
    (compaction,) = session.compactions
    assert (compaction.at, compaction.kind, compaction.tokens_before) == (3, "summary+tail", 900)
    assert compaction.base == (Inserted(0), Span(1, 3))
    assert (session.version, session.agent, recording.facts.compactions) == ("3.0.65", "Cline", 1)
    (lone,) = read_as(FORMAT, archive(messages={**origin, "messages": log}, other={})).sessions
    assert (texts(lone), lone.compactions) == (texts(session), ())
    assert any("it had none, or it is missing" in note for note in lone.notes)
    assert not recognises(FORMAT, archive(messages={"messages": []}))
    alone = read_as(FORMAT, {**origin, "messages": log}).sessions[0]
    assert any("Compactions are in a file beside this one" in note for note in alone.notes)


def test_a_damaged_session_of_an_archive_leaves_the_others():
    log = [user(0, "List", id="m1"), assistant(1, "Look", id="m2")]
    whole = {"version": 1, "sessionId": "s", "agent": "lead", "origin": {"version": "3.0.65"}, "messages": log}
    stream = io.BytesIO(archive(messages=whole))
    with zipfile.ZipFile(stream, "a") as packed:
        packed.writestr("t/t.messages.json", "{broken")
    recording = read_as(FORMAT, stream.getvalue())
    assert [texts(one) for one in recording.sessions] == [["List", "Look"]]
    (problem,) = recording.notes.problems
    assert problem.message.startswith("t/t.messages.json: not valid JSON")
    with pytest.raises(DamagedRecording, match="not valid JSON"):
        read_as(FORMAT, stream.getvalue(), strict=True)


def test_users_of_the_sdk_are_sent_without_the_tags_of_their_input():
    value = {"version": 1, "sessionId": "s", "messages": [user(0, '<user_input mode="act">List</user_input>')]}
    assert texts(read_as(FORMAT, value).sessions[0]) == ["List"]


def test_input_tokens_of_sdk_sessions_include_the_cache():
    message = assistant(1, "Yes", metrics={"inputTokens": 100, "cacheReadTokens": 90}, modelInfo={"id": "m"})
    value = {"version": 1, "sessionId": "s", "system_prompt": "Be brief.", "messages": [TASK, message]}
    session = read_as(FORMAT, value).sessions[0]
    assert session.calls[0].prompt_tokens == 100
    assert session.system is not None
    assert session.source_id == "s"


def test_results_written_as_text_are_results_and_begin_no_turn():
    called = assistant(1, "I look")
    called["content"].append({"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "a"}})
    answered = user(2, "[read_file for 'a'] Result:\nhello")
    recording = read_as(FORMAT, [TASK, called, answered, user(3, "<environment_details>x</environment_details>")])
    events = recording.sessions[0].events
    assert isinstance(events[2].parts[0], ToolResultPart)
    assert events[2].parts[0].call_id == "t1"
    assert [event.starts_turn() for event in events] == [True, False, False, False]
    assert recording.facts.tool_results == 0


def test_a_heading_of_a_result_takes_the_text_behind_it():
    blocks = ["[read_file for 'a'] Result:", "hello", "<environment_details>x</environment_details>"]
    answered = {"role": "user", "content": [{"type": "text", "text": text} for text in blocks], "ts": START + 2000}
    parts = session_of(TASK, assistant(1, "I look"), answered).events[2].parts
    assert (len(parts), parts[0].content) == (2, "[read_file for 'a'] Result:\nhello")


def test_reasoning_that_stands_alone_or_beside_belongs_to_its_answer():
    alone = {"type": "reasoning", "role": "assistant", "summary": [{"text": "Files first."}], "ts": START}
    alone["encrypted_content"] = "AAAA"
    session = session_of(
        TASK, alone, assistant(1, "Yes"), user(2, "Go"), assistant(3, "Ok", reasoning_content="Then b.")
    )
    assert session.events[1].parts[0] == ReasoningPart("Files first.", opaque_bytes=3)
    assert session.events[3].parts[0] == ReasoningPart("Then b.")
    assert len(session.calls) == 2


def test_content_that_is_no_content_is_told():
    recording = read_as(FORMAT, [TASK, assistant(1, "Yes") | {"content": 7}])
    assert recording.notes.problems[0].message == "a message whose content is a number, left out"


def test_a_roo_summary_hides_the_messages_that_name_it():
    old = [assistant(1, "Yes", condenseParent="k"), user(2, "Go", condenseParent="k")]
    summary = user(3, "One file was listed", isSummary=True, condenseId="k")
    session = session_of(TASK, *old, summary, assistant(4, "Next"))
    compaction = session.compactions[0]
    assert (compaction.at, compaction.evidence, compaction.kind) == (3, Evidence.DECLARED, "summary")
    assert kept(compaction.base) == [0]
    assert compaction.messages[0].parts[0].text == "One file was listed"
    assert "One file was listed" not in texts(session)


def test_a_truncation_is_placed_by_its_time_not_by_where_its_marker_stands():
    hidden = [assistant(1, "Yes", truncationParent="t"), user(2, "Go", truncationParent="t")]
    marker = user(9, "[2 messages hidden]", isTruncationMarker=True, truncationId="t")
    session = session_of(TASK, *hidden, marker, assistant(5, "Later"), user(10, "On"), assistant(11, "End"))
    compaction = session.compactions[0]
    assert (compaction.at, compaction.kind) == (4, "trim")
    assert kept(compaction.base) == [0, 3]


def test_text_that_only_looks_like_a_marker_is_no_compaction():
    note = "[NOTE] Some previous conversation history with the user has been removed"
    assert session_of(TASK, user(1, note), assistant(2, "Yes")).compactions == ()


def say(second: int, kind: str, text: str = "", **more: Any) -> dict[str, Any]:
    return {"ts": START + second * 1000, "type": "say", "say": kind, "text": text, **more}


def test_the_screen_of_newer_versions_names_the_model_of_each_call():
    about = {"providerId": "cline", "modelId": "x-ai/grok-4", "mode": "act"}
    started = {**say(1, "api_req_started", json.dumps({"tokensIn": 10})), "modelInfo": about}
    messages = [say(0, "text", "List files"), started, say(2, "text", "I look"), say(3, "api_req_started", "{}")]
    assert [call.model for call in read_as(FORMAT, messages).sessions[0].calls] == ["x-ai/grok-4", ""]


def test_the_screen_has_calls_with_tokens():
    request = json.dumps({"tokensIn": 4, "tokensOut": 9, "cacheReads": 90, "cacheWrites": 6})
    messages = [say(0, "text", "List files"), say(1, "api_req_started", request), say(2, "text", "I look")]
    recording = read_as(FORMAT, [*messages, say(3, "text", "half", partial=True), say(4, "user_feedback", "Go on")])
    session = recording.sessions[0]
    assert [(step.at, step.response, step.prompt_tokens) for step in session.calls] == [(1, 1, 100)]
    assert [event.starts_turn() for event in session.events] == [True, False, True]


def started(second: int, **about: Any) -> dict[str, Any]:
    return say(second, "api_req_started", json.dumps(about))


def test_newer_versions_of_roo_count_cached_tokens_in_all_input():
    messages = [
        say(0, "text", "Go"),
        started(1, tokensIn=100, cacheReads=90, apiProtocol="anthropic"),
        say(2, "text", "Ok"),
    ]
    assert read_as(FORMAT, messages).facts.prompt_tokens_sum == 100
    apart = [*messages, started(3, tokensIn=4, cacheReads=96, apiProtocol="anthropic")]
    assert read_as(FORMAT, apart).facts.prompt_tokens_sum == 290


def test_what_a_request_tells_is_told_where_it_cannot_be_read():
    messages = [
        say(0, "text", "Go"),
        say(1, "api_req_started", '{"tokensIn":' + "9" * 21 + "}"),
        started(2, tokensIn=1.5),
    ]
    recording = read_as(FORMAT, messages)
    assert len(recording.sessions[0].calls) == 2
    assert ["21 digits" in recording.notes.problems[0].message, "1.5" in recording.notes.problems[1].message] == [
        True
    ] * 2


def test_a_deleted_range_is_a_compaction_from_the_next_request_on():
    def spoken(second: int, kind: str, text: str, index: int, **more: Any) -> dict[str, Any]:
        return say(second, kind, text, conversationHistoryIndex=index, **more)

    cut = {"conversationHistoryDeletedRange": [1, 2]}
    messages = [spoken(0, "text", "Go", -1), started(1, tokensIn=90), spoken(2, "text", "I look", 0)]
    messages += [spoken(3, "user_feedback", "More", 1), started(4, tokensIn=50), spoken(5, "text", "Next", 2, **cut)]
    recording = read_as(FORMAT, [*messages, spoken(6, "text", "Done", 2, **cut)])
    check_session(recording.sessions[0])
    compactions = recording.sessions[0].compactions
    assert [(item.at, item.kind, kept(item.base)) for item in compactions] == [(3, "trim", [0])]
    assert recording.sessions[0].calls[1].at == 3


def test_a_condensed_context_has_tokens_before_and_after():
    about = {"summary": "One file", "prevContextTokens": 900, "newContextTokens": 90}
    recording = read_as(FORMAT, [say(0, "text", "Go"), say(1, "condense_context", contextCondense=about)])
    compaction = recording.sessions[0].compactions[0]
    assert (compaction.tokens_before, compaction.tokens_after) == (900, 90)
    assert recording.facts.compactions == 1


def test_it_does_not_take_other_json():
    assert not recognises(FORMAT, [{"role": "user", "content": "Hi"}])
    assert not recognises(FORMAT, {"messages": [{"role": "user", "content": "Hi"}]})


def test_the_oldest_files_are_known_by_words_and_sidecars_by_their_keys():
    words = [{"type": "text", "text": text} for text in ("<task>List files</task>", "<environment_details>x")]
    bare = {"role": "user", "content": words}
    assert recognises(FORMAT, [bare, {"role": "assistant", "content": "Yes"}])
    assert not recognises(FORMAT, [{"role": "user", "content": words[:1]}])
    assert recognises(FORMAT, {"conversation_id": "s", "source_message_count": 3, "messages": [bare]})


def test_wrong_types_anywhere_are_survived():
    history = [
        TASK,
        assistant(1, "Yes", condenseParent="k", **metrics(4, 90)),
        user(3, "S", isSummary=True, condenseId="k"),
        user(9, "[2 hidden]", isTruncationMarker=True, truncationId="t"),
    ]
    check_hostile(FORMAT, [json.dumps(bad).encode() for bad in spoiled(history)])
    request = say(1, "api_req_started", json.dumps({"tokensIn": "x", "cacheReads": [1]}))
    screen = [say(0, "text", "Go"), request, say(1, "condense_context", contextCondense={"summary": "S"})]
    check_hostile(FORMAT, [json.dumps(bad).encode() for bad in spoiled(screen)])


def test_the_facts_of_the_samples_are_equal():
    check_sample_facts(FORMAT, "cline")


def test_what_only_roo_code_writes_names_it():
    condensed = say(3, "condense_context", contextCondense={"summary": "s", "prevContextTokens": 9})
    cut = say(3, "sliding_window_truncation", contextTruncation={"prevContextTokens": 9})
    plain = [say(0, "text", "Go"), started(1, tokensIn=9), say(2, "text", "Ok")]
    newer = [say(0, "text", "Go"), started(1, tokensIn=9, apiProtocol="openai"), say(2, "text", "Ok")]
    screens = ([*plain, condensed], [*plain, cut], newer, plain)
    agents = [read_as(FORMAT, messages).sessions[0].agent for messages in screens]
    assert agents == ["Roo Code"] * 3 + ["Cline"]
    summary = user(3, "One file was listed", isSummary=True, condenseId="k")
    condensed_task = session_of(TASK, assistant(1, "Yes"), summary, assistant(4, "Next"))
    assert condensed_task.agent == "Roo Code"
    assert FORKS_NOTE in condensed_task.notes
    assert session_of(TASK, assistant(1, "Yes")).agent == "Cline"
