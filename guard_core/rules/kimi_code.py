"""Kimi Code: 85 % of the window, or the window less 50,000 where that is lower and the reserve smaller than the window.

Measured by running 2.1.0; `compaction/strategy.ts` of https://github.com/MoonshotAI/kimi-code at d723cc47 has the same
numbers since 2026-05. The window is the model's limit of input where it has one, else its context. The count is that of
the last answer and Kimi Code's estimate of what was appended since: a quarter of the ASCII characters, rounded up, one
token for any other and one for the role of each message; notes of tools are not in it. From a refused request on, until
its process ends, it takes 85 % of its estimate of that request for the window, where that is smaller (2.1.0,
observeContextOverflow).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from guard_core.compaction_bases import CompactionBase
from guard_core.ledger import Ints, Ledger
from guard_core.policies.kimi_code import (
    CHARS_PER_TOKEN,
    LEARNED_SHARE,
    RESERVED,
    SHARE_OF_WINDOW,
    fixed_tokens,
    learned_window,
    sent_prefix,
)
from guard_core.recordings.formats.kimi_code.wire import SUMMARY_REFUSED
from guard_core.rules.base import Agent, Hypothesis, Keeps, KeptShape, OwnRule, Stretch
from guard_core.rules.counters import TOTAL_PENDING, Checks, RuleCounter, unused_summaries
from guard_core.rules.settings import WINDOW, Typed, chosen, percentage, whole, window_setting
from guard_core.rules.thresholds import FRACTIONS, RESERVES, round_limits, windows_of
from guard_core.sessions import Provenance, Session, Sourced
from guard_core.views import Inserted, Span

OVERFLOW = "overflow"  # the reader's word for a compaction after a refused request
RATIO = 100 * SHARE_OF_WINDOW  # per cent, as the settings have it
WINDOWS = (262_144, 131_072)  # tokens; of Kimi's own models
COUNTER = RuleCounter(
    TOTAL_PENDING,
    "prompt and output tokens of the last answer, and Kimi Code's estimate of the messages since",
    is_recorded=True,
)


def threshold_of(window: int, percent: float, reserve: int) -> tuple[int, str]:
    """The smallest count that fires, in tokens, and what it is made of."""
    share, text = math.ceil(window * (percent / 100)), f"{percent:g} % of {window:,}"
    if 0 < reserve < window and window - reserve < share:
        return window - reserve, f"{window:,} − {reserve:,} (reserve)"
    return share, text


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The lower of a share of the window and the window less a reserve."""
    window = stretch.window
    ratio = chosen("trigger_ratio", percentage(typed, "trigger_ratio"), RATIO, "%", "default")
    reserve = chosen("reserved_context_size", whole(typed, "reserved_context_size", 0), RESERVED, "tokens", "default")
    percent, size = ratio.value or RATIO, int(reserve.value or 0)
    threshold, formula = threshold_of(window.value, percent, size) if window else (None, "")
    return OwnRule(
        policy="kimi-code",
        settings=(window_setting(window), ratio, reserve),
        counter=TOTAL_PENDING,
        threshold=threshold,
        formula=formula or f"the lower of {percent:g} % of the window and the window − {size:,} (reserve)",
    )


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Other windows, reserves and ratios."""
    for window, other in windows_of(stretch, WINDOWS):
        yield from _of_window(window, other)


def _of_window(window: int, changes: int) -> Iterator[Hypothesis]:
    round_sizes = round_limits(window // 2) if changes < 2 else ()
    for reserve in dict.fromkeys((RESERVED, 0, *RESERVES, *round_sizes)):
        threshold, formula = threshold_of(window, RATIO, reserve)
        yield Hypothesis(formula, threshold, changes + (reserve != RESERVED))
    for percent in dict.fromkeys((*(share * 100 for share in FRACTIONS), *range(1, 101))):
        threshold, formula = threshold_of(window, percent, RESERVED)
        yield Hypothesis(formula, threshold, changes + 1)


def learns(_: Session, ledger: Ledger) -> Iterable[tuple[int, Sourced]]:
    """The windows that refused requests teach, each with the step from which Kimi Code goes by it where it is smaller.

    Only where the file has system prompt and tools, of which the estimate is a part, too. The window is forgotten when
    the process ends, which the file does not show.
    """
    fixed = fixed_tokens(ledger)
    if fixed is None:
        return
    prefix, steps = sent_prefix(ledger), ledger.steps["at"]
    for place, base in enumerate(ledger.bases):
        if base.trigger != OVERFLOW:
            continue
        before = ledger.bases[place - 1] if place else None
        start = before.at if before is not None else 0
        refused = fixed + prefix.item(base.at) - prefix.item(start)
        refused += 0 if before is None else _kept_tokens(before, prefix)
        note = f"{LEARNED_SHARE * 100:g} % of a refused request of {refused:,} tokens by its estimate"
        step = int(np.searchsorted(steps, base.at, side="left")) + 1
        yield step, Sourced(learned_window(refused), Provenance.RECOMPUTED, note)


def _kept_tokens(base: CompactionBase, prefix: Ints) -> int:
    """The estimate of what a compaction left."""
    tokens = 0
    for segment in base.view:
        if isinstance(segment, Span):
            tokens += prefix.item(segment.stop) - prefix.item(segment.start)
        elif isinstance(segment, Inserted):
            tokens += -(-base.costs["chars"][segment.index] // CHARS_PER_TOKEN) + 1
    return tokens


CANCELLED, LEARNED, SHRUNK = 1, 2, 4  # marks of checks


def held(session: Session, ledger: Ledger, checks: Checks, _: Typed) -> Ints:
    """Marks of checks at which the threshold alone does not decide: where a compaction was begun and cancelled, and
    compactions after a refused request from which a window was learned that is not known."""
    marks, compacted = unused_summaries(session, ledger, checks) * CANCELLED, checks.place >= 0
    shrunk = [item.value for item in session.settings if item.name == SUMMARY_REFUSED]
    marks |= (compacted & (checks.stop >= min(shrunk, default=len(session.events) + 1))) * SHRUNK
    if fixed_tokens(ledger) is None:
        refused = np.array([item.trigger == OVERFLOW for item in session.compactions] or [False])
        marks |= (compacted & np.logical_or.accumulate(np.append(False, refused[:-1]))[checks.place]) * LEARNED
    return np.asarray(marks)


KEEPS = Keeps("the user's own messages, up to 20,000 tokens, and the summary", KeptShape.USERS, 20_000, is_derived=True)

AGENT = Agent(
    format="kimi-code",
    label="Kimi Code",
    rule=rule,
    plays={"kimi-code": {"trigger_ratio": "share", "reserved_context_size": "reserved"}},
    variants=variants,
    counter=lambda _: COUNTER,
    keeps=lambda _, __: KEEPS,
    held=held,
    held_reason={
        CANCELLED: "a compaction was begun beside the next step and cancelled",
        LEARNED: (
            "a request was refused before, after which it goes by a smaller window; the file lacks system prompt or"
            " tools, of which that follows, too"
        ),
        SHRUNK: (
            "a request for a summary was refused as too long before, and until its process ends it goes by a smaller"
            " window, 85 % of its estimate of that request"
        ),
    },
    learns=learns,
    names={
        "trigger_ratio": "compaction_trigger_ratio: in per cent of the window, or a fraction below 1",
        "reserved_context_size": "in tokens; 0 or as much as the window has no effect",
    },
    aliases={"compaction_trigger_ratio": "trigger_ratio", "max_context_size": WINDOW, "max_input_tokens": WINDOW},
)
