"""Policies of agents fire at the calls where these agents compacted, in runs with known settings, and replays of such
runs are the runs."""

import numpy as np
import pytest
from msgspec import structs

from guard_core.estimation.usage import PROVIDER, usage_for
from guard_core.findings import Facts
from guard_core.ledger import Ledger
from guard_core.outcomes.bill import Prices
from guard_core.outcomes.outcome import outcome_of
from guard_core.outcomes.sent import SentRequests
from guard_core.policies import POLICIES, get_policy
from guard_core.recordings import read
from guard_core.replay import observe_recorded, replay
from guard_core.sessions import Session, Sourced
from guard_core.summaries.sizes import RecordedSummaries
from guard_core.triggers import is_counted
from guard_core.windows.window_evidence import judge_session
from tests.guard_core.rules.measured import RULES, run_of

# Run: policy, settings, the window that it ran with (tokens).
AUTOMATIC = {
    "claude-code/2.1.14-default": ("claude-code", {"profile": "until-2.1.19"}, 200_000),
    "codex/default": ("codex", {"usable_share": 0.95}, 258_400),
    "gemini-cli/default": ("gemini-cli", {}, 1_048_576),
}


@pytest.mark.parametrize("name", AUTOMATIC)
def test_it_fires_where_the_agent_compacted_on_the_same_count_and_nowhere_else(name, tmp_path):
    run = run_of(name, tmp_path)
    policy, settings, window = AUTOMATIC[name]
    ledger = Ledger.of(run.session)
    trace = observe_recorded(ledger, get_policy(policy, **settings), window=window, usage=usage_for(ledger, None))
    places = [item.at for item in run.session.compactions if is_counted(item) and item.trigger != "manual"]
    fired = np.flatnonzero(trace.columns["fired"])
    assert fired.tolist() == np.searchsorted(ledger.steps["at"], places).tolist()
    measured = [item["count"] for item in run.truth["compactions"] if item["trigger"] != "manual"]
    assert trace.columns["decision_tokens"][fired].tolist() == measured
    assert set(trace.columns["threshold"].tolist()) == {run.truth["rule"]["threshold"]}


@pytest.mark.parametrize(
    "name",
    [
        "claude-code/2.1.14-default",
        "claude-code/2.1.330-default-overflow",
        "codex/default",
        "kimi-cli/default",
        "kimi-code/default",
        "opencode/default",
        "pi/0.74.2-default",
        "qwen-code/default-1m",
    ],
)
def test_a_replay_under_the_agents_own_rule_sends_what_the_agent_sent(name, tmp_path):
    run = run_of(name, tmp_path)
    check_is_the_recording(run.session, run.window)


def test_a_replay_of_a_journal_of_mistral_vibe_sends_what_vibe_sent():
    """The journal of the run alone: the calls before it have no counts."""
    (journal,) = sorted((RULES / "mistral-vibe/default").glob("*/journal/*817.jsonl")) or [None]
    if journal is None:
        pytest.skip("../shared/rules has no run of Mistral Vibe")
    (session,) = read(str(journal)).sessions
    check_is_the_recording(session)


def check_is_the_recording(session: Session, window: Sourced | None = None) -> None:
    """Its replay by the rule of its agent fires where the agent did, and every request has the recorded count."""
    facts = Facts.of(session, judge_session(session, window), looks_up=False)
    kind = POLICIES[facts.explanation.rule.policy]
    summaries = RecordedSummaries.of(facts.ledger)
    policy = kind.make(**facts.made_with(kind))
    trace = replay(facts.ledger, policy, window=facts.window.value, usage=facts.usage, summarizer=summaries)
    manual = [item.at for item in session.compactions if item.trigger == "manual"]  # which no replay makes
    stop = np.searchsorted(facts.ledger.steps["at"], min(manual, default=facts.ledger.event_count))
    places = [item.at for item in session.compactions if is_counted(item) and item.at not in manual]
    fired = np.flatnonzero(trace.columns["fired"])
    assert fired[fired < stop].tolist() == np.searchsorted(facts.ledger.steps["at"], places).tolist()
    counts = facts.ledger.steps["prompt_tokens"][:stop]
    assert trace.columns["modelled_prompt_tokens"][:stop][counts > 0].tolist() == counts[counts > 0].tolist()
    assert (trace.columns["prompt_tokens_source"][:stop][counts > 0] == PROVIDER).all()
    assert not any("first prompt after each replayed compaction" in note for note in trace.notes)
    if not manual:
        prices = Prices.of(session, facts.ledger)
        recorded, replayed = (
            outcome_of(sent, prices) for sent in (SentRequests.recorded(facts), SentRequests.replayed(facts, trace))
        )
        assert replayed.cycles == recorded.cycles
        assert replayed.costs == structs.replace(recorded.costs, source=replayed.costs.source)
