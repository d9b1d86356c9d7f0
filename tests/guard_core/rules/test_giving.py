"""Settings that give the threshold of a formula: found where there are any, and each gives that very formula."""

import pytest

from guard_core.checker.own_rule import worked_out
from guard_core.rules import AGENTS, Hypothesis, Stretch, agent_of, settings_giving
from guard_core.rules.base import equation
from guard_core.sessions import Provenance, Sourced
from tests.builders import transcript

WINDOW = Sourced(200_000, Provenance.MODEL_TABLE)
PI = next(agent for agent in AGENTS if agent.label == "pi")


def test_a_window_is_found_where_it_is_not_known():
    stretch = Stretch(0, 9, "0.74.2", "scripted", None)
    assert settings_giving(PI, stretch, Hypothesis("60,000 − 16,384 (reserve)", 43_616, 1), {}) == {"window": "60000"}


def test_another_setting_is_found_alone_or_beside_a_window():
    stretch = Stretch(0, 9, "0.74.2", "scripted", WINDOW)
    reserve = Hypothesis("200,000 − 32,000 (reserve)", 168_000, 1)
    assert settings_giving(PI, stretch, reserve, {}) == {"reserve_tokens": "32000"}
    both = Hypothesis("128,000 − 32,000 (reserve)", 96_000, 2)
    assert settings_giving(PI, stretch, both, {}) == {"window": "128000", "reserve_tokens": "32000"}


def test_nothing_is_offered_for_the_rule_as_it_is_nor_for_what_no_setting_gives():
    stretch = Stretch(0, 9, "0.74.2", "scripted", WINDOW)
    assert settings_giving(PI, stretch, Hypothesis("200,000 − 16,384 (reserve)", 183_616, 0), {}) == {}
    assert settings_giving(PI, stretch, Hypothesis("7 % of the moon", 12, 1), {}) == {}


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.label)
def test_what_is_offered_gives_the_formula_for_every_agent(agent):
    stretch = Stretch(0, 9, "", "", WINDOW, 150_000)
    for item in list(agent.hypotheses(stretch, {}))[:40]:
        values = settings_giving(agent, stretch, item, {})
        named, window = agent.named(values)
        rule = agent.ruled(stretch if window is None else stretch._replace(window=window), named)
        assert not values or (rule.formula, rule.threshold) == (item.formula, item.threshold)


def test_claude_codes_own_window_that_is_set_is_found():
    agent = agent_of(transcript(version="2.1.330"))
    stretch = Stretch(0, 9, "2.1.330", "claude-opus-4-5", WINDOW)
    item = Hypothesis("150,000 − 20,000 (max output) − 13,000", 117_000, 1)
    assert settings_giving(agent, stretch, item, {}) == {"auto_compact_window": "150000"}


@pytest.mark.parametrize(
    ("threshold", "formula", "words"),
    [
        (155_000, "200,000 − 32,000 (max output) − 13,000", "155,000 = 200,000 − 32,000 (max output) − 13,000"),
        (50_000, "50,000 (in the file)", "50,000 (in the file)"),
        (40_000, "token_threshold 40,000", "token_threshold 40,000"),
        (100_000, "100,000 − 0", "100,000 = 100,000 − 0"),
        (64_000, "50 % of 128,000", "64,000 = 50 % of 128,000"),
        (0, "max(30,000 − 50,000 (reserve), 0)", "30,000 − 50,000 (reserve) leaves nothing"),
    ],
)
def test_a_number_is_an_equation_only_where_that_says_something(threshold, formula, words):
    assert equation(threshold, formula) == words


def test_a_reserve_as_large_as_the_window_is_said_as_a_person_would():
    agent = next(agent for agent in AGENTS if agent.label == "Kimi CLI")
    stretch = Stretch(0, 9, "wire 1.9", "kimi", Sourced(30_000, Provenance.RECORDER))
    rule = agent.ruled(stretch, {})
    assert (rule.threshold, rule.formula) == (0, "max(30,000 − 50,000 (reserve), 0)")
    assert worked_out(rule.formula) == rule.threshold
