"""The peak of one side of a session: one number, whoever says it."""

from __future__ import annotations

from guard_core.counts import MODELLED, Peak
from guard_core.findings.facts import Case


def peak_of(case: Case) -> Peak:
    """The request of one side that fills most of its window; the largest one, where the window of that is unknown."""
    largest, filled = case.facts.requests.peak if case.is_recorded else None, case.filled
    step = int(case.tokens.argmax()) if largest is None else largest.step
    if case.windows[step] and filled.max() > filled[step]:
        step = int(filled.argmax())
    return Peak(int(case.tokens[step]), step, MODELLED if case.modelled[step] else "recorded")


def peak_window(case: Case) -> int:
    """The window in tokens that the peak is held against: that of its call's model, 0 where it is not known."""
    return held_against(case, peak_of(case).step)


def held_against(case: Case, step: int) -> int:
    """The window in tokens that the request of a step (from 0) is held against: that of its call's model, 0 where it is
    not known."""
    return case.window_at(step) if case.rests_on_window(step) else int(case.windows[step])
