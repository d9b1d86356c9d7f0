"""Sessions of pi."""

from __future__ import annotations

from typing import Any

import pytest

from guard_core.checker import check
from guard_core.errors import DamagedRecording
from guard_core.events import TextPart, ToolResultPart
from guard_core.findings import Facts, recorded_findings
from guard_core.recordings.formats.pi.session import FORMAT
from guard_core.sessions import LeftBranches
from guard_core.views import Inserted, Span
from guard_core.windows.window_evidence import Status, judge_session, other_windows
from tests.guard_core.recordings.checks import (
    check_hostile,
    check_sample_facts,
    kept,
    lines,
    read_as,
    recognises,
    spoiled,
    texts,
)

TIME = "2026-03-01T10:00:00.000Z"
HEADER = {"type": "session", "version": 3, "id": "s1", "timestamp": TIME, "cwd": "/repo"}


def entry(entry_id: str, parent: str | None, kind: str = "message", **fields: Any) -> dict[str, Any]:
    return {"type": kind, "id": entry_id, "parentId": parent, "timestamp": TIME, **fields}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def assistant(text: str, prompt: int = 100, *calls: str, reason: str = "stop") -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    blocks += [{"type": "toolCall", "id": call, "name": "bash", "arguments": {"command": "ls"}} for call in calls]
    usage = {"input": prompt // 2, "cacheRead": prompt - prompt // 2, "cacheWrite": 0, "output": 7}
    return {"role": "assistant", "content": blocks, "usage": usage, "model": "m", "stopReason": reason}


def result(call: str, text: str = "a.txt") -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"role": "toolResult", "toolCallId": call, "toolName": "bash", "content": content, "isError": False}


def chain(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    """Entries e0, e1, ... each the child of the one before."""
    return [entry(f"e{i}", f"e{i - 1}" if i else None, message=message) for i, message in enumerate(messages)]


TALK = chain(user("List files"), assistant("I look", 100, "c1"), result("c1"), assistant("Done", 140), user("More"))


def session_of(*entries: dict[str, Any], header: dict[str, Any] = HEADER):
    return read_as(FORMAT, lines(header, *entries)).sessions[0]


def test_an_entry_whose_parent_is_not_in_the_file_is_named():
    named = [
        entry(f"5e7a0c{place:02x}", f"5e7a0c{place - 1:02x}" if place else None, message=one["message"])
        for place, one in enumerate(TALK)
    ]
    assert not any("follows" in note for note in session_of(*named).notes)
    words = "The entry on line 4 follows one that is not in the file: what that one held is not known."
    assert words in session_of(*named[:2], *named[3:]).notes
    unlike = [*named[:3], {**named[3], "parentId": "toolu_01"}, *named[4:]]  # no id of an entry
    assert not any("follows" in note for note in session_of(*unlike).notes)


def test_prompt_tokens_are_input_and_cache_together():
    session = session_of(*TALK)
    assert [(call.at, call.prompt_tokens, call.cached_tokens) for call in session.calls] == [(1, 100, 50), (3, 140, 70)]
    assert session.events[2].parts == (ToolResultPart("bash", "a.txt", "c1"),)
    assert session.system is None


def test_a_model_that_github_copilot_serves_has_the_window_of_that_service():
    served, own = ({"model": "gpt-5.4", "provider": provider} for provider in ("github-copilot", "openai"))
    answers = (assistant("A", 90) | served, assistant("B", 100) | served, assistant("C", 120) | own)
    session = session_of(*chain(user("List"), answers[0], user("More"), answers[1], user("And?"), answers[2]))
    assert [call.model for call in session.calls] == ["github-copilot/gpt-5.4"] * 2 + ["gpt-5.4"]
    assert (judge_session(session).value, other_windows(session)) == (400_000, [0, 0, 1_050_000])


@pytest.mark.parametrize(
    ("model", "prompt", "window"),
    [
        ("gpt-5.5", 200_000, (272_000, Status.TABLE)),
        ("gpt-5.5", 300_000, (272_000, Status.CONTRADICTED)),
        ("gpt-5.3-codex-spark", 100_000, (128_000, Status.TABLE)),
        ("gpt-5.6-sol", 200_000, (272_000, Status.TABLE)),
        ("gpt-5.6-sol", 371_000, (372_000, Status.TABLE)),  # it had that at first
    ],
)
def test_a_model_of_a_subscription_to_chatgpt_has_the_window_of_that_service(model, prompt, window):
    answer = assistant("A", prompt) | {"model": model, "provider": "openai-codex"}
    session = session_of(*chain(user("List"), answer))
    judged = judge_session(session)
    assert [call.model for call in session.calls] == [f"openai-codex/{model}"]
    assert (judged.value, judged.status) == window


def test_only_the_path_to_the_last_entry_is_in_the_log():
    branch = [entry("b0", "e1", message=result("c1", "b.txt")), entry("b1", "b0", message=assistant("Other", 120))]
    recording = read_as(FORMAT, lines(HEADER, *TALK, *branch))
    session = recording.sessions[0]
    assert texts(session) == ["List files", "I look", "", "Other"]
    assert [call.prompt_tokens for call in session.side_calls] == [140]
    assert recording.facts.model_calls == 3


def test_what_branches_that_were_left_hold_is_counted_apart():
    failed = {**assistant("", 0, reason="error"), "errorMessage": "prompt is too long: 210000 tokens > 200000 maximum"}
    left = [entry("x0", "e4", message=failed), entry("x1", "x0", "compaction", summary="Files", tokensBefore=150)]
    back = entry("b1", "e1", message=assistant("Other", 120))
    assert session_of(*TALK, *left, back).left == LeftBranches(messages=4, compactions=1, refused=1, largest=140)
    assert session_of(*TALK).left is None


def test_an_aborted_answer_without_usage_is_no_call():
    aborted = assistant("", 0, reason="aborted")
    session = session_of(*chain(user("Go"), aborted, user("Go on"), assistant("Yes", 60)))
    assert [call.prompt_tokens for call in session.calls] == [60]
    assert texts(session) == ["Go", "Go on", "Yes"]


def test_the_words_of_an_aborted_answer_are_never_sent_again_since_version_three():
    talk = chain(user("Go"), assistant("I beg", 50, reason="aborted"), user("Go on"), assistant("Yes", 60))
    session = session_of(*talk)
    assert texts(session) == ["Go", "Go on", "Yes"]
    assert [(call.at, call.response, call.prompt_tokens) for call in session.calls] == [(1, None, 50), (2, 2, 60)]
    assert any("1 answer aborted or failed" in note for note in session.notes)
    older = session_of(*talk, header={**HEADER, "version": 2})
    assert texts(older) == ["Go", "I beg", "Go on", "Yes"]


def test_a_compaction_keeps_the_entries_from_the_first_kept_on():
    cut = entry("k", "e4", "compaction", summary="Files were listed", firstKeptEntryId="e3", tokensBefore=150)
    session = session_of(*TALK, cut, entry("e5", "k", message=assistant("Yes", 80)))
    compaction = session.compactions[0]
    assert (compaction.at, compaction.kind, compaction.tokens_before) == (5, "summary+tail", 150)
    assert kept(compaction.base) == [3, 4]
    assert "Files were listed" in compaction.messages[0].parts[0].text
    assert not any("Files were listed" in text for text in texts(session))


def test_an_older_summary_in_what_is_kept_is_sent_at_its_place_where_compactions_name_their_usage():
    def view(kept="e4", **fields):
        first = entry("k", "e4", "compaction", summary="First", firstKeptEntryId="e3", tokensBefore=150, **fields)
        talk = [entry("e5", "k", message=assistant("Yes", 80)), entry("e6", "e5", message=user("Go on"))]
        again = entry("l", "e6", "compaction", summary="Second", firstKeptEntryId=kept, tokensBefore=150, **fields)
        session = session_of(*TALK, first, *talk, again, entry("e7", "l", message=assistant("Sure", 90)))
        newest = session.compactions[1]
        return newest.base, [message.parts[0].text.split("<summary>")[1].split()[0] for message in newest.messages]

    assert view() == ((Inserted(0), Span(4, 7)), ["Second"])
    assert view(usage={"input": 9}) == ((Inserted(0), Span(4, 5), Inserted(1), Span(5, 7)), ["Second", "First"])
    assert view("k", usage={"input": 9}) == ((Inserted(0), Inserted(1), Span(5, 7)), ["Second", "First"])
    assert view("e5", usage={"input": 9}) == ((Inserted(0), Span(5, 7)), ["Second"])
    newer = {"usage": {"input": 9}, "systemMessage": {"role": "system", "content": ""}}
    assert view(**newer) == ((Inserted(0), Span(4, 7)), ["Second"])


SYSTEM = {"role": "system", "content": "", "sections": {"preamble": "You are pi."}}
REFUSED = {**assistant("", 0, reason="error"), "errorMessage": "prompt is too long: 9 tokens > 8 maximum"}


@pytest.mark.parametrize(
    ("messages", "fields", "looks"),
    [
        ([SYSTEM, *(item["message"] for item in TALK)], {}, True),  # 0.86 and later
        ([user("Go"), assistant("", 90, "c1"), result("c1")], {"usage": {}}, True),
        ([user("Go"), assistant("", 90, "c1"), result("c1")], {}, False),  # a person asked for it
        ([user("Go"), assistant("", 90, "c1"), result("c1")], {"usage": {}, "fromHook": True}, False),
        ([user("Go"), assistant("", 90, "c1"), result("c1"), REFUSED], {"usage": {}}, False),
        ([user("Go"), assistant("Done", 90)], {"usage": {}}, False),  # 0.84.2 does no other
    ],
)
def test_a_session_shows_whether_pi_looks_within_turns(messages, fields, looks):
    entries = chain(*messages)
    cut = entry("k", entries[-1]["id"], "compaction", summary="S", firstKeptEntryId="e1", tokensBefore=90, **fields)
    settings = session_of(*entries, cut).settings
    assert [item.name for item in settings] == ["looks_within_turns"] * looks


def test_version_one_counts_its_first_kept_entry_over_all_entries():
    flat = [{"type": "message", "timestamp": TIME, "message": item["message"]} for item in TALK]
    model = {"type": "model_change", "timestamp": TIME, "modelId": "m"}
    cut = {"type": "compaction", "timestamp": TIME, "summary": "S", "firstKeptEntryIndex": 5, "tokensBefore": 9}
    session = session_of(flat[0], model, *flat[1:], cut, header={"type": "session", "id": "s", "cwd": "/r"})
    assert kept(session.compactions[0].base) == [3, 4]


def test_a_summary_without_a_tail_is_all_that_stays():
    session = session_of(*TALK, entry("k", "e4", "compaction", summary="S", firstKeptEntryId="gone"))
    assert session.compactions[0].kind == "summary"
    assert kept(session.compactions[0].base) == []


@pytest.mark.parametrize(
    ("words", "trigger"),
    [("400 prompt is too long: 230000 tokens", "overflow"), ("429 rate limit exceeded, too many tokens", "")],
)
def test_a_compaction_after_a_request_that_was_too_long_says_nothing_of_the_threshold(words, trigger):
    refused = {**assistant("", 0, reason="error"), "errorMessage": words}
    entries = chain(user("go"), assistant("on", 180_000), user("more"), refused)
    last = entries[-1]["id"]
    session = session_of(*entries, entry("cc", last, "compaction", summary="s", tokensBefore=182_303))
    assert session.compactions[0].trigger == trigger
    assert session.refused == ((3,) if trigger else ())


def test_a_request_that_was_too_long_right_behind_a_compaction_did_not_cause_it():
    """As pi 1.6.0 writes one where what it kept is still too much: compaction, error, an edit that takes it out."""
    entries = chain(user("go"), assistant("on", 180_000), user("more"))
    cut = entry("k", entries[-1]["id"], "compaction", summary="s", firstKeptEntryId="e2", tokensBefore=182_303)
    error = entry("r", "k", message=REFUSED)
    again = entry("k2", "r", "compaction", summary="s", firstKeptEntryId="e2", tokensBefore=182_303)
    session = session_of(*entries, cut, error, again)
    assert [item.trigger for item in session.compactions] == ["", "overflow"]
    assert session.refused_places == [(3, 1)]


def test_what_pi_adds_is_sent_but_begins_no_turn():
    shell = {"role": "bashExecution", "command": "make", "output": "ok"}
    hidden = {**shell, "excludeFromContext": True}
    entries = chain(user("Go"), shell, hidden)
    branch = entry("b", "e2", "branch_summary", summary="Tried tabs")
    custom = entry("c", "b", "custom_message", content="Reminder")
    session = session_of(*entries, branch, custom)
    assert [event.starts_turn() for event in session.events] == [True, False, False, False]
    assert "make" in texts(session)[1]
    assert "Tried tabs" in texts(session)[2]


def test_a_command_of_the_user_is_told_with_its_end():
    ran = {"role": "bashExecution", "command": "make", "output": "", "exitCode": 2}
    cut = {**ran, "output": "long", "cancelled": True, "truncated": True, "fullOutputPath": "out.txt"}
    session = session_of(*chain(ran, cut))
    assert texts(session) == [
        "Ran `make`\n(no output)\n\nCommand exited with code 2",
        "Ran `make`\n```\nlong\n```\n\n(command cancelled)\n\n[Output truncated. Full output: out.txt]",
    ]


def test_the_copy_of_an_answer_that_openclaw_delivered_is_not_sent():
    copy = {**assistant("Done", 0), "provider": "openclaw", "model": "delivery-mirror"}
    recording = read_as(FORMAT, lines(HEADER, *chain(user("Go"), assistant("Done", 50), copy, user("More"))))
    assert texts(recording.sessions[0]) == ["Go", "Done", "More"]
    assert len(recording.sessions[0].calls) == 1
    assert recording.notes.skipped["copy of a delivered answer, not sent"] == 1


def test_titles_of_pi_and_its_descendants():
    slot, change = {"type": "title", "v": 1, "title": "Slot", "pad": " "}, entry("t", "e4", "title_change", title="New")
    assert read_as(FORMAT, lines(slot, HEADER, *TALK)).sessions[0].title == "Slot"
    assert session_of(*TALK, change, header={**HEADER, "title": "Old"}).title == "New"
    named = entry("n", "e4", "session_info", name=" Mine ")
    assert session_of(*TALK, named).title == "Mine"
    assert session_of(*TALK, named, entry("o", "n", "session_info", name="")).title == ""


def test_a_cleared_context_is_empty_and_no_compaction_in_the_facts():
    recording = read_as(
        FORMAT, lines(HEADER, *TALK, entry("r", "e4", "reset_boundary"), entry("u", "r", message=user("Hi")))
    )
    assert [(item.at, item.kind, item.base) for item in recording.sessions[0].compactions] == [(5, "edit", ())]
    assert recording.facts.compactions == 0


def test_system_messages_tell_the_prompt_and_the_tools():
    tools = [{"name": "read", "description": "Reads", "parameters": {"type": "object"}}]
    system = {"role": "system", "content": "", "sections": {"who": "You are pi.", "cwd": "/w"}, "toolsAdded": tools}
    later = {"role": "system", "content": "Be brief.", "replace": True, "toolsAdded": tools}
    recording = read_as(FORMAT, lines(HEADER, *chain(system, user("Hi"), assistant("Hello"))))
    changed = session_of(*chain(system, user("Hi"), later, assistant("Hello")))

    assert recording.sessions[0].system == (TextPart("You are pi.\n\n/w"),)
    assert [tool.name for tool in recording.sessions[0].tools or ()] == ["read"]
    assert (recording.facts.messages, recording.sessions[0].notes) == (2, ())
    assert changed.system == (TextPart("Be brief."),)
    assert changed.notes == ("Later changes of the system prompt or the tools: 1. The last are shown.",)


def test_a_sub_agent_tells_its_system_prompt():
    session = session_of(
        entry("i", None, "session_init", systemPrompt="Be brief."), entry("u", "i", message=user("Hi"))
    )
    assert session.system is not None
    assert session.system[0].text == "Be brief."


def test_an_empty_summary_is_sent_in_its_frame():
    emptied = entry("k", "e4", "compaction", summary="", firstKeptEntryId="e3", tokensBefore=150)
    session = session_of(*TALK, emptied, entry("m", "k", message=assistant("Yes", 90)))
    assert "<summary>" in session.compactions[0].messages[0].parts[0].text
    assert (session.compactions[0].kind, session.compactions[0].note) == ("empty", "The summary is empty.")
    (finding,) = (item for item in recorded_findings(Facts.of(session)) if item.kind == "empty_summary")
    assert check(session, [finding], judge_session(session)) == []


def test_a_summary_that_is_not_in_the_file_is_not_readable():
    session = session_of(*TALK, entry("k", "e4", "compaction", firstKeptEntryId="e3", tokensBefore=150))
    assert (session.compactions[0].kind, session.compactions[0].note) == ("opaque", "The summary is not in the file.")


def test_a_fork_and_a_picture_kept_elsewhere_are_told():
    picture = {
        "role": "user",
        "content": ["See", {"type": "image", "data": "blob:sha256:ab", "mimeType": "image/png"}, 7],
    }
    session = session_of(*chain(picture), header={**HEADER, "parentSession": "before.jsonl"})
    assert [getattr(part, "uri", "") for part in session.events[0].parts] == ["", "blob:sha256:ab", ""]
    assert session.events[0].parts[2].value == 7
    assert any("Forked" in note for note in session.notes)


def test_more_cached_tokens_than_the_provider_counted_add_up_to_what_it_counted():
    answer = assistant("Done")
    answer["usage"] = {"input": -20, "cacheRead": 120, "cacheWrite": 0, "output": 5}
    recording = read_as(FORMAT, lines(HEADER, *chain(user("Go"), answer)), strict=True)
    assert recording.facts.prompt_tokens_sum == 100


def test_a_count_that_is_no_count_is_named():
    bad = assistant("Done", 100)
    bad["usage"]["input"] = 10**17
    assert read_as(FORMAT, lines(HEADER, *chain(user("Go"), bad))).notes.problems[0].line == 3
    with pytest.raises(DamagedRecording, match="input is 100000000000000000"):
        read_as(FORMAT, lines(HEADER, *chain(user("Go"), bad)), strict=True)


def test_unknown_kinds_keep_the_chain_whole():
    novel = entry("n", "e4", "mood", value="bright")
    recording = read_as(FORMAT, lines(HEADER, *TALK, novel, entry("e5", "n", message=assistant("Yes", 80))))
    assert len(recording.sessions[0].events) == 6
    assert recording.notes.skipped["mood"] == 1


def test_a_parent_that_is_no_entry_is_taken_for_the_entry_before():
    session = session_of(*TALK[:2], entry("e2", "c1", message=result("c1")), entry("e3", "e2", message=user("More")))
    assert len(session.events) == 4


def test_a_circle_of_parents_ends():
    session = session_of(entry("a", "b", message=user("A")), entry("b", "a", message=user("B")))
    assert texts(session) == ["A", "B"]


def test_a_line_before_the_header_and_a_damaged_one_are_passed_over():
    recording = read_as(FORMAT, lines({"title": "x"}, HEADER) + b"{broken\n" + lines(*TALK))
    assert recording.facts.messages == 5
    assert recording.notes.problem_count == 1


def test_it_takes_a_list_whose_beginning_is_missing():
    flat = [{"type": "message", "timestamp": TIME, "message": message} for message in (user("Go"), assistant("Yes"))]
    assert recognises(FORMAT, lines(*flat))
    assert not recognises(FORMAT, lines(flat[0], flat[0]))


def test_it_does_not_take_other_json_lines():
    assert not recognises(FORMAT, lines({"type": "session_meta", "payload": {}}, {"type": "event_msg", "payload": {}}))
    assert not recognises(FORMAT, lines({"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user"}}))


def test_wrong_types_anywhere_are_survived():
    cut = entry("k", "e4", "compaction", summary="S", firstKeptEntryId="e3", firstKeptEntryIndex=2, tokensBefore=9)
    records = [HEADER, *TALK, cut]
    for index, record in enumerate(records):
        rest = [lines(*records[:index], bad, *records[index + 1 :]) for bad in spoiled(record)]
        check_hostile(FORMAT, rest)


def test_the_facts_of_the_samples_are_equal():
    check_sample_facts(FORMAT, "pi")


def test_two_files_in_one_are_two_sessions():
    other = {**HEADER, "id": "another"}
    recording = read_as(FORMAT, lines(HEADER, *TALK, other, *chain(user("Hello"), assistant("Hi"))))
    assert [item.source_id for item in recording.sessions] == [HEADER["id"], "another"]
    assert [len(item.events) for item in recording.sessions] == [len(TALK), 2]


def test_a_first_kept_entry_whose_line_is_lost_is_where_the_next_begins():
    kept_from = entry("k", "e4", "compaction", summary="So far.", firstKeptEntryId="e2")
    whole = session_of(*TALK, kept_from).compactions[0].base
    lost = [item for item in TALK if item["id"] != "e2"]
    assert len(whole) == 2
    assert session_of(*lost, kept_from).compactions[0].base == (Inserted(0), Span(2, len(lost)))
