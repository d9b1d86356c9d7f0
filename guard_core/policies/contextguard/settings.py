"""ContextGuard's settings: every constant by name, with the defaults of the profile.

The exact profiles are `tail`, `early` and `current`, each a commit of the original (specification, section 1).
`fixed` is `current` with its defects mended; every mend is a switch of its own and may be set on any profile.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from guard_core import defaults
from guard_core.errors import SettingError, UnknownName
from guard_core.tokens.calibration import Factors
from guard_core.window import BufferRule, Limits, limits, parse_buffer


@dataclass(frozen=True)
class Settings:
    """Defaults are those of the profile `current`. Shares are of 1, sizes in the unit their comment names."""

    profile: str = "current"
    buffer: str = "auto"  # auto, tokens, or a share of the window ("15%")
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
    mend_marker: bool = False  # a user's text that looks like a summary does not switch the injection off
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

    def limits(self, window: int) -> Limits:
        """Buffer, threshold and summary limits of a window; the same at every step of a replay, so made once."""
        if window not in self._limits:
            self._limits[window] = limits(window, self.rule, self.output_share, self.words_per_token)
        return self._limits[window]

    @cached_property
    def _limits(self) -> dict[int, Limits]:
        return {}


LARGEST_NUMBER, LARGEST_FACTOR = 10**12, 10**6  # products with any heuristic stay exact in a double and in 64 bits
MENDS = tuple(field.name for field in fields(Settings) if field.name.startswith("mend_"))
NAMES = tuple(field.name for field in fields(Settings))

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
_PASSES_OF_SLIDING = {"max_passes": defaults.MAX_PASSES}  # sliding retries in every profile


def profile_settings(profile: str = "current", *, sliding: bool = False, **changes: Any) -> Settings:
    """The settings of a profile with changes. Raises UnknownName or SettingError, naming what is allowed."""
    if profile not in PROFILES:
        raise UnknownName(f"there is no profile {str(profile)[:40]!r}; known are {', '.join(PROFILES)}")
    base = Settings(profile=profile, **{**PROFILES[profile], **(_PASSES_OF_SLIDING if sliding else {})})
    return checked(replace(base, **{name: parse(name, value) for name, value in changes.items()}))


def parse(name: str, value: Any) -> Any:
    """One setting from text or from a value of its own type. Raises SettingError."""
    if name not in NAMES or name == "profile":
        raise SettingError(f"ContextGuard has no setting {str(name)[:40]!r}; it has {', '.join(NAMES[1:])}")
    kind = type(getattr(Settings, name))
    if name == "buffer":
        return parse_buffer(str(value))
    if kind is bool:
        return _switch(name, value)
    if kind is str:
        return str(value)
    return _number(name, value, kind)


def _switch(name: str, value: Any) -> bool:
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    found = words.get(str(value).strip().lower())
    if found is None:
        raise SettingError(f"{name} is true or false, not {str(value)[:40]!r}")
    return found


def _number(name: str, value: Any, kind: type[int] | type[float]) -> int | float:
    try:
        number = kind(str(value).strip().replace("_", ""))
    except (ValueError, OverflowError):
        number = None
    if number is None or not 0 <= number <= (LARGEST_NUMBER if kind is int else LARGEST_FACTOR):  # also refuses nan
        what = "a whole number" if kind is int else "a number"
        raise SettingError(f"{name} is {what} from 0, not {str(value)[:40]!r}")
    return number


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
