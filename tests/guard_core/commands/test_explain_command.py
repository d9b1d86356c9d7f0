"""`explain` says by which rule the agent of a recording compacts, as text and as JSON."""

import json

import pytest

from guard_core.__main__ import main
from guard_core.recordings.formats import native
from tests.guard_core.checker.cases import clearing
from tests.guard_core.rules.test_rules import transcript
from tests.recordings.seeds import SEEDS


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "session.jsonl"
    path.write_bytes(native.write(transcript()))
    return str(path)


def test_the_first_line_is_the_rule_in_one_sentence(file, capsys):
    assert main(["explain", file]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.endswith(
        "Claude Code 2.1.14 compacts at 155,000: 200,000 − 32,000 (max output) − 13,000. Recorded at 155,010"
        " (last prompt, its answer and what was added since)."
    )
    assert rest[-1].split()[:4] == ["4", "automatic", "155,010", "155,000"]


def test_the_table_has_the_signs_of_the_pages_and_json_those_of_the_rule(file, capsys):
    assert main(["explain", file]) == 0
    text = capsys.readouterr().out
    assert "155,010 ≥ 155,000 = 200,000" in text
    assert ">=" not in text
    assert main(["explain", file, "--json"]) == 0
    assert "155,010 >= 155,000" in capsys.readouterr().out


def test_what_bounds_the_threshold_is_named_in_words(file, capsys):
    assert main(["explain", file]) == 0
    assert (
        "  by prompt and output tokens of the last answer, and an estimate of what was added since, steps 1 to 4: the "
        "threshold is above"
    ) in capsys.readouterr().out


def test_its_json_has_rule_compactions_inference_and_agreement(file, capsys):
    assert main(["explain", file, "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)["sessions"]
    assert (report["rule"]["policy"], report["rule"]["profile"]) == ("claude-code", "until-2.1.19")
    assert report["rule"]["settings"][1]["source"] == "assumed"
    assert report["agreement"] == {"auto": 1, "agrees": 1}
    assert (report["compactions"][0]["step"], report["compactions"][0]["verdict"]) == (3, "agrees")
    assert (report["inference"][0]["from"], report["inference"][0]["to"]) == (0, 3)


def test_results_that_only_the_requests_show_to_be_cleared_are_named(tmp_path, capsys):
    path = tmp_path / "clearing.jsonl"
    path.write_bytes(native.write(clearing()))
    assert main(["explain", str(path)]) == 0
    assert (
        "  at step 4 the tool results of 2 older messages were cleared or shortened, about " in capsys.readouterr().out
    )
    assert main(["explain", str(path), "--json"]) == 0
    (cleared,) = json.loads(capsys.readouterr().out)["sessions"][0]["cleared"]
    assert (cleared["step"], cleared["messages"]) == (3, 2)


def test_a_window_and_a_setting_can_be_typed(file, capsys):
    assert main(["explain", file, "--json", "--window", "1M", "--set", "max_output_tokens=8192"]) == 0
    (report,) = json.loads(capsys.readouterr().out)["sessions"]
    assert report["rule"]["threshold"] == 1_000_000 - 8_192 - 13_000
    assert {item["source"] for item in report["rule"]["settings"]} == {"user"}


def test_a_setting_can_be_typed_as_the_agents_configuration_names_it(tmp_path, capsys):
    path = tmp_path / "chat.jsonl"
    path.write_bytes(SEEDS["qwen-code"])
    assert main(["explain", str(path), "--json", "--set", "context.autoCompactThreshold=0.5"]) == 0
    assert json.loads(capsys.readouterr().out)["sessions"][0]["rule"]["threshold"] == 500_000


def test_an_unknown_setting_is_one_sentence(file, capsys):
    assert main(["explain", file, "--set", "buffer=1"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("the rule of Claude Code has no setting 'buffer'")
    assert error.count("\n") == 1
