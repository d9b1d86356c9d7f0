"""One row per policy, with the figures that its own replay has."""

from pathlib import Path

import pytest

from guard_core.ledger import Ledger
from guard_core.outcomes.bill import Prices
from guard_core.outcomes.comparing import candidates, compared
from guard_core.policies import POLICIES
from guard_core.recordings import read
from guard_core.replay import replay
from guard_core.simulator.samples import SAMPLES
from guard_core.usage import usage_for
from tests.guard_core.outcomes.cast import counted, facts_of

GROWING = counted(tuple(20_000 + 6_000 * k for k in range(40)))
LONG = Path(__file__).parents[3] / "../shared/samples/claude-code/long-2-compactions.jsonl"


def rows(session, **more):
    return list(compared(facts_of(session), candidates(), **more))


def test_the_recording_is_on_top_and_every_policy_follows():
    made = rows(GROWING)
    assert made[0].candidate is None
    assert [row.candidate.kind.name for row in made[1:]] == list(POLICIES)


def test_each_profile_is_a_row_where_all_are_asked_for():
    every = candidates(all_profiles=True)
    assert len(every) == sum(max(1, len(kind.profiles)) for kind in POLICIES.values())
    assert len({item.title for item in every}) == len(every)


@pytest.mark.parametrize("name", POLICIES)
def test_the_figures_are_those_of_the_single_replay(name):
    facts = facts_of(GROWING)
    (row,) = [row for row in rows(GROWING) if row.candidate and row.candidate.kind.name == name]
    ledger = Ledger.of(GROWING)
    trace = replay(ledger, POLICIES[name].make(), window=facts.window.value, usage=usage_for(ledger, None))
    sent = trace.columns["modelled_prompt_tokens"]
    assert row.outcome.digest == trace.digest()
    assert row.outcome.compactions == len(trace.compactions)
    assert (row.outcome.costs.prompt, row.outcome.peak) == (int(sent.sum()), int(sent.max()))
    assert sum(row.outcome.held.values()) == int((trace.columns["held"] > 0).sum())


def test_never_compacting_sends_the_recording_where_it_has_no_compaction():
    recording, never = rows(GROWING)[:2]
    assert never.candidate.kind.name == "none"
    assert never.outcome.costs == recording.outcome.costs
    assert (recording.outcome.side, never.outcome.side) == ("recorded", "modelled")


def test_a_simulated_session_has_no_recording_to_compare_with():
    sample = next(iter(SAMPLES.values())).build()
    made = rows(sample)
    assert (made[0].candidate is None) == (sample.usage_ratio is None)
    assert all(row.outcome for row in made)


def test_progress_is_told_in_steps_and_can_end_the_work():
    heard = []
    rows(GROWING, each=heard.append)
    assert heard == sorted(heard)
    assert heard[-1] <= len(POLICIES) * 40

    class Stop(Exception):
        pass

    def stop(done):
        if done:
            raise Stop

    with pytest.raises(Stop):
        rows(GROWING, each=stop)


def test_a_session_without_calls_has_rows_of_nothing():
    made = rows(counted(()))
    assert {row.outcome.costs.prompt for row in made} == {0}


def test_what_the_cache_is_said_to_give_is_near_what_was_reported():
    if not LONG.exists():
        pytest.skip("../shared/samples is absent")
    session = read(LONG).sessions[0]
    (recording, *_) = rows(session)
    modelled, reported = recording.outcome.costs, recording.outcome.reported
    assert abs(modelled.read / reported.read - 1) < 0.01
    assert abs(modelled.total / reported.total - 1) < 0.05
    assert Prices.of(session, Ledger.of(session)).has_prices
