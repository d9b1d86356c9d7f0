"""Explains the compactions of a session by the rule of its agent: rule, evidence and agreement, stretch by stretch."""

from __future__ import annotations

from itertools import chain

import msgspec

from guard_core.errors import SettingError
from guard_core.ledger import Ledger
from guard_core.rules.agreement import ExplainedCompaction, MissedCheck
from guard_core.rules.base import OwnRule, Stretch, Typed
from guard_core.rules.evidence import StretchEvidence
from guard_core.rules.inference import Interval
from guard_core.rules.kept import KeptMessages, kept_messages
from guard_core.rules.registry import agent_of
from guard_core.rules.stretch_checks import Counted, StretchChecks
from guard_core.rules.stretches import stretches_of
from guard_core.sessions import Session, Sourced


class Explanation(msgspec.Struct, frozen=True):
    """A session beside the rule of its agent.

    `rules` has one rule per stretch (empty: the rule is not known, `unknown` says of whom). `auto` are the automatic
    compactions, and those whose trigger the file does not say; `agrees` of them fit the rule. `compared` is what the
    rule of the main stretch counts, in words. `evidence` has what each stretch proves of the threshold.
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

    @property
    def rule(self) -> OwnRule | None:
        """The rule of the stretch with most calls."""
        return self.rules[self.stretches.index(_main(self.stretches))] if self.rules else None


def explain(
    session: Session, ledger: Ledger | None = None, *, window: Sourced | None = None, typed: Typed | None = None
) -> Explanation:
    """The rule of a session's agent, what its recording proves of it, and each compaction beside it.

    `window` and `typed` (settings by name) are the user's. Raises SettingError for a setting that the rule does not
    have, or a value that is none.
    """
    ledger = ledger or Ledger.of(session)
    agent, typed = agent_of(session), typed or {}
    if agent is None and typed:
        raise SettingError(f"the rule of the agent that wrote this ({_name(session)}) is not known: it has no settings")
    if agent is not None:
        agent.check_typed(typed)
    counted, stretches = Counted(session, ledger, agent), stretches_of(session, window)
    parts = [StretchChecks(counted, stretch, typed) for stretch in stretches]
    explained = [tuple(part.compactions()) for part in parts]
    missed = [tuple(part.missed()) for part in parts]
    label = _name(session) if agent is None else agent.label
    beside = zip(parts, explained, missed, strict=True)
    evidence = tuple(part.evidence(label, made, passed) for part, made, passed in beside)
    ruled = [(part.stretch, part.rule) for part in parts]
    counts = {item.place: item.decision_tokens for made in explained for item in made}
    return Explanation(
        stretches=stretches,
        rules=tuple(part.rule for part in parts if part.rule is not None),
        compactions=tuple(chain.from_iterable(explained)),
        missed=tuple(chain.from_iterable(missed)),
        inference=tuple(item for part in parts for item in part.intervals() if _says_something(item)),
        auto=sum(item.auto for item in evidence),
        agrees=sum(item.agrees for item in evidence),
        unknown="" if agent is not None else _name(session),
        compared="" if agent is None else agent.counter(_main(stretches)).words,
        kept=tuple(kept_messages(session, ledger, agent, ruled, counts)),
        evidence=evidence,
    )


def _main(stretches: tuple[Stretch, ...]) -> Stretch:
    """The stretch with most calls."""
    return max(stretches, key=lambda stretch: stretch.stop - stretch.start)


def _name(session: Session) -> str:
    if not session.agent or session.agent.casefold() == session.format:
        return session.agent or session.format or "an unknown agent"
    return f"{session.agent} ({session.format})"


def _says_something(interval: Interval) -> bool:
    return interval.above is not None or interval.at_most is not None
