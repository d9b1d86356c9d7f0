"""Roo Code: above 90 % of the window less the answer's reserve, or from a share of the window on.

Source: specification of policies, section 7 (revisions 0cc04f43 and 04fc2a02); not measured by running. The count is
the tokens of the last request and its answer and what Roo counts of the message that comes next; a compaction on its
screen holds it (`tokens_before`). Of the checks that passed only the first part is known. Forks of Roo Code write the
same file; it does not say which of them did.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from guard_core.policies.roo import FRESH, RESERVED, allowed_of
from guard_core.rules.base import Agent, Hypothesis, OwnRule, Stretch
from guard_core.rules.counters import TOTAL_PENDING, RuleCounter
from guard_core.rules.settings import WINDOW, Typed, chosen, percentage, whole, window_setting
from guard_core.rules.thresholds import RESERVES, windows_of
from guard_core.sessions import Session

NAME = "Roo Code"
DEFAULT_SHARE = 100.0  # per cent of the window
SHARES = range(5, 100, 5)  # per cent that people set, for hypotheses; its least is 5
COUNTER = RuleCounter(
    TOTAL_PENDING,
    "tokens_before of a compaction; at checks that passed prompt and output tokens of the last answer, at least",
)


def _reserve_limit(window: int, reserved: int) -> tuple[str, int]:
    """The most tokens that pass, as an expression and as a number."""
    formula = f"{window:,} − {window - allowed_of(window, 0):,} (kept free) − {reserved:,} (reserved)"
    allowed = allowed_of(window, reserved)
    return formula if allowed else f"max(0, {formula})", allowed


def _share_limit(window: int, share: float) -> tuple[str, int]:
    """The least tokens that do not pass where a share in per cent was set."""
    return f"{share:g} % of {window:,}", math.ceil(share * window / 100)


def _related(limit: tuple[str, int], shift: int) -> tuple[str, int]:
    """A limit as the rule's relation compares it: one more or one less where it is a limit of the other relation."""
    formula, tokens = limit
    return (f"{formula} {'+' if shift > 0 else '−'} 1" if shift else formula), tokens + shift


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """Above 90 % of the window less the reserve, or from a share of the window on where that is lower."""
    window = stretch.window
    reserved = chosen("reserved", whole(typed, "reserved"), RESERVED, "tokens", "where the model names no other")
    share = chosen("share", percentage(typed, "share", is_fraction=False), DEFAULT_SHARE, "%", "default")
    formula, threshold, relation = "90 % of the window less what is reserved", None, ">"
    if window is not None:
        formula, threshold = _reserve_limit(window.value, int(reserved.value or 0))
        by_share = _share_limit(window.value, float(share.value or DEFAULT_SHARE))
        if by_share[1] <= threshold:
            (formula, threshold), relation = by_share, ">="
    return OwnRule(
        policy="roo",
        profile=FRESH,
        settings=(window_setting(window), reserved, share),
        counter=TOTAL_PENDING,
        relation=relation,
        threshold=threshold,
        formula=formula,
    )


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Other windows, reserves and shares. What passes is at most a reserve's limit, and less than that of a share."""
    more, less = (0, -1) if rule(stretch, typed).relation == ">" else (1, 0)
    own = whole(typed, "reserved") or RESERVED
    for window, other in windows_of(stretch):
        for reserved in dict.fromkeys((own, *RESERVES)):
            if reserved < window // 2:
                yield Hypothesis(*_related(_reserve_limit(window, reserved), more), other + (reserved != own))
        for share in SHARES:
            yield Hypothesis(*_related(_share_limit(window, share), less), other + 1)


def wrote(session: Session) -> bool:
    """Does a file of Cline's format have what only Roo Code, or a fork of it, writes."""
    return session.agent == NAME


AGENT = Agent(
    format="cline",
    label=NAME,
    rule=rule,
    plays={"roo": {}},
    variants=variants,
    counter=lambda _: COUNTER,
    records_count=True,
    wrote=wrote,
    names={
        "reserved": "tokens for the answer, the model's own maximum where it has one",
        "share": "autoCondenseContextPercent, from 5 to 100",
    },
    aliases={"autoCondenseContextPercent": "share", "maxTokens": "reserved", "contextWindow": WINDOW},
)
