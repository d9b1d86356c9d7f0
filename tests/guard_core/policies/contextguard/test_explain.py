"""The decision card: the arithmetic of a step in order, every number with its source."""

import re

from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.replay import replay
from guard_core.simulator.flow import play
from guard_core.simulator.scenarios import SCENARIOS
from guard_core.summaries.sizes import FixedSummaries
from tests.guard_core.policies.tools import run

POLICY = get_policy("contextguard")


def gap_card():
    session = play(SCENARIOS["TimingGap_CalibratedHeuristicPreventsOverflow"].simulations[0]).session
    trace = replay(Ledger.of(session), POLICY, window=200_000, summarizer=FixedSummaries(120))
    return POLICY.explain(trace, 1)


def test_it_shows_the_timing_gap_number_by_number():
    card = {term.name: term for term in gap_card()}
    assert card["heuristic estimate"].value == 90_009
    assert card["growth since the last step"].value == 20_009
    assert card["correction factor, raw"].expression == "140,000 / 70,000"
    assert card["calibrated estimate"].expression == "trunc(90,009 x 2)"
    assert card["decision tokens"].value == 180_018
    assert card["threshold"].expression == "200,000 - 20,000"
    assert card["verdict"].expression == "180,018 >= 180,000: it compacts"


def test_it_says_what_the_stale_count_would_have_done():
    stale = gap_card()[-1]
    assert stale.expression == "140,000 < 180,000: would not have compacted"
    assert (stale.source, stale.as_of) == ("modelled", 0)


def test_the_first_step_names_the_default_factor(short_chat):
    card = {term.name: term for term in POLICY.explain(run(POLICY, short_chat), 0)}
    assert card["correction factor"].value == 2.5
    assert "default of the profile current" in card["correction factor"].expression
    assert "the stale count alone" not in card
    assert re.fullmatch(
        r"[\d,]+ < [\d,]+: it does not compact: [\d,]+ tokens remain below the threshold", card["verdict"].expression
    )


def test_a_recorded_count_is_named_as_the_providers(short_chat):
    card = {term.name: term for term in POLICY.explain(run(POLICY, short_chat), 1)}
    assert (card["last reported prompt tokens"].source, card["last reported prompt tokens"].as_of) == ("provider", 0)


def test_sliding_counts_messages(tool_heavy):
    policy = get_policy("contextguard-sliding")
    card = {term.name: term for term in policy.explain(run(policy, tool_heavy), 12)}
    assert card["messages since the watermark"].unit == "messages"
    assert "<= 20" in card["verdict"].expression


def test_every_policy_explains_every_step(tool_heavy):
    for name in ("none", "contextguard", "contextguard-sliding"):
        policy = get_policy(name)
        trace = run(policy, tool_heavy)
        assert all(policy.explain(trace, step)[-1].expression for step in range(len(trace)))
