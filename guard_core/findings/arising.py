"""Findings of a session that still grows: near misses, overflows and loops, each with the steps it is true of.

They follow from the columns alone, without texts, by the same functions as the findings of a finished session.
"""

from __future__ import annotations

import msgspec
import numpy as np

from guard_core.findings import repetition, sizes
from guard_core.findings.claims import Finding
from guard_core.findings.facts import Case, Facts

NEAR_MISS, OVERFLOW, LOOP = "near_miss", "overflow", "loop"


class Alert(msgspec.Struct, frozen=True):
    """A finding, and the latest run of steps (from 0) at which what it says occurred, from `first` to `last`. What has
    the same kind and the same `first` is the same occurrence, however much longer the session is."""

    finding: Finding
    first: int
    last: int

    def is_new(self, known: int) -> bool:
        """Did it occur at a step that was not among the first `known`."""
        return self.last >= known


def alerts(facts: Facts) -> tuple[Alert, ...]:
    """The near misses, overflows and loops of a recording, the latest first; none of what was only simulated."""
    if not facts.ledger.step_count or facts.ledger.usage_ratio is not None:
        return ()
    case = facts.recording
    findings = [*sizes.near_misses(case), *sizes.overflows(case), *repetition.loops(case)]
    return tuple(sorted((Alert(finding, *_latest(case, finding)) for finding in findings), key=lambda item: -item.last))


def occurrences(facts: Facts, known: int = 0) -> tuple[Alert, ...]:
    """Every run of steps with a near miss, an overflow or a loop that did not end before step `known`, the first one
    first, each with a finding of its own: for whoever may have looked last when the session was much shorter."""
    if not facts.ledger.step_count or facts.ledger.usage_ratio is not None:
        return ()
    case = facts.recording
    over = np.isin(np.arange(len(case.tokens)), case.over)
    findings = [
        *((sizes.near_miss_in(case, [run]), run) for run in sizes.runs(sizes.is_near(case)) if run[1] > known),
        *((sizes.overflow_at(case, np.arange(*run)), run) for run in sizes.runs(over) if run[1] > known),
    ]
    arisen = [Alert(finding, start, stop - 1) for finding, (start, stop) in findings]
    arisen += [Alert(finding, *_latest(case, finding)) for finding in repetition.loops(case)]
    return tuple(sorted((alert for alert in arisen if alert.is_new(known)), key=lambda alert: alert.first))


def _latest(case: Case, finding: Finding) -> tuple[int, int]:
    """The first and the last step of the latest run."""
    if finding.kind == LOOP:
        return int(finding.numbers["first"]), int(finding.numbers["last"])
    flags = sizes.is_near(case) if finding.kind == NEAR_MISS else np.isin(np.arange(len(case.tokens)), case.over)
    start, stop = sizes.runs(flags)[-1]
    return start, stop - 1
