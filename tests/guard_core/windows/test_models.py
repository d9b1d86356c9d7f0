"""Context windows and prices come from the bundled table, and an unknown model stays unknown."""

import subprocess
import sys

import pytest

from guard_core.sessions import ModelCall, Provenance, Session
from guard_core.windows.models import context_window, documented_windows, window_of


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("claude-sonnet-4-5", 200_000),
        ("claude-sonnet-4-5-20250929", 200_000),
        ("gpt-4o", 128_000),
        ("openai/gpt-4o", 128_000),
        ("claude-sonnet-4-5[1m]", 1_000_000),
        ("gpt-4o-2024-08-06", 128_000),
        ("openai/gpt-5-nano", 400_000),
        ("claude-sonnet-4@20250514", 200_000),
        ("anthropic.claude-sonnet-4-20250514-v1:0", 200_000),
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000),
        ("litellm_proxy/anthropic/claude-opus-4-5-20251101", 200_000),
        ("models/gemini-1.5-flash", 1_000_000),
        ("anthropic/claude-sonnet-4.5:beta", 200_000),
        ("claude_4_5_opus", 200_000),
        ("Claude Opus 4.5", 200_000),
        ("anthropic/claude-4.5-sonnet", 200_000),
        ("claude-4.5-sonnet-thinking", 200_000),
        ("claude-3-5-sonnet-20241022", 200_000),
        ("gpt_5", 400_000),
        ("gpt_4_1_mini", 1_000_000),
        ("gemini_2_5_pro", 1_048_576),
    ],
)
def test_a_known_model_has_its_window_and_says_from_where(model, window):
    size = context_window(model)
    assert (size.value, size.source) == (window, Provenance.MODEL_TABLE)
    assert size.note


@pytest.mark.parametrize(
    "model", ["gemini-2.5-pro", "gemini/gemini-2.5-pro", "google/gemini-2.5-pro", "GEMINI-2.5-PRO"]
)
def test_a_row_without_a_window_takes_it_from_another_providers_row_of_the_same_model(model):
    window = context_window(model)
    assert (window.value, window.source) == (1_048_576, Provenance.MODEL_TABLE)
    assert "OpenRouter" in window.note
    assert "Google's row has none" in window.note


def test_the_maker_is_believed_before_others_who_say_something_else():
    window = context_window("anthropic/claude-sonnet-4.5")
    assert window.value == 200_000
    assert window.note.endswith("OpenRouter says 1,000,000")


def test_a_host_that_the_name_begins_with_is_believed_before_the_maker():
    assert context_window("openrouter/anthropic/claude-sonnet-4.5").value == 1_000_000
    assert context_window("github_copilot/gpt-4.1").value == 128_000


def test_hosts_that_disagree_give_the_smallest_window_as_an_assumption():
    window = context_window("llama-3.3-70b-instruct")
    assert (window.value, window.source) == (12_288, Provenance.ASSUMED)
    assert "131,072" in window.note


def test_the_makers_window_is_an_assumption_for_a_model_of_github_copilot_whose_row_has_none():
    served, own = context_window("github-copilot/claude-sonnet-4.6"), context_window("claude-sonnet-4.6")
    assert (served.value, served.source) == (own.value, Provenance.ASSUMED)
    assert "GitHub Copilot's row has none" in served.note
    assert own.source is Provenance.MODEL_TABLE
    assert 0 not in documented_windows("github-copilot/claude-sonnet-4.6", 0)


def test_the_makers_window_is_an_assumption_for_a_model_of_github_copilot_that_has_no_row_of_it():
    served, own = context_window("github-copilot/claude-opus-4.6"), context_window("claude-opus-4.6")
    assert (served.value, served.source) == (own.value, Provenance.ASSUMED)
    assert "GitHub Copilot has no row for it" in served.note
    assert own.source is Provenance.MODEL_TABLE


def test_a_model_has_one_window_however_its_rounding_differs():
    assert documented_windows("gpt-5.2", 1) == [400_000]
    assert documented_windows("claude-sonnet-4-5", 200_001) == [1_000_000]
    assert documented_windows("claude-3-7-sonnet-20250219", 200_001) == []


def test_a_session_has_the_window_of_the_model_that_answered_most_of_its_calls():
    calls = tuple(ModelCall(at=0, model=name) for name in ("claude-opus-4.8", "claude-opus-4.8", "gpt-4o"))
    assert window_of(Session((), calls, model="gpt-4o")).value == 1_000_000


def test_the_window_of_a_few_calls_is_not_taken_for_those_of_an_unknown_model():
    calls = tuple(ModelCall(at=0, model=name) for name in ("ours", "ours", "gpt-4o"))
    assert window_of(Session((), calls, model="ours")).source is Provenance.ASSUMED


@pytest.mark.parametrize(
    "model",
    [
        "",
        "llama-of-our-own",
        "x" * 9_999,
        "\x00",
        "nothing[1m]",
        "<synthetic>",
        "/////",
        "a/b/c/d/e/f",
        "us.",
        "@",
        ":0",
        "my-command",
        "gpt-own",
    ],
)
def test_an_unknown_model_is_not_guessed(model):
    assert context_window(model) is None


def test_the_table_is_loaded_only_when_asked():
    code = "import sys, guard_core.windows.models; print('genai_prices' in sys.modules)"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout == "False\n"
