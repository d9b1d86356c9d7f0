"""What it means that a replay avoids a finding: a goal, decided by the same functions that find it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np

from guard_core.findings import repetition, sizes
from guard_core.findings.claims import INFO, Finding
from guard_core.findings.facts import Case
from guard_core.findings.sizes import NEAR_MISS_SHARE
from guard_core.findings.words import percent
from guard_core.ledger import Ints
from guard_core.outcomes.bill import modelled_summaries
from guard_core.outcomes.losses import Verbatim
from guard_core.outcomes.sent import SentRequests

QUOTED = 7  # words of a request, so that a sentence has at most 30
FITS, HAS_ROOM, LASTS, QUIET, KEEPS = "fits", "has_room", "lasts", "quiet", "keeps"

# The goal for each kind of findings that a setting may avoid.
GOALS = {
    "overflow": FITS,
    "refused_again": FITS,
    "late": FITS,
    "counted_over": FITS,
    "near_miss": HAS_ROOM,
    "request_lost": KEEPS,
    "loop": LASTS,
    "thrash": LASTS,
    "summary_not_kept": LASTS,
    "needless": QUIET,
}


NOTHING_TO_AVOID = "No overflow, near miss, loop, needless compaction or lost request to avoid."
NOT_SEARCHED_FOR = (
    "No setting is searched for: the findings are of other kinds than calls over the window, near misses, loops, "
    "needless compactions and lost requests. Requests that the provider refused are no calls, and are not replayed."
)


class Goal(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a replay has to reach. `message` is the index of the user's message that has to stay, `quote` its first
    words where they are known; -1 and "" for other goals."""

    kind: str
    message: int = -1
    quote: str = ""


def goal_of(finding: Finding) -> Goal | None:
    """The goal that would have avoided a finding; None for a kind that no setting avoids."""
    kind = GOALS.get(finding.kind)
    if kind != KEEPS:
        return None if kind is None else Goal(kind)
    numbers: dict[str, Any] = finding.numbers
    quote = str(numbers.get("quote", ""))
    return Goal(kind, int(numbers["message"]), quote if numbers.get("is_whole", True) else f"{quote} …")


def is_met(goal: Goal, case: Case) -> bool:
    """Does a replay reach a goal, without a loop or a request over the window, that of a summariser included."""
    if len(overflows(case)) or repetition.loops(case) or _asks_too_much(case):
        return False
    if goal.kind == HAS_ROOM:
        return not sizes.near_misses(case)
    if goal.kind == LASTS:
        return not repetition.thrashing(case) and not repetition.not_kept(case)
    if goal.kind == QUIET:
        return not case.fired
    return goal.kind != KEEPS or keeps(case, goal.message)


def _asks_too_much(case: Case) -> bool:
    """Is a summariser given more than the window."""
    asked = modelled_summaries(SentRequests(case), case.trace) if case.trace is not None else []
    return any(prompt // max(calls, 1) > case.windows[step] for step, calls, prompt, _ in asked)


def nothing_words(findings: Iterable[Finding]) -> str:
    """Why nothing is searched for, where no finding has a goal."""
    return NOTHING_TO_AVOID if all(item.severity == INFO for item in findings) else NOT_SEARCHED_FOR


def overflows(case: Case) -> Ints:
    """Steps of a replay with a request over the window, sent or refused."""
    over = np.zeros(len(case.tokens), dtype=np.bool_)
    over[case.over] = True
    steps: Ints = np.flatnonzero(over | (case.column("overflow") > 0))
    return steps


def keeps(case: Case, message: int) -> bool:
    """Does every request of a message's turn have the message as the user wrote it, or repeated by the policy."""
    ledger, sent = case.facts.ledger, SentRequests(case)
    turn = np.flatnonzero(ledger.steps["user_event"] == message)
    if not len(turn):
        return False
    texts = Verbatim(ledger, np.array([message], dtype=np.int64))
    repeated = [(item.step, item.record.turn_end) for item in case.fired if item.record and item.record.in_turn]
    changed = sent.changed[(sent.changed > turn[0]) & (sent.changed <= turn[-1])]
    for step in (int(turn[0]), *changed.tolist()):
        ranges = texts.ranges(sent.view(step)[0])
        is_held = bool(((ranges[:, 0] <= message) & (message < ranges[:, 1])).any())
        if not is_held and not any(start <= step < stop for start, stop in repeated):
            return False
    return True


def _few(quote: str) -> str:
    """The first words of a quote; the finding beside it has more of them."""
    few = quote.split()
    return quote if len(few) <= QUOTED else f"{' '.join(few[:QUOTED])} …"


def words(goal: Goal, window: int) -> str:
    """What a replay that reaches a goal has, as a clause."""
    if goal.kind == KEEPS:
        what = (
            f'your request "{_few(goal.quote)}"' if goal.quote else f"the user's request (message {goal.message + 1:,})"
        )
        return f"{what} is in every request of its turn"
    return {
        FITS: f"no request is over the window of {window:,}",
        HAS_ROOM: f"no request fills {percent(NEAR_MISS_SHARE)} of the window",
        LASTS: "every compaction lasts, and none follow in quick succession",
        QUIET: "nothing is compacted",
    }[goal.kind]
