"""Prices of many calls at once: the same as genai-prices says of each, cliffs and caches included."""

import itertools
from datetime import UTC, datetime

import numpy as np
import pytest
from genai_prices import Usage
from genai_prices.data_snapshot import get_snapshot

from guard_core.windows.prices import UNIT, break_even_calls, rates_of

DAY = datetime(2026, 3, 12, tzinfo=UTC)
MODELS = ("claude-sonnet-4-5", "claude-opus-4-5-20251101", "gpt-5.6", "gpt-5.2", "gpt-4o", "gemini-2.5-pro", "o3")
SIZES = (0, 1_000, 199_999, 200_000, 200_001, 272_000, 272_001, 900_000)


@pytest.mark.parametrize("name", MODELS)
def test_a_call_costs_what_the_table_says(name):
    provider, info = get_snapshot().find_provider_model(name, None, None, None)
    for prompt, read, written in itertools.product(SIZES, (0.0, 0.5, 1.0), (0.0, 0.4)):
        counts = (prompt, int(prompt * read), int((prompt - int(prompt * read)) * written), 777)
        usage = Usage(**dict(zip(("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens"), counts)))
        price = info.calc_price(usage, provider, genai_request_timestamp=DAY).total_price
        assert rates_of(name, DAY.timestamp()).cost(*counts) == round(price * 1_000_000 * UNIT)


def test_above_its_cliff_every_token_of_a_call_is_dearer():
    rates = rates_of("gpt-5.6")
    assert rates.cliffs == (272_000,)
    assert rates.cost(272_001) > 1.99 * rates.cost(272_000)


def test_many_calls_cost_what_each_of_them_does():
    rates = rates_of("claude-sonnet-4-5")
    prompt, read = np.array([10, 150_000, 250_000]), np.array([0, 149_000, 200_000])
    costs = rates.costs(prompt, read, prompt - read, np.array([5, 6, 7]))
    assert costs.tolist() == [
        rates.cost(10, 0, 10, 5),
        rates.cost(150_000, 149_000, 1_000, 6),
        rates.cost(250_000, 200_000, 50_000, 7),
    ]


def test_a_model_without_a_price_for_writing_charges_it_as_input():
    rates = rates_of("gpt-4o")
    assert not rates.has_writes
    assert rates.cost(1_000, 0, 400, 0) == rates.cost(1_000, 0, 0, 0)


def test_a_service_without_a_price_is_taken_to_charge_what_the_maker_does():
    served = rates_of("github-copilot/gpt-4.1")
    assert served == rates_of("gpt-4.1")
    assert served.note.startswith("gpt-4.1 of OpenAI")
    assert rates_of("github-copilot/claude-sonnet-4.6").note.startswith("claude-sonnet-4.6 of GitHub Copilot")
    assert rates_of("openai-codex/gpt-5.5") == rates_of("gpt-5.5")


def test_another_day_has_its_own_prices():
    assert rates_of("o3", datetime(2025, 5, 1, tzinfo=UTC).timestamp()).cost(1_000) > rates_of("o3").cost(1_000)


@pytest.mark.parametrize("name", ["", "llama-of-our-own", "\x00", "x" * 9_999, "gpt-5.3-codex-spark"])
def test_a_model_that_is_not_in_the_table_has_no_price(name):
    assert rates_of(name) is None


@pytest.mark.parametrize("name", ["deepseek/deepseek-v4-flash:free", "Kimi-K2.5-free "])
def test_a_variant_that_costs_nothing_has_not_the_price_of_its_model(name):
    assert rates_of(name) is None
    assert rates_of(name.strip().removesuffix(":free").removesuffix("-free")) is not None


@pytest.mark.parametrize("moment", [1e30, float("nan"), -1e30])
def test_a_nonsense_date_has_no_price(moment):
    assert rates_of("gpt-4o", moment) is None


@pytest.mark.parametrize(("share", "calls"), [(0.05, 4.3), (0.1, 8.1), (0.2, 16.9), (0.5, 64.5)])
def test_a_compaction_pays_after_so_many_calls_where_only_a_summary_is_kept(share, calls):
    assert round(break_even_calls(share), 1) == calls


def test_with_writes_for_an_hour_it_pays_later():
    assert round(break_even_calls(0.1, written=2.0), 1) == 8.9


def test_a_compaction_that_removes_nothing_never_pays():
    assert break_even_calls(1.0) == float("inf")
