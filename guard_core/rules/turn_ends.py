"""A second threshold of an agent: the one that it compares at the ends of turns alone, besides that of its rule.

Compactions made there have a trigger of their own (`POST_TURN`). They are evidence of this threshold and not of the
rule's; without the setting that gives it they are judged by the rule where that fires, and by nothing where it does
not.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from guard_core.ledger import Ints
from guard_core.rules import agreement
from guard_core.rules.agreement import Agreement, MissedCheck
from guard_core.rules.base import OwnRule
from guard_core.rules.counters import TURN_END
from guard_core.rules.inference import CheckEvidence, Interval, interval_of, with_hypotheses
from guard_core.triggers import POST_TURN

if TYPE_CHECKING:
    from guard_core.rules.stretch_checks import StretchChecks

AT_END = "at the end of a turn"


class TurnEnds:
    """The ends of turns among the checks of a part of a session."""

    def __init__(self, checks: StretchChecks) -> None:
        self._checks = checks

    def has(self, row: int) -> bool:
        """Was the compaction at a check made at the end of a turn."""
        return self._checks.session.compactions[int(self._checks.checks.place[row])].trigger == POST_TURN

    @cached_property
    def rule(self) -> OwnRule | None:
        """The rule with the threshold that a typed setting gives at the ends of turns; None where none was typed."""
        agent, rule = self._checks.agent, self._checks.rule
        if agent is None or rule is None or agent.turn_ends is None:
            return None
        variants = agent.turn_ends(self._checks.stretch, self._checks.typed)
        own = next((item for item in variants if not item.changes), None)
        if own is None:
            return None
        return msgspec.structs.replace(rule, threshold=own.threshold, formula=f"{own.formula}, {AT_END}")

    def rule_at(self, row: int) -> OwnRule | None:
        """The rule by which a compaction is judged."""
        return self.rule if self.rule is not None and self.has(row) else self._checks.rule

    def verdict(self, row: int, count: int | None) -> tuple[Agreement, str, int, int] | None:
        """Verdict, reason, calls and tokens of a compaction by this threshold; None for any other."""
        if self.rule is None or count is None or not self.has(row):
            return None
        before = self._checks.counted.compacted
        number = int(np.searchsorted(before, row))
        first = int(before[number - 1]) + 1 if number else 0
        earlier = self._quiet[(self._quiet >= first) & (self._quiet < row)]
        return agreement.judged(self.rule, None, count, self._counts(earlier).tolist())

    def missed(self) -> Iterator[MissedCheck]:
        """The ends of turns at which this threshold was reached and the agent did not compact."""
        rule = self.rule
        if rule is None or rule.threshold is None:
            return
        for row, count in zip(self._quiet.tolist(), self._counts(self._quiet).tolist(), strict=True):
            if rule.fires(count) and not (self._checks.rule and self._checks.rule.fires(count)):
                yield MissedCheck(int(self._checks.checks.step[row]), count, rule.threshold)

    def interval(self) -> Interval | None:
        """What the ends of turns prove of this threshold, with the hypotheses inside; None where no compaction was made
        there."""
        part = self._checks
        rows = np.array([row for row in part.compacted_rows() if self.has(row)], dtype=np.int64)
        if part.agent is None or part.rule is None or part.agent.turn_ends is None or not len(rows):
            return None
        passed, fired = self._evidence(self._quiet), self._evidence(rows)
        calls = len(part.session.calls)
        interval = interval_of(part.stretch, TURN_END, part.rule.relation, passed, fired, calls=calls)
        return with_hypotheses(interval, part.agent.turn_ends(part.stretch, part.typed))

    @cached_property
    def _quiet(self) -> Ints:
        """The rows at which a turn ended and the agent did not compact, though it could have."""
        quiet = self._checks.quiet
        return quiet[(self._checks.checks.between[quiet] > 0) & (self._checks.counts[quiet] > 0)]

    def _counts(self, rows: Ints) -> Ints:
        return self._checks.counts[rows]

    def _evidence(self, rows: Ints) -> list[CheckEvidence]:
        pairs = zip(self._checks.checks.step[rows].tolist(), self._counts(rows).tolist(), strict=True)
        return [CheckEvidence(step, count) for step, count in pairs if count > 0]
