"""A sweep is single replays, cell by cell."""

from hypothesis import given
from hypothesis import strategies as st

from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.replay import replay
from guard_core.sweep import figures_of, sweep
from guard_core.usage import usage_for
from tests.properties.strategies import sessions, summarizers, windows

AXES = {
    "profile": ("early", "current"),
    "buffer": ("auto", "700", "40%"),
    "cap": (1.0, 5.0),
    "max_passes": (1, 3),
}


@given(sessions(), windows, summarizers, st.sampled_from(["contextguard", "contextguard-sliding"]))
def test_every_cell_is_a_replay(session, window, summarizer, policy):
    ledger = Ledger.of(session)
    usage = usage_for(ledger, None)
    result = sweep(ledger, AXES, window=window, policy=policy, usage=usage, summarizer=summarizer)
    for cell in result.cells[:: 5 if policy == "contextguard" else 12]:
        made = get_policy(policy, **cell.values)
        trace = replay(ledger, made, window=window, usage=usage, summarizer=summarizer)
        assert cell.figures == (figures_of(trace),), cell.values
