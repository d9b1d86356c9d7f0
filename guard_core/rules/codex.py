"""Codex: at most 90 % of the raw window, of which recordings hold the usable 95 %.

Measured by running 0.58.0 to 0.171.0. Up to 0.94.0 the tokens of the last answer alone are compared; from 0.95.0 on the
items since, too, up to 0.155.0 as the file has them, a quarter of the bytes of each; later versions look at the outputs
of tools alone, each with the id of its call: results of many sizes, with and without letters beyond ASCII, quotes, tabs
and backslashes, and ids of 10 to 47 characters. Unless the server says that it counts it, the encrypted reasoning
before the last message of the user is added (context_manager/history.rs, `get_non_last_reasoning_items_tokens`). That
was not measured by running, but twelve compactions of recordings of 0.140.0 to 0.142.5, which hold the tokens of that
reasoning and not its bytes, fit the rule with it, and some contradict any without. Where a file came without these
bytes (tools that archive recordings take them out), the count at a compaction is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from guard_core.agent_versions import numbers
from guard_core.costs import REASONING
from guard_core.ledger import Ints, Ledger
from guard_core.policies.codex import default_limit, output_tokens
from guard_core.policies.pieces.estimates import rounded_up
from guard_core.recordings.formats.codex.rollout import ITEMS_COUNTED_BEFORE, ITEMS_COUNTED_FROM
from guard_core.rules.base import Agent, Hypothesis, Keeps, KeptShape, OwnRule, Stretch
from guard_core.rules.counters import LAST_TOTAL, TOTAL_PENDING, RuleCounter
from guard_core.rules.settings import Typed, chosen, whole, window_setting
from guard_core.rules.thresholds import FRACTIONS, LARGEST_LIMIT, round_limits, share_of, windows_of
from guard_core.sessions import Provenance, Sourced
from guard_core.windows.window_evidence import CODEX_USABLE

PENDING_FROM = (0, 95)  # 0.94.0 counts the last answer alone, 0.95.0 what waits, too
CONFIGURED = "model_context_window"
REASONING_OVERHEAD = 650  # bytes of an encrypted reasoning item: history.rs, `estimate_reasoning_length`
_ENCRYPTS = re.compile(r"gpt|codex|\bo\d", re.IGNORECASE)  # OpenAI's models, whose reasoning is encrypted


def reasoning_tokens(ledger: Ledger) -> Ints:
    """The estimate of the encrypted reasoning in each event: ceil((decoded bytes − 650 of each item) / 4)."""
    items = ledger.by_event((ledger.parts["kind"] == REASONING).astype(np.int64))
    return rounded_up(np.maximum(ledger.events["opaque_bytes"] - REASONING_OVERHEAD * items, 0))


def stripped_reasoning(ledger: Ledger) -> Ints:
    """1 for each event with reasoning where a file of OpenAI's models holds none of what is encrypted."""
    is_complete = bool(ledger.events["opaque_bytes"].any()) or not any(map(_ENCRYPTS.search, ledger.models))
    return ledger.by_event((ledger.parts["kind"] == REASONING).astype(np.int64)) * (not is_complete)


COUNTER = RuleCounter(
    TOTAL_PENDING,
    "prompt and output tokens of the last answer, a quarter of the bytes of each tool output since with its call's id,"
    " and (bytes − 650) / 4 of encrypted reasoning before the last message of the user",
    output_tokens,
    before_user=True,
    earlier=reasoning_tokens,
    lacks=stripped_reasoning,
    lacks_words="the encrypted reasoning of earlier turns, which Codex counts",
)


ITEM_COUNTER = replace(
    COUNTER,
    words="prompt and output tokens of the last answer, bytes / 4 of each item since, as JSON, and (bytes − 650) / 4 of"
    " encrypted reasoning before the last message of the user",
    pending=None,
    is_recorded=True,
)


def counter(stretch: Stretch) -> RuleCounter:
    """What this version compares."""
    version = numbers(stretch.version)
    if () < version < PENDING_FROM:
        return LAST_TOTAL
    return ITEM_COUNTER if ITEMS_COUNTED_FROM <= version < ITEMS_COUNTED_BEFORE else COUNTER


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The rule of a stretch."""
    counted = counter(stretch).name
    window, limit = raw_window(stretch, typed), whole(typed, "model_auto_compact_token_limit")
    most = default_limit(window.value) if window else 0
    setting = chosen("model_auto_compact_token_limit", limit, most, "tokens", "default: 90 % of the raw window")
    ninety = f"90 % of {window.value:,}" if window else ""
    return OwnRule(
        policy="codex",
        profile="current" if counted == TOTAL_PENDING else "seed",
        settings=(window_setting(window), setting) if window else (window_setting(None),),
        counter=counted,
        threshold=min(limit or most, most) if window else None,
        formula=(f"min({limit:,}, {ninety})" if limit else ninety) or "90 % of the raw window",
    )


def raw_window(stretch: Stretch, typed: Typed) -> Sourced | None:
    """The model's window, of which the recording holds the usable part: that of the configuration, if one is set, and
    at most the model's own."""
    window, configured = stretch.window, whole(typed, CONFIGURED)
    if window is not None and window.source is Provenance.RECORDER:
        raw = round(window.value / CODEX_USABLE)
        return Sourced(raw, Provenance.RECORDER, f"{window.value:,} in the file is the usable 95 % of it")
    return Sourced(configured, Provenance.USER, f"{CONFIGURED}, typed in") if configured else window


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Limits that a person may have set, then other windows and other shares of them, which no setting gives."""
    default = rule(stretch, typed)
    for limit in round_limits((default.threshold or LARGEST_LIMIT) - 1):
        yield Hypothesis(f"model_auto_compact_token_limit {limit:,}", limit, 1)
    for window, other in windows_of(stretch._replace(window=raw_window(stretch, typed))):
        for share in FRACTIONS:
            changes = other + (share != 0.9)
            yield Hypothesis(*share_of(share, window), changes)


# Source: compact.rs of Codex, COMPACT_USER_MESSAGE_MAX_TOKENS
KEEPS = Keeps("the users' messages, newest first up to 20,000 tokens, and the summary", KeptShape.USERS)

AGENT = Agent(
    format="codex",
    label="Codex",
    rule=rule,
    variants=variants,
    counter=counter,
    keeps=lambda _, __: KEEPS,
    names={
        "model_auto_compact_token_limit": "in tokens; above 90 % of the raw window it has no effect",
        CONFIGURED: "in tokens; where the file has a window, that follows from this setting and is the one that counts",
    },
    goes_by_stated=True,
    fitted=lambda _, limit: f"model_auto_compact_token_limit {limit:,}",
)
