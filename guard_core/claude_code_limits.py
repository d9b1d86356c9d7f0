"""The threshold of Claude Code by version, as plain arithmetic that loads nothing: its rule, its policy and the status
line all use it.

Source: versions 2.1.14 to 2.1.330, run against a scripted provider without remote feature flags (own_rules.md,
section 2). All sizes in tokens.
"""

from __future__ import annotations

from guard_core.agent_versions import numbers

DEFAULT_WINDOW = 200_000  # for every model whose name does not ask for a million
MARGIN = 13_000  # below the reserve; measured in every version with a threshold
MAX_OUTPUT = 32_000  # measured for Opus 4.5
MOST_RESERVED = 20_000  # measured from 2.1.21 on
WHOLE, CAPPED, REFUSAL = "until-2.1.19", "2.1.21-2.1.152", "from-2.1.154"  # groups of versions with one rule
CAPPED_FROM = (2, 1, 21)  # 2.1.20 reserves all of the output
REFUSAL_FROM = (2, 1, 153)  # 2.1.152 has a threshold
LEAST_SET = 100_000  # a smaller CLAUDE_CODE_AUTO_COMPACT_WINDOW counts as this: measured in 2.1.100, 152, 200 and 330
MOST_OUTPUT = 64_000  # a larger CLAUDE_CODE_MAX_OUTPUT_TOKENS counts as this: 2.1.14 with Opus and Sonnet 4.5
SMALL_OUTPUTS = ("opus-4-0", "opus-4-1", "opus-4-2025")  # models whose most is MAX_OUTPUT: measured for Opus 4.1
SET_WINDOW_FROM = (2, 1, 81)  # 2.1.74 ignores a window that is set; versions between were not measured


def profile_of(version: str) -> str:
    """The group of versions with the same rule; a version that is not known counts as the newest."""
    number = numbers(version)
    if number and number < CAPPED_FROM:
        return WHOLE
    return CAPPED if number and number < REFUSAL_FROM else REFUSAL


def takes_window(version: str) -> bool:
    """Does a version know a window that is set for it."""
    number = numbers(version)
    return not number or number >= SET_WINDOW_FROM


def window_set(window: int, limit: int) -> int:
    """The window that counts where `limit` is set for a model's window."""
    return min(window, max(limit, LEAST_SET))


def most_output(model: str) -> int:
    """The most tokens that an answer of a model can be set to."""
    return MAX_OUTPUT if any(name in model for name in SMALL_OUTPUTS) else MOST_OUTPUT


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
    if profile == REFUSAL and set_window is None:
        return None
    if set_window is not None and takes_window(version):
        window = window_set(window, set_window)
    return threshold_of(window, reserve_of(profile, min(max_output, most_output(model))), percent)
