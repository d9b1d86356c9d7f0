"""The requests that newer versions of Claude Code write down, message by message."""

import json
from hashlib import sha256

import pytest

from guard_core import recordings
from guard_core.events import Role
from guard_core.ledger import Ledger
from guard_core.recordings.formats.claude.restored import LINE
from guard_core.recordings.reading.early_events import SendingPace
from guard_core.requests import materialise
from guard_core.sessions import Evidence
from guard_core.views import JOINED, Inserted, Rewritten, Span
from tests.guard_core.recordings.formats.claude.test_transcript import (
    SUMMARY,
    answer,
    attachment,
    boundary,
    call,
    read,
    result,
    user,
)

REMINDER = "<system-reminder>Be brief</system-reminder>"


def blob(name, *blocks):
    """A message of the user as it was sent."""
    content = [{"type": "text", "text": item} if isinstance(item, str) else item for item in blocks]
    return {"type": "api-request-blob", "hash": name, "message": {"role": "user", "content": content}}


def request(name, base, keep, *tail):
    return {"type": "api-request", "id": name, "base": base, "keep": keep, "tail": list(tail), "querySource": "sdk"}


def reminder(uuid, parent, text=REMINDER):
    return attachment(uuid, parent, {"type": "date"}, rendered=[{"content": text}], renderedRole="system")


BEGUN = (
    user("u1", None, "Read a.py"),
    reminder("x1", "u1"),
    blob("b1", REMINDER, "Read a.py"),
    request("r1", "", 0, "b1"),
    answer("a1", "x1", call("t1"), requestRef="r1"),
    user("u2", "a1", result("t1", "one")),
    reminder("x2", "u2"),
)
SECOND = (*BEGUN, blob("b2", *result("t1", f"one\n{REMINDER}")), request("r2", "r1", 1, "h1", "b2"))
ANSWERED = (*SECOND, answer("a2", "x2", call("t2"), requestRef="r2"), user("u3", "a2", result("t2", "two")))


def sent(session, step):
    """The request of a call: for each message its texts."""
    view, epoch = Ledger.of(session).recorded_view(step)
    return [
        [getattr(part, "text", None) or getattr(part, "content", None) or part.name for part in message.parts]
        for message in materialise(view, session, epoch)
    ]


def session_of(*lines):
    return read(*lines).sessions[0]


def test_reminders_and_words_are_in_the_order_and_the_message_in_which_they_were_sent():
    session = session_of(*ANSWERED)
    assert sent(session, 0) == [[REMINDER, "Read a.py"]]
    assert sent(session, 1) == [[REMINDER, "Read a.py"], ["Read"], [f"one\n{REMINDER}"]]


def test_only_the_users_own_words_begin_a_turn():
    events = session_of(*ANSWERED).events
    assert [(event.starts_turn(), event.joined) for event in events[:2]] == [(False, False), (True, True)]
    assert (events[1].source_id, events[1].line, events[0].role) == ("u1", 1, Role.SYSTEM)


def test_a_request_that_is_not_in_the_file_leaves_the_lines_as_they_are():
    lines = [line for line in ANSWERED if line.get("id") != "r2"]
    assert sent(session_of(*lines), 1) == [[REMINDER, "Read a.py"], ["Read"], ["one"], [REMINDER]]


def test_a_message_that_follows_its_request_in_the_file_is_known():
    *others, message, asked = SECOND
    lines = (*others, asked, message, answer("a2", "x2", "Done", requestRef="r2"))
    assert sent(session_of(*lines), 1)[2] == [f"one\n{REMINDER}"]


COMPACTED = (
    *ANSWERED,
    boundary("c1", "u3", preservedMessages={"anchorUuid": "s1", "uuids": ["a2", "u3"]}),
    user("s1", "c1", SUMMARY, isCompactSummary=True),
    attachment("x3", "s1", {"type": "file"}, rendered=[{"content": "file a.py"}], renderedRole="user"),
    blob("b3", SUMMARY),
    blob("b4", *result("t2", "two\nfile a.py")),
    request("r3", "", 0, "b3", "h2", "b4"),
    answer("a3", "x3", "Done", requestRef="r3"),
)


def test_a_compaction_has_the_messages_of_the_request_behind_it():
    session = session_of(*COMPACTED)
    (compaction,) = session.compactions
    assert sent(session, 2) == [[SUMMARY], ["Read"], ["two\nfile a.py"]]
    inserted, kept, changed = compaction.base
    assert (inserted, kept) == (Inserted(0), Span(4, 5))
    assert isinstance(changed, Rewritten)
    assert (changed.event, changed.reason) == (5, JOINED)
    assert (compaction.tokens_before, compaction.evidence) == (155_000, Evidence.DECLARED)


THOUGHT = {"type": "thinking", "thinking": "Both at once", "signature": "c2lnbmVk" * 4}


def test_a_round_that_a_compaction_keeps_is_known_by_its_answer_and_by_each_of_its_results():
    kept = {"role": "assistant", "content": [THOUGHT, call("t2"), call("t3")]}
    session = session_of(
        *SECOND,
        answer("a2", "x2", THOUGHT, "m", requestRef="r2"),
        answer("a2-1", "a2", call("t2"), "m", requestRef="r2"),
        answer("a2-2", "a2-1", call("t3"), "m", requestRef="r2"),
        user("u3", "a2-1", result("t2", "two")),
        user("u4", "a2-2", result("t3", "three")),
        boundary("c1", "u4", preservedMessages={"anchorUuid": "s1", "uuids": ["a2", "a2-1", "a2-2", "u3", "u4"]}),
        user("s1", "c1", SUMMARY, isCompactSummary=True),
        blob("b3", SUMMARY),
        {"type": "api-request-blob", "hash": "k1", "message": kept},
        blob("b4", *result("t2", "two"), *result("t3", "three\nfile a.py"), REMINDER),
        request("r3", "", 0, "b3", "k1", "b4"),
        answer("a3", "s1", "Done", requestRef="r3"),
    )
    (compaction,) = session.compactions
    summary, round_, changed = compaction.base
    assert (summary, round_) == (Inserted(0), Span(4, 6))
    assert (changed.event, changed.reason, len(changed.message.parts)) == (6, JOINED, 2)
    assert not Ledger.of(session).bases[0].is_sealed


@pytest.mark.parametrize(("requests", "restored"), [(True, None), (False, 200 + int(LINE))])
def test_files_that_the_request_behind_a_compaction_holds_are_not_counted_again(requests, restored):
    file = {"filePath": "a.py", "content": "x" * 1_000, "numLines": 1, "totalLines": 1}
    lines = [
        {**line, "toolUseResult": {"type": "text", "file": file}} if line.get("uuid") == "u2" else line
        for line in COMPACTED
        if line.get("uuid") != "x3" and (requests or not str(line["type"]).startswith("api-request"))
    ]
    (compaction,) = session_of(*lines).compactions
    assert compaction.restored_tokens == restored


def test_a_refused_request_says_how_the_last_result_was_sent():
    refused = (blob("b9", *result("t2", f"two\n{REMINDER}")), request("r9", "r2", 3, "h2", "b9"))
    whole = COMPACTED[COMPACTED.index(ANSWERED[-1]) + 1 :]
    session = session_of(*ANSWERED, *refused, *whole)
    assert session.events[5].parts[0].content == f"two\n{REMINDER}"
    assert sent(session, 2) == [[SUMMARY], ["Read"], ["two\nfile a.py"]]


def test_a_request_without_an_answer_before_an_automatic_compaction_was_refused():
    asked = (blob("b9", *result("t2", "two")), request("r9", "r2", 3, "h2", "b9"))
    whole = COMPACTED[COMPACTED.index(ANSWERED[-1]) + 1 :]
    assert session_of(*COMPACTED).refused == ()
    assert session_of(*ANSWERED, *asked, *whole).refused == (6,)
    by_person = [
        {**line, "compactMetadata": {"trigger": "manual"}} if "compactMetadata" in line else line for line in whole
    ]
    assert session_of(*ANSWERED, *asked, *by_person).refused == ()


def failure(uuid, parent):
    """What Claude Code shows in an answer's place."""
    line = answer(uuid, parent, "Prompt is too long", isApiErrorMessage=True, error="invalid_request")
    return {**line, "message": {**line["message"], "model": "<synthetic>"}}


def test_a_request_that_was_too_long_by_the_agents_own_count_was_not_refused():
    """Run with 2.1.325 and DISABLE_AUTO_COMPACT: it shows the provider's words, and sends nothing."""
    session = session_of(*ANSWERED, failure("e1", "u3"), user("u4", "e1", "Again"), failure("e2", "u4"))
    assert session.refused == ()
    assert "requests that Claude Code did not send, because they were too long by its own count: 2" in session.notes
    asked = (blob("b9", *result("t2", "two")), request("r9", "r2", 3, "h2", "b9"))
    session = session_of(*ANSWERED, *asked, failure("e1", "u3"), user("u4", "e1", "Again"), failure("e2", "u4"))
    assert len(session.refused) == 1
    assert "requests that Claude Code did not send, because they were too long by its own count: 1" in session.notes


def test_a_question_that_came_before_the_compaction_is_in_the_request_behind_it():
    """Claude Code 2.1.332 compacts before the first call of a turn, whose words are in the file by then."""
    session = session_of(
        *SECOND,
        answer("a2", "x2", "Read", requestRef="r2"),
        user("u3", "a2", "And b.py?"),
        boundary("c1", "u3", preservedMessages={"anchorUuid": "s1", "uuids": ["a2"]}),
        user("s1", "c1", SUMMARY, isCompactSummary=True),
        blob("b3", SUMMARY),
        blob("b4", REMINDER, "And b.py?"),
        request("r3", "", 0, "b3", "h2", "b4"),
        answer("a3", "s1", "Done", requestRef="r3"),
    )
    (compaction,) = session.compactions
    assert sent(session, 2) == [[SUMMARY], ["Read"], [REMINDER, "And b.py?"]]
    assert compaction.base[:2] == (Inserted(0), Span(4, 5))
    asked = compaction.base[2]
    assert isinstance(asked, Rewritten)
    assert (asked.event, asked.reason, len(compaction.messages)) == (5, JOINED, 1)
    assert session.events[5].starts_turn()


def test_a_question_behind_a_compaction_is_no_part_of_it_and_the_summary_before_it_no_event():
    asked = (
        user("u4", "s1", "And b.py?"),
        blob("b3", SUMMARY, REMINDER, "And b.py?"),
        request("r3", "", 0, "b3"),
        answer("a3", "u4", "Done", requestRef="r3"),
    )
    session = session_of(*COMPACTED[: COMPACTED.index(COMPACTED[-5])], *asked)
    assert sent(session, 2) == [[SUMMARY, REMINDER, "And b.py?"]]
    (compaction,) = session.compactions
    assert [part.text for part in compaction.messages[0].parts] == [SUMMARY, REMINDER]
    assert [event.parts[0].text for event in session.events[-2:]] == ["And b.py?", "Done"]
    assert session.events[-2].starts_turn()


@pytest.mark.parametrize("listed", [True, False])
def test_a_forked_session_begins_with_the_compaction_whose_round_was_kept(listed):
    """Run with 2.1.332: the fork of a compacted session has the boundary first and the kept round behind the summary,
    without its tokens; the boundary names the last line of that round as the one before it."""
    ends = {"headUuid": "a1", "anchorUuid": "s1", "tailUuid": "x1"}
    uuids = {"preservedMessages": {"anchorUuid": "s1", "uuids": ["a1", "a1-1", "u1", "x1"]}} if listed else {}
    session = session_of(
        boundary("c1", "x1", preservedSegment=ends, **uuids),
        user("s1", "c1", SUMMARY, isCompactSummary=True),
        answer("a1", "s1", "Let me look", "m", usage={"input_tokens": 0, "output_tokens": 0}),
        answer("a1-1", "a1", call("t1"), "m", usage={"input_tokens": 0, "output_tokens": 0}),
        user("u1", "a1-1", result("t1", "one")),
        attachment("x1", "u1", {"type": "hook_success", "hookEvent": "PostToolUse"}),
        reminder("x2", "x1"),
        answer("a2", "x2", "Read it"),
        user("u2", "a2", "More"),
        answer("a3", "u2", "Done"),
    )
    (compaction,) = session.compactions
    assert (compaction.at, compaction.kind) == (0, "summary+tail")
    assert compaction.base == tuple(map(Inserted, range(4)))
    assert [call.at for call in session.calls] == [0, 2]
    assert sent(session, 1) == [[SUMMARY], ["Let me look", "Read"], ["one"], [REMINDER], ["Read it"], ["More"]]


CAVEAT = "<local-command-caveat>Not sent to you as a request</local-command-caveat>"


def test_a_person_who_compacts_has_the_answer_that_was_kept_once_and_the_words_that_follow_once():
    kept = {"role": "assistant", "content": [THOUGHT, {"type": "text", "text": "Both are read"}]}
    note = {"role": "system", "content": [{"type": "text", "text": "Tools: Read"}]}
    session = session_of(
        *SECOND,
        answer("a2", "x2", THOUGHT, "m", requestRef="r2"),
        answer("a2-1", "a2", "Both are read", "m", requestRef="r2"),
        boundary("c1", "a2-1", trigger="manual", preservedMessages={"anchorUuid": "s1", "uuids": ["a2", "a2-1"]}),
        user("s1", "c1", SUMMARY, isCompactSummary=True),
        user("u3", "s1", CAVEAT, isMeta=True),
        user("u4", "u3", "<command-name>/compact</command-name>"),
        attachment("x3", "u4", {"type": "file"}, rendered=[{"content": "file a.py"}], renderedRole="user"),
        user("u5", "x3", "And b.py?"),
        blob("b3", SUMMARY),
        {"type": "api-request-blob", "hash": "e1", "message": {"role": "system", "content": []}},
        {"type": "api-request-blob", "hash": "k1", "message": kept},
        blob("b4", "file a.py", CAVEAT, "<command-name>/compact</command-name>", "And b.py?"),
        {"type": "api-request-blob", "hash": "n1", "message": note},
        request("r3", "", 0, "b3", "e1", "k1", "b4", "n1"),
        answer("a3", "u5", "Done", requestRef="r3"),
    )
    assert sent(session, 2) == [
        [SUMMARY],
        [THOUGHT["thinking"], "Both are read"],
        ["file a.py", CAVEAT, "<command-name>/compact</command-name>", "And b.py?"],
        ["Tools: Read"],
    ]
    assert [event.source_id for event in session.events if event.starts_turn()][-1] == "u4"
    assert "file a.py" in [part.text for message in session.compactions[0].messages for part in message.parts]


def test_a_history_that_is_sent_again_by_another_process_continues():
    resumed = (
        blob("b3", *result("t2", "two")),
        request("r3", "r2", 3, "h2", "b3"),
        answer("a3", "u3", "Done", requestRef="r3"),
        user("u4", "a3", "More"),
        blob("b4", "More"),
        request("r4", "", 0, "b1", "h1", "b2", "h2", "b3", "h3", "b4"),
        answer("a4", "u4", "Yes", requestRef="r4"),
    )
    session = session_of(*ANSWERED, *resumed)
    assert session.compactions == ()
    assert sent(session, 3)[-2:] == [["Done"], ["More"]]


def test_a_history_that_was_changed_without_a_compaction_is_an_edit():
    edited = (
        blob("b3", *result("t1", "[cleared]")),
        blob("b4", *result("t2", "two")),
        request("r3", "r2", 2, "b3", "h2", "b4"),
        answer("a3", "u3", "Done", requestRef="r3"),
    )
    session = session_of(*ANSWERED, *edited)
    (edit,) = session.compactions
    assert (edit.kind, edit.evidence) == ("edit", Evidence.INFERRED)
    assert sent(session, 2) == [[REMINDER, "Read a.py"], ["Read"], ["[cleared]"], ["Read"], ["two"]]


@pytest.mark.parametrize("pace", [SendingPace(1, 2, 2), SendingPace(2, 4, 4), SendingPace(1, 8, 3)])
def test_a_large_file_whose_events_are_sent_while_it_is_read_gives_the_same_requests(pace, tmp_path):
    path = tmp_path / "large.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in COMPACTED))
    follower = recordings.EarlyEvents(lambda event: None, pace)
    (large,) = recordings.read(path, shelve=tmp_path, shelve_from=0, early=follower).sessions
    small = session_of(*COMPACTED)
    assert [event.parts for event in large.events] == [event.parts for event in small.events]
    assert (tuple(large.calls), large.compactions) == (small.calls, small.compactions)


NEW = {"version": "2.1.332"}


def hash_of(*blocks):
    """The hash of a message of the user that is sent as its lines are."""
    message = {"role": "user", "content": list(blocks)}
    return sha256(json.dumps(message, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()


def note(name, text):
    """A reminder that is sent as a message of its own."""
    message = {"role": "system", "content": [{"type": "text", "text": text}]}
    return {"type": "api-request-blob", "hash": name, "message": message}


READ_BOTH = (
    user("u1", None, "Read ä.py and b.py", **NEW),
    request("r1", "", 0, hash_of({"type": "text", "text": "Read ä.py and b.py"})),
    answer("a1", "u1", call("t1"), "m", requestRef="r1", **NEW),
    user("u2", "a1", result("t1", "one"), **NEW),
    answer("a2", "a1", call("t2"), "m", requestRef="r1", **NEW),
    user("u3", "a2", result("t2", "two"), **NEW),
    reminder("x1", "u3", "1,000 tokens left"),
)
PLAIN = hash_of(*result("t1", "one"), *result("t2", "two"))
LEFT = note("n1", "1,000 tokens left")


def test_results_that_are_sent_as_they_are_come_before_the_reminder_behind_them():
    session = session_of(
        *READ_BOTH, LEFT, request("r2", "r1", 1, "h1", PLAIN, "n1"), answer("a3", "x1", "Done", requestRef="r2", **NEW)
    )
    assert sent(session, 1) == [["Read ä.py and b.py"], ["Read", "Read"], ["one", "two"], ["1,000 tokens left"]]
    assert not session.compactions


def test_a_version_that_writes_no_requests_has_no_hashes_of_lines():
    lines = [{**line, "version": "2.1.250"} if "version" in line else line for line in READ_BOTH]
    session = session_of(
        *lines, LEFT, request("r2", "r1", 1, "h1", PLAIN, "n1"), answer("a3", "x1", "Done", requestRef="r2")
    )
    assert sent(session, 1)[-1] != ["1,000 tokens left"]


def test_a_history_whose_reminders_become_messages_of_their_own_has_the_results_without_them():
    """A session that goes on with a model to which Claude Code sends reminders in another form."""
    together = blob("b2", *result("t1", "one"), *result("t2", "two\n1,000 tokens left"))
    session = session_of(
        *READ_BOTH,
        together,
        request("r2", "r1", 1, "h1", "b2"),
        answer("a3", "x1", "Read", requestRef="r2", **NEW),
        user("u4", "a3", "Go on", **NEW),
        note("n1", "1,000 tokens left"),
        request(
            "r3",
            "",
            0,
            hash_of({"type": "text", "text": "Read ä.py and b.py"}),
            "h1",
            PLAIN,
            "n1",
            "h2",
            hash_of({"type": "text", "text": "Go on"}),
        ),
        answer("a4", "u4", "Done", requestRef="r3", **NEW),
    )
    assert sent(session, 1)[2] == ["one", "two\n1,000 tokens left"]
    assert sent(session, 2) == [
        ["Read ä.py and b.py"],
        ["Read", "Read"],
        ["one", "two"],
        ["1,000 tokens left"],
        ["Read"],
        ["Go on"],
    ]
    (edit,) = session.compactions
    assert (edit.kind, edit.evidence) == ("edit", Evidence.INFERRED)


@pytest.mark.parametrize(
    "damage", [{"keep": 10**9}, {"keep": -1}, {"tail": "b2"}, {"tail": [1, None]}, {"base": 5}, {"base": "r2"}]
)
def test_a_damaged_request_leaves_the_lines_as_they_are(damage):
    lines = [{**line, **damage} if line.get("id") == "r2" else line for line in ANSWERED]
    texts = [text for message in sent(session_of(*lines), 1) for text in message]
    assert texts[:3] == [REMINDER, "Read a.py", "Read"]
    assert any(text.startswith("one") for text in texts)
