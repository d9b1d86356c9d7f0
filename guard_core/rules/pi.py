"""pi: above the window less `reserveTokens`, looked at when a turn has ended and never within one.

Measured by running 0.73.1 and 0.74.2. The count is written into the recording (`tokensBefore`).
"""

from __future__ import annotations

from collections.abc import Iterable

from guard_core.policies.pi import RESERVE
from guard_core.rules.base import (
    NO_WINDOW,
    RESERVES,
    Agent,
    Hypothesis,
    Keeps,
    Moment,
    OwnRule,
    Shape,
    Stretch,
    Typed,
    chosen,
    whole,
    window_setting,
    windows_of,
)
from guard_core.rules.counters import LAST_TOTAL, TOTAL


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The rule of a stretch."""
    window = stretch.window
    reserve = chosen("reserve_tokens", whole(typed, "reserve_tokens"), RESERVE, "tokens", "default of reserveTokens")
    size = int(reserve.value or 0)
    return OwnRule(
        agent="pi",
        version=stretch.version,
        policy="pi",
        profile="current",
        settings=(window_setting(window), reserve),
        counter=TOTAL,
        relation=">",
        threshold=window.value - size if window else None,
        formula=f"{window.value:,} − {size:,} (reserve)" if window else f"window − {size:,} (reserve)",
        checks=Moment.TURN_END,
        reason="" if window else NO_WINDOW,
    )


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Other windows and reserves."""
    reserve = whole(typed, "reserve_tokens") or RESERVE
    for window, other in windows_of(stretch):
        for size in dict.fromkeys((reserve, *RESERVES)):
            yield Hypothesis(f"{window:,} − {size:,} (reserve)", window - size, other + (size != reserve))


# keepRecentTokens of pi, by its own estimate (characters / 4), which walks whole messages back from the newest
KEEPS = Keeps("the summary and the newest messages, back to where they reach 20,000 tokens", Shape.TAIL)

AGENT = Agent(
    format="pi",
    label="pi",
    rule=rule,
    variants=variants,
    counter=lambda _: LAST_TOTAL,
    records_count=True,
    keeps=lambda _, __: KEEPS,
    names={"reserve_tokens": "reserveTokens, in tokens"},
)
