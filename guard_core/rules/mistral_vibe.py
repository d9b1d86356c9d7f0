"""Mistral Vibe: a threshold that its settings name, else one that follows from the model's context length.

Measured by running 2.26.1, 3.0.2 and 3.0.3: compared before every call with the last answer's total or Vibe's own
estimate of the request, whichever is larger (`recordings.formats.vibe.estimate`). To 3.0.2 a declared context length of
the model sets 80 % of it, rounded down, a configured threshold is taken where it is below that length, without both it
is 200,000, and 0 is off. In 3.0.3 the default leaves 60,000 tokens of the length, within bounds, and a threshold
outside of them is refused. The session's files hold the threshold that results. Before 2.26 the count is the last
answer's total alone, compared before every call, too (1.3.5, 2.9.6, 2.12.1, 2.18.4 and 2.22.0, run;
vibe/core/middleware.py, `before_turn`); 168,000 is the threshold of one profile in 2.18.4
(https://github.com/mistralai/mistral-vibe at ac8f1a0), and until 1.1 the default was 100,000. A recording has the
format of its store instead of a version: 10 came with 3.0.3.
"""

from __future__ import annotations

from collections.abc import Iterable

from guard_core.agent_versions import numbers
from guard_core.policies.mistral_vibe.settings import (
    BOUNDED,
    CURRENT,
    DECLARED_SHARE,
    DEFAULT_THRESHOLD,
    OLDER,
    bounded_limit,
    default_threshold,
)
from guard_core.rules.base import Agent, Hypothesis, OwnRule, Stretch, switched_off
from guard_core.rules.counters import TOTAL, TOTAL_PENDING, RuleCounter
from guard_core.rules.settings import RuleNumber, Typed, whole
from guard_core.rules.thresholds import FRACTIONS, LARGEST_LIMIT, round_limits, share_of, windows_of
from guard_core.sessions import Provenance

THRESHOLD, LENGTH = "auto_compact_threshold", "max_context_length"
WINDOWS = (262_144, 131_072)  # tokens; of Mistral's models
OTHERS = (168_000, 100_000)  # tokens; defaults of a profile, and of 1.0
STORE, BOUNDED_FROM = "store ", ((3, 0, 3), (10,))  # the version and the format of the store with 3.0.3's rule
ESTIMATES_FROM = (2, 26)  # the first version whose own estimate of the request counts; 2.25.8 and 2.26.1, run
UNKNOWN_WINDOW = 262_144  # tokens; the window where it is not known, by 3.0.3 (completion_profile/bounds.py)
OFF = 0  # the threshold with which versions to 3.0.2 never compact by themselves
COUNTER = RuleCounter(
    TOTAL,
    "prompt and output tokens of the last answer, or Vibe's estimate of the request where that is more",
    is_recorded=True,
)
CORRECTED = RuleCounter(
    TOTAL_PENDING,
    "prompt and output tokens of the last answer and Vibe's corrected estimate of the messages since, or that of the"
    " whole request where it is more",
    is_recorded=True,
)


def is_bounded(version: str) -> bool:
    """Has a version the rule of 3.0.3; the older one where it is not known."""
    return numbers(version.removeprefix(STORE)) >= BOUNDED_FROM[version.startswith(STORE)]


def counter(stretch: Stretch) -> RuleCounter:
    """The count that the version compares."""
    return CORRECTED if is_bounded(stretch.version) else COUNTER


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The threshold that was typed, or that the file has, else the version's default; 0 is off."""
    settings, formula, threshold = _threshold(stretch, typed)
    own = OwnRule(
        policy="mistral-vibe",
        profile=_profile(stretch.version),
        settings=settings,
        counter=counter(stretch).name,
        threshold=threshold,
        formula=formula,
    )
    return own if threshold else switched_off(own)


def _profile(version: str) -> str:
    """The policy's profile of a version; a version that is not known is one of the store, from 2.26 on."""
    if is_bounded(version):
        return BOUNDED
    return OLDER if () < numbers(version.removeprefix(STORE)) < ESTIMATES_FROM and STORE not in version else CURRENT


def _threshold(stretch: Stretch, typed: Typed) -> tuple[tuple[RuleNumber, ...], str, int]:
    """The settings, the threshold as an expression and in tokens; OFF where it never compacts by itself."""
    least = 1 if is_bounded(stretch.version) else OFF
    own, length = whole(typed, THRESHOLD, least), whole(typed, LENGTH)
    if length is None and stretch.window is not None and stretch.window.source is Provenance.USER:
        length = stretch.window.value
    settings = []
    if length is not None:
        settings.append(RuleNumber(LENGTH, length, "tokens", Provenance.USER, "typed in"))
    if own is not None:
        settings.append(RuleNumber(THRESHOLD, own, "tokens", Provenance.USER, "typed in"))
    if own is not None and (length is None or own < length):
        return tuple(settings), f"auto_compact_threshold {own:,}", own
    if length is not None:
        return tuple(settings), *_of_window(length, stretch)
    if (known := stretch.setting(THRESHOLD)) is not None:
        setting = RuleNumber(THRESHOLD, known.value, "tokens", Provenance.RECORDER, known.note)
        return (setting,), f"{int(known.value):,} (in the file)", int(known.value)
    default = _default(stretch)
    setting = RuleNumber(THRESHOLD, default, "tokens", Provenance.ASSUMED, "default")
    return (setting,), f"{default:,} (default)", default


def _default(stretch: Stretch) -> int:
    """The threshold of a version where neither it nor the context length is declared, in tokens."""
    return default_threshold(UNKNOWN_WINDOW) if is_bounded(stretch.version) else DEFAULT_THRESHOLD


def _of_window(window: int, stretch: Stretch) -> tuple[str, int]:
    """The threshold that a context length sets, as an expression and in tokens."""
    if not is_bounded(stretch.version):
        return share_of(DECLARED_SHARE, window)
    return bounded_limit(window)


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """The default, thresholds of other windows, and those typed by hand."""
    yield Hypothesis(f"{_default(stretch):,} (default)", _default(stretch), 1)
    for window, other in (*((window, 0) for window in WINDOWS), *windows_of(stretch)):
        yield Hypothesis(*_of_window(window, stretch), other + 1)
        for share in FRACTIONS:
            yield Hypothesis(*share_of(share, window), other + 2)
    for limit in (*OTHERS, *round_limits(LARGEST_LIMIT)):
        yield Hypothesis(f"auto_compact_threshold {limit:,}", limit, 1)


AGENT = Agent(
    format="mistral-vibe",
    label="Mistral Vibe",
    rule=rule,
    plays={"mistral-vibe": {LENGTH: "window_declared"}},
    variants=variants,
    counter=counter,
    fitted=lambda _, limit: f"auto_compact_threshold {limit:,}",
    names={
        THRESHOLD: "of the model or of all, in tokens; 0 is off, as much as the context length has no effect"
        " (3.0.3: both are refused)",
        LENGTH: "as the model declares it, in tokens",
    },
)
