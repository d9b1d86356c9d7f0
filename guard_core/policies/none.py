"""The policy that never compacts: the baseline every chart compares with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.errors import SettingError
from guard_core.policies.base import Check, Decision, Quiet, Run
from guard_core.policies.contextguard.guard import Guard, constant, reported
from guard_core.policies.contextguard.memory import Memory
from guard_core.policies.contextguard.settings import Settings
from guard_core.sessions import Provenance
from guard_core.trace import Term, Trace
from guard_core.views import Span


class NoSettings(msgspec.Struct, frozen=True):
    """It has none."""


@dataclass(frozen=True)
class NoCompaction:
    """Sends the whole log at every step. Its heuristic is that of ContextGuard's profile `current`."""

    settings: NoSettings = field(default_factory=NoSettings)
    name: str = field(default="none", init=False)
    _guard: Guard = field(default_factory=lambda: Guard(Settings()), init=False, repr=False, compare=False)

    def start(self) -> Memory:
        return Memory()

    def decide(self, check: Check, state: Memory) -> Decision:
        return self._guard.passes(check, state, (Span(0, check.at),) if check.at else ())

    def observe(self, state: Memory, prompt_tokens: int | None, step: int) -> Memory:
        return self._guard.observe(state, prompt_tokens, step)

    def scan(self, run: Run, start: int, stop: int, state: Memory) -> Quiet | None:
        head, columns = self._guard.quiet_columns(run, start, stop, state)
        heuristics, size = columns["heuristic_sent"], stop - start
        counts = reported(run, start, stop, head, heuristics, state)
        columns |= {
            "real_loaded": counts.real[:-1],
            "last_heuristic_loaded": np.append(state.last_heuristic, heuristics[:-1]),
            "real_as_of": counts.as_of[:-1],
        }
        return self._guard.quiet(size, columns, counts, state, ended=False)

    def shadow(self, run: Run, trace: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        return {"fired": constant(len(trace["heuristic_sent"]), 0)}

    def explain(self, trace: Trace, step: int) -> tuple[Term, ...]:
        heuristic = int(trace.columns["heuristic_sent"][step])
        text = "this policy never compacts"
        return (
            Term("heuristic estimate", heuristic, "tokens", Provenance.RECOMPUTED, step, "UTF-8 bytes // 4"),
            Term("verdict", 0, "", Provenance.RECOMPUTED, step, text),
        )


def make(**settings: Any) -> NoCompaction:
    """The policy; SettingError for any setting."""
    settings.pop("profile", None)
    if settings:
        raise SettingError(f"the policy none has no settings, and so no {next(iter(settings))[:40]!r}")
    return NoCompaction()
