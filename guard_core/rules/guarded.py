"""An agent that a guard of this package recorded: its policy, by the numbers that the guard compared at each call.

The recording has them (`guard_core.guarding.recorder`), so that nothing is computed again here: a live guard knows less
of a request than a replay does, and the two may differ.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from guard_core.errors import UnknownName
from guard_core.ledger import Ints, Ledger
from guard_core.policies import policy_kind
from guard_core.rules.base import Agent, Hypothesis, Moment, OwnRule, Stretch
from guard_core.rules.counters import COMPARED, UNKNOWN, Checks, RuleCounter
from guard_core.rules.settings import RuleNumber, Typed, window_setting
from guard_core.sessions import Provenance, Session, Sourced

# Settings of a recording, in tokens: the guard's threshold, and the window that it was given.
THRESHOLD, GUARDED_WINDOW = "threshold", "guarded_window"
COUNTER = RuleCounter(COMPARED, "what the guard compared, as it recorded it")


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The threshold that the guard recorded; what it keeps free follows from that."""
    stated = stretch.setting(THRESHOLD)
    threshold = None if stated is None else int(stated.value)
    given = stretch.setting(GUARDED_WINDOW)
    window = Sourced(int(given.value), Provenance.RECORDER, "as the guard was given it") if given else stretch.window
    settings = [window_setting(window)] if window else []
    formula = "a limit of its own" if threshold is None else f"{threshold:,} (recorded)"
    if threshold is not None and window is not None and threshold < window.value:
        free, note = window.value - threshold, "the window less the threshold that the guard recorded"
        settings.append(RuleNumber("kept_free", free, "tokens", Provenance.RECORDER, note))
        formula = f"{window.value:,} − {free:,} (kept free)"
    title = _title(stretch.guarded_by)
    return OwnRule(
        agent=title,
        policy=stretch.guarded_by,
        settings=tuple(settings),
        counter=COMPARED,
        threshold=threshold,
        formula=formula,
        checks=Moment.GUARD,
        reason="" if threshold is not None else "the guard recorded no threshold in tokens",
    )


def _title(name: str) -> str:
    """A policy for people; one that this version does not have by its name."""
    try:
        return policy_kind(name).title
    except UnknownName:
        return name


def variants(_: Stretch, __: Typed) -> Iterable[Hypothesis]:
    """None: the threshold is in the recording."""
    return ()


def series(session: Session, _: Ledger, checks: Checks, __: Stretch) -> Ints:
    """What was compared before each call, in tokens, UNKNOWN behind the last one and where nothing was."""
    compared = [UNKNOWN if call.compared_tokens is None else call.compared_tokens for call in session.calls]
    return np.asarray([*compared, UNKNOWN], dtype=np.int64)[checks.step]


def beside_the_count(session: Session, ledger: Ledger, checks: Checks, _: Typed) -> Ints:
    """1 for each check at which the guard compacted below its threshold, or did not at it: most policies look at more
    than one count."""
    stretch = Stretch(0, len(session.calls), "", "", None, settings=session.settings)
    stated = stretch.setting(THRESHOLD)
    if stated is None:
        return checks.step * 0
    counts = series(session, ledger, checks, stretch)
    return np.asarray((counts != UNKNOWN) & ((counts >= stated.value) != (checks.place >= 0)), dtype=np.int64)


AGENT = Agent(
    format="compaction-inspector",
    label="Guard",
    rule=rule,
    variants=variants,
    counter=lambda _: COUNTER,
    names={},
    held=beside_the_count,
    held_reason="the guard does not decide by this count alone",
    uncounted="the guard compared no count of tokens here",
    wrote=lambda session: bool(session.guarded_by),
    series=series,
)
