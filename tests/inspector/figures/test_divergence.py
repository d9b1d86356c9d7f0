"""Where a replay begins to send something else than the recording did."""

import msgspec
import pytest

from guard_core.findings import Facts
from guard_core.policies import POLICIES
from guard_core.replay import observe_recorded, replay
from guard_core.summaries.sizes import RecordedSummaries
from guard_core.windows.window_evidence import judge_session
from inspector.figures.timeline import divergence
from tests.guard_core.rules.measured import run_of


@pytest.mark.parametrize("uncounted", [None, 7, 8])
def test_a_replay_that_compacts_as_its_agent_did_sends_nothing_else(tmp_path, uncounted):
    """Qwen Code attaches files again in a message of their own, which is a part of the replay's summary. A call that
    was aborted has no count."""
    run = run_of("qwen-code/default-1m", tmp_path)
    calls = (
        msgspec.structs.replace(call, prompt_tokens=None) if step == uncounted else call
        for step, call in enumerate(run.session.calls)
    )
    session = msgspec.structs.replace(run.session, calls=tuple(calls))
    facts = Facts.of(session, judge_session(session, run.window), looks_up=False)
    kind = POLICIES["qwen-code"]
    policy, window = kind.make(**facts.made_with(kind)), facts.window.value
    observed = observe_recorded(facts.ledger, policy, window=window, usage=facts.usage)
    for summaries, first in ((RecordedSummaries.of(facts.ledger), None), (RecordedSummaries((5_000,)), 7)):
        replayed = replay(facts.ledger, policy, window=window, usage=facts.usage, summarizer=summaries)
        assert divergence(facts.ledger, replayed, observed) == first
