"""pi: above the window less `reserveTokens`, looked at when a turn has ended and never within one.

Measured by running 0.73.1 and 0.74.2. The count is written into the recording (`tokensBefore`).
"""

from __future__ import annotations

from collections.abc import Iterable

from guard_core.policies.pi import RESERVE
from guard_core.rules.base import (
    AUTO,
    NO_WINDOW,
    RESERVES,
    SWITCH_WORDS,
    WINDOW,
    WINDOWS,
    Agent,
    Hypothesis,
    Keeps,
    Moment,
    OwnRule,
    RuleSetting,
    Shape,
    Stretch,
    Typed,
    chosen,
    round_limits,
    whole,
    window_setting,
    windows_of,
)
from guard_core.rules.counters import LAST_TOTAL, TOTAL
from guard_core.sessions import Provenance


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The rule of a stretch."""
    window = stretch.window
    reserve = chosen("reserve_tokens", whole(typed, "reserve_tokens"), RESERVE, "tokens", "default of reserveTokens")
    size = int(reserve.value or 0)
    settings = [window_setting(window), reserve]
    if (recent := whole(typed, "keep_recent_tokens")) is not None:
        settings.append(RuleSetting("keep_recent_tokens", recent, "tokens", Provenance.USER, "typed in"))
    return OwnRule(
        agent="pi",
        version=stretch.version,
        policy="pi",
        profile="current",
        settings=tuple(settings),
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
        round_sizes = round_limits(window // 2) if other < 2 else ()
        for size in dict.fromkeys((reserve, RESERVE, *RESERVES, *round_sizes)):
            yield Hypothesis(f"{window:,} − {size:,} (reserve)", window - size, other + (size != reserve))


def fitted(stretch: Stretch, threshold: int) -> str:
    """A reserve that gives a threshold."""
    window = WINDOWS[0] if stretch.window is None else stretch.window.value
    return f"{window:,} − {window - threshold:,} (reserve)"


KEEP_RECENT = 20_000  # tokens by pi's own estimate, characters / 4: keepRecentTokens


def keeps(_: Stretch, rule: OwnRule) -> Keeps:
    """Whole messages, back from the newest."""
    typed = next((item.value for item in rule.settings if item.name == "keep_recent_tokens"), None)
    words = f"the summary and the newest messages, back to where they reach {int(typed or KEEP_RECENT):,} tokens"
    return Keeps(words, Shape.TAIL)


AGENT = Agent(
    format="pi",
    label="pi",
    rule=rule,
    variants=variants,
    counter=lambda _: LAST_TOTAL,
    records_count=True,
    keeps=keeps,
    names={
        "reserve_tokens": "compaction.reserveTokens, in tokens",
        "keep_recent_tokens": "compaction.keepRecentTokens, in tokens: what is kept, not when",
        AUTO: SWITCH_WORDS,
    },
    fitted=fitted,
    aliases={"compaction.enabled": AUTO, "contextWindow": WINDOW},
)
