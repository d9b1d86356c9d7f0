"""Cline: a limit by window, on all tokens of the last request; of its SDK a share of what the model takes.

Source of the extension's rule: ContextManager of Cline, revision 01cfde0d, as specified; not measured by running.

The SDK (@cline/core of Cline CLI 3.0.65, run: createContextCompactionPrepareTurn) compacts where its estimate of the
request (characters / 3, system prompt and tools included), scaled by up to four times where the provider counted more
of the last request, reaches 90 % of the model's input limit: the larger of that estimate and the last prompt, which is
limited to four times the estimate. The estimate is not in the file, so the last prompt is compared with the threshold
at compactions that it explains, and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from guard_core.ledger import Ints, Ledger
from guard_core.policies.cline import limit_of
from guard_core.rules import roo
from guard_core.rules.base import Agent, Hypothesis, OwnRule, Stretch
from guard_core.rules.counters import LAST_PROMPT, LAST_TOTAL, PROMPT, TOTAL, UNKNOWN, Checks, counts_at
from guard_core.rules.settings import WINDOW, RuleSetting, Typed, whole, window_setting
from guard_core.rules.thresholds import windows_of
from guard_core.sessions import Provenance, Session


def rule(stretch: Stretch, _: Typed) -> OwnRule:
    """The rule of a stretch."""
    window = stretch.window
    formula, threshold = limit_of(window.value) if window else ("a limit by window", None)
    return OwnRule(
        policy="cline",
        settings=(window_setting(window),),
        counter=TOTAL,
        threshold=threshold,
        formula=formula,
    )


def variants(stretch: Stretch, _: Typed) -> Iterable[Hypothesis]:
    """Other windows."""
    for window, other in windows_of(stretch):
        yield Hypothesis(*limit_of(window), other)


INPUT_LIMIT, OF_WINDOW, SDK_SHARE = 128_000, 0.9, 0.9  # compaction-shared.d.ts: DEFAULT_MAX_INPUT_TOKENS and the ratios


def sdk_threshold(window: int | None, limit: int | None = None) -> tuple[str, int]:
    """The threshold of the SDK, as an expression and in tokens, for a window and an input limit of the model."""
    if limit is not None:
        most = min(limit, window or limit)
        return f"90 % of {most:,}", math.ceil(SDK_SHARE * most)
    if window is None:
        return f"90 % of {INPUT_LIMIT:,} (where no limit is known)", math.ceil(SDK_SHARE * INPUT_LIMIT)
    return f"81 % of {window:,}", math.ceil(window * OF_WINDOW * SDK_SHARE)  # 90 % of 90 %


def sdk_rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The rule of a stretch of the SDK."""
    window, limit = stretch.window, whole(typed, "max_input_tokens")
    formula, threshold = sdk_threshold(window.value if window else None, limit)
    own = RuleSetting("max_input_tokens", limit, "tokens", Provenance.USER, "typed in")
    return OwnRule(
        policy="",
        settings=(window_setting(window), *((own,) if limit else ())),
        counter=PROMPT,
        threshold=threshold,
        formula=formula,
    )


def sdk_variants(stretch: Stretch, _: Typed) -> Iterable[Hypothesis]:
    """No limit, the windows of models, and input limits of their size."""
    yield Hypothesis(*sdk_threshold(None), 1)
    for window, other in windows_of(stretch):
        yield Hypothesis(*sdk_threshold(window), other)
        yield Hypothesis(*sdk_threshold(window, window), other + 1)


def sdk_counts(session: Session, ledger: Ledger, checks: Checks, stretch: Stretch) -> Ints:
    """The last prompt, at a compaction that it explains; elsewhere nothing is known: it may be more than what was
    compared (the scale of the estimate ends at four) and less."""
    counts = counts_at(session, ledger, checks, LAST_PROMPT)
    threshold = sdk_threshold(stretch.window.value if stretch.window else None)[1]
    return np.where((checks.place >= 0) & (counts >= threshold), counts, UNKNOWN)


SDK_AGENT = Agent(
    format="cline",
    label="Cline SDK",
    rule=sdk_rule,
    variants=sdk_variants,
    counter=lambda _: LAST_PROMPT,
    names={"max_input_tokens": "the model's limit of input tokens"},
    aliases={"contextWindow": WINDOW, "maxInputTokens": "max_input_tokens"},
    uncounted="its estimate of the request, which counts where it is larger than the last prompt, is not in the file",
    series=sdk_counts,
    wrote=lambda session: any(item.name == "is_of_sdk" for item in session.settings),
)
AGENT = Agent(
    format="cline",
    label="Cline",
    rule=rule,
    variants=variants,
    counter=lambda _: LAST_TOTAL,
    names={},
    aliases={"contextWindow": WINDOW},
    wrote=lambda session: not roo.wrote(session),
)
