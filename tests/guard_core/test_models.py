"""Context windows and prices come from the bundled table, and an unknown model stays unknown."""

import subprocess
import sys

import pytest

from guard_core.models import CallTokens, call_cost, context_window
from guard_core.sessions import Source


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("claude-sonnet-4-5", 200_000),
        ("claude-sonnet-4-5-20250929", 200_000),
        ("gpt-4o", 128_000),
        ("openai/gpt-4o", 128_000),
        ("claude-sonnet-4-5[1m]", 1_000_000),
    ],
)
def test_a_known_model_has_its_window_and_says_from_where(model, window):
    found = context_window(model)
    assert (found.value, found.source) == (window, Source.MODEL_TABLE)
    assert found.note


@pytest.mark.parametrize("model", ["", "llama-of-our-own", "x" * 9_999, "\x00", "nothing[1m]", "<synthetic>"])
def test_an_unknown_model_is_not_guessed(model):
    assert context_window(model) is None
    assert call_cost(model, CallTokens(1_000)) is None


def test_cached_tokens_cost_less():
    cold = call_cost("claude-sonnet-4-5", CallTokens(100_000, 500))
    warm = call_cost("claude-sonnet-4-5", CallTokens(100_000, 500, cached=90_000))
    assert (cold.value, warm.value) == (307_500, 64_500)
    assert "genai-prices" in cold.note


def test_a_call_of_another_day_is_priced_at_that_day():
    assert call_cost("gpt-4o", CallTokens(1_000, 10), timestamp=1_773_216_000.0).value == 2_600


@pytest.mark.parametrize("tokens", [CallTokens(-1), CallTokens(10, -5)])
def test_a_nonsense_count_has_no_price(tokens):
    assert call_cost("gpt-4o", tokens) is None


def test_a_nonsense_date_has_no_price():
    assert call_cost("gpt-4o", CallTokens(10), timestamp=1e30) is None


def test_the_table_is_loaded_only_when_asked():
    code = "import sys, guard_core.models; print('genai_prices' in sys.modules)"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stdout == "False\n"
