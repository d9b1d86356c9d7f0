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


SAMPLES = Path(__file__).parents[4] / "shared/samples"
LONG = (
    "claude-code/long-2-compactions.jsonl",
    "codex/long-2-compactions.jsonl",
    "pi/v3-2-compactions.jsonl",
    "pi/large-session-v1.jsonl",
)


@pytest.mark.skipif(not SAMPLES.is_dir(), reason=f"the samples are not at {SAMPLES}")
@pytest.mark.parametrize("name", LONG)
def test_it_tells_of_a_real_file_what_the_reading_tells(name: str) -> None:
    look = recordings.first_look(SAMPLES / name)
    (session,) = recordings.read(SAMPLES / name).sessions
    assert look is not None
    assert list(look.prompt_tokens) == [call.prompt_tokens for call in session.calls if call.prompt_tokens]
    assert len(look.compactions) == sum(compaction.at <= session.calls[-1].at for compaction in session.compactions)
    assert look.model == session.model


@pytest.mark.skipif(not SAMPLES.is_dir(), reason=f"the samples are not at {SAMPLES}")
def test_a_rollout_with_records_of_usage_is_looked_at_too() -> None:
    """Its token counts fold the calls of the summariser away; the chart of the reading has them apart."""
    look = recordings.first_look(SAMPLES / "codex/rollout-0.169-2-compactions.jsonl")
    (session,) = recordings.read(SAMPLES / "codex/rollout-0.169-2-compactions.jsonl").sessions
    assert look is not None
    assert set(look.prompt_tokens) > {call.prompt_tokens for call in session.calls}
    assert len(look.compactions) == len(session.compactions)


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


def test_a_count_that_is_null_is_none(tmp_path: Path) -> None:
    """As gateways to other providers write it."""
    path = tmp_path / "null.jsonl"
    line = b'{"type":"assistant","uuid":"a","parentUuid":null,"sessionId":"s","message":{"id":"m","model":"x",%s}}\n'
    path.write_bytes(line % b'"content":[],"usage":{"input_tokens":90,"cache_read_input_tokens":null}')
    look = recordings.first_look(path)
    assert look is not None
    assert list(look.prompt_tokens) == [90]
    assert recordings.read(path).facts.prompt_tokens_sum == 90
