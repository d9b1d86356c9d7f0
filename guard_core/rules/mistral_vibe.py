"""Mistral Vibe: a threshold that its settings name, 200,000 unless they do, of the tokens of the last answer.

Measured by running 3.0.2: compared before every call; a declared context length of the model sets 80 % of it, rounded
down, and a configured threshold is taken where it is below that length. Its journal holds the threshold that results.
Before 3.0 it is compared before turns only (vibe/core/middleware.py of https://github.com/mistralai/mistral-vibe at
ac8f1a0), 168,000 is that of one profile there, and until 1.1 the default was 100,000.
"""

from __future__ import annotations

from collections.abc import Iterable

from guard_core.policies.mistral_vibe import DECLARED_SHARE, DEFAULT_THRESHOLD
from guard_core.rules.base import Agent, Hypothesis, OwnRule, Stretch
from guard_core.rules.counters import LAST_TOTAL, TOTAL
from guard_core.rules.settings import RuleSetting, Typed, whole
from guard_core.rules.thresholds import FRACTIONS, LARGEST_LIMIT, round_limits, share_of, windows_of
from guard_core.sessions import Provenance

THRESHOLD = "auto_compact_threshold"
WINDOWS = (262_144, 131_072)  # tokens; of Mistral's models
OTHERS = (168_000, 100_000)  # tokens; defaults of a profile, and of 1.0


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The rule of a stretch."""
    settings, formula, threshold = _threshold(stretch, typed)
    return OwnRule(
        policy="mistral-vibe",
        settings=settings,
        counter=TOTAL,
        threshold=threshold,
        formula=formula,
    )


def _threshold(stretch: Stretch, typed: Typed) -> tuple[tuple[RuleSetting, ...], str, int]:
    own, length = whole(typed, THRESHOLD), whole(typed, "max_context_length")
    if length is None and stretch.window is not None and stretch.window.source is Provenance.USER:
        length = stretch.window.value
    settings = []
    if length is not None:
        settings.append(RuleSetting("max_context_length", length, "tokens", Provenance.USER, "typed in"))
    if own is not None:
        settings.append(RuleSetting(THRESHOLD, own, "tokens", Provenance.USER, "typed in"))
    if own is not None and (length is None or own < length):
        return tuple(settings), f"auto_compact_threshold {own:,}", own
    if length is not None:
        return tuple(settings), *share_of(DECLARED_SHARE, length)
    if (known := stretch.setting(THRESHOLD)) is not None:
        setting = RuleSetting(THRESHOLD, known.value, "tokens", Provenance.RECORDER, known.note)
        return (setting,), f"{int(known.value):,} (in the file)", int(known.value)
    setting = RuleSetting(THRESHOLD, DEFAULT_THRESHOLD, "tokens", Provenance.ASSUMED, "default")
    return (setting,), f"{DEFAULT_THRESHOLD:,} (default)", DEFAULT_THRESHOLD


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """The default, shares of windows, and thresholds typed by hand."""
    yield Hypothesis(f"{DEFAULT_THRESHOLD:,} (default)", DEFAULT_THRESHOLD, 1)
    for window, other in (*((window, 0) for window in WINDOWS), *windows_of(stretch)):
        yield Hypothesis(*share_of(DECLARED_SHARE, window), other + 1)
        for share in FRACTIONS:
            yield Hypothesis(*share_of(share, window), other + 2)
    for limit in (*OTHERS, *round_limits(LARGEST_LIMIT)):
        yield Hypothesis(f"auto_compact_threshold {limit:,}", limit, 1)


AGENT = Agent(
    format="mistral-vibe",
    label="Mistral Vibe",
    rule=rule,
    variants=variants,
    counter=lambda _: LAST_TOTAL,
    fitted=lambda _, limit: f"auto_compact_threshold {limit:,}",
    names={
        THRESHOLD: "of the model or of all, in tokens; as much as the context length has no effect",
        "max_context_length": "as the model declares it, in tokens",
    },
)
