"""Sessions that are longer than those of the laws: what policies do in runs of steps is what they do step by step."""

import numpy as np
import pytest

from guard_core.ledger import Ledger
from guard_core.outcomes.sent import SentRequests
from guard_core.policies import POLICIES
from guard_core.replay import replay
from guard_core.summaries.sizes import FixedSummaries
from tests.guard_core.outcomes.cast import facts_of
from tests.guard_core.outcomes.test_sent import long_log
from tests.properties.test_replay_laws import StepByStep

FACTS = facts_of(long_log(25, counts=0.7))
SMALL = {
    "agent-framework-context-window": {"max_context_window_tokens": 1_500, "max_output_tokens": 100},
    "anthropic-clear-tool-uses": {"trigger": 600, "keep": 2},
    "autogen-token-limited": {"token_limit": 300},
    "langchain-clear-tool-uses": {"trigger": 400, "clear_tool_inputs": True},
    "langchain-trim-messages": {"max_tokens": 300, "start_on": "human", "end_on": "human, tool"},
    "litellm-trim-messages": {"max_tokens": 300},
    "llama-index-buffer": {"token_limit": 300},
}


def traced(policy, window):
    return replay(FACTS.ledger, policy, window=window, usage=FACTS.usage, summarizer=FixedSummaries(200))


@pytest.mark.parametrize("window", [1_500, 6_000])
@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_run_of_steps_is_what_each_of_them_decides(name, window):
    policy = POLICIES[name].make(**SMALL.get(name, {}))
    ahead, slow = traced(policy, window), traced(StepByStep(policy), window)
    for column in slow.columns.keys() - {"head"}:
        assert np.array_equal(ahead.columns[column], slow.columns[column], equal_nan=True), column
    assert (ahead.compactions, ahead.state) == (slow.compactions, slow.state)
    assert ahead.digest() == slow.digest()
    for step, at in enumerate(FACTS.ledger.steps["at"].tolist()):
        assert ahead.view(step, at, FACTS.ledger) == slow.view(step, at, FACTS.ledger)
    shared, alone = (SentRequests.replayed(FACTS, trace).shared.tolist() for trace in (ahead, slow))
    assert shared == alone


@pytest.mark.parametrize(
    "name",
    [
        "agent-framework-selective-tool-call",
        "agent-framework-sliding-window",
        "agent-framework-summarization",
        "agent-framework-tool-result",
        "autogen-buffered",
        "semantic-kernel-summarization",
        "semantic-kernel-truncation",
        "strands-sliding-window",
        "sweagent-last-n",
    ],
)
def test_a_policy_that_acts_at_every_step_is_rarely_asked_for_one(name):
    asked = []

    class Counting(type(POLICIES[name].make())):
        def decide(self, check, state):
            asked.append(check.step)
            return super().decide(check, state)

    replay(Ledger.of(FACTS.session), Counting(POLICIES[name].make().settings), window=6_000, usage=FACTS.usage)
    assert len(asked) < FACTS.ledger.step_count / 4
