"""Helpers that say in one line what a policy does with a session."""

from __future__ import annotations

from typing import Any

from guard_core.estimation.usage import usage_for
from guard_core.ledger import Ledger
from guard_core.policies.base import Policy
from guard_core.replay import replay
from guard_core.sessions import Session
from guard_core.summaries.sizes import FixedSummaries
from guard_core.trace import Trace


def run(policy: Policy, session: Session, *, summary: int = 2_000, **options: Any) -> Trace:
    """A replay with recorded usage and summaries of a fixed size."""
    ledger = Ledger.of(session)
    window = options.pop("window", None) or session.window.value
    options.setdefault("summarizer", FixedSummaries(summary))
    options.setdefault("usage", usage_for(ledger, None))
    return replay(ledger, policy, window=window, **options)


def check_passes_through(policy: Policy, session: Session, **options: Any) -> Trace:
    """Nothing is compacted, and every request is the log as it was."""
    trace = run(policy, session, **options)
    assert trace.compactions == ()
    assert not trace.columns["fired"].any()
    assert (trace.columns["contents_sent"] == trace.columns["contents_built"]).all()
    assert (trace.columns["heuristic_sent"] == trace.columns["heuristic_built"]).all()
    return trace


def check_compacts(policy: Policy, session: Session, *, at_step: int, **options: Any) -> Trace:
    """The first compaction is at this step."""
    trace = run(policy, session, **options)
    fired = trace.columns["fired"].nonzero()[0].tolist()
    assert fired[:1] == [at_step], f"fired at {fired}"
    return trace
