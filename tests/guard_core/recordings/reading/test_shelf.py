"""Texts kept on a shelf come back as they were, and a shelved recording reads the same as one in memory."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard_core import recordings
from guard_core.events import Event, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.recordings.reading.shelf import Shelf, ShelvedEvents
from guard_core.simulator.big_files import write_claude_code
from tests.plugins.tiers import mostly_long

SAMPLES = Path(__file__).parents[5] / "shared/samples"
FILES = [path for path in sorted(SAMPLES.rglob("*")) if path.is_file() and path.name not in {"README.md", "index.json"}]


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "big.jsonl"
    with path.open("wb") as out:
        write_claude_code(out, steps=300, size=900_000)
    return path


def check_reads_the_same(path: Path, folder: Path) -> bool:
    """Is it the same, sent early or not; were texts shelved at all?"""
    batches: list[Event] = []
    follower = recordings.EarlyEvents(batches.append)
    recording, left = recordings.read(path), recordings.read(path, shelve=folder, shelve_from=0)
    early = recordings.read(path, shelve=folder, shelve_from=0, early=follower)
    for shelved in (left, early):
        assert (shelved.facts, shelved.notes) == (recording.facts, recording.notes)
        assert len(shelved.sessions) == len(recording.sessions)
        for mine, other in zip(shelved.sessions, recording.sessions, strict=True):
            assert tuple(mine.events) == tuple(other.events)
            assert (mine.calls, mine.compactions, mine.side_calls) == (other.calls, other.compactions, other.side_calls)
            assert mine.notes == other.notes
            assert Ledger.of(mine).to_bytes() == Ledger.of(other).to_bytes()
    for first in early.sessions[:1]:
        agreed = follower.agreed(first.events)
        assert list(first.events[:agreed]) == batches[:agreed]
    return any(isinstance(session.events, ShelvedEvents) for session in left.sessions)


def test_a_long_transcript_reads_the_same(transcript: Path, tmp_path: Path) -> None:
    assert check_reads_the_same(transcript, tmp_path)


@pytest.mark.skipif(not FILES, reason="../shared/samples is absent")
@pytest.mark.parametrize("path", mostly_long(FILES, short=FILES[::6]), ids=lambda path: str(path.relative_to(SAMPLES)))
def test_a_sample_reads_the_same(path: Path, tmp_path: Path) -> None:
    check_reads_the_same(path, tmp_path)


def test_nothing_is_left_in_the_folder(transcript: Path, tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    (session,) = recordings.read(transcript, shelve=folder, shelve_from=0).sessions
    assert session.events[7].parts
    assert not list(folder.iterdir())


def test_single_events_and_slices_are_fetched_alone(transcript: Path, tmp_path: Path) -> None:
    (session,) = recordings.read(transcript, shelve=tmp_path, shelve_from=0).sessions
    (whole,) = recordings.read(transcript).sessions
    assert session.events[7] == whole.events[7]
    assert tuple(session.events[-3:]) == whole.events[-3:]


def test_a_small_file_stays_in_memory(transcript: Path, tmp_path: Path) -> None:
    size = transcript.stat().st_size
    (small,) = recordings.read(transcript, shelve=tmp_path, shelve_from=size + 1).sessions
    (large,) = recordings.read(transcript, shelve=tmp_path, shelve_from=size).sessions
    assert isinstance(small.events, tuple)
    assert isinstance(large.events, ShelvedEvents)


_WORDS = st.text(max_size=5)
_PARTS = st.one_of(
    st.builds(TextPart, _WORDS),
    st.builds(ToolCallPart, _WORDS, st.dictionaries(_WORDS, st.integers(-(2**63), 2**63 - 1), max_size=2), _WORDS),
    st.builds(ToolResultPart, _WORDS, _WORDS, _WORDS, st.booleans()),
)
_EVENTS = st.builds(
    lambda role, parts, line: Event(role=role, parts=tuple(parts), line=line),
    st.sampled_from(Role),
    st.lists(_PARTS, max_size=2),
    st.none() | st.integers(1, 10),
)
_CHANGES = st.lists(
    st.tuples(st.sampled_from(["append", "set", "cut", "pop", "get"]), st.integers(0, 9), _EVENTS), max_size=20
)


@given(_CHANGES)
def test_shelved_events_behave_like_a_list(changes: list[tuple[str, int, Event]]) -> None:
    shelved, plain = ShelvedEvents(Shelf(Path(tempfile.gettempdir()))), []
    for name, at, event in changes:
        for events in (shelved, plain):
            if name == "append":
                events.append(event)
            elif name == "cut":
                del events[at:]
            elif at < len(events) and name == "set":
                events[at] = event
            elif at < len(events) and name == "pop":
                events.pop(at)
        if name == "get" and at < len(plain):
            assert (shelved[at], shelved[at - len(plain)]) == (plain[at], plain[at - len(plain)])
    assert list(shelved) == plain
    assert shelved[1:] == plain[1:]
