"""The policy that never compacts: the baseline every chart compares with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.estimation.estimators import Heuristic
from guard_core.ledger import Ledger
from guard_core.policies.base import Check, Decision, Point, Quiet, ReplayRun
from guard_core.policies.settings import PolicyKind
from guard_core.sessions import Provenance
from guard_core.trace import WHOLE_LOG, Column, Term, Trace
from guard_core.views import Span


class Nothing(msgspec.Struct, frozen=True):
    """It has no settings and remembers nothing."""


@dataclass(frozen=True)
class NoCompaction:
    """Sends the whole log at every step."""

    settings: Nothing = field(default_factory=Nothing)
    name: str = field(default="none", init=False)
    columns: tuple[Column, ...] = field(default=(), init=False)
    points: tuple[Point, ...] = field(default=(Point.BEFORE_CALL,), init=False)
    moments: tuple[Point, ...] = field(default=(), init=False)
    state_type: type = field(default=Nothing, init=False)

    def estimator(self, ledger: Ledger) -> Heuristic:
        return Heuristic.of(ledger)

    def start(self) -> Nothing:
        return Nothing()

    def decide(self, check: Check, state: Nothing) -> Decision:
        columns = self._columns(check.ledger, np.array([check.at]))
        evidence = {name: int(values[0]) for name, values in columns.items()}
        return Decision((Span(0, check.at),) if check.at else (), state, evidence)

    def observe(self, state: Nothing, prompt_tokens: int | None, step: int) -> Nothing:
        return state

    def scan(self, run: ReplayRun, start: int, stop: int, state: Nothing) -> Quiet | None:
        columns = self._columns(run.ledger, run.ledger.steps["at"][start:stop])
        counted = run.usage.run(start, stop, (), 0, columns["heuristic_sent"])
        return Quiet(stop - start, columns, counted, state, ended=False, head=WHOLE_LOG)

    def _columns(self, ledger: Ledger, at: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        costs = self.estimator(ledger)
        return {
            **dict.fromkeys(("contents_built", "contents_decided", "contents_sent"), at),
            **dict.fromkeys(("heuristic_built", "heuristic_decided", "heuristic_sent"), costs.prefix[at] + costs.fixed),
        }

    def shadow(self, run: ReplayRun, trace: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        return {}

    def explain(self, trace: Trace, step: int) -> tuple[Term, ...]:
        heuristic = int(trace.columns["heuristic_sent"][step])
        text = "this policy never compacts"
        return (
            Term("heuristic estimate", heuristic, "tokens", Provenance.RECOMPUTED, step, "UTF-8 bytes // 4"),
            Term("verdict", 0, "", Provenance.RECOMPUTED, step, text),
        )


KIND = PolicyKind(
    "none", "No compaction", "Sends the whole log at every call.", NoCompaction, compacts=False, summarises=False
)
