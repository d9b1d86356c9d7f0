"""`context` prints what fills a request, as text and as JSON with every number."""

import json

import pytest

from guard_core.__main__ import main
from guard_core.recordings.formats import native
from tests.builders import bundled


@pytest.fixture
def sample(tmp_path):
    path = tmp_path / "sample.json"
    path.write_bytes(native.write(bundled("timing-gap")))
    return str(path)


def test_it_prints_classes_changes_growth_and_tools(sample, capsys):
    assert main(["context", sample, "--at", "3"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("step 3: ")
    assert "since step 2: added" in text
    assert "largest growth: " in text
    assert "held twice: " in text


def test_its_json_has_rows_that_add_up_to_their_counts(sample, capsys):
    assert main(["context", sample, "--json", "--policy", "contextguard"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["numbering"] == "steps, messages and compactions count from 0 in fields, from 1 in sentences"
    assert len(report["steps"]) == len(report["areas"]) > 1
    assert [sum(row) for row in report["areas"]] == report["counts"]
    assert sum(report["now"]) == report["count"]
    assert len(report["classes"]) == len(report["now"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--at", "0"], "there is no step 0: the session has steps 1 to"),
        (["--at", "99999"], "there is no step 99999"),
        (["--set", "buffer=1"], "name one with --policy"),
        (["--policy", "nothing"], "nothing"),
    ],
)
def test_what_is_not_allowed_is_one_sentence(sample, capsys, arguments, words):
    assert main(["context", sample, *arguments]) == 2
    assert words in capsys.readouterr().err
