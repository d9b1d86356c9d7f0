"""The rule by which the agent that wrote a recording compacts: its inequality with its own numbers and their sources.

OwnRule     one rule with its settings, for one stretch of a session
Stretch     calls of one model, one version of the agent and one context window
Agent       how the rule of an agent follows from a stretch and from what the user typed
Hypothesis  a threshold that the rule's formula gives with other settings
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import msgspec

from guard_core.errors import SettingError
from guard_core.ledger import Ints, Ledger
from guard_core.rules.counters import Checks, Counter, unit_of
from guard_core.sessions import AgentSetting, Provenance, Session, Sourced
from guard_core.window import parse_window

Typed = Mapping[str, str]  # settings as typed, by name

# Values that users and versions set, for hypotheses: windows of models and what is kept free of them, in tokens.
WINDOWS = (200_000, 400_000, 1_000_000, 128_000)
RESERVES = (8_192, 10_000, 16_384, 20_000, 32_000, 64_000)
FRACTIONS = (0.5, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
LARGEST_LIMIT = 1_000_000  # tokens, of limits typed by hand
_INNER_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Moment(StrEnum):
    """When an agent compares its count with the threshold."""

    BEFORE_CALL = "before every call"
    TURN_END = "at the end of a turn"
    REFUSAL = "only when the provider refuses the request"


class RuleSetting(msgspec.Struct, frozen=True):
    """A number that the rule is made of. None: not known, the note says why."""

    name: str
    value: float | None
    unit: str
    source: Provenance
    note: str = ""


class OwnRule(msgspec.Struct, frozen=True):
    """The rule of an agent on one stretch of a session.

    It compacts where `count relation threshold`; `counter` names the count (guard_core.rules.counters), in tokens.
    `threshold` is None where there is none or a setting is not known, which `reason` says. `formula` is the threshold
    as a sum with its numbers. `profile` is the group of versions with the same rule.
    """

    agent: str
    version: str
    policy: str
    profile: str
    settings: tuple[RuleSetting, ...]
    counter: str
    relation: str
    threshold: int | None
    formula: str
    checks: Moment
    reason: str = ""

    @property
    def unit(self) -> str:
        """What its count and its threshold are numbers of."""
        return unit_of(self.counter)

    def fires(self, count: int) -> bool:
        """Does the rule compact at a count of tokens."""
        if self.threshold is None:
            return False
        return count > self.threshold if self.relation == ">" else count >= self.threshold


class Stretch(NamedTuple):
    """Calls from `start` up to `stop` (steps from 0) of one model, version and window.

    `window` is None where neither the file nor the model table has it. `largest` is the largest prompt among the calls
    in tokens. `settings` are the agent's own as far as the file has them.
    """

    start: int
    stop: int
    version: str
    model: str
    window: Sourced | None
    largest: int = 0
    settings: tuple[AgentSetting, ...] = ()

    def setting(self, name: str) -> AgentSetting | None:
        """A setting in the file, by its name."""
        return next((item for item in self.settings if item.name == name), None)


class Shape(StrEnum):
    """Which messages of the log an agent keeps as they were."""

    NOTHING = "none"
    USERS = "users' messages, and what the agent's software added"
    TAIL = "the newest"


class Keeps(msgspec.Struct, frozen=True):
    """What a rule keeps at a compaction: in words, and what can be checked of it. `limit` is in tokens, bytes / 4.

    `is_derived`: the file does not say what was kept, so that its reader takes it from the rule.
    """

    words: str
    shape: Shape
    limit: int | None = None
    is_derived: bool = False


class Hypothesis(msgspec.Struct, frozen=True):
    """A threshold in tokens that a known formula gives; `changes` counts the settings that differ from the default."""

    formula: str
    threshold: int
    changes: int


def no_hold(_: Ledger, checks: Checks) -> Ints:
    """An agent that compacts whenever its rule fires."""
    return checks.step * 0


@dataclass(frozen=True)
class Agent:
    """How the rule of an agent follows from a stretch. One module of this package each.

    `names` are the settings that can be typed, with what they mean. `held` marks checks (not 0) at which the agent
    cannot compact even though its rule fires; `held_reason` says why. `records_count`: the agent writes the compared
    count into the recording (`tokens_before`). `forgets_on_resume`: in a resumed session the last count is not known
    until the next answer. `wrote` says whether it wrote a session of this format; an empty format
    is any. `series` gives the counts of an agent that compares an estimate of its own. `keeps` says what stays
    verbatim at a compaction, None where it was not measured.
    """

    format: str
    label: str
    rule: Callable[[Stretch, Typed], OwnRule]
    variants: Callable[[Stretch, Typed], Iterable[Hypothesis]]
    counter: Callable[[Stretch], Counter]
    names: Mapping[str, str]
    held: Callable[[Ledger, Checks], Ints] = no_hold
    held_reason: str = ""
    records_count: bool = False
    forgets_on_resume: bool = False
    wrote: Callable[[Session], bool] = lambda _: True
    series: Callable[[Session, Ledger, Checks, Stretch], Ints] | None = None
    keeps: Callable[[Stretch, OwnRule], Keeps | None] | None = None

    def check_typed(self, typed: Typed) -> None:
        """SettingError for a setting that this rule does not have."""
        for name in typed:
            if name not in self.names:
                known = ", ".join(self.names) or "none"
                raise SettingError(f"the rule of {self.label} has no setting {name[:40]!r}; it has: {known}")


def setting_name(text: str) -> str:
    """A setting's name here, of that in an agent's configuration: `context.autoCompactThreshold` is
    `auto_compact_threshold`."""
    return _INNER_CAPITAL.sub("_", text.rpartition(".")[2]).lower()


def whole(typed: Typed, name: str) -> int | None:
    """A number of tokens as typed (k and M allowed), None where it was not. Raises SettingError."""
    if name not in typed:
        return None
    try:
        return parse_window(typed[name])
    except SettingError as error:
        raise SettingError(f"{name}: {error}") from error


def percentage(typed: Typed, name: str) -> float | None:
    """A percentage of 1 to 100 as typed, None where it was not. Raises SettingError."""
    if name not in typed:
        return None
    try:
        value = float(typed[name].strip().removesuffix("%"))
    except ValueError:
        value = 0.0
    if not 1 <= value <= 100:
        raise SettingError(f"{name} is a percentage from 1 to 100, not {typed[name][:20]!r}")
    return value


def fraction(typed: Typed, name: str, least: float = 0.01, most: float = 1.0) -> float | None:
    """A fraction as typed (0.85, 85%), None where it was not. Raises SettingError."""
    if name not in typed:
        return None
    text = typed[name].strip()
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not least <= value <= most:
        raise SettingError(f"{name} is a fraction from {least:g} to {most:g}, not {text[:20]!r}")
    return value


def chosen(
    name: str, value: float | None, default: float, unit: str, note: str, known: AgentSetting | None = None
) -> RuleSetting:
    """A setting that was typed, else that of the file, else its default, an assumption: `note` says of what."""
    if value is not None:
        return RuleSetting(name, value, unit, Provenance.USER, "typed in")
    if known is not None:
        return RuleSetting(name, known.value, unit, Provenance.RECORDER, known.note)
    return RuleSetting(name, default, unit, Provenance.ASSUMED, note)


def window_setting(window: Sourced | None) -> RuleSetting:
    """The context window as a setting of a rule."""
    if window is None:
        note = "neither the file nor the model table has it"
        return RuleSetting("window", None, "tokens", Provenance.ASSUMED, note)
    return RuleSetting("window", window.value, "tokens", window.source, window.note)


NO_WINDOW = "the context window is not known: set it"


def windows_of(stretch: Stretch, more: tuple[int, ...] = ()) -> list[tuple[int, int]]:
    """The windows that hypotheses are made of, each with the settings that differ: 0 for the stretch's own, which comes
    first. `more`: of the agent's models. Where the own one is not known, round numbers are tried, too."""
    known = tuple(dict.fromkeys((*WINDOWS, *more)))
    if stretch.window is not None:
        own = stretch.window.value
        return [(own, 0), *((value, 1) for value in known if value != own)]
    return [*((value, 1) for value in known), *((value, 2) for value in round_limits(LARGEST_LIMIT))]


def part_of(share: float, tokens: int) -> int:
    """A share of a number of tokens, rounded down as agents do."""
    return int(share * tokens)


def round_limits(most: int) -> Iterator[int]:
    """Round numbers of tokens that a person may have typed, the roundest first."""
    seen: set[int] = set()
    for unit in (50_000, 10_000, 5_000, 1_000):
        for limit in range(unit, min(most, LARGEST_LIMIT) + 1, unit):
            if limit not in seen:
                seen.add(limit)
                yield limit
