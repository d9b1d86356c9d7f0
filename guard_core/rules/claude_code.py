"""Claude Code: window less the output's reserve less 13,000; from 2.1.154 on only if a window is set.

Measured by running 2.1.14 to 2.1.330 against a scripted provider without remote feature flags, and on recordings. The
count is written into the recording (`preTokens`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from guard_core.models import LONG_CONTEXT_SUFFIX
from guard_core.policies.claude_code import (
    CAPPED,
    MARGIN,
    MAX_OUTPUT,
    MOST_RESERVED,
    REFUSAL,
    WHOLE,
    rounded_results,
    rounded_results_and_reminders,
    threshold_of,
)
from guard_core.rules.base import (
    RESERVES,
    Agent,
    Hypothesis,
    Keeps,
    Moment,
    OwnRule,
    RuleSetting,
    Shape,
    Stretch,
    Typed,
    chosen,
    percentage,
    round_limits,
    whole,
    window_setting,
    windows_of,
)
from guard_core.rules.counters import TOTAL_PENDING, Counter
from guard_core.rules.versions import numbers
from guard_core.sessions import Provenance, Sourced

DEFAULT_WINDOW, LONG_WINDOW = 200_000, 1_000_000  # tokens; the second is used where a prompt was larger than the first
CAPPED_FROM = (2, 1, 21)  # 2.1.19 reserves all of the output; 2.1.20 was not measured
REFUSAL_FROM = (2, 1, 154)  # 2.1.152 has a threshold; 2.1.153 was not measured
REMINDERS_FROM = (2, 1, 330)  # counted there, not in 2.1.14; versions between were not measured
NO_VERSION = "the file names no version, and from 2.1.154 on a threshold exists only where a window is set"


def profile_of(version: str) -> str:
    """The group of versions with the same rule; a version that the file does not name counts as the newest."""
    number = numbers(version)
    if number and number < CAPPED_FROM:
        return WHOLE
    return CAPPED if number and number < REFUSAL_FROM else REFUSAL


def counter(stretch: Stretch) -> Counter:
    """What this version compares."""
    if numbers(stretch.version) >= REMINDERS_FROM:
        words = "prompt and output tokens of the last answer, and characters / 4 of results and reminders since"
        return Counter(TOTAL_PENDING, words, rounded_results_and_reminders)
    words = "prompt and output tokens of the last answer, and characters / 4 of tool results since"
    return Counter(TOTAL_PENDING, words, rounded_results)


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The rule of a stretch."""
    profile, window = profile_of(stretch.version), _window(stretch)
    most, known = whole(typed, "max_output_tokens"), stretch.setting("max_output_tokens")
    output = chosen("max_output_tokens", most, MAX_OUTPUT, "tokens", "default of Opus 4.5", known)
    settings = [window_setting(window), output]
    percent, limit = percentage(typed, "autocompact_pct"), whole(typed, "auto_compact_window")
    if percent is not None:
        settings.append(RuleSetting("autocompact_pct", percent, "%", Provenance.USER, "typed in"))
    if limit is not None:
        settings.append(RuleSetting("auto_compact_window", limit, "tokens", Provenance.USER, "typed in"))
    elif profile == REFUSAL:
        note = "not set, as far as the file says"
        settings.append(RuleSetting("auto_compact_window", None, "tokens", Provenance.ASSUMED, note))
    size, reason = window.value, ""
    if profile == REFUSAL and limit is None:
        reason = "a threshold exists only where a window is set" if stretch.version else NO_VERSION
    elif profile == REFUSAL:
        size = min(size, limit or size)
    reserve = int(output.value or 0) if profile == WHOLE else min(int(output.value or 0), MOST_RESERVED)
    formula, threshold = threshold_of(size, reserve, percent)
    return OwnRule(
        agent="Claude Code",
        version=stretch.version,
        policy="claude-code",
        profile=profile,
        settings=tuple(settings),
        counter=TOTAL_PENDING,
        relation=">=",
        threshold=None if reason else threshold,
        formula="the provider's refusal" if reason else formula,
        checks=Moment.REFUSAL if reason else Moment.BEFORE_CALL,
        reason=reason,
    )


def _window(stretch: Stretch) -> Sourced:
    """The window that Claude Code takes: 200,000 unless the model's name or a larger prompt says a million."""
    window = stretch.window or Sourced(DEFAULT_WINDOW, Provenance.ASSUMED, "Claude Code's default")
    is_table, is_marked = window.source is Provenance.MODEL_TABLE, stretch.model.endswith(LONG_CONTEXT_SUFFIX)
    if is_table and not is_marked and window.value > DEFAULT_WINDOW >= stretch.largest:
        note = f"Claude Code's default; no prompt was larger, though the model table has {window.value:,}"
        return Sourced(DEFAULT_WINDOW, Provenance.ASSUMED, note)
    if stretch.largest > window.value and window.source is not Provenance.USER and window.value < LONG_WINDOW:
        note = f"a prompt of {stretch.largest:,} tokens was answered, above {window.value:,}"
        return Sourced(LONG_WINDOW, Provenance.PROMPTS, note)
    return window


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Other thresholds that the formula gives: other windows, reserves, percentages."""
    default = rule(stretch, typed)
    if default.threshold is not None:
        yield Hypothesis(default.formula, default.threshold, 0)
    own = stretch._replace(window=_window(stretch))
    reserve = MAX_OUTPUT if profile_of(stretch.version) == WHOLE else MOST_RESERVED
    for window, other in windows_of(own):
        yield from _variants(window, other + (default.threshold is None), reserve)
    if profile_of(stretch.version) == REFUSAL and stretch.version:
        for limit in round_limits(_window(stretch).value):
            yield Hypothesis(*threshold_of(limit, reserve, None), 2)


def _variants(window: int, changes: int, reserve: int) -> Iterator[Hypothesis]:
    for size in dict.fromkeys((reserve, *RESERVES)):
        formula, threshold = threshold_of(window, size, None)
        yield Hypothesis(formula, threshold, changes + (size != reserve))
    for percent in range(1, 101):
        formula, threshold = threshold_of(window, reserve, float(percent))
        if threshold < window - reserve - MARGIN:
            yield Hypothesis(formula, threshold, changes + 1)


def keeps(stretch: Stretch, rule: OwnRule) -> Keeps | None:
    """Measured by running 2.1.14 and 2.1.330; versions between were not."""
    if rule.profile == WHOLE:
        words = "the summary alone; up to five files that were read last are attached again, and are not in the file"
        return Keeps(words, Shape.NOTHING)
    if numbers(stretch.version) < REMINDERS_FROM:
        return None
    rounds = "the last four rounds of tool calls" if rule.checks is Moment.REFUSAL else "the last round of tool calls"
    return Keeps(f"the summary and {rounds}", Shape.TAIL)


AGENT = Agent(
    format="claude-code",
    label="Claude Code",
    rule=rule,
    variants=variants,
    counter=counter,
    records_count=True,
    keeps=keeps,
    names={
        "max_output_tokens": "CLAUDE_CODE_MAX_OUTPUT_TOKENS, in tokens",
        "autocompact_pct": "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE, from 1 to 100",
        "auto_compact_window": "CLAUDE_CODE_AUTO_COMPACT_WINDOW or autoCompactWindow, in tokens; from 2.1.154 on",
    },
)
