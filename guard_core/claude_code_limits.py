"""The threshold of Claude Code by version, as plain arithmetic without imports: its rule, its policy and the status
line all use it.

Source: versions 2.1.14 to 2.1.332, run against a scripted provider without remote feature flags (own_rules.md,
section 2); which models are named in a version from its program (2.1.114 to 2.1.332), and so what differs before
2.1.14 (1.0.30, 1.0.80, 1.0.128 and 2.0.76 were run, too). All sizes in tokens.
"""

from __future__ import annotations

import math
import re

from guard_core.agent_versions import numbers

DEFAULT_WINDOW = 200_000  # for every model whose name does not ask for a million
MARGIN = 13_000  # below the reserve; measured in every version with a threshold
MAX_OUTPUT = 32_000  # measured for Opus 4.5
MOST_RESERVED = 20_000  # measured from 2.1.21 on
# Groups of versions with one rule.
WHOLE, CAPPED, REFUSAL, SCALED = "until-2.1.19", "2.1.21-2.1.152", "from-2.1.154", "from-2.1.310"
UNLIMITED = (REFUSAL, SCALED)  # groups with a threshold only where a window is set
CAPPED_FROM = (2, 1, 21)  # 2.1.20 reserves all of the output
REFUSAL_FROM = (2, 1, 153)  # 2.1.152 has a threshold
SCALED_FROM = (2, 1, 310)  # keeps more after a refusal than 2.1.309: both run
LEAST_SET = 100_000  # a smaller CLAUDE_CODE_AUTO_COMPACT_WINDOW counts as this: measured in 2.1.100, 152, 200 and 330
MOST_OUTPUT = 64_000  # a larger CLAUDE_CODE_MAX_OUTPUT_TOKENS counts as this: 2.1.14 with Opus and Sonnet 4.5
# Models with another limit of output, by a part of the name: measured for Opus 4.1 and Haiku 3.5, others as in 2.1.100.
SMALL_OUTPUTS = {
    **dict.fromkeys(("opus-4-0", "opus-4-1", "opus-4-2025"), MAX_OUTPUT),
    **dict.fromkeys(("claude-3-opus", "claude-3-haiku"), 4_096),
    **dict.fromkeys(("claude-3-sonnet", "3-5-sonnet", "3-5-haiku"), 8_192),
}
OUTPUTS_FROM = (2, 0, 30)  # 1.0.128 reserves MAX_OUTPUT whatever the model is (run), 2.0.26 has no larger one
PERCENT_FROM = (2, 0, 22)  # 2.0.19 does not know CLAUDE_AUTOCOMPACT_PCT_OVERRIDE, 1.0.128 ignored it
# 1.0.70 compacts at this share of what the reserve leaves, 1.0.71 at MARGIN below it; 1.0.10 has a number for what is
# left, 1.0.17 takes the reserve off the window.
SHARE, SHARE_BEFORE = 0.92, (1, 0, 71)
LEFT, LEFT_BEFORE = 180_000, (1, 0, 17)
SET_WINDOW_FROM = (2, 1, 81)  # 2.1.74 ignores a window that is set; versions between were not measured
LONG_WINDOW = 1_000_000  # of the models after the earlier ones
# Models with tokens estimated at four characters each; other models have three from 2.1.140 on (2.1.120: no such list).
EARLIER_MODELS = frozenset(
    {
        *("claude-3-opus", "claude-3-sonnet", "claude-3-haiku", "claude-3-5-sonnet", "claude-3-5-haiku"),
        *("claude-3-7-sonnet", "claude-opus-4-0", "claude-sonnet-4-0", "claude-opus-4-1", "claude-opus-4-5"),
        *("claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-6", "claude-sonnet-4-6"),
    }
)
THREE_FROM = (2, 1, 140)
# From 2.1.170 on (2.1.160: not) these are compacted at the default window where none is set and [1m] is not asked for:
# measured with Opus 4.6 in 2.1.200, with Sonnet 4.6 in 2.1.250 and 2.1.332.
COMPACTED_MODELS, COMPACTED_FROM = frozenset({"claude-opus-4-6", "claude-sonnet-4-6"}), (2, 1, 170)
# From 2.1.240 on (2.1.220: not) models whose names it does not know: measured in 2.1.250 with the default window, which
# 2.1.318 takes, too; 2.1.325 takes a million.
UNKNOWN_FROM, UNKNOWN_LONG_FROM = (2, 1, 240), (2, 1, 325)
# From 2.1.260 on models that have a million tokens without [1m]: measured with Opus 5.5 in 2.1.332. Through another
# provider's address 2.1.250 takes 200,000 for them, 2.1.301 and later a million: measured with Opus 5 and 5.5.
LONG_COMPACTED_FROM, LONG_FROM = (2, 1, 260), (2, 1, 301)
PROFILES = "application-inference-profile"  # in names of Bedrock, which it does not take for unknown models
_NAME = re.compile(
    r"claude-(?:3(?:-[57])?-(?:opus|sonnet|haiku)|(?:opus|sonnet|haiku|fable|mythos)-\d+(?:-\d{1,2})?(?!\d))"
)


def profile_of(version: str) -> str:
    """The group of versions with the same rule; a version that is not known counts as the newest."""
    number = numbers(version)
    if number and number < CAPPED_FROM:
        return WHOLE
    if number and number < REFUSAL_FROM:
        return CAPPED
    return REFUSAL if number and number < SCALED_FROM else SCALED


def takes_window(version: str) -> bool:
    """Does a version know a window that is set for it."""
    number = numbers(version)
    return not number or number >= SET_WINDOW_FROM


def window_set(window: int, limit: int) -> int:
    """The window that counts where `limit` is set for a model's window."""
    return min(window, max(limit, LEAST_SET))


def most_output(version: str, model: str) -> int:
    """The most tokens that an answer of a model can be set to."""
    if () < numbers(version) < OUTPUTS_FROM:
        return MAX_OUTPUT
    return next((size for name, size in SMALL_OUTPUTS.items() if name in model), MOST_OUTPUT)


def name_of(model: str) -> str:
    """A model's name without its provider, date and suffix; "" for one that is none of Claude's."""
    match = _NAME.search(model.lower().replace(".", "-").replace("@", "-"))
    name = match.group() if match else ""
    return f"{name}-0" if name in ("claude-opus-4", "claude-sonnet-4") else name


def chars_per_token(version: str, model: str) -> int:
    """Characters for each token by which a version estimates what was added since the last answer. A version or a model
    that is not known counts as the newest."""
    number = numbers(version)
    return 4 if () < number < THREE_FROM or not model or name_of(model) in EARLIER_MODELS else 3


def default_window(version: str, model: str) -> int:
    """The window that a version takes for a model, as far as its name says it."""
    number, name = numbers(version), name_of(model)
    if name in EARLIER_MODELS or not model:
        return DEFAULT_WINDOW
    return LONG_WINDOW if number >= (LONG_FROM if name else UNKNOWN_LONG_FROM) else DEFAULT_WINDOW


def own_window(version: str, model: str, window: int) -> int | None:
    """The window at which a version that otherwise waits for a refusal compacts a model where none is set; None where
    it does not. `window` is the one that it takes for the model."""
    number, name = numbers(version), name_of(model)
    if name in COMPACTED_MODELS:
        return min(window, DEFAULT_WINDOW) if number >= COMPACTED_FROM and window < LONG_WINDOW else None
    if not name:
        is_unknown = bool(model) and PROFILES not in model
        return window if is_unknown and number >= UNKNOWN_FROM else None
    is_long = name not in EARLIER_MODELS and window >= LONG_WINDOW
    return window if is_long and number >= LONG_COMPACTED_FROM else None


def is_share_fixed(version: str) -> bool:
    """Does a version compact at SHARE of what its reserve leaves."""
    return () < numbers(version) < SHARE_BEFORE


def has_reserve(version: str) -> bool:
    """Does a version take off its window what an answer may have."""
    return not () < numbers(version) < LEFT_BEFORE


def takes_percent(version: str) -> bool:
    """Does a version know CLAUDE_AUTOCOMPACT_PCT_OVERRIDE."""
    number = numbers(version)
    return not number or number >= PERCENT_FROM


def threshold_in(version: str, window: int, reserve: int, percent: float | None = None) -> tuple[str, int]:
    """The threshold of a version that has one, as an expression and in tokens."""
    if is_share_fixed(version):
        left, text = window - reserve, f"({window:,} − {reserve:,} (max output))"
        if not has_reserve(version):
            left, text = LEFT, f"{LEFT:,}"
        return f"{100 * SHARE:g} % of {text}", math.ceil(SHARE * left)
    return threshold_of(window, reserve, percent if takes_percent(version) else None)


def threshold_of(window: int, reserve: int, percent: float | None = None) -> tuple[str, int]:
    """The threshold as an expression, and in tokens. `percent`: CLAUDE_AUTOCOMPACT_PCT_OVERRIDE, which only lowers."""
    default = window - reserve - MARGIN
    text = f"{window:,} − {reserve:,} (max output) − {MARGIN:,}"
    if percent is None:
        return text, default
    share = int(percent / 100 * (window - reserve))
    return f"min({text}, {percent:g} % of ({window:,} − {reserve:,}))", min(default, share)


def reserve_of(profile: str, max_output: int) -> int:
    """What a group of versions keeps free for an answer of at most `max_output`."""
    return min(max_output, MOST_OUTPUT if profile == WHOLE else MOST_RESERVED)


def limit_of(
    version: str, window: int, *, max_output: int, set_window: int | None, percent: float | None, model: str = ""
) -> tuple[str, int] | None:
    """The threshold of a version as an expression and in tokens; None where it has none, so that only a refusal of the
    provider compacts. `set_window`, `percent`: None where they are not set. `model` limits `max_output`."""
    profile = profile_of(version)
    if profile in UNLIMITED and set_window is None:
        own = own_window(version, model, window)
        if own is None:
            return None
        window = own
    if set_window is not None and takes_window(version):
        window = window_set(window, set_window)
    reserve = reserve_of(profile, min(max_output, most_output(version, model)))
    return threshold_in(version, window, reserve, percent)
