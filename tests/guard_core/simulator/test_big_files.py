from io import BytesIO

from guard_core import recordings
from guard_core.simulator.big_files import write_claude_code


def written(steps: int, size: int, seed: int = 1) -> bytes:
    out = BytesIO()
    write_claude_code(out, steps=steps, size=size, seed=seed)
    return out.getvalue()


def test_the_same_arguments_give_the_same_bytes() -> None:
    assert written(50, 100_000) == written(50, 100_000)
    assert written(50, 100_000) != written(50, 100_000, seed=2)


def test_it_has_the_steps_and_about_the_size_asked_for() -> None:
    content = written(600, 2_400_000)
    recording = recordings.read(content, strict=True)
    assert abs(len(content) - 2_400_000) < 120_000
    assert (recording.format, len(recording.sessions), len(recording.sessions[0].calls)) == ("claude-code", 1, 600)


def test_it_compacts_when_the_window_is_nearly_full() -> None:
    recording = recordings.read(written(600, 2_400_000))
    (session,) = recording.sessions
    assert 1 <= len(session.compactions) <= 10
    assert recording.facts.prompt_tokens_max < 200_000
