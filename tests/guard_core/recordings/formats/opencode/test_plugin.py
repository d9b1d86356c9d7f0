"""What OpenCode's plugin DCP replaces by summaries."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from guard_core.checker import check
from guard_core.findings import Facts, conclusions
from guard_core.recordings.formats.opencode.plugin import HEADER, UNREAD
from guard_core.rules.agreement import Agreement
from guard_core.rules.kept import EXTENSION_CHOSE, KeptVerdict
from guard_core.rules.stretch_checks import NO_COUNT
from guard_core.sessions import Session
from guard_core.triggers import AUTOMATIC, BY_PLUGIN, is_counted, trigger_of
from guard_core.views import Inserted, Span
from guard_core.windows.window_evidence import judge_session
from tests.guard_core.recordings.checks import texts
from tests.guard_core.recordings.formats.opencode.test_format import (
    SUMMARY,
    TALK,
    assistant,
    finish,
    session_of,
    text,
    tool,
    user,
)


def compress(count: int, *ranges: tuple[str, str, str], second: int = 0, **state: Any) -> dict[str, Any]:
    """A call of the plugin's tool that replaced `count` messages; `ranges`: the names of their ends, the summary."""
    content = [{"startId": first, "endId": last, "summary": words} for first, last, words in ranges]
    output = f"Compressed {count} messages into {HEADER}."
    values = {"input": {"topic": "Files", "content": content}, **state}
    return {**tool(f"k{second}", output, second=second, **values), "tool": "compress"}


def step(message: str, second: int, *parts: dict[str, Any], tokens: int = 100) -> dict[str, Any]:
    return assistant(message, second, {"type": "step-start"}, *parts, finish(tokens))


def notice(message: str, second: int) -> dict[str, Any]:
    """What the plugin shows to the person alone."""
    return user(message, second, text("▣ DCP | -1K removed, +20 summary — Compression #1", ignored=True))


def words_of(session: Session, place: int) -> list[str]:
    """The summaries that are sent after a compaction, without header and number."""
    messages = session.compactions[place].messages
    return [message.parts[0].text.removeprefix(f"{HEADER}\n").rpartition("\n\n<")[0] for message in messages]


def test_a_range_is_replaced_by_its_summary_from_the_next_request_on():
    call = step("m5", 20, compress(2, ("m0002", "m0003", "One file"), second=21), tokens=160)
    session = session_of(*TALK, call, notice("m6", 22), step("m7", 23, text("Done"), tokens=90))
    [compaction] = session.compactions
    assert (compaction.trigger, trigger_of(compaction), is_counted(compaction)) == (BY_PLUGIN, AUTOMATIC, True)
    assert (compaction.at, compaction.base) == (7, (Span(0, 1), Inserted(0), Span(4, 7)))
    assert words_of(session, 0) == ["One file"]
    assert texts(session)[-1] == "Done"


@pytest.mark.parametrize(
    "arguments",
    [
        {"content": {"startId": "M0001", "endId": "m0002", "summary": "One file"}},
        {"startId": "m0001", "endId": "m0002", "summary": "One file"},
        {"content": [{"messageId": "m0001", "summary": "One file"}, {"messageId": "m0002", "summary": "And so on"}]},
    ],
    ids=["one range", "flat", "single messages"],
)
def test_the_forms_of_its_arguments(arguments):
    call = compress(2, second=21, input={"topic": "Files", **arguments})
    session = session_of(*TALK, step("m5", 20, call), step("m6", 23, text("Done")))
    assert words_of(session, 0)[0] == "One file"
    assert session.compactions[0].base[-1] == Span(3, 7)


def test_a_later_range_replaces_an_earlier_summary_and_has_its_words():
    session = session_of(
        *TALK,
        step("m5", 20, compress(2, ("m0001", "m0002", "One file"), second=21)),
        notice("m6", 22),
        step("m7", 23, compress(4, ("b1", "m0004", "Then (b1) again, (b7)"), second=24)),
        step("m8", 25, compress(5, ("m0001", "m0005", "All"), second=26)),
        step("m9", 30, text("Done")),
    )
    assert [words_of(session, place)[0] for place in range(2)] == ["One file", "Then One file again, (b7)"]
    assert words_of(session, 2) == [
        "All\n\nThe following previously compressed summaries were also part of this conversation section:"
        "\n### (b2)\nThen One file again, (b7)"
    ]
    assert [item.base for item in session.compactions] == [
        (Inserted(0), Span(3, 7)),
        (Inserted(0), Span(5, 9)),
        (Inserted(0), Span(7, 11)),
    ]


def test_what_protected_tools_answered_is_in_the_summary():
    todos = {**tool("c1", "1. look", second=2), "tool": "todowrite"}
    first = step("m2", 1, todos, tool("c2", "a.txt", second=2))
    call = step("m3", 3, compress(2, ("m0001", "m0002", "Looked"), second=4))
    session = session_of(TALK[0], first, call, step("m4", 5, text("Done")))
    assert words_of(session, 0) == [
        "Looked\n\nThe following protected tools were used in this conversation as well:\n### Tool: todowrite\n1. look"
    ]


@pytest.mark.parametrize(("first", "last", "count"), [("m0003", "m0006", 4), ("m0003", "m0007", 4)])
def test_a_message_for_the_person_alone_may_take_a_number(first, last, count):
    """The result says how many messages a range has, so that only one of the two ways to read it is left."""
    session = session_of(
        *TALK,
        step("m5", 20, compress(2, ("m0001", "m0002", "One file"), second=21)),
        notice("m6", 22),
        step("m7", 23, text("More")),
        step("m8", 24, compress(count, (first, last, "More"), second=25)),
        step("m9", 26, text("Done")),
    )
    assert words_of(session, 1) == ["One file", "More"]
    assert session.compactions[1].base == (Inserted(0), Inserted(1), Span(8, 10))


@pytest.mark.parametrize(
    "call",
    [
        compress(7, ("m0001", "m0002", "One file"), second=21),
        compress(2, ("m0001", "m0090", "One file"), second=21),
        compress(2, ("b4", "m0002", "One file"), second=21),
        compress(2, ("start", "end", "One file"), second=21),
        compress(2, second=21, input="all"),
    ],
    ids=["count", "number", "summary", "names", "arguments"],
)
def test_a_range_that_is_not_clear_is_an_edit_of_unknown_extent(call):
    session = session_of(*TALK, step("m5", 20, call), step("m6", 23, text("Done")))
    [edit] = session.compactions
    assert (edit.kind, edit.trigger, edit.note, edit.base) == ("edit", BY_PLUGIN, UNREAD, (Span(0, 7),))


def test_ranges_of_which_no_way_to_read_them_is_the_only_one_are_not_clear():
    more = (notice("n1", 22), step("m5", 30, text("More")), step("m6", 31, text("Again")))
    call = step("m7", 32, compress(1, ("m0006", "m0006", "One file"), second=33))
    assert session_of(*TALK, *more, call, step("m8", 34, text("Done"))).compactions[0].note == UNREAD


@pytest.mark.parametrize(
    "state", [{"status": "error", "error": "overlap"}, {"output": "Compressed 0 messages."}, {"output": "3 files"}]
)
def test_a_call_that_replaced_nothing_is_no_compaction(state):
    call = {**compress(2, ("m0001", "m0002", "One file"), second=21)}
    call["state"] = {**call["state"], **state}
    assert session_of(*TALK, step("m5", 20, call), step("m6", 23, text("Done"))).compactions == ()


def test_opencodes_own_compaction_ends_what_the_plugin_replaced():
    call = step("m4b", 15, compress(2, ("m0001", "m0002", "One file"), second=16))
    later = step("m7", 30, compress(1, ("m0001", "m0001", "Two files"), second=31))
    session = session_of(*TALK, call, *SUMMARY, later, step("m8", 32, text("Done")))
    assert [(item.trigger, item.kind) for item in session.compactions] == [
        (BY_PLUGIN, "summary+tail"),
        ("auto", "summary+tail"),
        (BY_PLUGIN, "edit"),
    ]
    assert session.compactions[1].base == (Inserted(0), Inserted(1), Span(3, 7))
    assert session.compactions[2].base == (*session.compactions[1].base, Span(7, 9))


def test_a_sub_agents_first_prompt_has_no_number():
    call = step("m5", 20, compress(2, ("m0001", "m0002", "One file"), second=21))
    assert session_of(*TALK, call, step("m6", 23, text("Done")), parentID="ses_0").compactions[0].note == UNREAD


def test_it_is_counted_once_and_not_judged_by_opencodes_rule():
    call = step("m5", 20, text("w" * 4_000), compress(2, ("m0002", "m0003", "One file"), second=21), tokens=60_000)
    session = session_of(*TALK, call, notice("m6", 22), step("m7", 23, text("Done"), tokens=20_000), version="1.15.3")
    facts = Facts.of(session, judge_session(session))
    findings, verdict = conclusions(facts)
    assert verdict.sentence.startswith("1 compaction")
    assert (facts.counts.automatic, facts.counts.unknown) == (1, 0)  # the model asked for it, as the file says
    assert not [
        item for item in (*findings, verdict) if "if automatic" in item.sentence or "triggered" in item.sentence
    ]
    assert "own_early" not in {finding.kind for finding in findings}
    [explained], [kept] = facts.explanation.compactions, facts.explanation.kept
    assert (explained.verdict, explained.reason) == (Agreement.NOT_MODELLED, NO_COUNT[BY_PLUGIN])
    assert (kept.verdict, kept.reason) == (KeptVerdict.NOT_MODELLED, EXTENSION_CHOSE)
    assert not check(session, findings, judge_session(session), verdict)
    lie = msgspec.structs.replace(verdict, sentence="No compaction, 1 recorded edit of the history.")
    assert check(session, findings, judge_session(session), lie)


def test_where_what_it_replaced_is_not_clear_no_sentence_says_that_nothing_is_recorded():
    call = step("m5", 20, text("w" * 4_000), compress(9, ("m0002", "m0003", "One file"), second=21), tokens=60_000)
    session = session_of(*TALK, call, step("m6", 23, text("Done"), tokens=20_000))
    findings, verdict = conclusions(facts := Facts.of(session, judge_session(session)))
    assert not [item for item in (*findings, verdict) if "no compaction is recorded" in item.sentence]
    assert verdict.sentence.startswith("No compaction, 1 recorded edit of the history"), facts.counts
    assert not check(session, findings, judge_session(session), verdict)


def test_a_range_that_thousands_of_hidden_messages_leave_open_is_not_looked_for():
    """Each of them may have taken a number: some six million ways to read this call."""
    hidden = [notice(f"n{number}", 5) for number in range(3_000)]
    talk = [step(f"t{number}", 6, text("And?")) for number in range(3_000)]
    call = step("m5", 20, compress(2, ("m3001", "m3002", "Two of them"), second=21))
    session = session_of(*hidden, *TALK, *talk, call, step("m7", 23, text("Done")))
    [compaction] = session.compactions
    assert (compaction.note, is_counted(compaction)) == (UNREAD, False)
