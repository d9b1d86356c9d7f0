"""Damaged recordings: a strict reading stops with a sentence, a lenient one keeps exactly the rest."""

import msgspec
import pytest

from guard_core import errors
from guard_core.recordings import FORMATS, read
from tests.recordings.damaged import CASES as PLAIN_CASES
from tests.recordings.damaged import LINE_CASES, Case
from tests.recordings.damaged_formats import FORMAT_CASES, OUTCOMES
from tests.recordings.seeds import DATABASES, SEEDS

CASES = [*PLAIN_CASES, *FORMAT_CASES]
NAMES = [case.name for case in CASES]


def outcome(case: Case, *, strict: bool) -> tuple[str | int, str]:
    """The number of events or the name of the error, and what a person is told."""
    try:
        recording = read(case.content, strict=strict)
    except errors.RecordingError as error:
        return type(error).__name__, str(error)
    return len(recording.sessions[0].events), " ".join(problem.message for problem in recording.notes.problems)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_strict_reading(case):
    found, told = outcome(case, strict=True)

    assert found == case.strict
    assert case.sentence in told


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_lenient_reading(case):
    found, told = outcome(case, strict=False)

    assert found == case.lenient
    assert case.sentence in told


@pytest.mark.parametrize("case", LINE_CASES, ids=[case.name for case in LINE_CASES])
def test_the_line_is_named(case):
    with pytest.raises(errors.RecordingError) as caught:
        read(case.content, strict=True)

    assert caught.value.line == 3


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_what_is_read_can_be_stored_anywhere(case):
    if isinstance(case.lenient, int):
        stored = msgspec.json.encode(read(case.content).sessions)

        assert b"\\u0000" not in stored
        stored.decode("utf-8")


def test_there_are_many_cases():
    assert len(CASES) >= 350
    assert len(set(NAMES)) == len(NAMES)
    assert set(OUTCOMES) == {case.name for case in FORMAT_CASES}


def test_every_format_has_seeds_that_are_good():
    found = {read(content, strict=True).format for content in (*SEEDS.values(), *DATABASES.values())}

    assert found == {format_.name for format_ in FORMATS}
