"""OpenCode: the window less the model's output of at most 32,000; with an input limit that less at most 20,000.

Measured by running 1.0.152 to 1.18.33: without an input limit `compaction.reserved` has no effect in 1.18.33, though a
revision of the source takes it off. Up to 1.1.53 the number itself does not fire yet, from 1.1.65 on it does.

Kilo Code 7.0.33 to 7.7.9 has the same rule (measured; its function `isOverflow`). 7.7 has one more, for the first
request of a turn, where `compaction.threshold_percent` is set: it compares that share of the window with an estimate of
system prompt and tools, which no file holds, on top of the count. What that rule caused has a trigger of its own
(PREFLIGHT).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import msgspec
import numpy as np

from guard_core.agent_versions import numbers
from guard_core.ledger import Ints, Ledger
from guard_core.policies import kilo
from guard_core.policies.opencode import MOST_OUTPUT, MOST_RESERVED
from guard_core.recordings.formats.opencode.session import KILO
from guard_core.rules.base import Agent, Hypothesis, Keeps, KeptShape, OwnRule, Stretch
from guard_core.rules.counters import LAST_TOTAL, TOTAL, Checks
from guard_core.rules.settings import (
    AUTO,
    SWITCH_WORDS,
    WINDOW,
    RuleNumber,
    Typed,
    chosen,
    percentage,
    switched,
    whole,
    window_setting,
)
from guard_core.rules.thresholds import LARGEST_LIMIT, RESERVES, round_limits, windows_of
from guard_core.sessions import Provenance, Session
from guard_core.windows.subscriptions import subscription_windows

STRICT_BEFORE = (1, 1, 54)  # 1.1.53 passes at the threshold, 1.1.65 compacts; versions between were not measured
OTHER_WINDOWS = (32_768, 65_536, 131_072, 256_000, 262_144, 1_048_576)  # tokens; of models that OpenCode is used with
OUTPUTS = (*RESERVES, 4_096, *round_limits(MOST_OUTPUT))  # tokens; what models may answer with
PRUNE = "prune"
PERCENT = "threshold_percent"  # Kilo's compaction.threshold_percent
INPUT_LIMIT = 272_000  # tokens; of models with a window of 400,000, measured with 252,000 as threshold


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The window less the model's output, or its input limit less a reserve where that was typed."""
    window, limit = stretch.window, _input_limit(stretch, typed)
    note = "the most that OpenCode takes off; the model's own limit may be lower"
    output = chosen("max_output_tokens", whole(typed, "max_output_tokens"), MOST_OUTPUT, "tokens", note)
    size = min(int(output.value or 0), MOST_OUTPUT)
    settings = [window_setting(window), output]
    if PRUNE in typed:
        settings.append(RuleNumber(PRUNE, float(switched(typed, PRUNE)), "", Provenance.USER, "typed in"))
    strict = () < numbers(stretch.version) < STRICT_BEFORE
    threshold = window.value - size if window else None
    formula = f"{window.value:,} − {size:,} (max output)" if window else f"window − {size:,} (max output)"
    if limit is not None:
        settings.append(limit)
        reserved = chosen("reserved", whole(typed, "reserved", 0), min(MOST_RESERVED, size), "tokens", "its default")
        settings.append(reserved)
        threshold = int(limit.value or 0) - int(reserved.value or 0)
        formula = f"{limit.value:,} (input limit) − {reserved.value:,}"
    return OwnRule(
        policy="opencode",
        profile="before-1.0" if () < numbers(stretch.version) < (1, 0) else "1.18",
        settings=tuple(settings),
        counter=TOTAL,
        relation=">" if strict else ">=",
        threshold=threshold,
        formula=formula,
    )


def _input_limit(stretch: Stretch, typed: Typed) -> RuleNumber | None:
    """What the model takes as input, where it was typed or a subscription to ChatGPT serves it."""
    if (size := whole(typed, "input_limit")) is not None:
        return RuleNumber("input_limit", size, "tokens", Provenance.USER, "typed in")
    window = stretch.window
    if window is None or window.source is Provenance.USER or not subscription_windows(stretch.model):
        return None
    note = "of a subscription to ChatGPT: 400,000 in all, as OpenCode 1.15.13 has it"
    return RuleNumber("input_limit", window.value, "tokens", window.source, note)


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Other windows, other outputs, and the reserve of the source's newer revision."""
    for size in (MOST_RESERVED, *(size for size in RESERVES if size != MOST_RESERVED)):
        text = f"{INPUT_LIMIT:,} (input limit) − {size:,}"
        yield Hypothesis(text, INPUT_LIMIT - size, 1 + (size != MOST_RESERVED))
    for limit in round_limits(LARGEST_LIMIT):
        yield Hypothesis(f"{limit:,} (input limit) − {MOST_RESERVED:,}", limit - MOST_RESERVED, 2)
    for window, other in windows_of(stretch, OTHER_WINDOWS):
        for size in dict.fromkeys((MOST_OUTPUT, *(size for size in OUTPUTS if size < MOST_OUTPUT))):
            formula, changes = f"{window:,} − {size:,} (max output)", other + (size != MOST_OUTPUT)
            yield Hypothesis(formula, window - size, changes)
            reserved = min(MOST_RESERVED, size)
            text = f"{formula} − {reserved:,} (reserved)"
            yield Hypothesis(text, window - size - reserved, changes + 1)


def held(session: Session, ledger: Ledger, checks: Checks, _: Typed) -> Ints:
    """1 for each check at which a summary was asked for and failed: no other call is beside a conversation."""
    asked = np.sort(np.array([call.at for call in session.side_calls], dtype=np.int64))
    called = np.where(checks.last >= 0, np.append(ledger.steps["at"], 0)[checks.last], 0)
    tried = np.searchsorted(asked, checks.stop, side="right") > np.searchsorted(asked, called, side="right")
    return np.asarray(tried & (checks.place < 0), dtype=np.int64)


# Source: revision 31e22f65 of OpenCode; what does not fit is summarised
KEEPS = Keeps("the summary and the newest messages, a quarter of the threshold, at most 15,000 tokens", KeptShape.TAIL)

AGENT = Agent(
    format="opencode",
    label="OpenCode",
    answers="max_output_tokens",
    rule=rule,
    plays={"opencode": {"max_output_tokens": "max_output"}},
    variants=variants,
    counter=lambda _: LAST_TOTAL,
    keeps=lambda _, __: KEEPS,
    held=held,
    held_reason="a compaction was begun here and failed",
    names={
        "max_output_tokens": "the model's limit of output, in tokens",
        "input_limit": "the model's limit of input, in tokens, where it has one",
        "reserved": "compaction.reserved, in tokens; only with an input limit",
        PRUNE: "compaction.prune: on or off; old tool results are cleared, a compaction is not caused by it",
        AUTO: SWITCH_WORDS,
    },
    aliases={
        "limit.output": "max_output_tokens",
        "limit.input": "input_limit",
        "limit.context": WINDOW,
        "compaction.auto": AUTO,
    },
)


def kilo_rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """OpenCode's of the newest version; Kilo Code's own share, of the first request of a turn, is named beside it."""
    own = msgspec.structs.replace(rule(stretch._replace(version=""), typed), policy="kilo", profile=kilo.MEASURED)
    share = percentage(typed, PERCENT, is_fraction=False)
    if share is None:
        return own
    note = "typed in; its estimate for the first request of a turn is not in the file"
    setting = RuleNumber(PERCENT, share, "%", Provenance.USER, note)
    return msgspec.structs.replace(own, settings=(*own.settings, setting))


KILO_AGENT = replace(
    AGENT,
    label=KILO,
    rule=kilo_rule,
    plays={"kilo": {"max_output_tokens": "max_output"}},
    wrote=lambda session: session.agent == KILO,
    names={
        **AGENT.names,
        PERCENT: "compaction.threshold_percent: the first request of a turn is compacted from this share of the window",
    },
)
