"""A second threshold of an agent: the one that it compares at the ends of turns alone, besides that of its rule.

Compactions made there have a trigger of their own (`POST_TURN`). They are evidence of this threshold and not of the
rule's; without the setting that gives it they are judged by the rule where that fires, and by nothing where it does
not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np

from guard_core.ledger import Ints
from guard_core.rules import agreement
from guard_core.rules.agreement import Agreement, MissedCheck
from guard_core.rules.base import OwnRule, Stretch
from guard_core.rules.check_counts import CheckCounts
from guard_core.rules.counters import TURN_END
from guard_core.rules.inference import CheckEvidence, Interval, interval_of, with_hypotheses
from guard_core.rules.settings import Typed

AT_END = "at the end of a turn"


@dataclass(frozen=True)
class TurnEnds:
    """The ends of turns among the checks of a part of a session. `rule`: that of the part, None where it is not known;
    `counts`: what it compares at every check of the session; `passed`: the rows of the part at which the agent may
    compact and did not; `compacted`: those of compactions made at the ends of turns."""

    counted: CheckCounts
    stretch: Stretch
    rule: OwnRule | None
    typed: Typed
    counts: Ints
    passed: Ints
    compacted: list[int]

    @cached_property
    def own_rule(self) -> OwnRule | None:
        """The rule with the threshold that a typed setting gives at the ends of turns; None where none was typed."""
        agent, rule = self.counted.agent, self.rule
        if agent is None or rule is None or agent.turn_ends is None:
            return None
        variants = agent.turn_ends(self.stretch, self.typed)
        own = next((item for item in variants if not item.changes), None)
        if own is None:
            return None
        return msgspec.structs.replace(rule, threshold=own.threshold, formula=f"{own.formula}, {AT_END}")

    def rule_at(self, row: int) -> OwnRule | None:
        """The rule by which a compaction is judged."""
        return self.own_rule if self.own_rule is not None and row in self.compacted else self.rule

    def verdict(self, row: int, count: int | None) -> tuple[Agreement, str, int, int] | None:
        """Verdict, reason, calls and tokens of a compaction by this threshold; None for any other."""
        if self.own_rule is None or count is None or row not in self.compacted:
            return None
        before = self.counted.compacted
        number = int(np.searchsorted(before, row))
        first = int(before[number - 1]) + 1 if number else 0
        earlier = self._passed_ends[(self._passed_ends >= first) & (self._passed_ends < row)]
        return agreement.judged(self.own_rule, None, count, self.counts[earlier].tolist())

    def missed(self) -> Iterator[MissedCheck]:
        """The ends of turns at which this threshold was reached and the agent did not compact."""
        rule = self.own_rule
        if rule is None or rule.threshold is None:
            return
        for row, count in zip(self._passed_ends.tolist(), self.counts[self._passed_ends].tolist(), strict=True):
            if rule.fires(count) and not (self.rule and self.rule.fires(count)):
                yield MissedCheck(int(self.counted.checks.step[row]), count, rule.threshold)

    def interval(self) -> Interval | None:
        """What the ends of turns prove of this threshold, with the hypotheses inside; None where no compaction was made
        there."""
        agent = self.counted.agent
        if agent is None or self.rule is None or agent.turn_ends is None or not self.compacted:
            return None
        passed = self._evidence(self._passed_ends)
        fired = self._evidence(np.array(self.compacted, dtype=np.int64))
        calls = len(self.counted.session.calls)
        interval = interval_of(self.stretch, TURN_END, self.rule.relation, passed, fired, calls=calls)
        return with_hypotheses(interval, agent.turn_ends(self.stretch, self.typed))

    @cached_property
    def _passed_ends(self) -> Ints:
        """The rows at which a turn ended and the agent did not compact, though it could have."""
        rows = self.passed
        return rows[(self.counted.checks.between[rows] > 0) & (self.counts[rows] > 0)]

    def _evidence(self, rows: Ints) -> list[CheckEvidence]:
        pairs = zip(self.counted.checks.step[rows].tolist(), self.counts[rows].tolist(), strict=True)
        return [CheckEvidence(step, count) for step, count in pairs if count > 0]
