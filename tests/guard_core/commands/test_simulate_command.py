"""`simulate` lists, runs and judges scenarios, and writes them as sessions."""

import json

import pytest

from guard_core.__main__ import main
from guard_core.simulator.scenarios import SCENARIOS

NAME = "Stress_8k_HeavyToolDefinitions"


def printed(capsys, *arguments, code=0):
    assert main(["simulate", *arguments]) == code
    return capsys.readouterr().out


def test_without_a_name_it_lists_the_scenarios(capsys):
    assert printed(capsys).split() == list(SCENARIOS)


def test_json_has_a_row_per_scenario_policy_and_profile(capsys):
    arguments = (NAME, "--policy", "contextguard", "--policy", "none", "--profile", "current", "--json")
    rows = json.loads(printed(capsys, *arguments))
    assert [(row["policy"], row["compactions"]) for row in rows] == [("contextguard", 40), ("none", 0)]
    assert rows[0]["injections"] == 39
    assert rows[1]["overflow_steps"] > 0


def test_it_fails_on_loops_and_overflows_where_asked(capsys):
    assert "1 with loops" in printed(capsys, NAME, "--fail-on", "loop", code=1)
    printed(capsys, NAME, "--fail-on", "overflow")
    printed(capsys, NAME, "--fail-on", "loop", "--profile", "fixed")
    printed(capsys, NAME, "--policy", "none", "--fail-on", "overflow,loop", code=1)


def test_an_exported_session_gives_the_same_numbers(tmp_path, capsys):
    row = json.loads(printed(capsys, NAME, "--json", "--export", str(tmp_path)))[0]
    assert main(["replay", str(tmp_path / f"{NAME}.jsonl"), "--summary", "fixed:120", "--json"]) == 0
    replayed = json.loads(capsys.readouterr().out)
    assert replayed["digest"] == row["digests"][0]
    assert max(step["modelled_prompt_tokens"] for step in replayed["steps"]) == row["peak"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["Nope"], "there is no scenario 'Nope'"),
        ([NAME, "--fail-on", "fire"], "--fail-on takes overflow, loop"),
        ([NAME, "--policy", "x"], "there is no policy 'x'"),
        ([NAME, "--summary", "long"], "the summary is recorded"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(capsys, arguments, sentence):
    assert main(["simulate", *arguments]) == 2
    assert sentence in capsys.readouterr().err
