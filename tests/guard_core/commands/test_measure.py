"""`measure` prints how well calls are predicted, as a table and as JSON."""

import argparse
import json
from pathlib import Path

import pytest

from guard_core.commands import measure

SAMPLES = Path(__file__).parents[4] / "shared" / "samples"


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    measure.add_arguments(parser)
    return measure.run(parser.parse_args(arguments))


def sample(name: str) -> str:
    path = SAMPLES / name
    if not path.exists():
        pytest.skip(f"the recording {name} is not beside the repository")
    return str(path)


def test_it_prints_a_table_with_every_estimator(capsys):
    assert run(sample("codex/rollout-0.169-2-compactions.jsonl")) == 0
    told = capsys.readouterr().out
    assert "every call from the others" in told
    assert all(name in told for name in ("chars/4", "bytes/4", "o200k_base", "cl100k_base"))


@pytest.mark.parametrize(
    "name", ["claude-code/long-2-compactions.jsonl", "codex/long-2-compactions.jsonl", "pi/large-session-v1.jsonl"]
)
def test_real_recordings_are_predicted_within_three_percent(name, capsys):
    assert run("--json", sample(name)) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["leave_one_out"]["mape"] < 0.03


def test_a_file_that_is_no_recording_is_named(tmp_path, capsys):
    path = tmp_path / "notes.txt"
    path.write_text("buy milk")
    assert run(str(path), str(tmp_path / "absent")) == 1
    told = capsys.readouterr().err
    assert "notes.txt" in told
    assert "absent" in told
