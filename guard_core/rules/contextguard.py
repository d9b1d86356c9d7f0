"""ContextGuard in an ADK recording that holds its state: the calibrated estimate against the window less a buffer.

The count is this package's own arithmetic of the policy `contextguard` over the recorded requests.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from guard_core.defaults import WINDOW
from guard_core.estimation.usage import usage_for
from guard_core.ledger import Ints, Ledger
from guard_core.policies import get_policy
from guard_core.policies.contextguard import Settings
from guard_core.replay import observe_recorded
from guard_core.rules.base import Agent, Hypothesis, OwnRule, Stretch
from guard_core.rules.counters import UNKNOWN, Checks, RuleCounter
from guard_core.rules.settings import RuleNumber, Typed, whole, window_setting
from guard_core.rules.thresholds import windows_of
from guard_core.sessions import Provenance, Session, Sourced

ESTIMATE = "estimate"
COUNTER = RuleCounter(ESTIMATE, "ContextGuard's estimate of the request, corrected by the last count")


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The window less the buffer that was typed or that the policy takes for this window."""
    window, limit = _window(stretch), whole(typed, "buffer")
    usual = _buffer(window.value)
    source, note = (Provenance.USER, "typed in") if limit else (Provenance.ASSUMED, "its default for this window")
    buffer = limit or usual
    return OwnRule(
        policy="contextguard",
        settings=(window_setting(window), RuleNumber("buffer", buffer, "tokens", source, note)),
        counter=ESTIMATE,
        threshold=window.value - buffer,
        formula=f"{window.value:,} − {buffer:,} (buffer)",
    )


def _window(stretch: Stretch) -> Sourced:
    return stretch.window or Sourced(WINDOW, Provenance.ASSUMED, "ContextGuard's for a model that it does not know")


def _buffer(window: int) -> int:
    return window - Settings().limits(window).threshold


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Other windows."""
    for window, other in windows_of(stretch._replace(window=_window(stretch))):
        buffer = _buffer(window)
        yield Hypothesis(f"{window:,} − {buffer:,} (buffer)", window - buffer, other)


def series(session: Session, ledger: Ledger, checks: Checks, stretch: Stretch) -> Ints:
    """ContextGuard's estimate at each check, UNKNOWN behind the last call."""
    policy = get_policy("contextguard")
    trace = observe_recorded(ledger, policy, window=_window(stretch).value, usage=usage_for(ledger, None))
    return np.append(trace.columns["decision_tokens"].astype(np.int64), UNKNOWN)[checks.step]


AGENT = Agent(
    format="",
    label="ContextGuard",
    rule=rule,
    variants=variants,
    counter=lambda _: COUNTER,
    names={"buffer": "in tokens"},
    wrote=lambda session: bool(session.guard_states),
    series=series,
)
