"""Counts of many requests at once are those of each."""

import cProfile

import numpy as np
import pytest

from guard_core.estimation.usage import AttributedUsage
from guard_core.estimation.view_counts import tokens_of_views
from guard_core.findings.facts import Facts
from guard_core.policies import get_policy
from guard_core.replay import replay
from tests.big_sessions import big_session
from tests.profiling import calls_of


@pytest.fixture(scope="module", params=[0, 2], ids=["uncompacted", "compacted"])
def facts(request):
    return Facts.of(big_session(300, request.param))


@pytest.mark.parametrize(
    ("name", "few"),
    [
        ("agent-framework-tool-result", True),
        ("agent-framework-selective-tool-call", True),
        ("agent-framework-context-window", False),
        ("agno-compress-tool-results", False),
        ("autogen-buffered", True),
    ],
)
def test_the_counts_of_replaced_requests_are_those_of_each(name, few, facts):
    trace = replay(facts.ledger, get_policy(name), window=20_000, usage=facts.usage)
    ats, views = facts.ledger.steps["at"], [record.before for record in trace.compactions]
    steps = np.array([record.step for record in trace.compactions])
    estimates = np.array([record.tokens_before for record in trace.compactions])
    with cProfile.Profile() as profile:
        tokens = tokens_of_views(facts.usage, steps, views, ats[steps], estimates)
    rows = zip(steps.tolist(), views, estimates.tolist(), strict=True)
    assert tokens == [facts.usage.one(*row).tokens for row in rows]
    if few:
        assert len(views) > 50
        assert calls_of(profile, AttributedUsage.one) < len(views) / 4


def test_each_segment_of_growing_requests_is_priced_once():
    facts = Facts.of(big_session(300, 0))
    trace = replay(facts.ledger, get_policy("agent-framework-tool-result"), window=20_000, usage=facts.usage)
    views, steps = [record.before for record in trace.compactions], np.flatnonzero(trace.columns["fired"])
    with cProfile.Profile() as profile:
        tokens_of_views(facts.usage, steps, views, facts.ledger.steps["at"][steps], np.zeros_like(steps))
    segments = len(views[-1])
    assert segments > 200
    assert segments <= calls_of(profile, AttributedUsage._segment) < segments + 20
