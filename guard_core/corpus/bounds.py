"""The bounds of a threshold that sessions leave together: joined in any order they are the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from guard_core.rules.evidence import Cause, StretchEvidence
from guard_core.rules.inference import bounds_of

REPEATED = 2  # compactions of one session, each above every count that passed: they were not a person's


class CheckPlace(NamedTuple):
    """A check of a session: its count in tokens, the session's key, the call that comes next (from 0).

    `sure`: False for a compaction that a person may have asked for.
    """

    tokens: int
    session: str
    step: int
    sure: bool = True


class RowKey(NamedTuple):
    """What a row is about. `window` in tokens, None: not known. `counter` and `relation` as in guard_core.rules."""

    agent: str
    version: str
    model: str
    window: int | None
    counter: str
    relation: str


@dataclass(frozen=True)
class SessionStretch:
    """The evidence of one stretch of the session with this key. `started`: seconds since the epoch, None: not known."""

    session: str
    title: str
    started: float | None
    evidence: StretchEvidence

    @cached_property
    def key(self) -> RowKey:
        """The row that the stretch belongs to."""
        evidence = self.evidence
        version, model = evidence.stretch.version, evidence.stretch.model
        return RowKey(evidence.agent, version, model, evidence.window, evidence.counter, evidence.relation)

    @cached_property
    def bounds(self) -> Bounds:
        """The bounds of the threshold that the stretch alone leaves."""
        return session_bounds(self.session, self.evidence)


class Bounds(NamedTuple):
    """What is known of a threshold: the largest count that passed, the least that surely fired, and the others.

    `unsure` are compactions that a person may have asked for, in order.
    """

    passed: CheckPlace | None = None
    fired: CheckPlace | None = None
    unsure: tuple[CheckPlace, ...] = ()

    def join(self, other: Bounds) -> Bounds:
        """The bounds that both leave."""
        return joined((self, other))

    @property
    def limits(self) -> tuple[CheckPlace | None, CheckPlace | None, list[CheckPlace]]:
        """The threshold is above the first and at most the second; the third are left out, as in `rules.inference`."""
        if not self.unsure:
            return self.passed, self.fired, []
        fired = [*((self.fired,) if self.fired else ()), *self.unsure]
        return bounds_of((self.passed,) if self.passed else (), fired)

    @property
    def contradiction(self) -> tuple[CheckPlace, CheckPlace] | None:
        """A check that passed and one that fired at no larger count: no threshold explains both. Compactions that a
        person may have asked for contradict nothing."""
        low, high = self.passed, self.fired
        return (low, high) if low and high and low.tokens >= high.tokens else None


def joined(parts: Iterable[Bounds]) -> Bounds:
    """The bounds that all leave together. Of equal counts the first session and step by name bound it."""
    parts = list(parts)
    passed = (part.passed for part in parts if part.passed)
    fired = (part.fired for part in parts if part.fired)
    return Bounds(
        passed=min(passed, key=lambda place: (-place.tokens, place), default=None),
        fired=min(fired, default=None),
        unsure=tuple(sorted(place for part in parts for place in part.unsure)),
    )


def session_bounds(session: str, evidence: StretchEvidence) -> Bounds:
    """The bounds that one stretch of a session leaves.

    Where the file does not say who asked, compactions count as automatic if there are several and no count above one of
    them passed; a single one may be a person's.
    """
    passed = evidence.passed and CheckPlace(evidence.passed.tokens, session, evidence.passed.step)
    checks = evidence.fired()
    sure = [CheckPlace(item.tokens or 0, session, item.step) for item in checks if item.cause is Cause.AUTOMATIC]
    unsure = [
        CheckPlace(item.tokens or 0, session, item.step, False) for item in checks if item.cause is Cause.UNSTATED
    ]
    if unsure:
        _, _, left_out = bounds_of((passed,) if passed else (), [*sure, *unsure])
        doubtful = set(left_out)
        likely = [place for place in unsure if place not in doubtful]
        if len(likely) >= REPEATED:
            sure += [place._replace(sure=True) for place in likely]
            unsure = left_out
    return Bounds(passed=passed, fired=min(sure, default=None), unsure=tuple(sorted(unsure)))
