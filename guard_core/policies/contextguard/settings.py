"""ContextGuard's settings: every constant by name, with the defaults of the profile.

The exact profiles are `tail`, `early` and `current`, each a commit of the original (specification, section 1).
`fixed` is `current` with its defects mended; every mend is a switch of its own and may be set on any profile.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import msgspec

from guard_core import defaults
from guard_core.errors import SettingError
from guard_core.policies.settings import COUNT, NUMBER, SHARE, SIZE, SWITCH, TEXT, PolicyKind, Profile, Setting
from guard_core.tokens.calibration import Factors
from guard_core.windows.window import BufferRule, WindowLimits, limits


@dataclass(frozen=True)
class Settings:
    """Defaults are those of the profile `current`. Shares are of 1, sizes in the unit their comment names."""

    profile: str = "current"
    buffer: str = "auto"  # auto, tokens, or a share of the window "15%"
    default_factor: float = defaults.DEFAULT_FACTOR
    floor: float = defaults.FACTOR_FLOOR
    cap: float = defaults.FACTOR_CAP
    large_window: int = defaults.LARGE_WINDOW  # tokens
    large_inclusive: bool = True
    large_buffer: int = defaults.LARGE_BUFFER  # tokens
    small_ratio: float = defaults.SMALL_RATIO
    count_tools: bool = True
    count_inline: bool = True
    count_metadata: bool = True
    max_passes: int = defaults.MAX_PASSES
    marker_dash: str = defaults.HYPHEN
    summariser_share: float = defaults.SUMMARISER_SHARE
    output_share: float = defaults.OUTPUT_SHARE
    words_per_token: float = defaults.WORDS_PER_TOKEN
    fallback_excerpt: int = defaults.FALLBACK_EXCERPT  # bytes
    recent_ratio: float = defaults.RECENT_RATIO  # profile tail only
    max_turns: int = defaults.MAX_TURNS  # sliding window only: messages
    name_request: bool = True  # the continuation names the user's request (absent in the original's simulator)
    mend_request: bool = False  # later steps of the turn still name the user's request
    mend_retry: bool = False  # further passes are judged on calibrated tokens, not on raw ones
    mend_loop: bool = False  # no compaction that cannot get below the threshold while the request fits the window
    mend_fallback: bool = False  # a mechanical summary is never empty
    mend_growth: bool = False  # a mechanical summary stays within the summary's own budget
    mend_marker: bool = False  # user text that looks like a summary does not prevent re-injection
    mend_pairs: bool = False  # a cut never parts a tool call from its result
    mend_tail: bool = False  # sliding: the watermark covers what was summarised, not the messages kept
    mend_stacking: bool = False  # sliding: one continuation, however many passes
    mend_failure: bool = False  # sliding: a failed summariser is replaced by the mechanical summary

    @cached_property
    def factors(self) -> Factors:
        return Factors(self.default_factor, self.floor, self.cap)

    @cached_property
    def rule(self) -> BufferRule:
        names = ("buffer", "large_window", "large_inclusive", "large_buffer", "small_ratio")
        return BufferRule(**{name: getattr(self, name) for name in names})

    def limits(self, window: int) -> WindowLimits:
        """Buffer, threshold and summary limits of a window; the same at every step of a replay, so made once."""
        if window not in self._limits:
            self._limits[window] = limits(window, self.rule, self.output_share, self.words_per_token)
        return self._limits[window]

    @cached_property
    def _limits(self) -> dict[int, WindowLimits]:
        return {}


MENDS = tuple(field.name for field in fields(Settings) if field.name.startswith("mend_"))

_EARLY: dict[str, Any] = {
    "default_factor": defaults.EARLY_DEFAULT_FACTOR,
    "large_inclusive": False,
    "count_tools": False,
    "count_inline": False,
    "count_metadata": False,
    "marker_dash": defaults.EM_DASH,
}
PROFILES: dict[str, dict[str, Any]] = {
    "tail": {**_EARLY, "default_factor": 1.0},
    "early": {**_EARLY, "max_passes": defaults.EARLY_MAX_PASSES},
    "current": {},
    "fixed": dict.fromkeys(MENDS, True),
}
PROFILE_HELP = {
    "current": "the newest version of the original (commit 113391a)",
    "tail": "the first version: a summary and the most recent messages, no watermark (commit 5bdd637)",
    "early": "the version that the design documents describe (commit dc1ea47)",
    "fixed": "the newest version with its defects fixed",
}
PUBLISHED_PROFILES = tuple(Profile(name, text) for name, text in PROFILE_HELP.items())
_BUFFERS = ("auto", "5%", "10%", "15%", "20%", "25%", "30%")
_CAPS = (2.0, 3.0, defaults.FACTOR_CAP)
MOST_FACTOR = 100.0  # ours: a larger factor is a slip of the keyboard
_SPEC = "specification of ContextGuard"
_CALIBRATED = ("tail",)  # this profile compares the raw heuristic
_ALL = tuple(PROFILES)


def _setting(name: str, label: str, kind: str, text: str, source: str, **more: Any) -> Setting:
    values = {profile: changes[name] for profile, changes in PROFILES.items() if name in changes}
    return Setting(name, label, kind, getattr(Settings, name), text, f"{_SPEC}, {source}", profiles=values, **more)


def published(*, sliding: bool) -> tuple[Setting, ...]:
    """The settings of the threshold strategy or of the sliding window, as data."""
    factors = {"not_in": _ALL if sliding else _CALIBRATED, "main": True, "most": MOST_FACTOR, "unit": "factor"}
    never: dict[str, Any] = {"not_in": _ALL}
    on_threshold: dict[str, Any] = never if sliding else {}
    on_sliding: dict[str, Any] = {} if sliding else never
    passes = {"default": defaults.MAX_PASSES, "profiles": {}} if sliding else {}
    settings = (
        _setting(
            "buffer",
            "Buffer",
            SIZE,
            "auto, tokens, or a share of the window such as 15%",
            "section 4",
            unit="tokens",
            main=True,
            sweep=_BUFFERS,
        ),
        _setting(
            "default_factor",
            "Default factor",
            NUMBER,
            "correction factor until a provider count is known",
            "section 5",
            short="factor",
            **factors,
        ),
        _setting(
            "cap", "Factor cap", NUMBER, "upper limit of the correction factor", "section 5", sweep=_CAPS, **factors
        ),
        _setting("floor", "Factor floor", NUMBER, "lower limit of the correction factor", "section 5", **factors),
        _setting(
            "max_turns",
            "Messages",
            COUNT,
            "once more messages than this follow the watermark, the oldest are summarised",
            "section 8",
            unit="messages",
            least=1,
            main=sliding,
            **on_sliding,
        ),
        _setting(
            "large_window",
            "Large window",
            COUNT,
            "windows of at least this size have a fixed buffer",
            "section 4",
            unit="tokens",
        ),
        _setting(
            "large_inclusive",
            "Large window, inclusive",
            SWITCH,
            "a window of exactly that size counts as large",
            "section 4",
        ),
        _setting(
            "large_buffer", "Large window's buffer", COUNT, "buffer of a large window", "section 4", unit="tokens"
        ),
        _setting(
            "small_ratio", "Small window's buffer", SHARE, "buffer of a smaller window, as a share of it", "section 4"
        ),
        _setting("count_tools", "Count tools", SWITCH, "the heuristic estimate includes tool definitions", "section 3"),
        _setting(
            "count_inline",
            "Count inline data",
            SWITCH,
            "the heuristic estimate counts inline data, such as images, by its bytes",
            "section 3",
        ),
        _setting(
            "count_metadata",
            "Count metadata",
            SWITCH,
            "the heuristic estimate includes the metadata of parts",
            "section 3",
        ),
        msgspec.structs.replace(
            _setting("max_passes", "Passes", COUNT, "maximum passes of one compaction", "section 6", least=1), **passes
        ),
        _setting("marker_dash", "Marker dash", TEXT, "the dash in a summary's end marker", "section 7"),
        _setting(
            "summariser_share",
            "Summariser's share",
            SHARE,
            "share of the window that the summariser's input may fill",
            "section 6.4",
            **on_threshold,
        ),
        _setting(
            "output_share",
            "Summary's share",
            SHARE,
            "maximum length of a summary, as a share of the buffer",
            "section 4",
        ),
        _setting(
            "words_per_token",
            "Words per token",
            NUMBER,
            "turns the summary's token limit into words",
            "section 4",
            most=10,
        ),
        _setting(
            "fallback_excerpt",
            "Excerpt",
            COUNT,
            "length of each text's excerpt in a mechanical summary",
            "section 7",
            unit="bytes",
        ),
        _setting(
            "recent_ratio",
            "Recent share",
            SHARE,
            "share of the window kept verbatim",
            "section 10",
            not_in=_ALL if sliding else tuple(name for name in PROFILES if name != "tail"),
        ),
        _setting("name_request", "Name the request", SWITCH, "the continuation names the user's request", "section 7"),
        *(
            _setting(name, f"Correct {problem}", SWITCH, f"fix: {text}", "section 12")
            for name, (problem, text) in CORRECTIONS.items()
        ),
    )
    return tuple(settings)


CORRECTIONS = {  # each with the problem of the original that it corrects, and what is then so
    "mend_request": ("the lost request", "later steps of the turn still name the user's request"),
    "mend_retry": ("raw retries", "further passes are decided on calibrated tokens"),
    "mend_loop": (
        "the loop",
        "no compaction that cannot get below the threshold, as long as the request fits the window",
    ),
    "mend_fallback": ("the empty fallback", "a mechanical summary is never empty"),
    "mend_growth": ("the long fallback", "a mechanical summary stays within the summary's budget"),
    "mend_marker": (
        "the mistaken marker",
        "user text that looks like a summary does not prevent re-injection of the real one",
    ),
    "mend_pairs": ("parted calls", "a cut never separates a tool call from its result"),
    "mend_tail": ("the lost tail", "the watermark of the sliding window covers only what was summarised"),
    "mend_stacking": (
        "stacked continuations",
        "one continuation message, however many passes the sliding window makes",
    ),
    "mend_failure": ("the failed summary", "the sliding window replaces a failed summary with a mechanical one"),
}


def profile_settings(profile: str = "current", **changes: Any) -> Settings:
    """The settings of a profile of the threshold strategy with changes. Raises UnknownName or SettingError."""
    kind = PolicyKind("contextguard", "ContextGuard", "", Settings, published(sliding=False), PUBLISHED_PROFILES)
    return checked(Settings(**kind.values(profile, **changes)))


def checked(settings: Settings) -> Settings:
    """The same settings; SettingError where they contradict each other."""
    if settings.floor > settings.cap:
        raise SettingError(f"the floor {settings.floor:g} is above the cap {settings.cap:g}")
    if settings.max_passes < 1 or settings.max_turns < 1:
        raise SettingError("max_passes and max_turns are at least 1")
    if not settings.marker_dash or len(settings.marker_dash) > 8:
        raise SettingError("marker_dash is one to eight characters")
    for name in ("small_ratio", "summariser_share", "output_share", "recent_ratio"):
        if getattr(settings, name) > 1:
            raise SettingError(f"{name} is a share between 0 and 1")
    return settings
