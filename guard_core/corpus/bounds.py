"""The bounds of a threshold that sessions leave together: joined in any order they are the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from guard_core.rules.evidence import Cause, StretchEvidence
from guard_core.rules.inference import bounds_of

REPEATED = 2  # compactions of one session, each above every count that passed: they were no person's


class Place(NamedTuple):
    """A check of a session: its count in tokens, the session's key, the call that comes next (from 0).

    `sure`: False for a compaction that a person may have asked for.
    """

    tokens: int
    session: str
    step: int
    sure: bool = True


class SessionStretch(NamedTuple):
    """The evidence of one stretch of the session with this key. `started`: seconds since the epoch, None: not known."""

    session: str
    title: str
    started: float | None
    evidence: StretchEvidence


class Bounds(NamedTuple):
    """What is known of a threshold: the largest count that passed, the least that surely fired, and the others.

    `unsure` are compactions that a person may have asked for, in order.
    """

    passed: Place | None = None
    fired: Place | None = None
    unsure: tuple[Place, ...] = ()

    def join(self, other: Bounds) -> Bounds:
        """The bounds that both leave."""
        return joined((self, other))

    @property
    def limits(self) -> tuple[Place | None, Place | None, list[Place]]:
        """The threshold is above the first and at most the second; the third are left out, as in `rules.inference`."""
        fired = [*((self.fired,) if self.fired else ()), *self.unsure]
        return bounds_of((self.passed,) if self.passed else (), fired)

    @property
    def contradiction(self) -> tuple[Place, Place] | None:
        """A check that passed and one that fired at no larger count: no threshold explains both."""
        low, high, _ = self.limits
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


def session_bounds(item: SessionStretch) -> Bounds:
    """The bounds that one stretch of a session leaves.

    Where the file does not say who asked, compactions count as automatic if there are several and no count above one of
    them passed; a single one may be a person's.
    """
    evidence = item.evidence
    passed = evidence.passed and Place(evidence.passed.tokens, item.session, evidence.passed.step)
    fired = [
        Place(check.tokens or 0, item.session, check.step, check.cause is Cause.AUTOMATIC) for check in evidence.fired()
    ]
    _, _, left_out = bounds_of((passed,) if passed else (), fired)
    doubtful = set(left_out)
    likely = [place for place in fired if not place.sure and place not in doubtful]
    if len(likely) >= REPEATED:
        fired = [place if place in doubtful else place._replace(sure=True) for place in fired]
    return Bounds(
        passed=passed,
        fired=min((place for place in fired if place.sure), default=None),
        unsure=tuple(sorted(place for place in fired if not place.sure)),
    )
