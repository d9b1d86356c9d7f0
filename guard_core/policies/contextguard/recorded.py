"""ContextGuard's own state in a recording, beside what a replay computes for the same steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from guard_core.events import utf8_bytes
from guard_core.ledger import Ledger
from guard_core.sessions import GuardState, Session
from guard_core.trace import Trace


class StateRow(NamedTuple):
    """One value of the persisted state: as recorded and as recomputed (None: the replay has no such step)."""

    step: int
    agent: str
    name: str
    recorded: int
    recomputed: int | None

    @property
    def equal(self) -> bool:
        return self.recorded == self.recomputed


def beside(session: Session, ledger: Ledger, trace: Trace) -> tuple[StateRow, ...]:
    """Every number of the recorded state next to the trace's, in order.

    A state found after an event belongs to the last call made before that event.
    """
    at = ledger.steps["at"]
    rows = []
    for state in session.guard_states:
        step = int(np.searchsorted(at, state.at - 1, side="right")) - 1
        computed = _computed(trace, step) if step >= 0 else {}
        for name, value in _recorded(state).items():
            if value is not None:
                rows.append(StateRow(step, state.agent, name, value, computed.get(name)))
    return tuple(rows)


def _recorded(state: GuardState) -> dict[str, int | None]:
    return {
        "watermark": state.contents_at_compaction,
        "summary bytes": None if state.summary is None else utf8_bytes(state.summary),
        "real tokens": state.real_tokens,
        "last heuristic": state.last_heuristic,
        "summarized at": state.summarized_at,
    }


def _computed(trace: Trace, step: int) -> dict[str, Any]:
    columns = trace.columns
    real = trace.state.real_tokens if step + 1 == len(trace) else int(columns["real_loaded"][step + 1])
    fired = np.flatnonzero(columns["fired"][: step + 1])
    return {
        "watermark": int(columns["watermark"][step]),
        "summary bytes": int(columns["summary_bytes"][step]),
        "real tokens": real,
        "last heuristic": int(columns["heuristic_sent"][step]),
        "summarized at": int(columns["decision_tokens"][fired[-1]]) if len(fired) else 0,
    }
