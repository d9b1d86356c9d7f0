"""Which of several windows of a session judges what."""

import json

import pytest

from guard_core.__main__ import main
from guard_core.recordings.formats.native.format import write
from guard_core.report import ReportOptions, build
from guard_core.windows.call_windows import CallWindow, WindowWarning, call_windows, windows_words
from tests.guard_core.outcomes.cast import SONNET, counted, facts_of

SIZES = "The calls have 2 windows, in tokens: 200,000 (5 calls), 1,048,576 (1 call)."


@pytest.fixture
def two_windows():
    return counted((*(50_000,) * 5, 300_000), names=(*(SONNET,) * 5, "gemini-2.5-pro"))


def test_windows_of_other_models_are_counted_and_the_one_of_the_replays_is_named_first():
    facts = facts_of(counted((20_000,) * 6, names=(*(SONNET,) * 3, "gpt-4o", "gemini-2.5-pro", "gpt-4o")))
    windows = call_windows(facts.other_windows, 200_000)
    assert windows == (CallWindow(200_000, 3), CallWindow(128_000, 2), CallWindow(1_048_576, 1))
    assert windows_words(windows, WindowWarning.COMPARISON) == (
        "The calls have 3 windows, in tokens: 200,000 (3 calls), 128,000 (2 calls), 1,048,576 (1 call). Overflows and "
        "near misses are counted by each call's own; policies compact by 200,000 at every call, and the share of the "
        "peak and the room left are of it, too."
    )


def test_a_window_that_answered_prompts_disprove_is_said_not_to_be_known():
    prompts = (20_000, 15_500, 21_000, 15_600, 22_000)
    facts = facts_of(counted(prompts, names=(SONNET, "gpt-4", SONNET, "gpt-4", SONNET)))
    windows = call_windows(facts.other_windows, 200_000)
    assert windows == (CallWindow(200_000, 3), CallWindow(0, 2))
    assert windows_words(windows, WindowWarning.RECORDING) == (
        "The window, in tokens: 200,000 (3 calls); of 2 calls it is not known, as larger prompts than the known "
        "one holds were answered. Overflows and near misses are counted by each call's own."
    )


def test_a_session_of_one_window_needs_no_words_of_it():
    windows = call_windows(facts_of(counted((20_000,) * 4)).other_windows, 60_000)
    assert windows == (CallWindow(60_000, 4),)
    assert all(windows_words(windows, judged) == "" for judged in WindowWarning)


def test_a_report_says_which_window_judges_what(two_windows):
    own = "Overflows and near misses are counted by each call's own"
    assert build(two_windows, ReportOptions()).assumptions[0] == f"{SIZES} {own}."
    replayed = build(two_windows, ReportOptions(policy="codex"))
    assert replayed.assumptions[0] == f"{SIZES} {own}; the policy compacts by 200,000 at every call."


def test_a_replay_says_that_it_knows_one_window(two_windows, tmp_path, capsys):
    path = tmp_path / "session.jsonl"
    path.write_bytes(write(two_windows))
    words = f"{SIZES} The replay is in a window of 200,000 at every call, and counts overflows by it."
    assert main(["replay", str(path)]) == 0
    assert words in capsys.readouterr().out
    assert main(["replay", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["notes"][0] == words
    assert document["windows"] == [{"tokens": 200_000, "calls": 5}, {"tokens": 1_048_576, "calls": 1}]
