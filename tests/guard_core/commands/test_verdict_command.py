"""`verdict` prints what matters most in each session, as text and as JSON with every number."""

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from guard_core.__main__ import main
from guard_core.cli import SHOWN_PROBLEMS
from guard_core.recordings.formats import native
from guard_core.sessions import ModelCall, Provenance, Sourced
from tests.builders import bundled, model, session, user
from tests.guard_core.checker.cases import in_characters

FILES = Path(__file__).parents[4] / "shared" / "samples"


@pytest.fixture
def loop(tmp_path):
    path = tmp_path / "loop.json"
    path.write_bytes(native.write(bundled("unpersisted-loop")))
    return str(path)


def test_it_prints_the_verdict_window_compactions_peak_and_findings(loop, capsys):
    assert main(["verdict", loop]) == 0
    text = capsys.readouterr().out
    assert "A loop: 15 compactions at consecutive steps 68 to 82: every call compacts again." in text
    assert "window: 150,000 tokens" in text
    assert "compactions: 15 (15 automatic)" in text
    assert "peak: " in text
    assert "error: Compaction 1 (step 68) did not last" in text


def test_one_problem_more_than_are_shown_is_named_as_one(tmp_path, capsys):
    path = tmp_path / "damaged.jsonl"
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    lines = [json.dumps({"request": {"messages": turns[:1]}, "response": {"choices": [{"message": turns[1]}]}})] * 9
    path.write_text("\n".join([*lines[:5], *["{"] * (SHOWN_PROBLEMS + 1), *lines[5:]]) + "\n")
    main(["verdict", str(path)])
    assert "1 more problem;" in capsys.readouterr().err


def test_a_sum_of_an_unknown_number_of_calls_leaves_the_peak_unknown(tmp_path, capsys):
    """7,100 tokens in sum: an estimate of a few tokens is not the size of the largest request."""
    built = replace(session(user("Rename it"), model("Done"), reported=False), prompt_tokens_total=7_100)
    path = tmp_path / "sum.json"
    path.write_bytes(native.write(built))
    assert main(["verdict", str(path)]) == 0
    text = capsys.readouterr().out
    assert "the peak is not known" in text
    assert "peak: " not in text


def test_a_peak_that_is_counted_in_characters_is_called_so(tmp_path, capsys):
    path = tmp_path / "characters.json"
    path.write_bytes(native.write(in_characters()))
    assert main(["verdict", str(path)]) == 0
    assert "(recorded, perhaps characters)" in capsys.readouterr().out


def test_several_sessions_are_listed_gravest_first_with_their_numbers_and_in_json_as_in_the_file(tmp_path, capsys):
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(map(json.dumps, (*_requests("Write the notes", 4_000), *_requests("Mend it", 200_000)))))
    assert main(["verdict", str(log)]) == 0
    text = capsys.readouterr().out
    assert text.startswith(
        "2 sessions, those with the gravest verdict first; the numbers are those of --session.\n\n2: "
    )
    assert "\n\n1: session" in text
    assert main(["verdict", str(log), "--json"]) == 0
    severities = [one["verdict"]["severity"] for one in json.loads(capsys.readouterr().out)["sessions"]]
    assert severities == ["info", "error"]
    assert main(["verdict", str(log), "--session", "2"]) == 0
    assert "A prompt of 200,000 tokens was answered" in capsys.readouterr().out


def _requests(words: str, tokens: int) -> list[dict[str, object]]:
    """Two calls of one conversation, as a log of requests has them."""
    asked, answer = [{"role": "user", "content": words}], {"role": "assistant", "content": f"{words}: done"}
    more = [*asked, answer, {"role": "user", "content": "More"}]
    return [
        {
            "request": {"model": "gpt-4o", "messages": messages},
            "response": {
                "model": "gpt-4o",
                "choices": [{"message": answer}],
                "usage": {"prompt_tokens": tokens, "completion_tokens": 9},
            },
        }
        for messages in (asked, more)
    ]


def test_its_json_has_every_claim_as_data_and_says_how_it_counts(loop, capsys):
    assert main(["verdict", loop, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["numbering"] == "steps, messages and compactions count from 0 in fields, from 1 in sentences"
    (session,) = report["sessions"]
    assert (session["verdict"]["kind"], session["verdict"]["severity"], session["verdict"]["step"]) == (
        "loop",
        "error",
        67,
    )
    for claim in (session["verdict"], *session["findings"]):
        assert {"kind", "severity", "step", "sentence", "numbers", "assumptions"} <= set(claim)
    assert session["compactions"]["total"] == 15
    assert session["window"]["status"] == "known"


def test_a_window_that_is_given_is_the_one_that_is_judged(loop, capsys):
    assert main(["verdict", loop, "--json", "--window", "1M"]) == 0
    (session,) = json.loads(capsys.readouterr().out)["sessions"]
    assert (session["window"]["value"], session["window"]["source"]) == (1_000_000, "user")


def test_calls_of_models_with_other_windows_are_named_beside_the_window_of_the_session(tmp_path, capsys):
    calls = tuple(ModelCall(place, place, tokens) for place, tokens in ((1, 5_000), (2, 90_000), (3, 95_000)))
    built = session(user("Go"), *(model("Yes") for _ in range(3)), calls=calls, windows=((0, 20_000), (2, 200_000)))
    path = tmp_path / "windows.json"
    path.write_bytes(native.write(replace(built, window=Sourced(20_000, Provenance.RECORDER))))
    assert main(["verdict", str(path)]) == 0
    assert "The calls have 2 windows, in tokens: 20,000 (1 call), 200,000 (2 calls)." in capsys.readouterr().out
    assert main(["verdict", str(path), "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)["sessions"]
    assert report["windows"] == [{"tokens": 20_000, "calls": 1}, {"tokens": 200_000, "calls": 2}]


def test_a_session_with_totals_only_is_held_against_its_window_by_their_average(capsys):
    path = FILES.parent / "rules" / "hermes" / "default-200k" / "state.db"
    if not path.exists():
        pytest.skip("../shared/samples is absent")
    assert main(["verdict", str(path)]) == 0
    text = capsys.readouterr().out
    assert "window: 128,000 tokens, assumed, contradicted" in text
    assert "Only totals are recorded: 10,816,853 prompt tokens over 82 calls, 131,913 on average." in text
    peak = int(re.search(r"peak: ([\d,]+) tokens", text)[1].replace(",", ""))
    assert peak > 131_913


def test_one_session_of_many_can_be_asked_for(capsys):
    path = FILES / "inspect" / "react-compaction-summary-zstd.eval"
    if not path.exists():
        pytest.skip("../shared/samples is absent")
    assert main(["verdict", str(path), "--session", "2", "--json"]) == 0
    (session,) = json.loads(capsys.readouterr().out)["sessions"]
    assert session["session"].startswith("Y97fwrExJLwk")


def test_a_file_that_cannot_be_read_is_one_sentence_and_exit_code_2(tmp_path, capsys):
    path = tmp_path / "nothing.json"
    path.write_text("{}")
    assert main(["verdict", str(path)]) == 2
    assert main(["verdict", str(tmp_path / "missing.json")]) == 2
    assert capsys.readouterr().err.count("\n") == 2


def test_a_damaged_file_is_named_on_standard_error_and_counted_in_the_json(tmp_path, capsys):
    path = tmp_path / "damaged.jsonl"
    path.write_bytes(b"// exported by hand\n" + native.write(bundled("healthy")))
    assert main(["verdict", str(path), "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["problem_count"] == 1
    assert "line 1" in printed.err


def test_direction_marks_of_a_request_are_escaped_and_what_was_replaced_is_not_called_left_out(tmp_path, capsys):
    source = FILES / "claude-code" / "long-2-compactions.jsonl"
    if not source.exists():
        pytest.skip("../shared/samples is absent")
    lines = [json.loads(line) for line in source.read_text().splitlines()]
    for line in lines:
        asked = line["type"] == "user" and isinstance(line["message"]["content"], str)
        if asked and not line.get("isCompactSummary"):
            line["message"]["content"] = "\u202e\u0000 what is asked for here, in many words " * 3
    path = tmp_path / "turned.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    assert main(["verdict", str(path)]) == 0
    printed = capsys.readouterr()
    assert "\u202e" not in printed.out + printed.err
    assert r"\u202e" in printed.out
    assert "a NUL character (replaced)\n" in printed.err


def test_counts_that_are_all_zero_are_not_said_to_belong_to_other_calls(tmp_path, capsys):
    source = FILES / "claude-code" / "long-2-compactions.jsonl"
    if not source.exists():
        pytest.skip("../shared/samples is absent")
    lines = [json.loads(line) for line in source.read_text().splitlines()]
    for line in lines:
        usage = line["message"].get("usage", {}) if line["type"] == "assistant" else {}
        usage.update({name: 0 for name in usage if name.endswith("_tokens")})
    path = tmp_path / "zero.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    assert main(["verdict", str(path)]) == 0
    assert "but no call that was read has one above 0" in capsys.readouterr().err
