"""Kimi CLI: 85 % of the window, but at most what leaves 50,000 tokens of it free.

Measured by running 1.40.0 (212,144 of 262,144) and 1.52.0 (a window of 50,000 or less is compacted before every call).
Recordings have the protocol of the wire instead of a version: 1.8 came with 1.28, which counts what waits, too; 1.4
with 1.20, by when there was the share (from 1.17 on); up to then the reserve alone, as src/kimi_cli/soul of each shows.
0.77 names no protocol yet.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from guard_core.agent_versions import numbers
from guard_core.costs import HAS_RESULT, STARTS_TURN
from guard_core.ledger import Ints, Ledger
from guard_core.policies.kimi_cli import CHARS_PER_TOKEN, KEPT, RESERVED, SHARE_OF_WINDOW, text_chars
from guard_core.policies.pieces.estimates import at_ends
from guard_core.rules.base import NOTHING_LEFT, Agent, Hypothesis, OwnRule, Stretch
from guard_core.rules.counters import LAST_TOTAL, TOTAL_PENDING, Checks, RuleCounter
from guard_core.rules.settings import WINDOW, Typed, chosen, fraction, whole, window_setting
from guard_core.rules.thresholds import RESERVES, round_limits, windows_of
from guard_core.sessions import Session

LEAST_RATIO, MOST_RATIO = 0.5, 0.99  # what src/kimi_cli/config.py allows
PENDING_FROM, RATIO_FROM = (1, 8), (1, 3)  # protocols of the wire
WINDOWS = (131_072, 256_000, 262_144, 1_048_576)  # tokens, of models of Moonshot AI and others
RATIOS = tuple(percent / 100 for percent in range(50, 100))


def appended_texts(ledger: Ledger, form: str = "") -> Ints:
    """floor(characters / 4) of the texts of what it appends at once: the results of one answer, or what the
    user said. Pictures count nothing, and what the software says by itself comes behind the check."""
    flags, chars = ledger.events["flags"], text_chars(ledger)
    results = (flags & HAS_RESULT) > 0
    typed = np.where((flags & STARTS_TURN) > 0, chars // CHARS_PER_TOKEN, 0)
    return np.asarray(typed + at_ends(np.where(results, chars, 0), results, lambda total: total // CHARS_PER_TOKEN))


WAITING = RuleCounter(
    TOTAL_PENDING,
    "prompt and output tokens of the last answer, and text characters / 4 of what was appended since",
    appended_texts,
)


def profile_of(version: str) -> str:
    """The group of versions with the same rule, by the protocol of the wire; the newest where that is not known."""
    protocol = numbers(version.removeprefix("wire "))
    if not protocol or protocol >= PENDING_FROM:
        return "1.28"
    return "1.17" if protocol >= RATIO_FROM else "before-1.17"


def counter(stretch: Stretch) -> RuleCounter:
    """The count that the version compares."""
    return WAITING if profile_of(stretch.version) == "1.28" else LAST_TOTAL


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The lower of a share of the window and the window less a reserve; before 1.17 the reserve alone."""
    window, profile = stretch.window, profile_of(stretch.version)
    reserved = chosen("reserved_context_size", whole(typed, "reserved_context_size", 0), RESERVED, "tokens", "default")
    typed_ratio = fraction(typed, "compaction_trigger_ratio", LEAST_RATIO, MOST_RATIO)
    share = chosen("compaction_trigger_ratio", typed_ratio, SHARE_OF_WINDOW, "of the window", "default")
    reserve = int(reserved.value or 0)
    ratio = None if profile == "before-1.17" else share.value
    return OwnRule(
        policy="kimi-cli",
        profile=profile,
        settings=(window_setting(window), reserved, *(() if ratio is None else (share,))),
        counter=counter(stretch).name,
        threshold=threshold_of(window.value, reserve, ratio) if window else None,
        formula=_formula(window.value, reserve, ratio) if window else f"window − {reserve:,} (reserve)",
    )


def threshold_of(window: int, reserve: int, ratio: float | None) -> int:
    """The smallest whole count at which one of the two conditions holds; 0 where every count is enough."""
    left = max(0, window - reserve)
    return left if ratio is None else min(left, math.ceil(window * ratio))


def _formula(window: int, reserve: int, ratio: float | None) -> str:
    if ratio is not None and threshold_of(window, reserve, ratio) < window - reserve:
        return f"{ratio * 100:g} % of {window:,}"
    left = f"{window:,} − {reserve:,} (reserve)"
    return left if window > reserve else f"{NOTHING_LEFT}{left}, 0)"


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Other windows, reserves and shares."""
    usual = int(rule(stretch, typed).settings[1].value or RESERVED)
    for window, other in windows_of(stretch, WINDOWS):
        round_sizes = round_limits(window // 2) if other < 2 else ()
        for reserve in dict.fromkeys((usual, RESERVED, *RESERVES, *round_sizes)):
            changes = other + (reserve != usual)
            yield Hypothesis(_formula(window, reserve, None), threshold_of(window, reserve, None), changes)
        for ratio in dict.fromkeys((SHARE_OF_WINDOW, *RATIOS)):
            yield Hypothesis(
                f"{ratio * 100:g} % of {window:,}", math.ceil(window * ratio), other + (ratio != SHARE_OF_WINDOW)
            )


def held(_: Session, ledger: Ledger, checks: Checks, __: Typed) -> Ints:
    """Checks, before any compaction, at which all messages would be kept: then nothing is summarised."""
    own = np.asarray((ledger.events["flags"] & HAS_RESULT) == 0, dtype=np.int64)
    messages = np.append(0, np.cumsum(own))[checks.stop]
    compacted = np.cumsum(checks.place >= 0) > 0
    return np.asarray((messages <= KEPT) & ~compacted, dtype=np.int64)


AGENT = Agent(
    format="kimi-cli",
    label="Kimi CLI",
    rule=rule,
    plays={"kimi-cli": {"compaction_trigger_ratio": "share", "reserved_context_size": "reserved"}},
    variants=variants,
    counter=counter,
    names={
        "reserved_context_size": "loop_control.reserved_context_size, in tokens",
        "compaction_trigger_ratio": "loop_control.compaction_trigger_ratio, a fraction of the window (0.5 to 0.99)",
    },
    aliases={"max_context_size": WINDOW},
    held=held,
    held_reason="the newest two messages are kept, and there are no others",
)
