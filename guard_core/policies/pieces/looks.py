"""Looks: at which of its points a policy looks at the steps of a session, and what is in the log there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Point
from guard_core.policies.pieces.message_columns import Bools
from guard_core.policies.pieces.messages import USER, roles_of

POINTS = tuple(Point)


class PolicyLooks(NamedTuple):
    """One entry per step. `point` is an index into POINTS, -1 where the policy does not look; `stop` is the number of
    events in the log at that point. `begins`: does the step begin a turn; `turn_end` are then the events before the
    user's message."""

    point: Ints
    stop: Ints
    begins: Bools
    turn_end: Ints

    @property
    def looks(self) -> Bools:
        return self.point >= 0

    def within(self, rows: slice) -> PolicyLooks:
        """Those of some of the steps."""
        return PolicyLooks(self.point[rows], self.stop[rows], self.begins[rows], self.turn_end[rows])


def looks_in(points: tuple[Point, ...], ledger: Ledger) -> PolicyLooks:
    """Where a policy with these points looks before each step of a log, once for a ledger: it depends on nothing
    else."""
    known = _known(points, ledger)
    if known is None:
        known = ledger.derived["looks", points] = looks_at(points, ledger, np.arange(ledger.step_count))
    return known


def looks_of(points: tuple[Point, ...], ledger: Ledger, step: int) -> PolicyLooks:
    """Where it looks before one step. A live guard asks of its newest step alone, for which the others are not looked
    at."""
    known = _known(points, ledger)
    return looks_at(points, ledger, np.array([step])) if known is None else known.within(slice(step, step + 1))


def _known(points: tuple[Point, ...], ledger: Ledger) -> PolicyLooks | None:
    """What `looks_in` has remembered."""
    known: PolicyLooks | None = ledger.derived.get(("looks", points))
    return known


def looks_at(points: tuple[Point, ...], ledger: Ledger, rows: Ints) -> PolicyLooks:
    """Where a policy with these points looks before some steps. Of several that apply to one step, the last counts.

    A turn ends and the next begins where the user's message is about to enter the log, so that END_OF_TURN and
    BEFORE_TURN see the same events; the first turn has no end before it.
    """
    steps = ledger.steps
    at, user = steps["at"][rows], steps["user_event"][rows]
    before = np.maximum(rows - 1, 0)
    first = rows == 0
    begins = first | (steps["turn"][rows] != steps["turn"][before])
    answered = steps["response"][before] + 1
    without_user = np.where((user >= 0) & (user < at), user, at)
    applies = {
        Point.AFTER_CALL: (~first & (answered > 0) & (answered <= at), answered),
        Point.AFTER_RESULTS: (~begins, at),
        Point.END_OF_TURN: (begins & ~first, without_user),
        Point.BEFORE_TURN: (begins, without_user),
        Point.BEFORE_CALL: (np.ones(len(rows), dtype=np.bool_), at),
    }
    point, stop = np.full(len(rows), -1), np.where(begins, without_user, at)
    for name in points:
        if name in applies:
            where, events = applies[name]
            point, stop = np.where(where, POINTS.index(name), point), np.where(where, events, stop)
    return PolicyLooks(point, stop, begins, np.where(begins, without_user, at))


def turn_ends(ledger: Ledger) -> Ints:
    """For every event of the log the end of the turn before it: where it is one of consecutive messages of the user,
    the first of them."""
    if "turn ends" not in ledger.derived:
        users = roles_of(ledger) == USER
        follows = np.zeros(len(users), dtype=np.bool_)
        follows[1:] = users[1:] & users[:-1]
        places = np.where(follows, 0, np.arange(len(users)))
        ledger.derived["turn ends"] = np.append(np.maximum.accumulate(places), len(users)).astype(np.int64)
    ends: Ints = ledger.derived["turn ends"]
    return ends


def ends_before(ledger: Ledger, rows: Ints, at: Ints) -> Ints:
    """Where the turn ended that was over before some steps over `at` events; -1: none was, the turn continues."""
    turns, user = ledger.steps["turn"], ledger.steps["user_event"][rows]
    begins = (rows > 0) & (turns[np.maximum(rows - 1, 0)] != turns[rows]) & (user >= 0) & (user < at)
    return np.where(begins, turn_ends(ledger)[user], -1)
