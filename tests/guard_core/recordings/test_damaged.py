"""Damaged recordings: a strict reading stops with a sentence, a lenient one keeps exactly the rest."""

import json

import msgspec
import pytest

from guard_core.errors import DamagedRecording
from guard_core.recordings import FORMATS, read
from guard_core.sessions import DAMAGED
from tests.recordings.damaged import CASES as PLAIN_CASES
from tests.recordings.damaged import LINE_CASES, Outcome, outcome
from tests.recordings.damaged_formats import FORMAT_CASES, OUTCOMES
from tests.recordings.seeds import DATABASES, SEEDS, WORDS, archive

CASES = [*PLAIN_CASES, *FORMAT_CASES]
NAMES = [case.name for case in CASES]
LEFT_OUT = (", left out", " are missing")


# Each test reads all of them, and says which were read otherwise: a reading takes less time than a test of its own.
def read_otherwise(readings: dict[str, Outcome], expected: dict[str, str | int]) -> list[str]:
    """The cases that are not read as they say, each with what was expected and what was read."""
    sentences = {case.name: case.sentence for case in CASES}
    return [
        f"{name}: expected {expected[name]} and {sentences[name]!r}, read {reading.result} and {reading.sentence!r}"
        for name, reading in readings.items()
        if reading.result != expected[name] or sentences[name] not in reading.sentence
    ]


def test_a_strict_reading_stops_with_the_sentence_of_the_case():
    readings = {case.name: outcome(case.content, strict=True) for case in CASES}
    wrong = read_otherwise(readings, {case.name: case.strict for case in CASES})
    assert not wrong, "\n".join(wrong)
    assert {case.name: readings[case.name].line for case in LINE_CASES} == {case.name: 3 for case in LINE_CASES}


def test_a_lenient_reading_keeps_exactly_the_rest():
    readings = {case.name: outcome(case.content, strict=False) for case in CASES}
    wrong = read_otherwise(readings, {case.name: case.lenient for case in CASES})
    assert not wrong, "\n".join(wrong)


def test_a_session_of_which_something_was_left_out_says_so():
    silent = []
    for case in CASES:
        if isinstance(case.lenient, int):
            recording = read(case.content)
            said = [problem.message for problem in recording.notes.problems if problem.message.endswith(LEFT_OUT)]
            left_out = any("counts of tokens" not in message for message in said)
            silent += [case.name for one in recording.sessions if left_out and DAMAGED not in one.notes]
    assert silent == []


def test_what_was_left_out_of_one_session_is_said_of_no_other():
    def twice(seed: str) -> bytes:
        """An array with the conversation of a seed and, under another id, the same with words that are a number."""
        (whole,) = json.loads(SEEDS[seed])
        spoiled = json.loads(json.dumps(whole).replace('"s"', '"t"').replace(json.dumps(WORDS), "7"))
        return json.dumps([whole, spoiled]).encode()

    damaged = SEEDS["kimi-code"].replace(b'"context.append_message"', b"context.append_message", 1)
    folders = archive({"a/agents/main/wire.jsonl": SEEDS["kimi-code"], "b/agents/main/wire.jsonl": damaged})
    for content in (twice("chatgpt"), twice("claude-ai"), folders):
        recording = read(content)
        whole, spoiled = recording.sessions
        assert (DAMAGED in whole.notes, DAMAGED in spoiled.notes) == (False, True), recording.format


def test_a_message_that_is_none_is_refused_by_its_place():
    asked, answer = {"role": "user", "content": "Look"}, {"role": "assistant", "content": "Seen"}
    conversation = json.dumps({"model": "gpt-4o", "messages": [asked, 7, answer]}).encode()
    with pytest.raises(DamagedRecording, match=r"^message 2 is a number and no object"):
        read(conversation, strict=True)
    with pytest.raises(DamagedRecording, match=r"^line 2: message 2 is a number and no object"):
        read(conversation.replace(b"7", b"{}") + b"\n" + conversation, strict=True)


def test_a_session_damaged_in_a_damaged_archive_says_so_once():
    damaged = SEEDS["kimi-code"].replace(b'"context.append_message"', b"context.append_message", 1)
    folders = archive({"a/agents/main/wire.jsonl": SEEDS["kimi-code"], "b/agents/main/wire.jsonl": damaged})
    without_directory = folders[:-30]
    assert [session.notes.count(DAMAGED) for session in read(without_directory).sessions] == [1, 1]


def test_what_is_read_can_be_stored_anywhere():
    for case in CASES:
        if isinstance(case.lenient, int):
            stored = msgspec.json.encode(read(case.content).sessions)
            assert b"\\u0000" not in stored, case.name
            stored.decode("utf-8")


def test_there_are_many_cases():
    assert len(CASES) >= 350
    assert len(set(NAMES)) == len(NAMES)


def test_every_damaged_file_of_a_format_was_judged():
    names = [case.name for case in FORMAT_CASES]
    missing = [name for name in names if name not in OUTCOMES]
    assert missing == [], "`python -m tests.recordings.damaged_formats` prints their entries: judge each, then add it"
    assert [name for name in OUTCOMES if name not in names] == [], "damaged_formats.json has entries without a file"


def test_every_format_has_seeds_that_are_good():
    formats = {read(content, strict=True).format for content in (*SEEDS.values(), *DATABASES.values())}
    missing = {format_.name for format_ in FORMATS} - formats
    assert missing == set(), "tests/recordings/seeds.py has no small good recording of these formats"
