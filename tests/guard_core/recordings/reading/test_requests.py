"""Conversations rebuilt from requests that repeat the history."""

from __future__ import annotations

import json

import msgspec
import pytest

from guard_core.counts import counted_compactions
from guard_core.events import Event, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart, part_text
from guard_core.recordings.reading.conversations import threads_of
from guard_core.recordings.reading.limits import Limits
from guard_core.recordings.reading.requests import Declared, Request
from guard_core.recordings.reading.summary_words import CLAUDE_CODE, LANGCHAIN
from guard_core.recordings.reading.threads import ENDS_SUMMARISING
from guard_core.sessions import (
    BEGINS_WITH_SUMMARY,
    MAY_BE_CONTINUED,
    MAY_BE_REPEATED,
    MAY_BE_SUMMARISED,
    MAY_BEGIN_WITH_SUMMARY,
    MAY_CONTINUE,
    MAY_FOLLOW,
    MAY_GO_ON,
    MAY_REPEAT,
    Evidence,
    LeftBranches,
    ModelCall,
    Session,
    ToolDefinition,
)
from guard_core.views import CHANGED, Inserted, Rewritten, Span
from tests.guard_core.recordings.checks import check_session, texts

TOO_LONG = "prompt is too long: 212345 tokens > 200000 maximum"
SUMMARY = "So far the files were listed and the bug was found in main.py."


def user(text: str) -> Event:
    return Event(Role.USER, (TextPart(text),))


def model(text: str, *calls: str) -> Event:
    return Event(Role.MODEL, (TextPart(text), *(ToolCallPart("bash", {}, call) for call in calls)))


def result(call: str, text: str = "a.txt") -> Event:
    return Event(Role.USER, (ToolResultPart("", text, call),))


def reminded(text: str, reminder: str) -> Event:
    return Event(Role.USER, (TextPart(f"<system-reminder>{reminder}</system-reminder>"), TextPart(text)))


def ask(*messages: Event, reply: Event | None = None, **extra) -> Request:
    return Request(messages, ModelCall(at=0, prompt_tokens=len(messages) * 10), reply, **extra)


def sessions(*requests: Request) -> list[Session]:
    threads = [thread.session("x", Limits()) for thread in threads_of(list(requests))]
    for session in threads:
        check_session(session)
    return threads


A, LOOK, FOUND, DONE = user("Fix"), model("Look", "c1"), result("c1"), model("Done")
OTHER_STEPS = (model("Look on", "c5"), result("c5", "b.txt"))
SYSTEM = (TextPart("You are a coding agent for the repository of the parser."),)


def test_requests_that_grow_are_one_log():
    session = sessions(ask(A, reply=LOOK), ask(A, LOOK, FOUND, reply=DONE))[0]
    assert texts(session) == ["Fix", "Look", "", "Done"]
    assert [(call.at, call.response) for call in session.calls] == [(1, 1), (3, 3)]
    assert session.compactions == ()


def test_an_answer_is_taken_as_the_next_request_repeats_it():
    thought = Event(Role.MODEL, (ReasoningPart("Hm"), TextPart("Look ")))
    session = sessions(ask(A, reply=thought), ask(A, model("Looked"), user("More"), reply=DONE))[0]
    assert texts(session) == ["Fix", "Looked", "More", "Done"]
    assert [call.response for call in session.calls] == [1, 3]


def test_a_retry_leaves_the_failed_call_without_an_answer():
    session = sessions(ask(A, reply=model("Bad")), ask(A, reply=DONE))[0]
    assert texts(session) == ["Fix", "Done"]
    assert [(call.at, call.response) for call in session.calls] == [(1, None), (1, 1)]


def test_a_conversation_goes_on_from_the_answer_that_it_repeats_not_from_that_of_a_request_sent_again():
    again = Request((A,), ModelCall(at=0, prompt_tokens=11), model("Other"))
    (session,) = sessions(ask(A, reply=DONE), again, ask(A, DONE, user("More"), reply=LOOK))
    assert texts(session) == ["Fix", "Done", "More", "Look"]
    assert [(call.at, call.response, call.prompt_tokens) for call in session.calls] == [(1, 1, 10), (3, 3, 30)]
    assert [call.prompt_tokens for call in session.side_calls] == [11]


def test_an_answered_request_that_is_sent_again_and_fails_leaves_its_answer_in_the_log():
    failed, refused = Request((A,), ModelCall(at=0)), Request((A,), ModelCall(at=0), refusal=TOO_LONG)
    for end in ((), (ask(A, DONE, user("More"), reply=LOOK),), (ask(A, model("Do"), user("More"), reply=LOOK),)):
        (session,) = sessions(ask(A, reply=DONE), failed, refused, *end)
        places = [(call.at, call.response, call.prompt_tokens) for call in session.calls]
        assert places == [(1, 1, 10), (3, 3, 30)][: 1 + len(end)]
        assert [(call.at, call.response) for call in session.side_calls] == [(1, None)]
        assert session.refused == (2,)


def test_a_shorter_request_is_an_inferred_compaction():
    session = sessions(
        ask(A, reply=LOOK), ask(A, LOOK, FOUND, reply=DONE), ask(A, user(f"Summary: {SUMMARY}"), reply=model("On"))
    )[0]
    compaction = session.compactions[0]
    assert (compaction.evidence, compaction.kind, compaction.at) == (Evidence.INFERRED, "summary", 4)
    assert compaction.base == (Span(0, 1), Inserted(0))
    assert texts(session) == ["Fix", "Look", "", "Done", "On"]


def test_news_behind_a_compaction_go_to_the_log():
    more = model("More", "c2")
    session = sessions(
        ask(A, reply=LOOK),
        ask(A, LOOK, FOUND, reply=more),
        ask(A, user("Summary"), more, result("c2"), reply=DONE),
    )[0]
    assert session.compactions[0].base == (Span(0, 1), Inserted(0), Span(3, 4))
    assert session.compactions[0].kind == "summary+tail"
    assert [call.at for call in session.calls] == [1, 3, 5]


def test_what_a_user_says_behind_a_summary_when_the_turn_was_over_begins_the_next_one():
    said = user("And now the docs, please")
    before = [ask(A, reply=LOOK), ask(A, LOOK, FOUND, reply=DONE)]
    (session,) = sessions(*before, ask(A, user("Files listed, bug found."), said, reply=model("On")))
    assert session.compactions[0].base == (Span(0, 1), Inserted(0))
    assert session.events[4] == said


def test_words_behind_a_summary_in_the_middle_of_a_turn_belong_to_it():
    before = [ask(A, reply=LOOK), ask(A, LOOK, FOUND, reply=model("More", "c2"))]
    (session,) = sessions(*before, ask(A, user("Files listed, bug found."), user("Go on then."), reply=DONE))
    assert session.compactions[0].base == (Span(0, 1), Inserted(0), Inserted(1))
    assert len(session.events) == 5


def test_a_cleared_result_is_known_by_its_call_where_others_were_dropped_beside_it():
    again, other = model("Again", "c2"), result("c2", "other")
    built = sessions(
        ask(A, reply=LOOK),
        ask(A, LOOK, FOUND, reply=again),
        ask(A, LOOK, FOUND, again, other, reply=DONE),
        ask(A, LOOK, result("c2", "[cleared]"), DONE, user("Go"), reply=model("On")),
    )[0]
    (changed,) = (part for part in built.compactions[0].base if isinstance(part, Rewritten))
    assert (changed.event, changed.message) == (4, result("c2", "[cleared]"))


def test_cleared_results_are_an_edit():
    session = sessions(
        ask(A, reply=LOOK),
        ask(A, LOOK, FOUND, reply=DONE),
        ask(A, LOOK, result("c1", "[cleared]"), DONE, user("Go"), reply=model("On")),
    )[0]
    assert session.compactions[0].kind in {"edit", "summary+tail"}
    kept, changed = session.compactions[0].base[:2]
    assert (kept, changed.event, changed.message) == (Span(0, 2), 2, result("c1", "[cleared]"))


def test_a_shortened_result_beside_dropped_messages_is_no_mere_edit():
    again, other = model("Again", "c2"), result("c2", "other")
    trimmed = sessions(
        ask(A, reply=LOOK),
        ask(A, LOOK, FOUND, reply=again),
        ask(A, LOOK, FOUND, again, other, reply=DONE),
        ask(A, again, result("c2", "[cleared]"), DONE, user("Go"), reply=model("On")),
    )[0]
    assert trimmed.compactions[0].kind == "trim"
    assert trimmed.compactions[0].base == (
        Span(0, 1),
        Span(3, 4),
        Rewritten(4, result("c2", "[cleared]"), "changed in the request"),
        Span(5, 6),
    )


def test_words_at_the_end_of_each_request_that_the_next_one_leaves_out_are_no_compaction():
    states = [user(f"The page has {number} links") for number in range(3)]
    again = model("Again", "c2")
    session = sessions(
        ask(A, states[0], reply=LOOK),
        ask(A, LOOK, FOUND, states[1], reply=again),
        ask(A, LOOK, FOUND, again, result("c2"), states[2], reply=DONE),
    )[0]
    assert [item.kind for item in session.compactions] == ["edit", "edit"]
    assert session.compactions[1].base == (Span(0, 1), Span(2, 4), Span(5, 6))
    assert counted_compactions(session).total == 0


def test_a_reminder_that_later_requests_leave_out_of_a_message_is_no_compaction():
    session = sessions(
        ask(user("Fix. Answer in German."), reply=LOOK),
        ask(A, LOOK, FOUND, reply=DONE),
        ask(A, LOOK, FOUND, DONE, user("Go. Answer in German."), reply=model("On")),
        ask(A, LOOK, FOUND, DONE, user("Go"), model("On"), user("Stop"), reply=DONE),
    )[0]
    assert {item.kind for item in session.compactions} == {"edit"}


def test_the_oldest_messages_dropped_are_a_compaction_however_few_there_were():
    session = sessions(ask(A, reply=LOOK), ask(LOOK, FOUND, reply=DONE))[0]
    assert [item.kind for item in session.compactions] == ["trim"]


TALK = (A, LOOK, FOUND, model("The parser in src/parse.py fails"))
FIXED = model("src/parse.py, src/lex.py, tests/test_lex.py and docs/lex-notes.md are changed")


def gone_back(*instead: Event, before: Request | None = None) -> list[Session]:
    """The user says something else after the first answer, instead of what was said and answered there."""
    began = (ask(A, reply=LOOK), ask(A, LOOK, FOUND, reply=TALK[3]))
    left = (*TALK, user("Fix it"))
    later = ask(*TALK, *instead, reply=DONE)
    return sessions(*began, ask(*left, reply=FIXED), before or ask(*left, FIXED, user("Thanks"), reply=DONE), later)


def test_a_user_who_goes_back_leaves_a_branch_and_compacts_nothing():
    (session,) = gone_back(user("No, explain it first"))
    assert texts(session) == ["Fix", "Look", "", "The parser in src/parse.py fails", "No, explain it first", "Done"]
    assert [(call.at, call.response) for call in session.calls] == [(1, 1), (3, 3), (5, 5)]
    assert (session.compactions, len(session.side_calls)) == ((), 2)
    assert session.left == LeftBranches(messages=4, largest=70)
    assert any("what followed, 4 messages, is not in the log" in note for note in session.notes)


@pytest.mark.parametrize(
    "instead",
    [
        user("Conversation summary: the parser was fixed"),
        user(
            "So far src/parse.py, src/lex.py, tests/test_lex.py and docs/lex-notes.md are changed"
        ),  # what only the removed end names
    ],
)
def test_a_summary_in_place_of_the_end_is_a_compaction(instead):
    (session,) = gone_back(instead)
    assert (len(session.compactions), session.left) == (1, None)


def test_what_is_taken_away_after_a_refused_request_makes_room():
    refused = ask(*TALK, user("Fix it"), FIXED, user("Thanks"), refusal=TOO_LONG)
    (session,) = gone_back(user("No, explain it first"), before=refused)
    assert (len(session.compactions), session.left) == (1, None)


@pytest.mark.parametrize(
    ("refused", "words", "count"),
    [
        (True, "<summary>The parser was fixed.</summary> Continue.", 1),
        (True, "Another question altogether", 2),
        (False, "<summary>The parser was fixed.</summary> Continue.", 2),
    ],
)
def test_a_summary_after_a_refused_request_goes_on_from_it(refused, words, count):
    longer = (*TALK, user("Fix it"))
    last = ask(*longer, FIXED, user("Go on"), **({"refusal": TOO_LONG} if refused else {"reply": DONE}))
    again = user(words)
    found = sessions(
        ask(A, reply=LOOK),
        ask(A, LOOK, FOUND, reply=TALK[3]),
        ask(*longer, reply=FIXED),
        last,
        ask(again, reply=model("On it", "c9")),
        ask(again, model("On it", "c9"), result("c9"), reply=DONE),
    )
    assert len(found) == count
    assert sum(len(session.compactions) for session in found) == (count == 1)


def test_words_that_the_user_repeats_are_known_by_what_is_beside_them():
    again = user("continue")
    chapters = [model(f"Chapter {number}") for number in range(4)]
    talk = [A, chapters[0], again, chapters[1], again, chapters[2]]
    session = sessions(
        ask(*talk[:1], reply=talk[1]),
        ask(*talk[:3], reply=talk[3]),
        ask(*talk[:5], reply=talk[5]),
        ask(A, *talk[4:], again, reply=chapters[3]),
    )[0]
    (trimmed,) = session.compactions
    assert (trimmed.kind, trimmed.base, trimmed.messages) == ("trim", (Span(0, 1), Span(4, 6)), ())
    assert texts(session)[6:] == ["continue", "Chapter 3"]


def test_the_summarising_call_is_no_step():
    answer = Event(Role.MODEL, (TextPart(SUMMARY),))
    session = sessions(
        ask(A, reply=LOOK),
        ask(A, LOOK, FOUND, user("Summarise."), reply=answer),
        ask(A, user(f"[SUMMARY] {SUMMARY}"), reply=DONE, declared=Declared(tokens_before=99)),
    )[0]
    assert texts(session) == ["Fix", "Look", "", "Done"]
    assert session.compactions[0].summariser.prompt_tokens == 40
    assert session.compactions[0].tokens_before == 99
    assert [call.at for call in session.calls] == [1, 3]


def test_a_summarising_call_at_the_end_is_no_step_where_it_asks_as_one_before():
    answer, ask_for_it = Event(Role.MODEL, (TextPart(SUMMARY),)), user("Summarise.")
    again = (A, user(f"[SUMMARY] {SUMMARY}"))
    session = sessions(
        ask(A, reply=LOOK),
        ask(A, LOOK, FOUND, ask_for_it, reply=answer),
        ask(*again, reply=OTHER_STEPS[0]),
        ask(*again, *OTHER_STEPS, ask_for_it, reply=Event(Role.MODEL, (TextPart(SUMMARY * 2),))),
    )[0]
    assert [call.prompt_tokens for call in session.calls] == [10, 20]
    assert [call.prompt_tokens for call in session.side_calls] == [50]
    assert ENDS_SUMMARISING in session.notes


def test_another_summary_in_the_place_of_one_is_the_next_compaction():
    """Though both say nothing of what they replace, and the words of the task stay."""
    first, second = user("So far nothing."), user("So far hardly more.")
    logs = sessions(
        *(ask(A, *more, reply=LOOK) for more in ((), (LOOK, FOUND))),
        *(ask(A, first, *more, reply=OTHER_STEPS[0]) for more in ((), OTHER_STEPS)),
        *(ask(A, second, *more, reply=DONE) for more in ((), (DONE, ASKED))),
    )
    assert [len(session.compactions) for session in logs] == [2]


def test_a_title_between_two_calls_is_a_side_call_and_no_compaction():
    session = sessions(
        ask(A, reply=LOOK), ask(A, user("Give a title"), reply=model("Bug")), ask(A, LOOK, FOUND, reply=DONE)
    )[0]
    assert session.compactions == ()
    assert len(session.calls) == 2


def test_what_claude_code_asks_for_a_suggestion_is_a_side_call_and_no_branch():
    suggest = user("[SUGGESTION MODE: Suggest what the user might naturally type next.]")
    (session,) = sessions(
        ask(A, reply=DONE),
        ask(A, DONE, suggest, reply=model("run the tests")),
        ask(A, DONE, user("Thanks"), reply=model("Bye")),
        ask(A, DONE, user("Thanks"), model("Bye"), suggest, reply=model("commit this")),
    )
    assert texts(session) == ["Fix", "Done", "Thanks", "Bye"]
    assert (session.compactions, session.left) == ((), None)
    assert [(call.at, call.prompt_tokens) for call in session.side_calls] == [(2, 30), (4, 50)]


SHELL, EDITOR = ((ToolDefinition(name),) for name in ("bash", "edit"))
TITLES = (TextPart("Write a title of three words for what the user asks of the agent."),)


def test_a_request_with_words_that_a_call_for_their_title_has_stays_in_its_own_conversation():
    more, agent = user("Test it"), {"system": SYSTEM, "tools": SHELL}
    (session,) = sessions(
        ask(reminded("Fix", "It is Monday."), reply=DONE, **agent),
        ask(more, reply=model("Test"), system=TITLES, tools=EDITOR),
        ask(reminded("Fix", "It is Tuesday."), DONE, more, reply=LOOK, **agent),
    )
    assert [part_text(event.parts[-1]) for event in session.events[:3]] == ["Fix", "Done", "Test it"]
    assert [call.prompt_tokens for call in session.calls] == [10, 30]
    assert [call.prompt_tokens for call in session.side_calls] == [10]


def test_a_call_for_a_title_that_comes_first_is_no_first_try_of_the_conversation():
    agent = {"system": SYSTEM, "tools": SHELL}
    (session,) = sessions(
        ask(A, reply=model("Bug"), system=TITLES, tools=EDITOR),
        ask(A, reply=LOOK, **agent),
        ask(A, LOOK, FOUND, reply=DONE, **agent),
    )
    assert texts(session) == ["Fix", "Look", "", "Done"]
    assert [(call.at, call.response) for call in session.calls] == [(1, 1), (3, 3)]
    assert [call.prompt_tokens for call in session.side_calls] == [10]


@pytest.mark.parametrize(
    ("setup", "counts"),
    [
        ({"system": TITLES, "tools": EDITOR}, [0, 0]),
        ({"system": TITLES, "tools": SHELL}, [1]),
        ({"system": SYSTEM, "tools": EDITOR}, [1]),
        ({"system": TITLES}, [0, 0]),
        ({}, [1]),
    ],
)
def test_another_system_prompt_with_other_tools_is_of_another_agent(setup, counts):
    heard = user("For context: the first agent looked and found a.txt")
    logs = sessions(
        ask(A, reply=LOOK, system=SYSTEM, tools=SHELL),
        ask(A, LOOK, FOUND, reply=DONE, system=SYSTEM, tools=SHELL),
        ask(A, heard, reply=OTHER_STEPS[0], **setup),
        ask(A, heard, *OTHER_STEPS, reply=model("Written"), **setup),
    )
    assert [len(session.compactions) for session in logs] == counts


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (reminded("Fix", "It is Monday."), reminded("Fix", "It is Tuesday.")),
        (reminded("Fix", "It is Monday."), A),
        (A, reminded("Fix", "It is Tuesday.")),
    ],
)
def test_another_reminder_around_what_the_user_typed_is_an_edit_of_that_message(before, after):
    (session,) = sessions(
        ask(before, reply=LOOK),
        ask(before, LOOK, FOUND, reply=DONE),
        ask(after, LOOK, FOUND, DONE, user("Thanks"), reply=model("Bye")),
    )
    (edit,) = session.compactions
    assert (edit.kind, edit.base) == ("edit", (Rewritten(0, after, CHANGED), Span(1, 4)))
    assert texts(session)[3:] == ["Done", "Thanks", "Bye"]
    assert counted_compactions(session).total == 0


def test_messages_with_the_same_words_under_another_reminder_are_each_its_own_event():
    """A user who only asks to continue says so again and again."""
    monday, tuesday = (reminded("Go on", f"It is {day}.") for day in ("Monday", "Tuesday"))
    again = model("Again")
    (session,) = sessions(
        ask(monday, reply=LOOK),
        ask(monday, LOOK, FOUND, reply=DONE),
        ask(monday, LOOK, FOUND, DONE, monday, reply=again),
        ask(tuesday, LOOK, FOUND, DONE, tuesday, again, user("Thanks"), reply=model("Bye")),
    )
    (edit,) = session.compactions
    changed = [Rewritten(place, tuesday, CHANGED) for place in (0, 4)]
    assert (edit.kind, edit.messages) == ("edit", ())
    assert edit.base == (changed[0], Span(1, 4), changed[1], Span(5, 6))


def test_other_words_of_the_user_under_the_same_reminder_are_no_edit():
    first, other = (reminded(text, "It is Monday.") for text in ("Fix", "So far the bug was fixed"))
    (session,) = sessions(ask(first, reply=LOOK), ask(first, LOOK, FOUND, reply=DONE), ask(other, DONE, reply=LOOK))
    assert [item.kind for item in session.compactions] == ["summary+tail"]


def test_calls_beside_a_conversation_stay_where_one_of_them_is_a_summariser_and_none_has_an_id():
    title = user("Give a title")
    (session,) = sessions(
        ask(A, reply=LOOK),
        ask(title, reply=model("Bug")),
        Request((title,), ModelCall(at=0)),
        ask(A, LOOK, FOUND, reply=DONE),
        ask(user("Summarise all of it."), reply=Event(Role.MODEL, (TextPart(SUMMARY),))),
        ask(A, user(f"[SUMMARY] {SUMMARY}"), reply=model("On")),
    )
    assert session.compactions[0].summariser.prompt_tokens == 10
    assert [call.prompt_tokens for call in session.side_calls] == [10, None]


def test_a_refused_request_beside_a_conversation_is_noted():
    refused = Request((user("Summarise all of it."),), ModelCall(at=0), refusal=TOO_LONG)
    (session,) = sessions(ask(A, reply=LOOK), refused, ask(A, LOOK, FOUND, reply=DONE))
    assert session.refused == ()
    assert "1 request beside the conversation failed as too long." in session.notes


def test_a_sub_agent_is_a_session_of_its_own():
    sub, step = user("Sub"), model("Step", "c9")
    logs = sessions(
        ask(A, reply=LOOK),
        ask(sub, reply=step),
        ask(sub, step, result("c9"), reply=model("Sub done")),
        ask(A, LOOK, FOUND, reply=DONE),
        ask(A, LOOK, FOUND, DONE, user("Thanks"), reply=model("Bye")),
    )
    assert [len(session.calls) for session in logs] == [3, 2]
    assert all(session.compactions == () for session in logs)


# A client that goes on from its own summary.

ASKED, WRITTEN = user("Summarise the conversation for a successor."), Event(Role.MODEL, (TextPart(SUMMARY),))
CONTINUED = user(f"Summary of earlier work: {SUMMARY}")
READ_FILES = (
    user("Fix the parser,\nit drops the last token of a line"),
    model("I list all files of the repository", "c1"),
    result("c1", "main.py\nparser.py\ntests/test_parser.py\nREADME.md"),
)
LOOKS = (FOUND, model("Look again", "c2"), result("c2", "README.md and main.py and test_parser.py"))


def restarted(begin: Event, *between: Request, ends=(ASKED,), reply=WRITTEN, system=SYSTEM, after=()) -> list[Session]:
    """Three calls of a conversation, requests between, and two calls of one that repeats nothing of it."""
    log = (A, LOOK, *LOOKS)
    return sessions(
        ask(A, reply=LOOK, system=SYSTEM),
        ask(*log[:3], reply=log[3], system=SYSTEM),
        ask(*log, *ends, reply=reply, system=SYSTEM),
        *between,
        ask(begin, reply=OTHER_STEPS[0], system=system),
        ask(begin, *OTHER_STEPS, reply=DONE, system=system),
        *after,
    )


def test_a_request_that_holds_the_summary_of_the_conversation_before_it_goes_on_from_it():
    (session,) = restarted(CONTINUED)
    (compaction,) = session.compactions
    assert (compaction.evidence, compaction.kind, compaction.base) == (Evidence.INFERRED, "summary", (Inserted(0),))
    assert compaction.summariser is not None
    assert [call.at for call in session.calls] == [1, 3, 5, 7]
    assert counted_compactions(session).total == 1


def test_a_summary_in_chinese_is_as_long_as_it_is_in_english():
    summary = "用户要求修复解析器。文件已经列出，错误在主程序里，测试还没有运行。"
    (session,) = restarted(user(f"之前的工作：{summary}"), reply=Event(Role.MODEL, (TextPart(summary),)))
    assert [item.kind for item in session.compactions] == ["summary"]


def test_a_summary_may_come_from_a_request_that_quotes_the_conversation():
    words = "The log: first the files were listed, then the bug was found"
    steps = [
        user("Fix the parser, it drops the last token of a line"),
        model("I list all files of the repository", "c1"),
    ]
    more = [result("c1", "main.py, parser.py, tests/test_parser.py and README.md"), model("Now the tests of it", "c2")]
    quoted = user(f"{words}: {[part for event in (*steps, *more) for part in event.parts]!r}")
    logs = sessions(
        ask(steps[0], reply=steps[1], system=SYSTEM),
        ask(*steps, more[0], reply=more[1], system=SYSTEM),
        ask(*steps, *more, result("c2"), reply=model("Reading on", "c3"), system=SYSTEM),
        ask(quoted, reply=WRITTEN, system=(TextPart("You summarise."),)),
        ask(CONTINUED, reply=OTHER_STEPS[0], system=SYSTEM),
        ask(CONTINUED, *OTHER_STEPS, reply=DONE, system=SYSTEM),
    )
    assert [len(session.compactions) for session in logs] == [1]
    assert logs[0].compactions[0].summariser is not None


@pytest.mark.parametrize("opening", [LANGCHAIN, "What was done before: "])
@pytest.mark.parametrize("written", [str, json.dumps], ids=["as it is", "as JSON"])
def test_two_calls_and_the_call_that_summarised_them_are_enough(opening, written):
    said = [written(part_text(part)) for event in READ_FILES for part in event.parts]
    quoted = user(f"Extract the context: {', '.join(said)}")
    begin = user(f"{opening} {SUMMARY}")
    logs = sessions(
        ask(*READ_FILES[:1], reply=READ_FILES[1], system=SYSTEM),
        ask(*READ_FILES, reply=model("Reading on", "c3"), system=SYSTEM),
        ask(quoted, reply=WRITTEN),
        ask(begin, reply=OTHER_STEPS[0], system=SYSTEM),
        ask(begin, *OTHER_STEPS, reply=DONE, system=SYSTEM),
    )
    assert [(len(log.calls), len(log.compactions)) for log in logs] == [(4, 1)]
    assert logs[0].compactions[0].summariser is not None


_CHAIN = (ask(A, reply=WRITTEN), ask(CONTINUED, reply=LOOK), ask(CONTINUED, LOOK, FOUND), ask(A, WRITTEN, ASKED))


def test_other_conversations_are_no_compaction_though_they_have_words_of_one_before():
    again = ask(A, LOOK, *LOOKS, ASKED, WRITTEN, user("Thanks"), reply=DONE, system=SYSTEM)
    other = (TextPart("You write release notes."),)
    for logs in (
        restarted(user("What is the weather?")),
        restarted(CONTINUED, system=other),  # an agent that is handed the result
        restarted(CONTINUED, after=(again,)),  # the first one goes on
        sessions(*_CHAIN),  # one prompt made of the answer to another
    ):
        assert [session.compactions for session in logs] == [(), ()]
        assert all(MAY_CONTINUE not in session.notes for session in logs)


def test_a_conversation_that_names_files_of_the_one_before_may_continue_it():
    for words in (
        "main.py was read, README.md too, and test_parser.py fails.",
        "main.py, README.md and test_parser.py.",
    ):
        logs = restarted(user(f"So far: {words}"), ends=(), reply=DONE)
        assert [MAY_CONTINUE in session.notes for session in logs] == [False, True]
        assert [MAY_BE_CONTINUED in session.notes for session in logs] == [True, False]
    assert [MAY_CONTINUE in session.notes for session in restarted(user("See main.py"), ends=(), reply=DONE)] == [
        False
    ] * 2


SAID = (
    "the second column of the table has to keep its width when the window gets narrower than that",
    "nobody may see the amounts of other customers, whatever the role of their account may be",
)
LONG_TALK = (
    user("Please look at the invoices of last month and say what is wrong with them, one by one"),
    model(f"I have looked. Remember: {SAID[0]}"),
    user(f"Yes, and also {SAID[1]}"),
    model("I will respect that in each of the steps"),
    user("Then begin"),
)


def begun_again(begin: Event) -> list[Session]:
    """A conversation of three calls, and two calls of one that begins anew under the same system prompt."""
    return sessions(
        *(ask(*LONG_TALK[:at], reply=LONG_TALK[at], system=SYSTEM) for at in (1, 3)),
        ask(*LONG_TALK, reply=DONE, system=SYSTEM),
        ask(begin, reply=OTHER_STEPS[0], system=SYSTEM),
        ask(begin, *OTHER_STEPS, reply=DONE, system=SYSTEM),
    )


def test_a_conversation_that_repeats_passages_of_the_one_before_may_continue_it():
    """In words that no known client writes; the two stay two."""
    logs = begun_again(user(f"Where we are. Columns: {SAID[0]}. Privacy: {SAID[1]}. Go on from here."))
    assert [len(session.calls) for session in logs] == [3, 2]
    assert [MAY_BE_REPEATED in session.notes for session in logs] == [True, False]
    assert [MAY_REPEAT in session.notes for session in logs] == [False, True]
    assert all(session.compactions == () for session in logs)


@pytest.mark.parametrize(
    "words",
    [
        "Where we are. Nothing of the invoices has been done so far, and the customers are waiting for an answer",
        f"The same paragraph was pasted once more: {SAID[1]} {SAID[1]}",
        f"{part_text(LONG_TALK[0].parts[0])}, and then those of this month, in the very same way as the others",
    ],
)
def test_another_conversation_of_the_same_task_continues_nothing(words):
    """Not with words of its own, with one message of the other one, or with what that one began with, too."""
    assert not {MAY_REPEAT, MAY_BE_REPEATED} & {note for session in begun_again(user(words)) for note in session.notes}


@pytest.mark.parametrize(("begin", "is_noted"), [("Summary 2: all was looked at.", True), ("Summarise it.", False)])
def test_a_conversation_that_is_headed_a_summary_may_continue_the_one_before(begin, is_noted):
    notes = [session.notes for session in begun_again(user(begin))]
    assert [MAY_BE_SUMMARISED in each for each in notes] == [is_noted, False]
    assert [MAY_BEGIN_WITH_SUMMARY in each for each in notes] == [False, is_noted]


READ = (
    user("Make the tests pass in the repository of the parser"),
    model("I look", "c1"),
    result("c1", "a line of a file " * 200),
)
HANDED_OVER = user("All has to be green, some of it is. " * 12)


def filled(begin: Event, **given) -> list[set[str]]:
    """The notes of a conversation whose last prompt has so many tokens, and of two calls of one that begins anew."""
    return [{MAY_FOLLOW, MAY_GO_ON} & set(session.notes) for session in filling(begin, **given)]


def filling(begin: Event, *, tokens=90_000, end=LOOK, models=("m", "m"), system=SYSTEM) -> list[Session]:
    sizes = (100, 200, 300, tokens)
    return sessions(
        *(
            Request(
                (*READ, *[DONE, ASKED] * more), ModelCall(0, model=models[0], prompt_tokens=size), DONE, system=SYSTEM
            )
            for more, size in enumerate(sizes[:3])
        ),
        Request((*READ, *[DONE, ASKED] * 3), ModelCall(0, model=models[0], prompt_tokens=tokens), end, system=SYSTEM),
        *(
            Request(messages, ModelCall(0, model=models[1], prompt_tokens=150), DONE, system=system)
            for messages in ((begin,), (begin, DONE, ASKED))
        ),
    )


def test_the_words_of_a_client_continue_a_conversation_that_had_filled_its_window():
    """Though the call for the summary is not in the file, or the summary is empty."""
    for words in (f"{LANGCHAIN} All is well.", LANGCHAIN):
        (session,) = filling(user(words))
        assert [item.kind for item in session.compactions] == ["summary" if words != LANGCHAIN else "empty"]
    assert len(filling(user(f"{LANGCHAIN} All is well."), tokens=30_000)) == 2


def test_a_short_conversation_behind_one_that_filled_its_window_may_continue_it():
    """Though it names nothing of it: the work was not done, or the first message says at length where it is."""
    went_on = [{MAY_GO_ON}, {MAY_FOLLOW}]
    assert filled(user("Goal: all green. Next: go on.")) == went_on
    assert filled(HANDED_OVER, end=DONE) == went_on
    assert filled(user(f"{part_text(READ[0].parts[0])} So far: half of them."), end=LOOK) == went_on


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("Goal: all green. Next: go on.", {"tokens": 30_000}),
        ("Goal: all green. Next: go on.", {"models": ("m", "other")}),
        ("Goal: all green. Next: go on.", {"system": OTHER_STEPS[0].parts[:1]}),
        ("Now write the notes of the release.", {"end": DONE}),
        ("Make the tests of issue 7 pass", {}),
    ],
)
def test_another_conversation_behind_one_that_filled_its_window_does_not(words, given):
    """Where there was room, under another model or setup, after the work, or as another task in the same form."""
    assert filled(user(words), **given)[0] == set()


FRAMED = user(f"{CLAUDE_CODE} that ran out of context. {SUMMARY}")
OTHER_SYSTEM = (TextPart("Another client with words of its own."),)
STATIC = user("<environment>the folder</environment>")


def two_runs(*second: Event) -> list[Session]:
    """Two calls of a conversation that begins with static words, and two of one that begins so, too."""
    return sessions(
        ask(STATIC, A, reply=LOOK),
        ask(STATIC, A, LOOK, FOUND, reply=DONE),
        ask(*second, reply=OTHER_STEPS[0]),
        ask(*second, *OTHER_STEPS, reply=DONE),
    )


def test_the_words_of_a_client_join_a_summary_to_its_conversation_whatever_the_system_prompt():
    (session,) = restarted(FRAMED, system=OTHER_SYSTEM)
    assert [item.kind for item in session.compactions] == ["summary"]


def test_a_conversation_that_opens_as_a_summary_of_none_in_the_file_says_so():
    logs = restarted(FRAMED, ends=(), reply=DONE)
    assert [BEGINS_WITH_SUMMARY in session.notes for session in logs] == [False, True]
    alone = sessions(ask(A, reply=LOOK), ask(A, LOOK, FOUND, reply=DONE), ask(FRAMED, reply=DONE))
    assert [(len(session.calls), BEGINS_WITH_SUMMARY in session.notes) for session in alone] == [(2, False), (1, True)]


def test_two_restarts_from_one_summary_are_two_branches():
    again = (CONTINUED, user("Now the docs."))
    later = (ask(*again, reply=LOOK, system=SYSTEM), ask(*again, LOOK, FOUND, reply=DONE, system=SYSTEM))
    logs = restarted(CONTINUED, after=later)
    assert [(len(session.calls), len(session.compactions)) for session in logs] == [(4, 1), (2, 0)]
    assert [BEGINS_WITH_SUMMARY in session.notes for session in logs] == [False, True]


def test_other_runs_from_the_same_first_messages_are_no_compaction():
    for begin in ((STATIC, A), (STATIC, user("Write the notes of this release."))):
        assert [(len(session.calls), session.compactions) for session in two_runs(*begin)] == [(2, ()), (2, ())]


def test_a_summary_of_opening_words_alone_is_empty():
    frame = user(f"{LANGCHAIN}\n\n")
    (session,) = sessions(
        ask(A, reply=LOOK),
        ask(A, LOOK, FOUND, reply=DONE),
        ask(frame, DONE, reply=OTHER_STEPS[0]),
        ask(frame, DONE, *OTHER_STEPS, reply=DONE),
    )
    assert [item.kind for item in session.compactions] == ["empty"]


def test_a_summary_behind_the_first_message_is_a_compaction():
    logs = two_runs(STATIC, user("Summary: the bug was found."))
    assert [len(session.compactions) for session in logs] == [1]


def test_messages_that_the_recorder_lost_are_put_back():
    session = sessions(ask(A, reply=LOOK), ask(FOUND, reply=DONE, lost=2))[0]
    assert texts(session) == ["Fix", "Look", "", "Done"]
    assert session.notes == ()


def test_a_gap_at_the_head_is_told():
    session = sessions(ask(FOUND, reply=DONE, lost=2), ask(user("Go"), reply=model("On"), lost=4))[0]
    assert "first 2 messages" in session.notes[0]
    assert texts(session) == ["", "Done", "Go", "On"]


def test_the_same_requests_give_the_same_sessions():
    requests = [ask(A, reply=LOOK), ask(A, LOOK, FOUND, reply=DONE), ask(A, user("S"), reply=model("On"))]
    first, second = (
        sessions(*requests),
        sessions(*msgspec.json.decode(msgspec.json.encode(requests), type=list[Request])),
    )
    assert first == second
