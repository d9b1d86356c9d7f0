"""`measure` prints how well calls are predicted, as a table and as JSON."""

import argparse
import json
import statistics
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
        pytest.skip(f"../shared/samples has no {name}")
    return str(path)


def test_it_prints_a_table_with_every_estimator(capsys):
    assert run(sample("codex/rollout-0.169-2-compactions.jsonl")) == 0
    output = capsys.readouterr().out
    assert "forecast 10 calls ahead" in output
    assert "interpolation between known calls" in output
    assert all(name in output for name in ("chars/4", "bytes/4", "o200k_base", "cl100k_base"))


REAL = ("claude-code/long-2-compactions.jsonl", "codex/long-2-compactions.jsonl", "pi/large-session-v1.jsonl")


def measured(name: str, capsys) -> dict:
    assert run("--json", sample(name)) == 0
    (report,) = json.loads(capsys.readouterr().out)
    return report


@pytest.mark.long
def test_real_recordings_are_forecast_within_what_is_promised(capsys):
    """The errors of single recordings are tried below."""
    forecasts = [measured(name, capsys)["forecast"] for name in REAL]
    for horizon, most in {"1": 0.0025, "10": 0.012, "50": 0.035}.items():
        assert statistics.median(item[horizon]["mape"] for item in forecasts) <= most


def test_the_interpolation_keeps_its_own_name_and_says_how_much_lies_between_two_known_counts(capsys):
    report = measured(REAL[0], capsys)
    assert report["interpolation"]["mape"] < 0.03
    assert report["interpolation_between"] > 0.9
    assert "leave_one_out" not in report


def test_a_forecast_without_calls_is_null(capsys):
    assert measured("claude-code/progress-lines.jsonl", capsys)["forecast"]["50"] is None


def test_it_says_what_a_prompt_after_a_compaction_holds_beyond_the_file(capsys):
    missing = measured(REAL[1], capsys)["not_in_file"]
    assert missing["compactions"] == 2
    assert 500 < missing["tokens"] < 4_000
    assert missing["source"] == (
        "median of 2 recorded compactions of this session and what this agent's compactions usually add"
    )


def test_a_file_that_is_no_recording_is_named(tmp_path, capsys):
    path = tmp_path / "notes.txt"
    path.write_text("buy milk")
    assert run(str(path), str(tmp_path / "absent")) == 2
    output = capsys.readouterr().err
    assert "notes.txt" in output
    assert "absent" in output


def test_an_empty_file_gets_one_sentence_and_no_output(tmp_path, capsys):
    path = tmp_path / "empty.jsonl"
    path.touch()
    assert run(str(path), "--json") == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"{path}: the file is empty\n"


def test_a_file_that_can_be_read_is_measured_beside_one_that_cannot(tmp_path, capsys):
    assert run("--json", str(tmp_path / "absent"), sample(REAL[1])) == 2
    (report,) = json.loads(capsys.readouterr().out)
    assert report["forecast"]["1"]["calls"]
    assert any("reasoning is sent until the user writes again" in note for note in report["baselines"])
