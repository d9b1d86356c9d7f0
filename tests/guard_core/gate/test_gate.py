"""A gate fails on what a policy would do to recordings, names it, and with a baseline only on what got worse."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
import yaml

from guard_core.__main__ import main
from guard_core.errors import SettingError
from guard_core.gate import Under, assert_compaction, check_kinds, run_corpus
from guard_core.recordings.formats import native
from tests.builders import bundled

ROOT = Path(__file__).parents[3]
HOSTILE = "<script>alert(1)</script>\x00\x1b\ufffe\u202e"


@pytest.fixture
def corpus(tmp_path):
    """Two recordings, one of which overflows without compaction, and a file that is none."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name in ("healthy", "long-coding"):
        (folder / f"{name}.jsonl").write_bytes(native.write(bundled(name)))
    (folder / "notes.txt").write_text("no recording")
    return folder


def gate(*arguments):
    return main(["gate", *map(str, arguments), "--processes", "1"])


def test_it_fails_on_an_overflow_and_says_where(corpus, capsys):
    assert gate(corpus, "--policy", "none", "--fail-on", "overflow") == 1
    text = capsys.readouterr().out
    assert "FAILED long-coding.jsonl: overflow × 95" in text
    assert re.search(r"1 of 2 sessions failed, \d+ steps replayed\n$", text)
    assert gate(corpus, "--policy", "codex", "--fail-on", "overflow,loop,never-fits,late") == 0


def test_the_files_that_it_writes_say_the_same(corpus, tmp_path, capsys):
    xml, page = tmp_path / "out.xml", tmp_path / "out.html"
    assert gate(corpus, "--policy", "none", "--junit", xml, "--html", page, "--json") == 1
    results = {item["name"]: item for item in json.loads(capsys.readouterr().out)["sessions"]}
    root = ET.parse(xml).getroot()
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("2", "1", "0")
    failed = [case.get("name") for case in root if case.find("failure") is not None]
    assert failed == [name for name, item in results.items() if item["counts"]["overflow"]]
    assert results[failed[0]]["sentences"][0][1] in page.read_text()


def test_a_baseline_lets_through_what_was_so_before(corpus, tmp_path, capsys):
    file = tmp_path / "base.json"
    assert gate(corpus, "--policy", "none", "--write-baseline", file) == 1
    assert gate(corpus, "--policy", "none", "--baseline", file) == 0
    values = json.loads(file.read_text())
    values["counts"]["long-coding.jsonl"]["overflow"] -= 1
    file.write_text(json.dumps(values))
    assert gate(corpus, "--policy", "none", "--baseline", file) == 1
    assert "overflow × 95 (before: 94)" in capsys.readouterr().out


def test_hostile_words_stay_words(corpus, tmp_path):
    one = msgspec.structs.replace(bundled("long-coding"), title=HOSTILE)
    (corpus / "<b>&.jsonl").write_bytes(native.write(one))
    xml, page = tmp_path / "out.xml", tmp_path / "out.html"
    gate(corpus, "--policy", "none", "--junit", xml, "--html", page)
    assert "<b>&.jsonl" in [case.get("name") for case in ET.parse(xml).getroot()]
    assert "<script>" not in page.read_text()
    assert "<b>" not in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--fail-on", "everything"], "a gate fails on overflow"),
        (["--policy", "nobody"], "nobody"),
        (["--set", "buffer"], "KEY=VALUE"),
        (["--set", "nothing=1"], "nothing"),
        (["--baseline", "/nowhere.json"], "No such file"),
    ],
)
def test_wrong_arguments_are_one_sentence(corpus, capsys, arguments, words):
    assert gate(corpus, *arguments) == 2
    assert words in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_an_error_of_its_own(corpus, tmp_path, capsys):
    xml = tmp_path / "out.xml"
    (corpus / "cut.jsonl").write_bytes(native.write(bundled("healthy"))[:300])
    assert gate(corpus, corpus / "notes.txt", "--junit", xml) == 2
    assert ET.parse(xml).getroot().get("errors") in ("1", "2")
    assert "notes.txt" in capsys.readouterr().err
    empty = tmp_path / "empty"
    empty.mkdir()
    assert gate(empty) == 2


def test_processes_change_nothing(corpus):
    under = Under("codex", {})
    assert run_corpus([corpus], under, 2) == run_corpus([corpus], under, 1)


def test_a_profile_may_be_written_as_a_number():
    policy = Under("gptme", {"profile": 0.35}).make(None)
    assert policy.settings.profile == "0.35"
    Under("gptme", {"profile": None}).check()


def test_an_assertion_says_what_happened():
    one = bundled("long-coding")
    trace = assert_compaction(one, "codex", overflows=0, compactions=3)
    assert len(trace.compactions) == 3
    with pytest.raises(AssertionError, match="95 overflows, at most 0 allowed"):
        assert_compaction(one, "none")
    with pytest.raises(AssertionError, match="3 compactions, at most 1 allowed"):
        assert_compaction(one, "codex", compactions=1)
    with pytest.raises(SettingError, match="no limit 'overflow'"):
        assert_compaction(one, overflow=0)
    with pytest.raises(SettingError):
        check_kinds("")


def test_what_the_readme_shows_runs(tmp_path):
    """The command, the steps of the workflow and the test of the README, word for word, on a folder of that name."""
    section = (ROOT / "README.md").read_text().partition("## In continuous integration")[2].partition("\n## ")[0]
    command, workflow, test = re.findall(r"```(?:sh|yaml|python)\n(.*?)```", section, re.DOTALL)
    steps = yaml.safe_load(workflow)["jobs"]["compaction"]["steps"]
    lines = [command, *(step["run"] for step in steps if not step.get("run", "pip").startswith("pip"))]
    assert len(lines) == 3
    folder = tmp_path / "recordings"
    folder.mkdir()
    (folder / "long.jsonl").write_bytes(native.write(bundled("long-coding")))
    (tmp_path / "test_compaction.py").write_text(test)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    programs = {"python": [sys.executable], "compaction-inspector": [sys.executable, "-m", "inspector.project.cli"]}
    for line in lines:
        name, *words = line.split()
        done = subprocess.run([*programs[name], *words], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
    assert {path.name for path in tmp_path.iterdir()} >= {"compaction.xml", "compaction.html", "baseline.json"}
