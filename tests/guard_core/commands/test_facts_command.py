"""`facts` says which instructions were lost at which compaction, as text and as JSON."""

import json
from pathlib import Path

import pytest

from guard_core.__main__ import main
from guard_core.recordings.formats import native
from guard_core.sessions import ModelCall
from tests.builders import model, session, user
from tests.guard_core.findings.cases import compaction

LONG = Path(__file__).parents[4] / "shared/samples/claude-code/long-2-compactions.jsonl"
RULE = "Never rename the column tenant in the billing tables"


@pytest.fixture
def lost(tmp_path):
    calls = tuple(ModelCall(step + 1, step + 1, 1_000 + 100 * step) for step in range(6))
    events = [user(RULE), *(model(f"working on it, part {step}") for step in range(6))]
    built = session(*events, calls=calls, compactions=(compaction(3, summary="Half is done."),))
    path = tmp_path / "lost.json"
    path.write_bytes(native.write(built))
    return str(path)


def test_it_prints_what_was_lost_and_how_it_is_measured(lost, capsys):
    assert main(["facts", lost]) == 0
    text = capsys.readouterr().out
    assert "The words of the one instruction are not in the last request: it is lost." in text
    assert f'rule: "{RULE}" (message 1): lost at step 3 (compaction 1); the last request with it is step 2.' in text
    assert "it agrees with 50 of 50" in text


def test_a_rule_that_the_user_took_back_is_shown_as_withdrawn_and_not_as_lost(tmp_path, capsys):
    events = [user(RULE), *(model(f"working on it, part {step}") for step in range(6))]
    events[2] = user("You may rename the column tenant in the billing tables again.")
    calls = tuple(ModelCall(at, at, 1_000 + 100 * at) for at in (1, 3, 4, 5, 6))
    path = tmp_path / "withdrawn.json"
    path.write_bytes(native.write(session(*events, calls=calls, compactions=(compaction(4, summary="Half."),))))
    assert main(["facts", str(path)]) == 0
    text = capsys.readouterr().out
    assert "1 rule was withdrawn by the user." in text
    assert f'rule: "{RULE}" (message 1): withdrawn with message 3 (step 2).' in text
    assert "lost" not in text.partition("Verbatim:")[0]
    assert main(["facts", str(path), "--json"]) == 0
    (lane,) = json.loads(capsys.readouterr().out)["sessions"][0]["lanes"]
    assert (lane["lost"], lane["withdrawn"]) == (None, {"step": 1, "message": 2})


def test_a_compaction_whose_removals_are_not_in_the_file_is_named(tmp_path, capsys):
    """A copy of the history after it is all there is, so that every request seems to hold everything."""
    calls = tuple(ModelCall(step + 1, step + 1, 1_000) for step in range(6))
    events = [user(RULE), *(model(f"working on it, part {step}") for step in range(6))]
    path = tmp_path / "blind.json"
    path.write_bytes(native.write(session(*events, calls=calls, compactions=(compaction(3, (0, 3)),))))
    unknown = "What compaction 1 removed is not in the file: whether later requests still have what was said before is"
    assert main(["facts", str(path)]) == 0
    fate = "The words of the one instruction are not known to be in the last request: it is in a message"
    assert f"{fate} that a compaction perhaps removed. {unknown} not known." in capsys.readouterr().out
    assert main(["facts", str(path), "--json"]) == 0
    (output,) = json.loads(capsys.readouterr().out)["sessions"]
    assert output["lanes"][0]["unseen"] == {"step": 2, "compaction": 0}
    assert main(["facts", str(path), "--policy", "none"]) == 0
    assert unknown not in capsys.readouterr().out


def test_its_json_has_every_lane_as_data(lost, capsys):
    assert main(["facts", lost, "--json"]) == 0
    (output,) = json.loads(capsys.readouterr().out)["sessions"]
    (lane,) = output["lanes"]
    assert (lane["kind"], lane["text"], lane["message"], lane["state"]) == ("rule", RULE, 0, "gone")
    assert lane["unseen"] is None
    assert lane["lost"] == {"step": 2, "compaction": 0}
    assert lane["runs"] == [
        {"first": 0, "last": 1, "state": "verbatim"},
        {"first": 2, "last": 5, "state": "gone"},
    ]


def test_a_given_text_is_followed_through_a_replay(lost, capsys):
    assert main(["facts", lost, "--find", "column tenant", "--policy", "none", "--json"]) == 0
    (output,) = json.loads(capsys.readouterr().out)["sessions"]
    assert [(lane["kind"], lane["state"], lane["lost"]) for lane in output["lanes"]] == [("typed", "verbatim", None)]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--find", "  "], "--find needs a text"),
        (["--policy", "magic"], "magic"),
        (["--session", "9"], "none is called"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(lost, capsys, arguments, reason):
    assert main(["facts", lost, *arguments]) == 2
    output = capsys.readouterr().err
    assert reason in output
    assert "Traceback" not in output


def test_a_real_recording_lost_its_request_at_the_second_compaction(capsys):
    if not LONG.exists():
        pytest.skip("../shared/samples is absent")
    assert main(["facts", str(LONG)]) == 0
    text = capsys.readouterr().out
    assert 'request: "let\'s go with option 1." (message 15): lost at step 110 (compaction 2)' in text
