"""Laws of findings over random sessions and replays: they never fail, agree with the columns and name real steps."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from guard_core.findings import (
    Facts,
    recorded_findings,
    recorded_verdict,
    replayed_findings,
    replayed_verdict,
)
from guard_core.policies import get_policy
from guard_core.replay import replay
from guard_core.sessions import Provenance
from guard_core.summaries.sizes import FixedSummaries
from guard_core.windows.window_evidence import Status, WindowJudgement
from tests.properties.test_attribution_laws import sessions

WINDOWS = st.sampled_from([50, 1_000, 8_000, 200_000])
POLICIES = st.sampled_from(["contextguard", "contextguard-sliding", "none"])
STATUSES = st.sampled_from([Status.KNOWN, Status.TABLE, Status.ASSUMED])


@st.composite
def sides(draw):
    """The facts of a random session, and a replay of it or None for the recording."""
    built, window = draw(sessions()), draw(WINDOWS)
    recorded = max((call.prompt_tokens or 0 for call in built.calls), default=0)
    status = Status.CONTRADICTED if recorded > window else draw(STATUSES)
    facts = Facts.of(built, WindowJudgement(window, Provenance.MODEL_TABLE, status, recorded, ""))
    if draw(st.booleans()):
        return facts, None
    policy, summaries = get_policy(draw(POLICIES)), FixedSummaries(draw(st.integers(0, 2_000)))
    return facts, replay(facts.ledger, policy, window=window, usage=facts.usage, summarizer=summaries)


def found_and_said(facts, trace):
    if trace is None:
        findings = recorded_findings(facts)
        return findings, recorded_verdict(facts, findings)
    findings = replayed_findings(facts, trace)
    return findings, replayed_verdict(facts, trace, findings)


@given(sides())
def test_every_finding_has_a_sentence_and_steps_of_the_session(side):
    facts, trace = side
    for finding in found_and_said(facts, trace)[0]:
        assert all(0 <= step < facts.ledger.step_count for step in (finding.step, *finding.steps))
        assert finding.sentence.endswith(".")
        assert finding.count >= 1
        assert len(finding.steps) <= 20


@given(sides())
def test_overflows_are_those_of_the_columns(side):
    facts, trace = side
    counted = sum(item.count for item in found_and_said(facts, trace)[0] if item.kind == "overflow")
    tokens = facts.requests.tokens if trace is None else trace.columns["modelled_prompt_tokens"]
    over = tokens > facts.window.value
    if trace is None:
        over &= facts.ledger.steps["prompt_tokens"] <= 0
    assert counted == (0 if facts.window.status is Status.CONTRADICTED else int(np.sum(over)))


@given(sides())
def test_what_rests_on_an_unsure_window_says_so(side):
    facts, trace = side
    claims, verdict = found_and_said(facts, trace)
    for claim in (*claims, verdict):
        unsure = {"window_assumed", "window_doubted"} & set(claim.assumptions)
        assert not unsure or f"if the window is {facts.window.value:,}" in claim.sentence


@given(sides())
def test_the_verdict_is_one_short_sentence_and_the_same_again(side):
    facts, trace = side
    verdict = found_and_said(facts, trace)[1]
    assert verdict.sentence.endswith(".")
    assert "\n" not in verdict.sentence
    assert len(verdict.sentence.split()) <= 25
    again = Facts(facts.session, facts.ledger, facts.attribution, facts.window, facts.words)
    assert verdict == found_and_said(again, trace)[1]
