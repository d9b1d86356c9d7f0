"""`compare FILE`: a table for people, and the same rows as JSON."""

import cProfile
import io
import json
from contextlib import redirect_stdout

import msgspec
import pytest

from guard_core.__main__ import main
from guard_core.findings import request_words
from guard_core.policies import POLICIES
from guard_core.recordings.formats.native.format import write
from guard_core.sessions import Provenance, Sourced
from tests.guard_core.checker.cases import in_characters
from tests.guard_core.outcomes.cast import SONNET, counted
from tests.profiling import calls_of

PROMPTS = tuple(20_000 + 6_000 * k for k in range(40))


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("compared") / "session.jsonl"
    path.write_bytes(write(counted(PROMPTS, cached=(0, *PROMPTS[:-1]))))
    return str(path)


@pytest.fixture(scope="module")
def text(recording):
    """What the command prints of it without options."""
    with redirect_stdout(io.StringIO()) as out:
        assert main(["compare", recording]) == 0
    return out.getvalue()


def printed(capsys, *arguments):
    assert main(["compare", *arguments]) == 0
    return capsys.readouterr().out


def test_every_policy_has_a_line_under_the_recording(text):
    table = text.split("\n\n")[1].splitlines()
    titles = ["recording", *(kind.title for kind in POLICIES.values())]
    assert [line.startswith(title) for line, title in zip(table[1:], titles, strict=True)] == [True] * len(titles)


def test_what_the_figures_rest_on_is_said(text):
    assert "Forecasts of this session's own counts" in text
    assert "at most 5 minutes earlier" in text
    assert "List prices of claude-sonnet-4-5 of Anthropic" in text
    assert "calls above 200,000 prompt tokens cost more a token" in text
    assert f"recording: the provider reported {sum(PROMPTS[:-1]):,} tokens read from the cache; $" in text


@pytest.mark.parametrize(
    ("command", "times"), [("compare", 0), ("context", 0), ("facts", 0), ("replay", 0), ("sweep", 0), ("verdict", 1)]
)
def test_the_words_of_requests_are_not_looked_for_where_no_finding_is_made(command, times, recording, capsys):
    profile = cProfile.Profile()
    assert profile.runcall(main, [command, recording]) == 0
    assert calls_of(profile, request_words) == times
    assert capsys.readouterr().out


def test_json_has_the_same_rows_with_money_in_millionths(recording, capsys):
    document = json.loads(printed(capsys, recording, "--json"))
    recorded, never = document["rows"][:2]
    assert [row["title"] for row in document["rows"]][:2] == ["recording", "No compaction"]
    assert recorded["costs"]["prompt"] == sum(PROMPTS)
    assert recorded["reported"]["read"] == sum(PROMPTS[:-1])
    assert recorded["costs"]["total"] == never["costs"]["total"] > 1_000_000


def test_profiles_get_a_row_each_when_asked_for(recording, capsys):
    rows = json.loads(printed(capsys, recording, "--json", "--profiles"))["rows"]
    assert len(rows) == 1 + sum(max(1, len(kind.profiles)) for kind in POLICIES.values())


def test_a_window_of_ones_own_is_used(recording, capsys):
    document = json.loads(printed(capsys, recording, "--json", "--window", "60k"))
    assert {row["window"] for row in document["rows"]} == {60_000}


def test_a_session_of_several_windows_says_which_one_judges_what(tmp_path, capsys):
    path = tmp_path / "session.jsonl"
    names = (*(SONNET,) * 5, "gemini-2.5-pro")
    path.write_bytes(write(counted((*(50_000,) * 5, 300_000), names=names)))
    assert "The calls have 2 windows, in tokens: 200,000 (5 calls), 1,048,576 (1 call)." in printed(capsys, str(path))
    document = json.loads(printed(capsys, str(path), "--json"))
    assert document["windows"] == [{"tokens": 200_000, "calls": 5}, {"tokens": 1_048_576, "calls": 1}]
    assert "policies compact by 200,000 at every call" in document["assumptions"][0]
    assert [row["overflows"] for row in document["rows"][:2]] == [0, 0]  # 300,000 tokens fit the window of its call


def test_an_unknown_price_is_said_and_no_figure_is_given(tmp_path, capsys):
    path = tmp_path / "session.jsonl"
    path.write_bytes(write(counted(PROMPTS, names=("homemade",) * len(PROMPTS))))
    assert "Price unknown: the price table has none for homemade." in printed(capsys, str(path))
    rows = json.loads(printed(capsys, str(path), "--json"))["rows"]
    assert {(row["costs"]["total"], row["paid"], row["unpaid"]) for row in rows} == {(None, None, None)}


def test_a_file_that_is_not_there_is_one_sentence(capsys):
    assert main(["compare", "/nowhere"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_counts_that_are_no_tokens_are_called_what_they_are(tmp_path, recording, capsys):
    path = tmp_path / "characters.jsonl"
    path.write_bytes(write(in_characters()))
    assert "The recorded counts seem to count characters, not tokens" in printed(capsys, str(path))
    document = json.loads(printed(capsys, str(path), "--json"))
    assert document["counted_in"] == "characters"
    assert any("count characters" in sentence for sentence in document["assumptions"])
    assert json.loads(printed(capsys, recording, "--json"))["counted_in"] == "tokens"


def test_no_request_is_over_a_window_that_an_answered_prompt_disproves_and_that_is_said(tmp_path, capsys):
    built = counted(PROMPTS)
    path = tmp_path / "small.json"
    path.write_bytes(write(msgspec.structs.replace(built, window=Sourced(100_000, Provenance.RECORDER))))
    text = printed(capsys, str(path))
    why = "a prompt of 254,000 tokens was answered, above the stated 100,000"
    assert (
        f"No request counts as an overflow or a near miss for its size: {why}. Policies still use a window of 100,000"
        in text
    )
    assert {row["overflows"] for row in json.loads(printed(capsys, str(path), "--json"))["rows"]} == {0}
    assert main(["replay", str(path), "--policy", "none"]) == 0
    assert "Overflows are counted by 100,000 all the same" in capsys.readouterr().out


def test_replays_are_held_against_the_window_that_is_asked_for(recording, capsys):
    """However large the prompts are that were answered: it is asked what a smaller one would mean."""
    rows = json.loads(printed(capsys, recording, "--json", "--window", "60k"))["rows"]
    overflows = {row["title"]: row["overflows"] for row in rows if "overflows" in row}
    assert overflows["recording"] == 0
    assert overflows["No compaction"] == sum(prompt > 60_000 for prompt in PROMPTS)
    why = "a prompt of 254,000 tokens was answered, above the window set here, 60,000"
    text = printed(capsys, recording, "--window", "60k")
    assert f"No recorded request counts as an overflow or a near miss for its size: {why}." in text


def test_a_sum_that_the_figures_do_not_rest_on_is_named(tmp_path, capsys):
    built = counted(PROMPTS)
    calls = tuple(msgspec.structs.replace(call, prompt_tokens=None) for call in built.calls)
    path = tmp_path / "sum.json"
    path.write_bytes(write(msgspec.structs.replace(built, calls=calls, prompt_tokens_total=760_500)))
    assert "The 760,500 prompt tokens that the file states in total are not in them." in printed(capsys, str(path))
    whole = msgspec.structs.replace(built, calls=calls, prompt_tokens_total=760_500, total_calls=len(calls))
    path.write_bytes(write(whole))
    text = printed(capsys, str(path))
    assert "its tokens are estimates." in text
    assert "in total are not" not in text
