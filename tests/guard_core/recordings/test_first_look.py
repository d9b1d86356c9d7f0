"""The first look tells what the full reading will tell of the recorded calls, for a file without branches."""

from pathlib import Path

import pytest

from guard_core import recordings
from guard_core.errors import UnknownFormat
from guard_core.simulator.big_files import write_claude_code


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "big.jsonl"
    with path.open("wb") as out:
        write_claude_code(out, steps=400, size=2_000_000)
    return path


def test_it_finds_the_calls_and_compactions_of_the_full_reading(transcript: Path) -> None:
    look = recordings.first_look(transcript)
    (session,) = recordings.read(transcript).sessions
    assert look is not None
    assert list(look.prompt_tokens) == [call.prompt_tokens for call in session.calls]
    assert len(look.compactions) == len(session.compactions) > 0
    assert look.model == session.model


def test_it_passes_over_damaged_lines(transcript: Path) -> None:
    whole = recordings.first_look(transcript)
    transcript.write_bytes(b'{"broken\n' + transcript.read_bytes() + b"[1,2]\n\xff\xfe\n")
    assert recordings.first_look(transcript) == whole


def test_a_format_that_cannot_tell_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text('{"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]}')
    assert recordings.first_look(path) is None


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("just words")
    with pytest.raises(UnknownFormat):
        recordings.first_look(path)
