"""`replay` prints every step's numbers, and a sentence for what it cannot do."""

import json

import pytest

from guard_core.__main__ import main
from guard_core.recordings.formats import native
from tests.guard_core.checker.cases import replays

KEYS = set(
    """
    step contents_built contents_sent heuristic_built heuristic_decided heuristic_sent recorded_prompt_tokens
    modelled_prompt_tokens correction_raw correction correction_source calibrated decision_tokens threshold fired
    watermark summary_bytes overflow
    """.split()  # noqa: SIM905 - a list of thirty lines says less
)


@pytest.fixture
def chat(tmp_path):
    messages = []
    for index in range(12):
        messages += [{"role": "user", "content": f"question {index} " + "word " * 400}]
        messages += [{"role": "assistant", "content": f"answer {index}"}]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(messages))
    return str(path)


def printed(capsys, *arguments):
    assert main(["replay", *arguments]) == 0
    return capsys.readouterr().out


def test_json_has_every_number_of_every_step(chat, capsys):
    document = json.loads(printed(capsys, chat, "--window", "8000", "--summary", "fixed:100", "--json"))
    assert (document["policy"], document["profile"], document["window"]) == ("contextguard", "current", 8_000)
    assert {"settings", "engine_version", "digest", "compactions", "steps"} <= set(document)
    assert all(set(step) >= KEYS for step in document["steps"])
    assert [step["step"] for step in document["steps"] if step["fired"]] == [
        item["step"] for item in document["compactions"]
    ]
    assert document["numbering"].startswith("steps, messages and compactions count from 0 in fields")
    assert document["steps"][0]["step"] == 0
    assert document["steps"][0]["correction_raw"] is None
    assert document["steps"][0]["fired"] is False


def test_settings_reach_the_policy(chat, capsys):
    arguments = ("--profile", "early", "--set", "cap=3", "--set", "buffer=1000", "--window", "8k", "--json")
    document = json.loads(printed(capsys, chat, *arguments))
    assert (document["settings"]["cap"], document["settings"]["default_factor"]) == (3.0, 2.0)
    assert document["steps"][0]["threshold"] == 7_000


def test_two_runs_have_the_same_digest(chat, capsys):
    first, second = (json.loads(printed(capsys, chat, "--json"))["digest"] for _ in range(2))
    assert first == second


def test_the_table_has_totals(chat, capsys):
    out = printed(capsys, chat, "--window", "8000", "--summary", "fixed:100")
    assert "decided on" in out
    assert "steps 12, compactions" in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["missing.json"], "missing.json"),
        (["CHAT", "--policy", "nope"], "there is no policy 'nope'"),
        (["CHAT", "--profile", "nope"], "there is no profile 'nope'"),
        (["CHAT", "--set", "cap"], "a setting is written KEY=VALUE"),
        (["CHAT", "--set", "cap=many"], "(cap) is a number"),
        (["CHAT", "--summary", "long"], "the summary is recorded"),
        (["CHAT", "--session", "7"], "none is called '7'"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(chat, capsys, arguments, sentence):
    assert main(["replay", *(chat if item == "CHAT" else item for item in arguments)]) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.out == ""


def test_requests_as_large_as_a_refused_one_are_counted_beside_the_overflows(tmp_path, capsys):
    claims = next(claims for name, claims in replays() if name == "as large as a refused request")
    path = tmp_path / "refused.jsonl"
    path.write_bytes(native.write(claims.session))
    (finding,) = [item for item in claims.findings if item.kind == "refused_again"]
    assert main(["replay", str(path), "--policy", "none"]) == 0
    assert f"overflows 0, {finding.numbers['requests']} more as large as a refused request" in capsys.readouterr().out
    assert main(["replay", str(path), "--policy", "none", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["as_large_as_a_refused_request"] == finding.numbers["requests"]
