"""What it means that a replay avoids a finding: a goal, decided by the same functions that find it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from guard_core.findings import repetition, requests, sizes
from guard_core.findings.claims import INFO, Finding
from guard_core.findings.facts import Case
from guard_core.findings.sizes import NEAR_MISS_SHARE
from guard_core.findings.words import percent
from guard_core.ledger import Ints
from guard_core.outcomes.bill import modelled_summaries
from guard_core.outcomes.losses import Verbatim, reach
from guard_core.outcomes.sent import SentRequests

QUOTED, QUOTED_OF_SEVERAL = 7, 4  # words of a request, or of a rule, so that a sentence has at most 30
FITS, HAS_ROOM, LASTS, QUIET, KEEPS = "fits", "has_room", "lasts", "quiet", "keeps"
KEEPS_RULES, KEEPS_EARLIER = "keeps_rules", "keeps_earlier_rules"
VERBATIM = (KEEPS, KEEPS_RULES, KEEPS_EARLIER)  # goals that words of the user reach only verbatim

# The goal for each kind of findings that a setting may avoid.
GOALS = {
    "overflow": FITS,
    "refused_again": FITS,
    "late": FITS,
    "counted_over": FITS,
    "near_miss": HAS_ROOM,
    "request_lost": KEEPS,
    "part_lost": KEEPS,
    "rule_lost": KEEPS_RULES,
    "earlier_rule_lost": KEEPS_EARLIER,
    "loop": LASTS,
    "thrash": LASTS,
    "summary_not_kept": LASTS,
    "needless": QUIET,
}


NOTHING_TO_AVOID = "No overflow, near miss, loop, needless compaction, lost rule or lost request to avoid."
NOT_SEARCHED_FOR = (
    "No setting is searched for: the findings are of other kinds than calls over the window, near misses, loops, "
    "needless compactions, lost rules and lost requests. Requests that the provider refused are no calls, and are not "
    "replayed."
)


class Goal(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a replay has to reach. `message` is the index of the user's message that has to stay, `quote` its first
    words where they are known, or the rule of it that has to; -1 and "" for other goals. `rules` counts the rules;
    `of_agent`: an agent wrote the message in the user's name."""

    kind: str
    message: int = -1
    quote: str = ""
    rules: int = 0
    of_agent: bool = False


def goal_of(finding: Finding) -> Goal | None:
    """The goal that would have avoided a finding; None for a kind that no setting avoids."""
    kind = GOALS.get(finding.kind)
    if kind not in VERBATIM:
        return None if kind is None else Goal(kind)
    numbers: dict[str, Any] = finding.numbers
    quote = str(numbers.get("quote" if kind == KEEPS else "rule", ""))
    quote = quote if numbers.get("is_whole", True) else f"{quote} …"
    of_agent = bool(numbers.get("of_agent"))
    return Goal(kind, int(numbers["message"]), quote, 0 if kind == KEEPS else finding.count, of_agent)


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
    return goal.kind not in VERBATIM or _stay(case, _kept(goal, case), goal.kind != KEEPS_EARLIER)


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


def _kept(goal: Goal, case: Case) -> list[tuple[int, Sequence[int]]]:
    """The messages whose words have to stay, each with the events of the log that quote these words."""
    if goal.kind == KEEPS:
        return [(goal.message, [goal.message])]
    if goal.kind == KEEPS_EARLIER:
        return [(item.message, item.rule.events) for item in requests.earlier_losses(case.facts)]
    words = (words for words in case.facts.words or () if words.message == goal.message)
    return [
        (item.message, item.rule.events)
        for some in words
        for item in requests.losses_in_turn(case.facts, some, some.rules)
    ]


def _stay(case: Case, kept: Sequence[tuple[int, Sequence[int]]], in_turn: bool) -> bool:
    """Does every request have what some messages say, as it was written: of each message's turn, or of all calls after
    it. A message that the policy repeats is in the request, too."""
    ledger, sent = case.facts.ledger, SentRequests(case)
    tasks, ats = case.facts.tasks, ledger.steps["at"]
    texts = Verbatim(ledger, np.unique([event for _, events in kept for event in events]))
    looks: dict[int, list[Ints]] = {}  # by step: a request in between only reaches further
    for message, events in kept:
        wanted = tasks == message if in_turn else ats > message
        if not wanted.any():
            return False
        first = int(wanted.argmax())
        for step in (first, *sent.changed[(sent.changed > first) & wanted[sent.changed]].tolist()):
            if sent.repeated[step] not in (message, *events):
                looks.setdefault(step, []).append(np.array(events, dtype=np.int64))
    for step, some in looks.items():
        ranges = texts.ranges(sent.view(step)[0])
        if not all(reach(ranges, quoting) for quoting in some):
            return False
    return bool(kept)


def _few(quote: str, most: int = QUOTED) -> str:
    """The first words of a quote; the finding beside it has more of them."""
    few = quote.split()
    return quote if len(few) <= most else f"{' '.join(few[:most])} …"


def words(goal: Goal, window: int) -> str:
    """What a replay that reaches a goal has, as a clause."""
    if goal.kind == KEEPS:
        whose = "the task" if goal.of_agent else "your request"
        what = f'{whose} "{_few(goal.quote)}"' if goal.quote else f"the request (message {goal.message + 1:,})"
        return f"{what} is in every request of its turn"
    if goal.kind in VERBATIM:
        quote, are = _few(goal.quote), "is"
        if goal.rules > 1:
            quote, are = _few(goal.quote, QUOTED_OF_SEVERAL), f"and {goal.rules - 1:,} more are"
        where = "every request of its turn" if goal.kind == KEEPS_RULES else "every later request"
        whose = "the task's rule" if goal.of_agent else "your rule"
        return f'{whose} "{quote}" {are} in {where}'
    return {
        FITS: f"no request is over the window of {window:,}",
        HAS_ROOM: f"no request fills {percent(NEAR_MISS_SHARE)} of the window",
        LASTS: "every compaction lasts, and none follow in quick succession",
        QUIET: "nothing is compacted",
    }[goal.kind]
