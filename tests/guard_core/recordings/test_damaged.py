"""Damaged recordings: a strict reading stops with a sentence, a lenient one keeps exactly the rest."""

import msgspec

from guard_core.recordings import FORMATS, read
from tests.recordings.damaged import CASES as PLAIN_CASES
from tests.recordings.damaged import LINE_CASES, outcome
from tests.recordings.damaged_formats import FORMAT_CASES, OUTCOMES
from tests.recordings.seeds import DATABASES, SEEDS

CASES = [*PLAIN_CASES, *FORMAT_CASES]
NAMES = [case.name for case in CASES]


# Each test reads all of them, and says which were read otherwise: a reading takes less time than a test of its own.
def test_a_strict_reading_stops_with_the_sentence_of_the_case():
    readings = {case.name: (case, outcome(case.content, strict=True)) for case in CASES}
    wrong = {
        name: reading
        for name, (case, reading) in readings.items()
        if reading.result != case.strict or case.sentence not in reading.sentence
    }
    assert wrong == {}
    assert {case.name: readings[case.name][1].line for case in LINE_CASES} == {case.name: 3 for case in LINE_CASES}


def test_a_lenient_reading_keeps_exactly_the_rest():
    readings = {case.name: (case, outcome(case.content, strict=False)) for case in CASES}
    wrong = {
        name: reading
        for name, (case, reading) in readings.items()
        if reading.result != case.lenient or case.sentence not in reading.sentence
    }
    assert wrong == {}


def test_what_is_read_can_be_stored_anywhere():
    for case in CASES:
        if isinstance(case.lenient, int):
            stored = msgspec.json.encode(read(case.content).sessions)
            assert b"\\u0000" not in stored, case.name
            stored.decode("utf-8")


def test_there_are_many_cases():
    assert len(CASES) >= 350
    assert len(set(NAMES)) == len(NAMES)
    assert set(OUTCOMES) == {case.name for case in FORMAT_CASES}


def test_every_format_has_seeds_that_are_good():
    found = {read(content, strict=True).format for content in (*SEEDS.values(), *DATABASES.values())}

    assert found == {format_.name for format_ in FORMATS}
