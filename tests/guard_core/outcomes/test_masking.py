"""Savings of masking predicted from turns: exact where runs grow evenly, and a plain loop says the same."""

import csv
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard_core.__main__ import main
from guard_core.errors import GuardError
from guard_core.outcomes.masking import (
    COLUMNS,
    OBSERVATION_SHARE,
    PLACEHOLDER_TOKENS,
    prices_of,
    read_runs,
    runs_of,
    savings,
)

FIXED, GROWTH, KEPT = 4_000, 700, 10
PROMPT_PRICE, COMPLETION_PRICE = 0.70, 2.80  # US dollars for a million tokens
TURNS = (3, 8, 15, 20, 42, 60, 75)


def sent(turns, kept=None):
    """Prompt tokens of a run, request by request."""
    saved = OBSERVATION_SHARE * GROWTH - PLACEHOLDER_TOKENS
    return sum(FIXED + GROWTH * i - (0 if kept is None else saved * max(0, i - kept)) for i in range(turns))


def row(experiment, strategy, turns, kept=None):
    prompt, completion = sent(turns, kept) / turns, 30 + turns % 7
    cost = (prompt * turns * PROMPT_PRICE + completion * turns * COMPLETION_PRICE) / 1e6
    values = (experiment, strategy, f"repo-{turns}", cost, turns, completion, prompt)
    return dict(zip(COLUMNS, map(str, values), strict=True))


def table(turns=TURNS, masked_turns=TURNS):
    raw = [row("small-baseline_raw.0-verified", "Raw Agent", count) for count in turns]
    masked = [row("small-baseline_N_1_M_10.0-verified", "Observation Masking", count, KEPT) for count in masked_turns]
    return raw + masked


def test_runs_that_grow_evenly_and_keep_their_turns_are_predicted_exactly():
    (saving,) = savings(runs_of(table()))
    assert (saving.kept, saving.instances) == (KEPT, len(TURNS))
    assert (saving.fixed, saving.growth) == (FIXED, GROWTH)
    assert abs(saving.error) < 1e-3
    assert 0 < saving.predicted < 1


def test_runs_that_got_longer_save_less_than_predicted():
    (saving,) = savings(runs_of(table(masked_turns=[count + 10 for count in TURNS])))
    assert saving.published < saving.predicted
    assert saving.masked_turns == round(saving.turns + 10, 2)


def test_the_prices_behind_costs_are_found_again():
    raw, _ = runs_of(table())
    prices = prices_of(raw)
    assert (prices.prompt, prices.completion) == (pytest.approx(PROMPT_PRICE, rel=1e-3), pytest.approx(2.8, rel=1e-2))
    assert prices.fit == pytest.approx(1, abs=1e-6)


def test_an_experiment_without_a_counterpart_is_left_out():
    assert savings(runs_of(table()[: len(TURNS)])) == []


@given(st.lists(st.integers(1, 90), min_size=3, max_size=12, unique=True))
def test_the_closed_form_is_the_loop(turns):
    (saving,) = savings(runs_of(table(turns, turns)))
    loop = 1 - sum(sent(count, KEPT) for count in turns) / sum(map(sent, turns))
    assert saving.predicted == pytest.approx(loop, abs=2e-3)
    assert saving.published == pytest.approx(loop, abs=2e-3)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"cost": "x"}, "line 2"), ({"turn_count": "-1"}, "negative"), ({"mean_prompt_tokens": "nan"}, "no number")],
)
def test_a_damaged_row_is_one_sentence_with_its_line(change, words):
    with pytest.raises(GuardError, match=words):
        runs_of([{**table()[0], **change}])


def test_another_table_is_refused_with_the_columns_it_needs():
    with pytest.raises(GuardError, match="mean_prompt_tokens"):
        runs_of([{"experiment": "a", "strategy": "b", "cost": "1"}])
    with pytest.raises(GuardError, match="no rows"):
        runs_of([])


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "costs.csv"
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS)
        writer.writeheader()
        writer.writerows(table())
    return str(path)


def test_the_command_prints_the_prediction_beside_what_was_published(file, capsys):
    assert main(["masking", file]) == 0
    text = capsys.readouterr().out
    assert "small-baseline_raw.0-verified" in text
    assert "4,000 + 700 a turn" in text
    assert len(read_runs(file)) == 2


def test_its_json_has_the_error(file, capsys):
    assert main(["masking", file, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert abs(document["savings"][0]["error"]) < 1e-3
    assert document["prices"][0]["fit"] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"not,a,table\n1,2,3\n", b""])
def test_what_is_no_such_table_is_one_sentence(tmp_path, capsys, content):
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    assert main(["masking", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["masking", str(tmp_path / "none.csv")]) == 2
