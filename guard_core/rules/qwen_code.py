"""Qwen Code: 85 % of the window, but at most what leaves 33,000 tokens of it free for the summary.

Measured by running 0.24.4 (850,000 of 1,000,000; 167,000 of 200,000; 98,072 of 131,072), 0.8.2, 0.15.6 and 0.15.10
(91,751 of 131,072; 0.8.2 also 734,004 of 1,048,576): up to 0.15 a fraction of the window (0.7) of the last count, which
is the total. The other rules are from the source: up to 0.7 that count is the prompt; from 0.16 on an estimate of what
waits is added, and the larger of two thresholds counts, the smaller one since 2026-07-09 (pull requests 4345 and 6583
of QwenLM/qwen-code; in which version is not known here, 0.20 is taken). The window in its files is the one it goes by.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from guard_core.agent_versions import numbers
from guard_core.costs import TEXT
from guard_core.events import Event, TextPart
from guard_core.ledger import Ints, Ledger
from guard_core.policies.gemini_cli import MESSAGE, PART, char_prefix
from guard_core.policies.qwen_code import BUFFER, MOST_OUTPUT, RESERVED, SHARE_OF_WINDOW, sent_together
from guard_core.rules.base import Agent, Hypothesis, OwnRule, Stretch, switched_off
from guard_core.rules.counters import LAST_PROMPT, LAST_TOTAL, TOTAL_PENDING, Checks, RuleCounter, unused_summaries
from guard_core.rules.gemini_cli import silent
from guard_core.rules.settings import WINDOW, Typed, chosen, fraction, window_setting
from guard_core.rules.thresholds import windows_of
from guard_core.sessions import Session
from guard_core.views import Span

OFF = 0.0  # the share with which versions to 0.15 never compact by themselves (`compress` of chatCompressionService.ts)
EARLY_SHARE = 0.7  # COMPRESSION_TOKEN_THRESHOLD, later DEFAULT_PCT, in chatCompressionService.ts
TOTAL_FROM, ESTIMATE_FROM, CEILING_FROM = (0, 8), (0, 16), (0, 20)
# Within a turn these versions summarise what is before the message that began it, unless that is less than this share
# of the characters of the history (MIN_COMPRESSION_FRACTION in chatCompressionService.ts: in 0.15.6 and 0.15.10, not in
# 0.12.0 nor 0.21.2).
LEAST_SHARE, LEAST_FROM = 0.05, (0, 13)
SETUP_CHARS = 780  # of the two messages before all others, which no file has: 0.15.6, run
NOT_USED, TOO_LITTLE = 1, 2  # marks of checks at which it did not compact whatever the count
RECORDS_FROM = (0, 22)  # 0.21.10 writes down the prompt tokens alone, 0.23.0 the compared count
WINDOWS = (131_072, 256_000, 262_144, 1_048_576)  # tokens, of models: packages/core/src/core/tokenLimits.ts
SHARES = tuple(percent / 100 for percent in range(1, 101))
WAITING = RuleCounter(
    TOTAL_PENDING,
    "prompt and output tokens of the last answer, and (characters + 64 a result) / 4 of what waits to be sent",
    sent_together,
)


def profile_of(version: str) -> str:
    """The group of versions with the same rule; a version that is not known has the newest."""
    known = numbers(version.removeprefix("before "))
    if not known or known >= CEILING_FROM:
        return "0.20"
    if known >= ESTIMATE_FROM:
        return "0.16"
    return "0.8" if known >= TOTAL_FROM else "before-0.8"


def counter(stretch: Stretch) -> RuleCounter:
    """The count that the version compares."""
    return {"before-0.8": LAST_PROMPT, "0.8": LAST_TOTAL}.get(profile_of(stretch.version), WAITING)


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """A share of the window, as the version computes it; a share of 0 is off."""
    window, profile = stretch.window, profile_of(stretch.version)
    early = profile in ("before-0.8", "0.8")
    name = "context_percentage_threshold" if early else "auto_compact_threshold"
    default = SHARE_OF_WINDOW if profile == "0.20" else EARLY_SHARE
    typed_share = fraction(typed, name, OFF) if early else fraction(typed, name)
    share = chosen(name, typed_share, default, "of the window", "default")
    value = default if share.value is None else share.value
    own = OwnRule(
        policy="qwen-code",
        profile=profile,
        settings=(window_setting(window), share),
        counter=counter(stretch).name,
        threshold=threshold_of(window.value, value, profile) if window else None,
        formula=_formula(window.value, value, profile) if window else f"{value * 100:g} % of the window",
    )
    return own if value else switched_off(own)


def threshold_of(window: int, share: float, profile: str) -> int:
    """The smallest whole count that is not below the share of the window, which is not rounded, or the ceiling."""
    part, ceiling = math.ceil(share * window), window - RESERVED
    if profile in ("before-0.8", "0.8"):
        return part
    if profile == "0.16":
        return max(part, ceiling)
    return min(part, ceiling) if ceiling > 0 else part


def _formula(window: int, share: float, profile: str) -> str:
    part, ceiling = f"{share * 100:g} % of {window:,}", f"{window:,} − {MOST_OUTPUT:,} (summary) − {BUFFER:,}"
    is_part = threshold_of(window, share, profile) == math.ceil(share * window)
    return part if is_part else ceiling


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Other shares and windows, and the rules of other versions."""
    own, usual = profile_of(stretch.version), rule(stretch, typed).settings[1].value
    for profile in dict.fromkeys((own, "0.20", "0.16", "0.8")):
        for window, other in windows_of(stretch, WINDOWS):
            for share in dict.fromkeys((usual or SHARE_OF_WINDOW, SHARE_OF_WINDOW, EARLY_SHARE, *SHARES)):
                threshold = threshold_of(window, share, profile)
                changes = other + (share != usual) + (profile != own)
                yield Hypothesis(_formula(window, share, profile), threshold, changes)


def held(session: Session, ledger: Ledger, checks: Checks, _: Typed) -> Ints:
    """Marks of the checks at which a summary was not used, or what could be summarised was too little."""
    marks = unused_summaries(session, ledger, checks) * NOT_USED
    versions = [numbers(version) for _, version in session.versions]
    if versions and all(LEAST_FROM <= version < ESTIMATE_FROM for version in versions):
        within_turn = (checks.place < 0) & (checks.between == 0) & (checks.last >= 0)
        for row in np.flatnonzero(within_turn).tolist():
            marks[row] |= TOO_LITTLE * _is_too_little(session, ledger, checks, row)
    return marks


def _is_too_little(session: Session, ledger: Ledger, checks: Checks, row: int) -> bool:
    """Is what is before the message that began the turn less than 5 % of the characters of the history?"""
    begun, stop = int(ledger.steps["user_event"][checks.last[row]]), int(checks.start[row])
    compaction = next((item for item in reversed(session.compactions) if item.at <= stop), None)
    spans, old, new = [Span(0, stop)], SETUP_CHARS, 0
    if compaction is not None:
        old += sum(map(_json_chars, compaction.messages))
        spans = [*(part for part in compaction.base if isinstance(part, Span)), Span(compaction.at, stop)]
    prefix = char_prefix(ledger, "")
    for span in spans:
        cut = min(max(span.start, begun), span.stop)
        old += int(prefix[cut] - prefix[span.start])
        new += int(prefix[span.stop] - prefix[cut])
    return old < LEAST_SHARE * (old + new)


def _json_chars(message: Event) -> int:
    """Characters of an inserted message as JSON, about."""
    return MESSAGE + sum(PART[TEXT] + len(part.text) for part in message.parts if isinstance(part, TextPart))


AGENT = Agent(
    format="qwen-code",
    label="Qwen Code",
    rule=rule,
    plays={"qwen-code": {"auto_compact_threshold": "share", "context_percentage_threshold": "share"}},
    variants=variants,
    counter=counter,
    records_count=True,
    records_from=RECORDS_FROM,
    uses_stated_window=True,
    held=held,
    held_reason={
        NOT_USED: "a summary was asked for here and not used",
        TOO_LITTLE: "what is before this turn is less than 5 % of the history, too little for a summary",
    },
    names={
        "auto_compact_threshold": "context.autoCompactThreshold, a fraction of the window (from 0.16)",
        "context_percentage_threshold": "chatCompression.contextPercentageThreshold, a fraction, 0 is off (up to 0.15)",
    },
    aliases={"contextWindowSize": WINDOW},
)
SILENT_AGENT = silent(AGENT, "before 0.3")
