"""Where the thresholds of an agent changed: later sessions whose bounds contradict those of the earlier ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import msgspec

from guard_core.corpus.bounds import Bounds, CheckPlace, RowKey, SessionStretch, joined


class ThresholdChange(msgspec.Struct, frozen=True):
    """The threshold of one agent, model and window is another from a session on. Tokens of the row's counter.

    `key` is that of the first session after the change, `version` the agent's in the last one before, `time` when the
    first one after began. `before` and `after` are the two checks that no threshold explains; `fell`: the agent
    compacts earlier than before. `limits` are the thresholds after it (above, at most), `former` those before.
    `rule_before` and `rule_after` are the thresholds that the agent's rule gives; None: none.
    """

    key: RowKey
    version: str
    time: float
    before: CheckPlace
    after: CheckPlace
    fell: bool
    former: tuple[int | None, int | None]
    limits: tuple[int | None, int | None]
    sessions_before: int
    sessions_after: int
    rule_before: int | None = None
    rule_after: int | None = None

    @property
    def expected(self) -> bool:
        """Does the agent's rule change there in the same direction."""
        if self.rule_before is None or self.rule_after is None:
            return False
        return self.rule_after < self.rule_before if self.fell else self.rule_after > self.rule_before


class ThresholdChanges(NamedTuple):
    """Change points in order of time, and the sessions that could not be compared: without a time, and those that
    contradict themselves."""

    changes: list[ThresholdChange]
    undated: int
    inconsistent: list[str]


class _Segment:
    """Sessions in a row that one threshold explains."""

    def __init__(self, item: SessionStretch) -> None:
        self.first, self.last = item, item
        self.bounds, self.sessions = item.bounds, {item.session}

    def takes(self, item: SessionStretch) -> bool:
        """Take a session, if one threshold explains it and all before."""
        together = joined((self.bounds, item.bounds))
        if together.contradiction:
            return False
        self.bounds, self.last = together, item
        self.sessions.add(item.session)
        return True


def changes_of(items: Iterable[SessionStretch]) -> ThresholdChanges:
    """The change points of each agent, model and window, over all versions."""
    series: defaultdict[RowKey, list[SessionStretch]] = defaultdict(list)
    undated: set[str] = set()
    for item in items:
        if item.started is not None:
            series[item.key._replace(version="")].append(item)
        elif item.evidence.passed or item.evidence.fired():
            undated.add(item.session)
    inconsistent: list[str] = []
    changes: list[ThresholdChange] = []
    for key in sorted(series, key=repr):
        segments: list[_Segment] = []
        for item in sorted(series[key], key=_moment):
            if item.bounds.contradiction:
                inconsistent.append(item.session)
            elif item.bounds != Bounds() and not (segments and segments[-1].takes(item)):
                segments.append(_Segment(item))
        changes += [_change(*pair) for pair in pairwise(segments)]
    changes.sort(key=lambda change: (change.time, change.after))
    return ThresholdChanges(changes, len(undated), list(dict.fromkeys(inconsistent)))


def _moment(item: SessionStretch) -> tuple[float, str, int]:
    """Sessions that began at one moment are in the order of their keys, so that a corpus has one history."""
    return item.started or 0.0, item.session, item.evidence.stretch.start


def _change(before: _Segment, after: _Segment) -> ThresholdChange:
    former, later = before.bounds, after.first.bounds
    fell = former.passed is not None and later.fired is not None and former.passed.tokens >= later.fired.tokens
    places = (former.passed, later.fired) if fell else (former.fired, later.passed)
    assert places[0] is not None
    assert places[1] is not None
    old, new = before.last.evidence, after.first.evidence
    return ThresholdChange(
        key=after.first.key,
        version=old.stretch.version,
        time=after.first.started or 0.0,
        before=places[0],
        after=places[1],
        fell=fell,
        former=_limits(before.bounds),
        limits=_limits(after.bounds),
        sessions_before=len(before.sessions),
        sessions_after=len(after.sessions),
        rule_before=None if old.rule is None else old.rule.threshold,
        rule_after=None if new.rule is None else new.rule.threshold,
    )


def _limits(bounds: Bounds) -> tuple[int | None, int | None]:
    low, high, _ = bounds.limits
    return low and low.tokens, high and high.tokens
