"""Texts left in the file and read again are the texts that would have been kept."""

from io import BytesIO
from pathlib import Path

import pytest

from guard_core import recordings
from guard_core.errors import DamagedRecording
from guard_core.ledger import Ledger
from guard_core.recordings.reread import Reread
from guard_core.simulator.big_files import write_claude_code

SAMPLES = Path(__file__).parents[4] / "shared/samples/claude-code"


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "big.jsonl"
    with path.open("wb") as out:
        write_claude_code(out, steps=300, size=900_000)
    return path


def check_reads_the_same(path: Path) -> None:
    kept, left = recordings.read(path), recordings.read(path, reread=True)
    assert left.facts == kept.facts
    assert len(left.sessions) == len(kept.sessions)
    for mine, other in zip(left.sessions, kept.sessions, strict=True):
        assert isinstance(mine.events, Reread)
        assert tuple(mine.events) == other.events
        assert (mine.calls, mine.compactions, mine.side_calls) == (other.calls, other.compactions, other.side_calls)
        assert Ledger.of(mine).to_bytes() == Ledger.of(other).to_bytes()


def test_a_long_transcript_reads_the_same(transcript: Path) -> None:
    check_reads_the_same(transcript)


@pytest.mark.skipif(not SAMPLES.is_dir(), reason=f"the samples are not at {SAMPLES}")
@pytest.mark.parametrize("name", [path.name for path in sorted(SAMPLES.glob("*.jsonl"))])
def test_a_sample_reads_the_same(name: str) -> None:
    check_reads_the_same(SAMPLES / name)


def test_single_events_and_slices_are_read_alone(transcript: Path) -> None:
    (session,) = recordings.read(transcript, reread=True).sessions
    (kept,) = recordings.read(transcript).sessions
    assert session.events[7] == kept.events[7]
    assert session.events[-3:] == kept.events[-3:]


def test_bytes_and_streams_keep_their_texts(transcript: Path) -> None:
    content = transcript.read_bytes()
    for given in (content, BytesIO(content)):
        (session,) = recordings.read(given, reread=True).sessions
        assert isinstance(session.events, tuple)


def test_a_file_that_was_cut_meanwhile_is_told(transcript: Path) -> None:
    (session,) = recordings.read(transcript, reread=True).sessions
    transcript.write_bytes(transcript.read_bytes()[:1000])
    with pytest.raises(DamagedRecording, match="changed while it was read"):
        list(session.events)
