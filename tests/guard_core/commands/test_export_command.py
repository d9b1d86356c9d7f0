"""`export` writes what gives the same session again, and redacted nothing of what was found."""

import msgspec
import pytest

from guard_core import read
from guard_core.__main__ import main
from guard_core.recordings.formats import native
from tests.builders import bundled, tool_call, tool_result, user
from tests.guard_core.redaction.corpus import TRUE

GITHUB = TRUE["github classic"][1]


@pytest.fixture
def recording(tmp_path):
    whole = bundled("healthy")
    more = (user(f"key {GITHUB}"), tool_call("run", "r1", token=GITHUB), tool_result({"out": GITHUB}, "run", "r1"))
    path = tmp_path / "recording.jsonl"
    path.write_bytes(native.write(msgspec.structs.replace(whole, events=(*whole.events, *more))))
    return path


def test_an_export_is_the_same_session(recording, tmp_path, capsys):
    out = tmp_path / "out.jsonl"
    assert main(["export", str(recording), "-o", str(out)]) == 0
    (before,), (after,) = read(str(recording)).sessions, read(str(out)).sessions
    assert after == before
    assert capsys.readouterr().out.split()[0] == native.digest(before) == native.digest(after)


def test_a_redacted_export_has_the_same_counts_and_no_secret(recording, tmp_path, capsys):
    out = tmp_path / "out.jsonl"
    assert main(["export", str(recording), "-o", str(out), "--redact", "--hide", "orchard"]) == 0
    assert GITHUB not in out.read_text()
    assert "orchard" not in out.read_text().lower()
    (before,), (after,) = read(str(recording)).sessions, read(str(out)).sessions
    assert (after.calls, len(after.events)) == (before.calls, len(before.events))
    assert native.digest(after) != native.digest(before)
    assert "3 × GitHub token" in capsys.readouterr().err


def test_what_cannot_be_written_is_one_sentence(recording, capsys):
    assert main(["export", str(recording), "-o", "/nowhere/out.jsonl"]) == 2
    assert main(["export", str(recording), "-o", "/nowhere/out.jsonl", "--hide", "*"]) == 2
    assert capsys.readouterr().err.count("\n") == 2
