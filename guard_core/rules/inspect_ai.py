"""Inspect: above a threshold, 90 % of the window unless the evaluation's plan names another share or so many tokens.

From inspect_ai 0.3.285 (`model/_compaction`), and checked on a log that it wrote. Before each call Inspect counts the
tokens of the last answer and, by the provider's count or a tokenizer, those of the messages since. A compaction holds
that count (`tokens_before`); of the checks that passed only the first part is known, so that they bound the threshold
less closely.
"""

from __future__ import annotations

from collections.abc import Iterable

from guard_core.rules.base import Agent, Hypothesis, OwnRule, Stretch
from guard_core.rules.counters import TOTAL_PENDING, RuleCounter
from guard_core.rules.settings import RuleNumber, Typed, percentage, whole, window_setting
from guard_core.rules.thresholds import FRACTIONS, LARGEST_LIMIT, round_limits, share_of, windows_of
from guard_core.sessions import Provenance

SHARE = 0.9  # of the window: the default of every strategy
COUNTER = RuleCounter(
    TOTAL_PENDING,
    "tokens_before of a compaction; at checks that passed prompt and output tokens of the last answer, at least",
)


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The threshold of the evaluation's plan, up to 1 a share of the window, above that tokens."""
    setting, share = _setting(stretch, typed)
    window = stretch.window
    settings = [setting]
    if share is None:
        threshold, formula = int(setting.value or 0), f"{int(setting.value or 0):,} (threshold)"
    else:
        settings.insert(0, window_setting(window))
        formula, threshold = share_of(share, window.value) if window else (f"{share * 100:g} % of the window", 0)
    return OwnRule(
        policy="inspect",
        settings=tuple(settings),
        counter=TOTAL_PENDING,
        relation=">",
        threshold=threshold or None,
        formula=formula,
    )


def _setting(stretch: Stretch, typed: Typed) -> tuple[RuleNumber, float | None]:
    """The threshold, and the share of the window that it is; None: it is in tokens."""
    is_share = typed.get("threshold", "").strip().endswith("%") or typed.get("threshold", "").strip().startswith("0.")
    if "threshold" in typed and not is_share:
        return RuleNumber("threshold", whole(typed, "threshold"), "tokens", Provenance.USER, "typed in"), None
    if (percent := percentage(typed, "threshold" if is_share else "threshold_pct")) is not None:
        return RuleNumber("threshold", percent, "%", Provenance.USER, "typed in"), percent / 100
    known = stretch.setting("threshold")
    if known is not None and known.value > 1:
        return RuleNumber("threshold", known.value, "tokens", Provenance.RECORDER, known.note), None
    if known is not None:
        return RuleNumber("threshold", known.value * 100, "%", Provenance.RECORDER, known.note), known.value
    return RuleNumber("threshold", SHARE * 100, "%", Provenance.ASSUMED, "default"), SHARE


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Other shares and windows, and numbers of tokens typed by hand."""
    for window, other in windows_of(stretch):
        for share in FRACTIONS:
            yield Hypothesis(*share_of(share, window), other + (share != SHARE))
    for limit in round_limits(LARGEST_LIMIT):
        yield Hypothesis(f"threshold {limit:,}", limit, 1)


AGENT = Agent(
    format="inspect",
    label="Inspect",
    rule=rule,
    variants=variants,
    counter=lambda _: COUNTER,
    records_count=True,
    fitted=lambda _, limit: f"threshold {limit:,}",
    names={
        "threshold": "of the compaction strategy, in tokens or as a fraction of the window below 1",
        "threshold_pct": "the same in per cent of the window, from 1 to 100",
    },
)
