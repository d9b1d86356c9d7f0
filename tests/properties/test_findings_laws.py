"""Laws of findings over random sessions and replays: they never fail, agree with the columns and name real steps."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from guard_core.attribution import attribute
from guard_core.findings import findings, verdict
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.replay import observe_recorded, replay
from guard_core.summaries.sizes import FixedSummaries
from guard_core.usage import usage_for
from tests.properties.test_attribution_laws import sessions

WINDOWS = st.sampled_from([50, 1_000, 8_000, 200_000])
POLICIES = st.sampled_from(["contextguard", "contextguard-sliding", "none"])


@st.composite
def replays(draw):
    """A random session, its attribution, and a replay or shadow trace over it."""
    ledger = Ledger.of(draw(sessions()))
    found = attribute(ledger)
    window, policy = draw(WINDOWS), get_policy(draw(POLICIES))
    usage = usage_for(ledger, found)
    if draw(st.booleans()):
        return ledger, found, observe_recorded(ledger, policy, window=window, usage=usage), True
    summaries = FixedSummaries(draw(st.integers(0, 2_000)))
    return ledger, found, replay(ledger, policy, window=window, usage=usage, summarizer=summaries), False


@given(replays())
@settings(max_examples=200)
def test_every_finding_has_a_sentence_and_a_step_of_the_session(case):
    ledger, found, trace, recorded = case
    for finding in findings(ledger, trace, found, recorded=recorded):
        assert 0 <= finding.step < ledger.step_count
        assert finding.sentence.endswith(".")
        assert finding.count >= 1


@given(replays())
@settings(max_examples=200)
def test_overflows_are_those_of_the_trace(case):
    ledger, found, trace, recorded = case
    told = sum(item.count for item in findings(ledger, trace, found, recorded=recorded) if item.kind == "overflow")
    over = trace.columns["modelled_prompt_tokens"] > trace.window
    if recorded:
        over &= ledger.steps["prompt_tokens"] <= 0
    assert told == int(np.sum(over))


@given(replays())
@settings(max_examples=200)
def test_the_verdict_is_one_sentence_and_the_same_again(case):
    ledger, found, trace, recorded = case
    said = verdict(ledger, trace, found, recorded=recorded)
    assert said.endswith(".")
    assert "\n" not in said
    assert said == verdict(ledger, trace, attribute(ledger), recorded=recorded)
