"""`triggers` joins the sessions of files and folders, as text and as JSON."""

import json
import re

import msgspec
import pytest

from guard_core.__main__ import main
from guard_core.recordings.formats import native
from tests.builders import transcript

DAY = 86_400.0


def session(name, day, **more):
    return msgspec.structs.replace(transcript(**more), source_id=name, started_at=day * DAY)


@pytest.fixture
def folder(tmp_path):
    """Two sessions of one version in a sub-folder, one of a later version, a copy and a file without a recording."""
    (tmp_path / "old").mkdir()
    sessions = {
        "old/a.jsonl": session("a", 1),
        "old/b.jsonl": session("b", 1.5, prompts=(20_000, 150_000, 153_995, 9)),
        "new.jsonl": session("c", 2, version="2.1.21", prompts=(20_000, 158_000, 167_000, 9)),
        "copy.jsonl": session("c", 2, version="2.1.21", prompts=(20_000, 168_000, 9), place=2),
    }
    for name, build in sessions.items():
        (tmp_path / name).write_bytes(native.write(build))
    (tmp_path / "notes.md").write_text("# nothing to read")
    return tmp_path


def test_all_sessions_of_a_folder_are_rows_with_their_bounds_and_formula(folder, capsys):
    assert main(["triggers", str(folder)]) == 0
    out, error = capsys.readouterr()
    header, row, inferred, rule, *_ = out.splitlines()
    assert re.split(r"\s{2,}", header)[-5:] == ["automatic", "unknown", "manual", "none at", "one at"]
    assert re.split(r"\s{2,}", row)[1:] == [
        "2.1.14",
        "claude-opus-4-5-20251101",
        "200,000",
        "2",
        "2",
        "0",
        "0",
        "151,010",
        "155,005",
    ]
    assert "inferred: 155,000 = 200,000 − 32,000 (max output) − 13,000 explains 2 of 2 (as do" in inferred
    assert "2 obeying it" in rule
    assert "notes.md: no recording of a known format (left out)" in error
    assert "1 session left out: of those with the same id, the longest counts" in error


def test_sessions_whose_ids_were_taken_out_are_not_taken_for_one(tmp_path, capsys):
    for number in range(3):
        (tmp_path / f"{number}.jsonl").write_bytes(native.write(session("[redacted]", number)))
    main(["triggers", str(tmp_path)])
    out, error = capsys.readouterr()
    assert re.split(r"\s{2,}", out.splitlines()[1])[4] == "3"
    assert "left out" not in error


def test_compactions_whose_trigger_no_file_says_are_counted_apart(tmp_path, capsys):
    (tmp_path / "a.jsonl").write_bytes(native.write(session("a", 1, trigger="")))
    main(["triggers", str(tmp_path)])
    row = capsys.readouterr().out.splitlines()[1]
    assert re.split(r"\s{2,}", row)[4:8] == ["1", "0", "1", "0"]


def test_a_change_of_the_threshold_is_named_with_its_date_and_both_checks(folder, capsys):
    main(["triggers", str(folder)])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "from 1970" in line]
    assert "from 1970-01-03 (version 2.1.21, before it 2.1.14) the threshold is higher" in line
    assert re.search(
        r"not compact at 159,010 in \S+new.jsonl#1, step 3, and had at 155,005 in \S+b.jsonl#1, step 4", line
    )
    assert line.endswith("by the agent's rule it was 155,000 before and is 167,000 from there on")


def test_its_json_has_rows_changes_and_every_compaction(folder, capsys):
    assert main(["triggers", str(folder), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    first, second = document["rows"]
    assert (first["agent"], first["version"], first["window"]) == ("Claude Code", "2.1.14", 200_000)
    assert first["at_most"] == {"tokens": 155_005, "session": f"{folder}/old/b.jsonl#1", "step": 3}
    assert (first["formula"]["threshold"], first["explained"], first["fired"]) == (155_000, 2, 2)
    assert len(second["sessions"]) == 1, "a copy is not a session of its own"
    assert len(document["compactions"]) == 3
    assert [change["rule_after"] for change in document["changes"]] == [167_000]
    assert [item["file"] for item in document["not_read"]] == [f"{folder}/notes.md"]


def test_a_file_that_was_named_and_cannot_be_read_is_an_error(folder, capsys):
    assert main(["triggers", str(folder / "new.jsonl"), str(folder / "gone.jsonl")]) == 2
    assert "gone.jsonl is not a file that can be read" in capsys.readouterr().err
    assert main(["triggers", str(folder / "notes.md")]) == 2
    assert "no session with a model call" in capsys.readouterr().err
