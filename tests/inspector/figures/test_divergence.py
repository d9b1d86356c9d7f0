"""Where a replay begins to send something else than the recording did."""

from guard_core.findings import Facts
from guard_core.policies import POLICIES
from guard_core.replay import observe_recorded, replay
from guard_core.summaries.sizes import RecordedSummaries
from guard_core.windows.window_evidence import judge_session
from inspector.figures.timeline import divergence
from tests.guard_core.rules.measured import run_of


def test_a_replay_that_compacts_as_its_agent_did_sends_nothing_else(tmp_path):
    """Qwen Code attaches files again in a message of their own, which is a part of the replay's summary."""
    run = run_of("qwen-code/default-1m", tmp_path)
    facts = Facts.of(run.session, judge_session(run.session, run.window), looks_up=False)
    kind = POLICIES["qwen-code"]
    policy, window = kind.make(**facts.made_with(kind)), facts.window.value
    observed = observe_recorded(facts.ledger, policy, window=window, usage=facts.usage)
    for summaries, first in ((RecordedSummaries.of(facts.ledger), None), (RecordedSummaries((5_000,)), 7)):
        replayed = replay(facts.ledger, policy, window=window, usage=facts.usage, summarizer=summaries)
        assert divergence(facts.ledger, replayed, observed) == first
