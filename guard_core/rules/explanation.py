"""Explains the compactions of a session by the rule of its agent: rule, evidence and agreement, stretch by stretch."""

from __future__ import annotations

from itertools import chain

import msgspec
import numpy as np

from guard_core.errors import SettingError
from guard_core.ledger import Ints, Ledger
from guard_core.rules.agreement import Agreement, ExplainedCompaction, MissedCheck
from guard_core.rules.base import OwnRule, Stretch
from guard_core.rules.check_counts import CheckCounts
from guard_core.rules.counters import TURN_END
from guard_core.rules.evidence import StretchEvidence
from guard_core.rules.inference import Interval
from guard_core.rules.kept import KeptMessages, kept_messages
from guard_core.rules.learned import with_learned
from guard_core.rules.registry import agent_of
from guard_core.rules.settings import Typed, windows_by_model
from guard_core.rules.stretch_checks import StretchChecks, rows_of, settle_changes
from guard_core.rules.stretches import stretches_of
from guard_core.sessions import Provenance, Session, Sourced
from guard_core.triggers import MANUAL

# Formats of sessions that the simulator made: no agent wrote them.
UNNAMED = "unknown program"  # in the rows of sessions whose file names no agent
SIMULATED = frozenset({"sample", "simulation"})


class Explanation(msgspec.Struct, frozen=True):
    """A session beside the rule of its agent.

    `rules` has one rule per stretch (empty: the rule is not known, `unknown` says of whom). `auto` are the automatic
    compactions, and those whose trigger the file does not say; `agrees` of them fit the rule. `compared` is what the
    rule of the main stretch counts, in words. `inference` and `evidence` have what the stretches of each model and
    version prove of the threshold, together where the session changed between models.
    """

    stretches: tuple[Stretch, ...]
    rules: tuple[OwnRule, ...]
    compactions: tuple[ExplainedCompaction, ...]
    missed: tuple[MissedCheck, ...]
    inference: tuple[Interval, ...]
    auto: int
    agrees: int
    unknown: str = ""
    compared: str = ""
    kept: tuple[KeptMessages, ...] = ()
    evidence: tuple[StretchEvidence, ...] = ()

    def interval_of(self, stretch: Stretch, counter: str = "") -> Interval | None:
        """What the checks of a stretch prove, by a counter; without one, by the first that says something."""
        own = (item for item in self.inference if item.is_of(stretch))
        return next((item for item in own if counter in ("", item.counter)), None)

    @property
    def typed(self) -> Typed:
        """The settings of its rules that were typed, by their names."""
        settings = chain.from_iterable(rule.settings for rule in self.rules)
        stated = (item for item in settings if item.source is Provenance.USER and item.value is not None)
        return {item.name: f"{item.value:.17g}" for item in stated}

    @property
    def is_whole(self) -> bool:
        """Does the rule explain every automatic compaction, at least one of them by its threshold, and does it fire
        nowhere else."""
        by_threshold = (item for item in self.compactions if item.threshold is not None and not item.after_refusal)
        agree = any(item.verdict is Agreement.AGREES for item in by_threshold)
        return agree and self.agrees == self.auto and not self.missed

    def stretch_of(self, interval: Interval) -> Stretch | None:
        """The first stretch of which an interval speaks."""
        return next((stretch for stretch in self.stretches if interval.is_of(stretch)), None)

    def is_behind(self, step: int) -> bool:
        """Was a check made after the last call, so that no call has its step."""
        return not self.stretches or step >= self.stretches[-1].stop

    @property
    def comparable(self) -> int:
        """How many of the automatic compactions can be compared with the rule."""
        automatic = (item for item in self.compactions if item.trigger != MANUAL)
        return sum(item.verdict is not Agreement.NOT_MODELLED for item in automatic)

    @property
    def rule(self) -> OwnRule | None:
        """The rule of the stretch with most calls."""
        return self.rules[self.stretches.index(_main(self.stretches))] if self.rules else None

    @property
    def refuting(self) -> Interval | None:
        """Where the threshold of `rule` lies, if every check fits one threshold and that is not the one of the rule."""
        return None if self.rule is None else self._refuting(_main(self.stretches), self.rule)

    @property
    def latest(self) -> OwnRule | None:
        """The rule in force at the last call: that of the last stretch."""
        return self.rules[-1] if self.rules else None

    @property
    def latest_refuting(self) -> Interval | None:
        """The interval that refutes the rule in force at the last call; None where none does."""
        return None if self.latest is None else self._refuting(self.stretches[-1], self.latest)

    @property
    def latest_bound(self) -> Interval | None:
        """What the checks of the last stretch prove, where that has an upper bound."""
        last = self.stretches[-1:]
        intervals = (
            item for stretch in last for item in self.inference if item.is_of(stretch) and item.counter != TURN_END
        )
        return next((item for item in intervals if item.at_most is not None and not item.contradiction), None)

    @property
    def has_changed(self) -> bool:
        """Has another stretch another rule than the last one, in its threshold."""
        return len({(item.threshold, item.unit) for item in self.rules}) > 1

    def _refuting(self, stretch: Stretch, rule: OwnRule) -> Interval | None:
        interval = self.interval_of(stretch, rule.counter)
        if rule.threshold is None or interval is None or interval.at_most is None or interval.contradiction:
            return None
        return None if interval.contains(rule.threshold) else interval


def explain(
    session: Session, ledger: Ledger | None = None, *, window: Sourced | None = None, typed: Typed | None = None
) -> Explanation:
    """The rule of a session's agent, what its recording proves of it, and each compaction beside it.

    `window` and `typed` (settings, by name or as the agent's configuration calls them) are the user's. Raises
    SettingError for a setting that the rule does not have, or a value that is none.
    """
    ledger = ledger or Ledger.of(session)
    agent = agent_of(session, typed or {})
    if agent is None and typed:
        raise SettingError(f"the rule of the agent that wrote this ({_name(session)}) is not known: it has no settings")
    named, stated = ({}, None) if agent is None else agent.named(typed or {})
    counted = CheckCounts(session, ledger, agent, named)
    stretches = with_learned(counted, stretches_of(session, stated or window, windows_by_model(named)), named)
    parts, belongs = _parts(counted, stretches, named)
    explained = [tuple(part.compactions()) for part in parts]
    missed = [tuple(part.missed()) for part in parts]
    label = _label(session) if agent is None else agent.label
    beside = zip(parts, explained, missed, strict=True)
    evidence = tuple(part.evidence(label, fired, passed) for part, fired, passed in beside)
    rules = [parts[number].rule for number in belongs]
    counts = {item.place: item.decision_tokens for fired in explained for item in fired}
    return Explanation(
        stretches=stretches,
        rules=tuple(rule for rule in rules if rule is not None),
        compactions=tuple(sorted(chain.from_iterable(explained), key=lambda item: item.place)),
        missed=tuple(sorted(chain.from_iterable(missed), key=lambda item: item.step)),
        inference=tuple(
            item for part in parts for item in part.intervals() if item.above is not None or item.at_most is not None
        ),
        auto=sum(item.auto for item in evidence),
        agrees=sum(item.agrees for item in evidence),
        unknown="" if agent is not None else _writer(session),
        compared="" if agent is None else agent.compared(_main(stretches), named).words,
        kept=tuple(kept_messages(session, ledger, agent, list(zip(stretches, rules, strict=True)), counts)),
        evidence=evidence,
    )


def _parts(counted: CheckCounts, stretches: tuple[Stretch, ...], typed: Typed) -> tuple[list[StretchChecks], list[int]]:
    """The stretches of one model, version and window together, and for each stretch the number of its part."""
    numbers: dict[tuple[str, str, int], int] = {}
    belongs = [numbers.setdefault((item.version, item.model, item.window_tokens), len(numbers)) for item in stretches]
    groups: list[list[Stretch]] = [[] for _ in numbers]
    for number, stretch in zip(belongs, stretches, strict=True):
        groups[number].append(stretch)
    wholes = [
        group[0]._replace(stop=group[-1].stop, largest=max(stretch.largest for stretch in group)) for group in groups
    ]
    agent = counted.agent
    rules = [None if agent is None else agent.ruled(whole, typed) for whole in wholes]
    rows: list[list[Ints]] = [[] for _ in groups]
    for number, own in zip(belongs, rows_of(counted.checks, stretches, [rules[n] for n in belongs]), strict=True):
        rows[number].append(own)
    parts = [
        StretchChecks(counted, whole, np.concatenate(own), rule, typed)
        for whole, own, rule in zip(wholes, rows, rules, strict=True)
    ]
    settle_changes(parts, belongs, stretches)
    return parts, belongs


def _main(stretches: tuple[Stretch, ...]) -> Stretch:
    """The stretch with most calls, of several the last one: its model is the session's (`main_model`)."""
    return max(stretches, key=lambda stretch: (stretch.stop - stretch.start, stretch.stop))


def _writer(session: Session) -> str:
    """Whose rule is not known: a log of requests need not say which program made it."""
    return _name(session) if _is_named(session) else "the program that wrote this recording"


def _label(session: Session) -> str:
    """What wrote a session of an agent without a known rule, for the rows that join many sessions."""
    return _name(session) if _is_named(session) else f"{UNNAMED} ({session.format})"


def _is_named(session: Session) -> bool:
    return bool(session.agent) or session.format in ("", *SIMULATED)


def _name(session: Session) -> str:
    if not session.agent or session.format in ("", session.agent.casefold()):
        return session.agent or session.format or "an unknown agent"
    return f"{session.agent} ({session.format})"
