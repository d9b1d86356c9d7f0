"""Claude Code: window less the output's reserve less 13,000; from 2.1.153 on only if a window is set, or for models
that later versions compact by themselves (`own_window`). Up to 1.0.70 it is 92 % of what the reserve leaves.

Measured by running 1.0.30 to 2.1.332 against a scripted provider without remote feature flags, and on recordings. The
count is written into the recording (`preTokens`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from guard_core.agent_versions import numbers
from guard_core.claude_code_limits import (
    DEFAULT_WINDOW,
    LEAST_SET,
    MARGIN,
    MAX_OUTPUT,
    MOST_RESERVED,
    SHARE,
    UNLIMITED,
    WHOLE,
    chars_per_token,
    has_reserve,
    is_share_fixed,
    most_output,
    own_window,
    profile_of,
    reserve_of,
    takes_percent,
    takes_window,
    threshold_in,
    threshold_of,
    window_set,
)
from guard_core.costs import MODEL
from guard_core.ledger import Ints, Ledger
from guard_core.policies.claude_code import (
    FIRST_PICTURE,
    rounded_messages,
    rounded_messages_and_calls,
    rounded_messages_at_first,
    rounded_thirds,
)
from guard_core.recordings.formats.claude.requests import UNWRITTEN_TO
from guard_core.rules.base import Agent, Hypothesis, Keeps, KeptShape, Moment, OwnRule, Stretch
from guard_core.rules.counters import LAST_TOTAL, TOTAL_PENDING, Checks, RuleCounter
from guard_core.rules.settings import AUTO, SWITCH_WORDS, RuleNumber, Typed, chosen, percentage, whole, window_setting
from guard_core.rules.thresholds import RESERVES, round_limits, windows_of
from guard_core.sessions import Provenance, RecordedCompaction, Session, Sourced
from guard_core.views import Span
from guard_core.windows.agent_windows import taken_by_agent

# 2.1.0 counts the last answer alone, 2.1.2 what was appended since, too; a recording of 2.1.1 fits the former.
ESTIMATE_FROM = (2, 1, 2)
PICTURES_FROM = (2, 1, 44)  # 2.1.34 takes another size for a picture; versions between were not measured
CALLS_FROM = (2, 1, 74)  # 2.1.62 does not count the calls of the last answer; versions between were not measured
OUTPUTS = (*RESERVES, 4_096, 16_000, 24_000, 48_000)  # tokens; limits of answers that people set, for hypotheses
SET_STEP = 10_000  # tokens; windows that people set, for hypotheses with another setting beside them
BELOW_LEAST = f"counts as {LEAST_SET:,}"  # the environment variable
IN_SETTINGS = "settings_window"
NO_EFFECT = f"below {LEAST_SET:,} it has no effect"  # run: 50,000 and 120,000 in 2.1.332, 150,000 in 2.1.330
OWN = "Claude Code's own for this model"
NO_VERSION = "the file names no version, and from 2.1.153 on a threshold exists only where a window is set"


WORDS = "prompt and output tokens of the last answer, and characters / 4 of messages since"
WITH_CALLS = RuleCounter(
    TOTAL_PENDING, f"{WORDS} and of its own parts but the first", rounded_messages_and_calls, with_answer=True
)


def recorded_by(stretch: Stretch) -> RuleCounter | None:
    """What it writes down where that is not what it compares: of later models it reckons fewer characters as a token
    when it compares, and four when it writes (2.1.152 with Opus 4.7, 2.1.250 with Opus 5)."""
    return WITH_CALLS if chars_per_token(stretch.version, stretch.model) == 3 else None


def counter(stretch: Stretch) -> RuleCounter:
    """What this version compares."""
    words, number = WORDS, numbers(stretch.version)
    if () < number < ESTIMATE_FROM:
        return LAST_TOTAL
    if chars_per_token(stretch.version, stretch.model) == 3:
        words = f"{words.replace('/ 4', '/ 3')} and of its own parts but the first"
        return RuleCounter(TOTAL_PENDING, words, rounded_thirds, with_answer=True)
    if not number or number >= CALLS_FROM:
        return WITH_CALLS
    if number >= PICTURES_FROM:
        return RuleCounter(TOTAL_PENDING, words, rounded_messages)
    return RuleCounter(TOTAL_PENDING, f"{words}, a picture as {FIRST_PICTURE:,}", rounded_messages_at_first)


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The window less the answer's reserve and MARGIN tokens; to 1.0.70 it is 92 % of what the reserve leaves."""
    profile, window = profile_of(stretch.version), _window(stretch)
    most, known = whole(typed, "max_output_tokens"), stretch.setting("max_output_tokens")
    measured = "opus-4-5" in stretch.model or "opus-4-1" in stretch.model  # own_rules.md, section 2
    whose = "default of this model" if measured else "default of Opus 4.5; other models were not measured"
    output = chosen("max_output_tokens", most, MAX_OUTPUT, "tokens", whose, known)
    in_settings, typed_limit = whole(typed, IN_SETTINGS), whole(typed, "auto_compact_window")
    ignored = in_settings if in_settings is not None and in_settings < LEAST_SET else None  # it has no effect
    limit = in_settings if typed_limit is None and ignored is None else typed_limit
    is_unset = profile in UNLIMITED and limit is None
    own = own_window(stretch.version, stretch.model, window.value) if is_unset else None
    has_threshold, takes_limit = not is_unset or own is not None, takes_window(stretch.version)
    most_known = most_output(stretch.version, stretch.model)
    if profile != WHOLE and has_threshold and min(output.value or 0, most_known) > MOST_RESERVED:
        reserved = f"this version reserves at most {MOST_RESERVED:,} of it"
        output = msgspec.structs.replace(output, note="; ".join(filter(None, (output.note, reserved))))
    elif has_threshold and (output.value or 0) > most_known:
        output = msgspec.structs.replace(output, note=f"{output.note}; counts as {most_known:,}")
    settings = [window_setting(window), *((output,) if has_reserve(stretch.version) else ())]
    percent = percentage(typed, "autocompact_pct", is_fraction=False)
    settings += _share(stretch.version, percent)
    if ignored is not None:
        settings.append(RuleNumber(IN_SETTINGS, ignored, "tokens", Provenance.USER, f"typed in; {NO_EFFECT}"))
    if limit is not None:
        note = "typed in" if limit >= LEAST_SET else f"typed in; {BELOW_LEAST}"
        settings.append(RuleNumber("auto_compact_window", limit, "tokens", Provenance.USER, note))
    elif profile in UNLIMITED:
        note = "not set, as far as the file says" + ("" if own is None else f"; {OWN}")
        settings.append(RuleNumber("auto_compact_window", own, "tokens", Provenance.ASSUMED, note))
    size, reason = window.value, ""
    if own is not None:
        size = own
    elif is_unset:
        reason = "a threshold exists only where a window is set" if stretch.version else NO_VERSION
    elif limit is not None and takes_limit:
        size = window_set(size, limit)
    reserve = reserve_of(profile, min(int(output.value or 0), most_known))
    formula, threshold = threshold_in(stretch.version, size, reserve, percent)
    return OwnRule(
        policy="claude-code",
        profile=profile,
        settings=tuple(settings),
        counter=counter(stretch).name,
        threshold=None if reason else threshold,
        formula="the provider's refusal" if reason else formula,
        checks=Moment.REFUSAL if reason else Moment.BEFORE_CALL,
        reason=reason,
    )


def _share(version: str, percent: float | None) -> Iterator[RuleNumber]:
    """The share of the window in per cent at which a version compacts: its own, or one that was typed."""
    if is_share_fixed(version):
        yield RuleNumber("autocompact_pct", 100 * SHARE, "%", Provenance.ASSUMED, "fixed in this version")
    elif percent is not None and takes_percent(version):
        yield RuleNumber("autocompact_pct", percent, "%", Provenance.USER, "typed in")
    elif percent is not None:
        note = f"{percent:g} % typed in; this version does not know it"
        yield RuleNumber("autocompact_pct", None, "%", Provenance.USER, note)


def _window(stretch: Stretch) -> Sourced:
    """The window of a stretch; Claude Code's default where none is known."""
    window = stretch.window or Sourced(DEFAULT_WINDOW, Provenance.ASSUMED, "Claude Code's default")
    return taken_by_agent(AGENT.format, stretch.model, window, stretch.largest, stretch.version)


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Other thresholds that the formula gives: other windows, reserves, percentages."""
    default = rule(stretch, typed)
    own = stretch._replace(window=_window(stretch))
    profile = profile_of(stretch.version)
    known = stretch.setting("max_output_tokens")
    stated = whole(typed, "max_output_tokens") or (int(known.value) if known else MAX_OUTPUT)
    most = min(stated, most_output(stretch.version, stretch.model))
    reserve = reserve_of(profile, most)
    for window, other in windows_of(own):  # all outputs: a version that was not measured may reserve as older ones do
        changes = other + (default.threshold is None)
        yield from _variants(stretch.version, window, changes, reserve, OUTPUTS)
    if not stretch.version:
        yield Hypothesis(*threshold_of(_window(stretch).value, most, None), 1)
    if stretch.version and takes_window(stretch.version):
        size = _window(stretch).value
        for limit in (limit for limit in round_limits(size) if limit >= LEAST_SET):
            yield Hypothesis(*threshold_of(limit, reserve, None), 1)
        for limit in range(LEAST_SET, size, SET_STEP):
            yield from _variants(stretch.version, limit, 2, reserve, (size for size in OUTPUTS if size < MOST_RESERVED))


def _variants(version: str, window: int, changes: int, reserve: int, outputs: Iterable[int]) -> Iterator[Hypothesis]:
    for size in dict.fromkeys((reserve, *outputs)):
        formula, threshold = threshold_in(version, window, size)
        yield Hypothesis(formula, threshold, changes + (size != reserve))
    if not takes_percent(version):
        return
    for percent in range(1, 101):
        formula, threshold = threshold_of(window, reserve, float(percent))
        if threshold < window - reserve - MARGIN:
            yield Hypothesis(formula, threshold, changes + 1)


def fitted(stretch: Stretch, threshold: int) -> str:
    """What gives a threshold that no round number gives: a window that was set, in older versions an output."""
    if profile_of(stretch.version) in UNLIMITED:
        return threshold_of(threshold + MOST_RESERVED + MARGIN, MOST_RESERVED)[0]
    window = _window(stretch).value
    return threshold_of(window, window - MARGIN - threshold)[0]


def keeps(stretch: Stretch, rule: OwnRule) -> Keeps | None:
    """Measured by running 2.1.14, 2.1.21, 2.1.62, 2.1.100, 2.1.152, 2.1.154, 2.1.197, 2.1.250, 2.1.305, 2.1.310,
    2.1.330 and 2.1.332."""
    if rule.profile not in UNLIMITED:
        words = "the summary alone; up to five files, changed ones first, are attached again, and are not in the file"
        return Keeps(words, KeptShape.NOTHING)
    if not stretch.version:
        return None
    rounds = "the last answer"
    if rule.checks is Moment.REFUSAL:
        rounds = "so many of the last answers that what is left to summarise fits the window"
    return Keeps(f"the summary and {rounds}, with what follows", KeptShape.TAIL)


def shows_refusal(stretch: Stretch, ledger: Ledger, item: RecordedCompaction) -> str:
    """A compaction at a threshold keeps one round of tool calls; after a refused request as many are kept as have room
    (2.1.160 to 2.1.332, run with and without a window: 40 compactions at a threshold, 20 after a refusal). Several are
    kept, too, where the request for the summary was refused, so this shows nothing where the file has the requests,
    and would have the one that was refused (2.1.332, run)."""
    if stretch.setting("max_output_tokens") is not None and numbers(stretch.version) > UNWRITTEN_TO:
        return ""
    spans = [part for part in item.base if isinstance(part, Span) and part.stop <= item.at]
    flags = ledger.events["flags"]
    rounds = sum(int(np.count_nonzero(flags[span.start : span.stop] & MODEL)) for span in spans)
    return f"{rounds} rounds of tool calls were kept, as it does only after a refused request" if rounds > 1 else ""


def held(session: Session, ledger: Ledger, checks: Checks, _: Typed) -> Ints:
    """1 for each check behind the first answer, before any compaction: later versions keep the last answer with what
    follows it, and compact only where another answer is before that (2.1.160, 2.1.197 and 2.1.332, run; 2.1.152
    compacts)."""
    starts = [start for start, _ in session.versions]
    is_later = np.array([profile_of(version) in UNLIMITED for version in ("", *(name for _, name in session.versions))])
    at = np.append(ledger.steps["at"], len(session.events))[checks.step]
    return np.asarray((checks.last == 0) & (checks.step == 1) & is_later[np.searchsorted(starts, at, side="right")])


CLEARED = "old results were cleared since the last answer was counted, and what is left to count is not in the file"
# 2.1.332, run with a provider that fails to summarise
FAILING = "one that failed would not be in the file, and after three in a row it tries none until its next start"

AGENT = Agent(
    format="claude-code",
    label="Claude Code",
    rule=rule,
    plays={"claude-code": {"max_output_tokens": "max_output", "settings_window": "auto_compact_window"}},
    variants=variants,
    counter=counter,
    records_count=True,
    recorded_by=recorded_by,
    clears_apart=CLEARED,
    answers="max_output_tokens",
    held=held,
    held_reason="it keeps the last answer, and this is the first one, before which it summarises nothing",
    failing=FAILING,
    keeps=keeps,
    shows_refusal=shows_refusal,
    names={
        "max_output_tokens": "CLAUDE_CODE_MAX_OUTPUT_TOKENS, in tokens",
        "autocompact_pct": "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE, from 1 to 100",
        "auto_compact_window": "CLAUDE_CODE_AUTO_COMPACT_WINDOW, from 2.1.81 on, where less than 100,000 counts as "
        "100,000",
        IN_SETTINGS: "autoCompactWindow, where less than 100,000 has no effect; measured in 2.1.330 and 2.1.332",
        AUTO: SWITCH_WORDS,
    },
    fitted=fitted,
    aliases={
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "max_output_tokens",
        "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "autocompact_pct",
        "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "auto_compact_window",
        "autoCompactWindow": IN_SETTINGS,
        "autoCompactEnabled": AUTO,
        "DISABLE_AUTO_COMPACT": f"!{AUTO}",
        "DISABLE_COMPACT": f"!{AUTO}",
    },
)
