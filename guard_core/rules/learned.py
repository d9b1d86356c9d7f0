"""Stretches in which an agent goes by a context window that it has learned, not by that of its model."""

from __future__ import annotations

from collections.abc import Iterator

from guard_core.rules.base import Stretch
from guard_core.rules.check_counts import CheckCounts
from guard_core.rules.settings import Typed
from guard_core.sessions import Sourced


def with_learned(counted: CheckCounts, stretches: tuple[Stretch, ...], typed: Typed) -> tuple[Stretch, ...]:
    """The stretches of a session, parted where its agent learned a window and where it had forgotten it again."""
    agent = counted.agent
    if agent is None or agent.learns is None:
        return stretches
    for step, window in agent.learns(counted.session, counted.ledger):
        stretches = tuple(part for stretch in stretches for part in _parted(counted, stretch, step, window, typed))
    return stretches


def _parted(counted: CheckCounts, stretch: Stretch, step: int, window: Sourced, typed: Typed) -> Iterator[Stretch]:
    """A stretch, of which the part from a step on has another window if that is smaller.

    An agent that passes a check at which it would compact by that window has forgotten it: its process had ended.
    """
    if stretch.window is None or window.value >= stretch.window.value or not stretch.start <= step < stretch.stop:
        yield stretch
        return
    learned = stretch._replace(start=step, window=window, largest=0, is_window_doubted=False)
    stop = _forgotten_at(counted, learned, typed)
    if step > stretch.start:
        yield stretch._replace(stop=step)
    if stop > step:
        yield learned._replace(stop=stop)
    if stop < stretch.stop:
        yield stretch._replace(start=stop)


def _forgotten_at(counted: CheckCounts, stretch: Stretch, typed: Typed) -> int:
    """The first step of a stretch before which its agent passed a check at which its rule fires; its end: none."""
    assert counted.agent is not None
    rule, checks, counts = counted.agent.ruled(stretch, typed), counted.checks, counted.of(stretch)
    for row in range(len(checks.step)):
        step = int(checks.step[row])
        is_inside = stretch.start <= step < stretch.stop and checks.place[row] < 0 and not counted.held[row]
        if is_inside and rule.fires(int(counts[row])):
            return step
    return stretch.stop
