"""Copilot CLI: a summary is begun beside the conversation at 80 % of the window; at 95 % the next call waits for it.

Source: defaults of `infiniteSessions` in https://github.com/github/copilot-sdk, which drives the same program, and runs
of 1.0.102, which began summaries at 32,712 to 33,722 tokens of a window of 40,000. The start of a compaction holds the
count (`currentTokens`; where it does not, `preCompactionTokens`); of the checks that passed only the tokens of the last
answer are known, where the file has them. While a summary is made none is begun; a process that has just resumed a
session does not know its last count; and where the oldest messages were cut off, as versions without summaries do, no
summary was.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from guard_core.ledger import Ints, Ledger
from guard_core.recordings.formats.copilot.context import GIVEN_UP, RESUMED
from guard_core.rules.base import Agent, Hypothesis, OwnRule, Stretch
from guard_core.rules.counters import TOTAL_PENDING, Checks, RuleCounter
from guard_core.rules.settings import AUTO, SWITCH_WORDS, Typed, chosen, percentage, window_setting
from guard_core.rules.thresholds import FRACTIONS, share_of, windows_of
from guard_core.sessions import Provenance, Session, Sourced
from guard_core.views import Span

SHARE = 80.0  # per cent of the window
TRIM = "trim"  # kind of a recorded compaction that only cuts off the oldest messages
COUNTER = RuleCounter(
    TOTAL_PENDING,
    "currentTokens at the start of a compaction, preCompactionTokens where it has none; at checks that passed prompt "
    "and output tokens of the last answer, at least",
)


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The share of the window at which a summary is begun; the one at which calls wait for it is not compared."""
    window = _window(stretch)
    share = chosen("background_threshold", percentage(typed, "background_threshold"), SHARE, "%", "default")
    part = float(share.value or SHARE) / 100
    formula, threshold = share_of(part, window.value) if window else (f"{part * 100:g} % of the window", None)
    return OwnRule(
        policy="copilot-cli",
        settings=(window_setting(window), share),
        counter=TOTAL_PENDING,
        threshold=threshold,
        formula=formula,
    )


def _window(stretch: Stretch) -> Sourced | None:
    """The window of a stretch. A looked-up one is an assumption: the program compares with the most prompt tokens that
    the service takes, and that may be the window without the room for an answer."""
    window = stretch.window
    if window is None or window.source is not Provenance.MODEL_TABLE:
        return window
    return Sourced(window.value, Provenance.ASSUMED, window.note)


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Other shares and windows."""
    for window, other in windows_of(stretch):
        for share in FRACTIONS:
            changes = other + (share * 100 != SHARE)
            yield Hypothesis(*share_of(share, window), changes)


BEING_MADE, JUST_RESUMED, CUT_OFF = 1, 2, 4  # marks of checks


def held(session: Session, ledger: Ledger, checks: Checks, _: Typed) -> Ints:
    """Marks of checks while a summary is made, also one that is cancelled, in the first check of a resumed session, and
    where messages were only cut off."""
    unused = np.sort([call.at for call in session.side_calls if call.prompt_tokens is None]).astype(np.int64)
    ends = np.array([item.value for item in session.settings if item.name == GIVEN_UP], dtype=np.int64)
    given_up = (checks.place < 0) & _is_between(checks.stop, unused, ends)
    marks = (np.isin(checks.stop, unused) | given_up) * BEING_MADE
    called = np.append(ledger.steps["at"], 0)[checks.last]
    for setting in session.settings:
        if setting.name == RESUMED:
            marks |= ((checks.last >= 0) & (called < setting.value) & (checks.stop >= setting.value)) * JUST_RESUMED
    for place, item in enumerate(session.compactions):
        tail = item.base[-1] if item.base else None
        if item.kind == TRIM:
            marks |= (checks.place == place) * CUT_OFF
        elif isinstance(tail, Span):
            marks |= ((checks.place < 0) & (checks.stop >= tail.start) & (checks.stop <= item.at)) * BEING_MADE
    return np.asarray(marks)


def _is_between(places: Ints, starts: Ints, ends: Ints) -> NDArray[np.bool_]:
    """Is each place in a range that ends at one of `ends`, and begins at the last of `starts` up to there; both limits
    belong to it. `starts` in order."""
    before = np.searchsorted(starts, ends, side="right") - 1
    ends, before = ends[before >= 0], before[before >= 0]
    begun = np.searchsorted(np.sort(starts[before]), places, side="right")
    return np.asarray(begun > np.searchsorted(np.sort(ends), places, side="left"))


AGENT = Agent(
    format="copilot-cli",
    label="Copilot CLI",
    rule=rule,
    variants=variants,
    counter=lambda _: COUNTER,
    records_count=True,
    uses_stated_window=True,
    held=held,
    held_reason={
        BEING_MADE: "a summary was being made",
        JUST_RESUMED: "the session was just resumed, and a new process does not know its last count",
        CUT_OFF: "the oldest messages were only cut off, as versions without summaries do",
    },
    names={
        "background_threshold": "per cent of the window at which a summary is begun; above 95 % the call waits for it",
        AUTO: SWITCH_WORDS,
    },
    aliases={"backgroundCompactionThreshold": "background_threshold", "infiniteSessions.enabled": AUTO},
)
