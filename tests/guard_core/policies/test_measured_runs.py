"""Policies of agents fire at the calls where these agents compacted, in runs with known settings."""

import numpy as np
import pytest

from guard_core.estimation.usage import usage_for
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.replay import observe_recorded
from guard_core.triggers import is_counted
from tests.guard_core.rules.measured import run_of

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
