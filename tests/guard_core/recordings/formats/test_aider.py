"""Aider chat histories."""

from __future__ import annotations

import pytest

from guard_core.errors import DamagedRecording
from guard_core.events import Role, TextPart
from guard_core.findings import Facts, conclusions
from guard_core.recordings.formats.aider import FORMAT
from tests.guard_core.recordings.checks import check_hostile, check_sample_facts, read_as, recognises, texts

START = "# aider chat started at 2026-03-01 10:00:00\n\n"
CHAT = (
    START
    + "> Main model: vendor/m-1 with diff edit format  \n\n"
    + "#### Fix the bug  \n#### in main.py  \n\nHere is the fix.\n\n```python\nx = 1\n```\n\n"
    + "> Tokens: 4.2k sent, 1.1k received. Cost: $0.02  \n> Applied edit to main.py  \n\n"
)


def read(text: str):
    return read_as(FORMAT, text.encode())


def test_lines_of_the_user_belong_together_and_the_rest_is_the_answer():
    session = read(CHAT).sessions[0]
    assert texts(session) == ["Fix the bug\nin main.py", "Here is the fix.\n\n```python\nx = 1\n```"]
    assert [event.role for event in session.events] == [Role.USER, Role.MODEL]
    assert [(call.at, call.response) for call in session.calls] == [(1, 1)]
    assert session.model == "vendor/m-1"


def test_rounded_tokens_of_an_exchange_are_told_and_not_given_to_a_call():
    recording = read(CHAT)
    assert recording.sessions[0].calls[0].prompt_tokens is None
    assert "about 4,200 tokens sent" in recording.sessions[0].notes[0]
    assert (recording.sessions[0].prompt_tokens_total, recording.sessions[0].total_calls) == (4_200, None)
    assert recording.facts.model_calls == 0


def test_an_exhausted_context_window_is_a_refused_request():
    told = "> Input tokens: ~131,000 of 128,000 -- possibly exhausted context window!  \n"
    session = read(CHAT + told).sessions[0]
    assert session.refused == (2,)
    verdict = conclusions(Facts.of(session))[1]
    assert verdict.sentence == "1 request failed as too long, after step 1: an overflow (recorded)."


def test_each_chat_is_a_session_and_empty_ones_are_counted():
    recording = read(CHAT + START + "> ^C KeyboardInterrupt\n" + CHAT)
    assert len(recording.sessions) == 2
    assert recording.notes.skipped == {"chat without messages": 1}


def test_commands_are_automatic_unless_they_are_sent():
    session = read(START + "#### /add main.py  \n\n#### !ls  \n\n#### /ask why?  \n\nBecause.\n").sessions[0]
    assert [event.starts_turn() for event in session.events] == [False, False, True, False]


def test_a_file_whose_beginning_was_cut_is_taken():
    assert recognises(FORMAT, ("> Applied edit to a.py  \n\n" + CHAT).encode())


def test_quotes_and_headings_in_an_answer_stay_in_it():
    answer = "Do this:\n\n> quoted\n\n#### A heading\n\nDone."
    session = read(CHAT + f"#### Why  \n\n{answer}\n\n> Tokens: 5k sent, 10 received.  \n").sessions[0]
    assert texts(session)[2:] == ["Why", answer]


def test_the_console_may_speak_in_several_lines():
    session = read(START + "> aider --message Fix\nall of it  \n> Aider v0.86.2  \n\n#### Fix  \n\nDone.\n").sessions[0]
    assert texts(session) == ["Fix", "Done."]


def test_facts_count_the_users_lines():
    assert read(CHAT).facts.messages == 2


def test_two_exchanges_are_two_calls():
    more = "#### Again  \n\nDone.\n\n> Tokens: 5k sent, 10 received.  \n"
    assert [call.at for call in read(CHAT + more).sessions[0].calls] == [1, 3]


def test_json_inside_a_chat_does_not_change_what_it_is():
    session = read(START + '#### Read this\n\n{"a": 1}\n{"b": 2}\n').sessions[0]
    assert session.events[1].parts == (TextPart('{"a": 1}\n{"b": 2}'),)


def test_a_history_in_which_nothing_was_said_is_damaged():
    with pytest.raises(DamagedRecording, match="no user's line"):
        read(START)


def test_other_markdown_is_not_taken():
    assert not recognises(FORMAT, b"# Notes\n\n#### A heading\n")


def test_odd_bytes_are_survived():
    check_hostile(FORMAT, [START.encode() + b"#### \xff\x00\n> Tokens: 9" + b"9" * 400 + b"k sent\n\n\x0b"])


def test_the_facts_of_the_samples_are_equal():
    check_sample_facts(FORMAT, "aider")
