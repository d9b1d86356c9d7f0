"""`report` writes a report in each of its forms, and `verify` checks one."""

import json

import pytest

from guard_core.__main__ import main
from guard_core.recordings.formats import native
from tests.builders import bundled


@pytest.fixture
def sample(tmp_path):
    path = tmp_path / "sample.jsonl"
    path.write_bytes(native.write(bundled("small-window")))
    return str(path)


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("r.html", "<!doctype html>"),
        ("r.md", "# Two weeks"),
        ("r.csv", "side,policy,"),
        ("r.svg", "<svg"),
        ("r.json", "{"),
    ],
)
def test_the_name_of_the_output_says_the_form(sample, tmp_path, name, begins):
    path = tmp_path / name
    assert main(["report", sample, "-o", str(path), "--title", "Two weeks"]) == 0
    assert path.read_text("utf-8").startswith(begins)


def test_a_report_is_verified_with_and_without_its_recording(sample, tmp_path, capsys):
    path = tmp_path / "r.json"
    settings = ["--policy", "contextguard", "--set", "buffer=10%", "--compaction", "1", "--level", "text"]
    assert main(["report", sample, "-o", str(path), *settings]) == 0
    assert main(["verify", str(path)]) == 0
    assert main(["verify", str(path), sample]) == 0
    assert capsys.readouterr().out.startswith("equal: digest and sums\nequal: digest, sums and every figure")
    forged = json.loads(path.read_text())
    forged["sides"][0]["outcome"]["overflows"] = 3
    path.write_text(json.dumps(forged))
    assert main(["verify", str(path), sample]) == 1
    assert "sides.0.outcome.overflows: the report says 3, recomputed 1" in capsys.readouterr().out
    forged["engine_version"] = "0.1.0"
    path.write_text(json.dumps(forged))
    assert main(["verify", str(path), sample]) == 1
    out = capsys.readouterr().out
    assert out.startswith("made by engine 0.1.0, this is engine ")
    assert "sides.0.outcome.overflows: the report says 3, recomputed 1" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "r.pdf"], "no report is written as .pdf"),
        (["--set", "buffer=1"], "need --policy"),
        (["--compaction", "0"], "count from 1"),
        (["--compaction", "99"], "no compaction 99"),
        (["--policy", "nobody"], "nobody"),
        (["-o", "/nowhere/at/all/r.html"], "No such file"),
    ],
)
def test_wrong_arguments_are_one_sentence(sample, capsys, arguments, words):
    assert main(["report", sample, *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_file_that_is_no_report_is_one_sentence(sample, tmp_path, capsys):
    assert main(["verify", sample]) == 2
    assert main(["verify", str(tmp_path / "absent.json")]) == 2
    assert capsys.readouterr().err.count("\n") == 2
