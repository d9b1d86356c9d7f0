"""Did a session do what its rule says: every compaction at the threshold or above, and no check passed there."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from guard_core.corpus.bounds import CheckPlace, SessionStretch
from guard_core.rules.base import Moment, OwnRule
from guard_core.rules.settings import RuleNumber
from guard_core.sessions import Provenance

FILE = (Provenance.RECORDER, Provenance.STATE, Provenance.PROVIDER)  # sources of settings that the recording holds


class ObedienceState(StrEnum):
    """What a session shows of its rule."""

    OBEYS = "obeys"  # it compacted, at the threshold or above, and no check passed there
    CONTRADICTS = "contradicts"
    UNTESTED = "not tested"  # no count came up to the threshold, and none fired
    UNKNOWN = "no threshold"  # the rule, or a setting of it, is not known


class Obedience(msgspec.Struct, frozen=True):
    """A session beside its rule. `place` is the check that decides it; `fired`: did the agent compact there."""

    state: ObedienceState
    place: CheckPlace | None = None
    fired: bool = False


def obedience_of(item: SessionStretch) -> Obedience:
    """A stretch of a session beside its rule. Compactions that a person may have asked for decide nothing."""
    rule, (low, high, _) = item.evidence.rule, item.bounds.limits
    if rule is None:
        return Obedience(ObedienceState.UNKNOWN)
    if rule.checks is Moment.REFUSAL:
        return _without_threshold(item)
    if rule.threshold is None:
        return Obedience(ObedienceState.UNKNOWN)
    if low is not None and rule.fires(low.tokens):
        return Obedience(ObedienceState.CONTRADICTS, low)
    if high is not None and not rule.fires(high.tokens):
        return Obedience(ObedienceState.CONTRADICTS if high.sure else ObedienceState.UNTESTED, high, fired=True)
    return Obedience(ObedienceState.UNTESTED) if high is None else Obedience(ObedienceState.OBEYS, high, fired=True)


def _without_threshold(item: SessionStretch) -> Obedience:
    """Of a rule that compacts only after a refused request."""
    if item.bounds.fired is not None:
        return Obedience(ObedienceState.CONTRADICTS, item.bounds.fired, fired=True)
    if item.evidence.agrees:
        return Obedience(ObedienceState.OBEYS)
    return Obedience(ObedienceState.UNTESTED)


def stated_settings(rule: OwnRule | None) -> tuple[RuleNumber, ...]:
    """The settings that were stated: typed in, or configuration in the file. A window that only the recording has
    is none."""
    settings = () if rule is None else rule.settings
    return tuple(
        item
        for item in settings
        if item.value is not None
        and (item.source is Provenance.USER or (item.source in FILE and item.name != "window"))
    )
