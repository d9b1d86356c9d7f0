"""`context` prints what fills a request, as text and as JSON with every number."""

import json

import msgspec
import pytest

from guard_core.__main__ import main
from guard_core.recordings.formats import native
from guard_core.sessions import Evidence, Provenance, RecordedCompaction, Sourced
from guard_core.views import Inserted
from tests.builders import bundled, transcript, user
from tests.guard_core.outcomes.cast import counted


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


@pytest.fixture
def recorded(tmp_path):
    """A file of a session whose prompts are these, and what the file states as its window."""

    def write(prompts, window=None):
        built = transcript(version="2.1.62", prompts=prompts)
        stated = None if window is None else Sourced(window, Provenance.RECORDER)
        path = tmp_path / "recorded.jsonl"
        path.write_bytes(native.write(msgspec.structs.replace(built, window=stated, compactions=())))
        return str(path)

    return write


def test_a_reserve_that_rests_on_an_assumed_window_says_so(recorded, capsys):
    assert main(["context", recorded([150_000, 200_000, 250_000, 260_000])]) == 0
    assert "(1,000,000 − 967,000), if the window is 1,000,000" in capsys.readouterr().out


def test_no_reserve_follows_from_a_window_that_a_prompt_contradicts(recorded, capsys):
    assert main(["context", recorded([50_000, 100_000, 150_000, 160_000], window=90_000)]) == 0
    text = capsys.readouterr().out
    assert "largest growth: 50,000 tokens before step 2; " in text
    assert "the reserve of" not in text


def test_no_more_is_sent_anew_than_the_request_has(tmp_path, capsys):
    built = counted((90_000, 100_000, 20_000, 20_100), cached=(0, 89_000, 3_000, 19_000), compactions=(summarised(5),))
    path = tmp_path / "cut.json"
    path.write_bytes(native.write(built))
    assert main(["context", str(path), "--at", "3"]) == 0
    given = "cached beginning: 3,000 of 100,000 tokens of the request before (recorded), first difference at message 1"
    assert f"{given}; 17,000 sent anew, $" in capsys.readouterr().out


def summarised(at):
    return RecordedCompaction(at, Evidence.DECLARED, "summary", (Inserted(0),), (user("In short."),), "auto")


def test_one_result_that_is_held_twice_is_one_result(recorded, capsys):
    assert main(["context", recorded([20_000, 21_500, 23_000, 24_500]), "--at", "3"]) == 0
    assert "held twice: 1 result (" in capsys.readouterr().out


def test_no_reserve_follows_from_counts_of_characters(recorded, capsys):
    added = len("reading") + 4_000
    assert main(["context", recorded([20_000 + added * step for step in range(4)])]) == 0
    assert "largest growth: 4,007 tokens before step 2; the counts seem to count characters" in capsys.readouterr().out


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
