"""The rule by which the agent that wrote a recording compacts: its inequality with its own numbers and their sources.

OwnRule     one rule with its settings, for one stretch of a session
Stretch     calls of one model, one version of the agent and one context window
Agent       how the rule of an agent follows from a stretch and from what the user typed
Hypothesis  a threshold that the rule's formula gives with other settings
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import NamedTuple

import msgspec

from guard_core.defaults import MAX_WINDOW
from guard_core.errors import SettingError
from guard_core.ledger import Ints, Ledger
from guard_core.rules.counters import Checks, Counter, unit_of
from guard_core.sessions import AgentSetting, Provenance, Session, Sourced
from guard_core.sizes import parse_count
from guard_core.windows import models
from guard_core.windows.agent_windows import has_fixed_window

Typed = Mapping[str, str]  # settings as typed, by name

# Values that users and versions set, for hypotheses: windows of models and what is kept free of them, in tokens.
WINDOWS = (200_000, 400_000, 1_000_000, 128_000)
RESERVES = (8_192, 10_000, 16_384, 20_000, 32_000, 64_000)
FRACTIONS = (0.5, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
LARGEST_LIMIT = 1_000_000  # tokens, of limits typed by hand


class Moment(StrEnum):
    """When an agent compares its count with the threshold."""

    BEFORE_CALL = "before every call"
    TURN_END = "at the end of a turn"
    REFUSAL = "only when the provider refuses the request"
    NEVER = "never"


class RuleSetting(msgspec.Struct, frozen=True, gc=False):
    """A number that the rule is made of. None: not known, the note says why."""

    name: str
    value: float | None
    unit: str
    source: Provenance
    note: str = ""


class OwnRule(msgspec.Struct, frozen=True, gc=False):
    """The rule of an agent on one stretch of a session.

    It compacts where `count relation threshold`; `counter` names the count (guard_core.rules.counters), in tokens.
    `threshold` is None where there is none or a setting is not known, which `reason` says. `formula` is the threshold
    as a sum with its numbers. `profile` is the group of versions with the same rule. `is_window_assumed`: little or
    nothing says that the window among its settings is the model's. `is_window_doubted`: the agent compacted far below
    it.
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
    is_window_assumed: bool = False
    is_window_doubted: bool = False

    @property
    def window(self) -> Sourced | None:
        """The window in tokens that its threshold is made of, None where that is not known."""
        windows = (item for item in self.settings if item.name == WINDOW and item.value is not None)
        return next((Sourced(int(item.value or 0), item.source, item.note) for item in windows), None)

    @property
    def assumed_window(self) -> int | None:
        """The window in tokens that its threshold is made of where that is an assumption; None where it is none."""
        is_used = self.threshold is not None and self.is_window_assumed
        return self.window.value if is_used and self.window is not None else None

    def contradicted_by(self, largest: int) -> bool:
        """Does the threshold follow from a window below a prompt, in tokens, that was answered. A window that a person
        typed in is what was asked for."""
        window = self.window
        if window is None or self.threshold is None or window.source is Provenance.USER:
            return False
        return largest > window.value and f"{window.value:,}" in self.formula

    @property
    def is_known(self) -> bool:
        """Can a recording contradict it: not where a setting is missing, or where its window is an assumption."""
        is_missing = self.threshold is None and self.checks not in (Moment.REFUSAL, Moment.NEVER)
        return not is_missing and self.assumed_window is None

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
    in tokens. `settings` are the agent's own as far as the file has them. `is_window_doubted`: the agent compacts far
    below it.
    """

    start: int
    stop: int
    version: str
    model: str
    window: Sourced | None
    largest: int = 0
    settings: tuple[AgentSetting, ...] = ()
    is_window_doubted: bool = False

    @property
    def window_tokens(self) -> int:
        """Its window in tokens, 0 where that is not known."""
        return 0 if self.window is None else self.window.value

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


class Hypothesis(msgspec.Struct, frozen=True, gc=False):
    """A threshold in tokens that a known formula gives; `changes` counts the settings that differ from the default."""

    formula: str
    threshold: int
    changes: int


def no_hold(_: Session, __: Ledger, checks: Checks) -> Ints:
    """An agent that compacts whenever its rule fires."""
    return checks.step * 0


@dataclass(frozen=True)
class Agent:
    """How the rule of an agent follows from a stretch. One module of this package each.

    `names` are the settings that can be typed, with what they mean; `aliases` say which of them each name of the
    agent's own configuration or environment is: "!" before it where true and false are exchanged, WINDOW for the
    context window. `held` marks checks (not 0) at which the agent did not or could not compact for another reason than
    a count; `held_reason` says why. A compaction there at which the rule fires is compared like any other, for the file
    may not name a version that does compact there. `records_count`: the agent writes the compared count into the
    recording (`tokens_before`), from the version `records_from` on. `forgets_on_resume`: in a resumed session the last
    count is not known until the next answer. `clears_apart`: it clears old results by another rule than this one, and
    what it compares after that is not known until the next answer.
    `fitted` is the formula of a threshold that a setting typed by hand gives, for one that no listed variant explains.
    `wrote` says whether it wrote a session of this format; an empty format
    is any. `series` gives the counts of an agent that compares an estimate of its own. `keeps` says what stays
    verbatim at a compaction, None where it was not measured.
    """

    format: str
    label: str
    rule: Callable[[Stretch, Typed], OwnRule]
    variants: Callable[[Stretch, Typed], Iterable[Hypothesis]]
    counter: Callable[[Stretch], Counter]
    names: Mapping[str, str]
    aliases: Mapping[str, str] = field(default_factory=dict)
    held: Callable[[Session, Ledger, Checks], Ints] = no_hold
    held_reason: str = ""
    records_count: bool = False
    records_from: tuple[int, ...] = ()
    forgets_on_resume: bool = False
    clears_apart: bool = False
    wrote: Callable[[Session], bool] = lambda _: True
    fitted: Callable[[Stretch, int], str] | None = None
    series: Callable[[Session, Ledger, Checks, Stretch], Ints] | None = None
    keeps: Callable[[Stretch, OwnRule], Keeps | None] | None = None

    def check_typed(self, typed: Typed) -> None:
        """SettingError for a setting that this rule does not have."""
        self.named(typed)

    def has(self, typed: Typed) -> bool:
        """Does the rule have all of these settings."""
        return all(self._known.get(_plain(name)) or self._known.get(_plain(_last(name))) for name in typed)

    def named(self, typed: Typed) -> tuple[dict[str, str], Sourced | None]:
        """The settings by their names here, and the window where one is among them. Raises SettingError."""
        named: dict[str, str] = {}
        for spelled, value in typed.items():
            name, value = self._name_of(spelled, value)
            if named.setdefault(name, value) != value:
                raise SettingError(f"{name} of the rule of {self.label} is set twice, to {named[name]!r} and {value!r}")
        window = whole(named, WINDOW)
        named.pop(WINDOW, None)
        return named, None if window is None else Sourced(window, Provenance.USER, "typed in")

    def ruled(self, stretch: Stretch, typed: Typed) -> OwnRule:
        """The rule of a stretch; one without a threshold where automatic compaction is switched off."""
        rule = self.rule(stretch, typed)
        if not has_fixed_window(self.format) and rule.contradicted_by(stretch.largest):
            rule = self._without_window(stretch, typed)
        if rule.window is not None and models.is_assumed(rule.window, stretch.model):
            rule = msgspec.structs.replace(rule, is_window_assumed=True)
        if stretch.is_window_doubted and rule.window == stretch.window:
            rule = msgspec.structs.replace(rule, is_window_doubted=True)
        if switched(typed):
            return rule
        off = RuleSetting(AUTO, 0, "", Provenance.USER, "switched off")
        return msgspec.structs.replace(
            rule,
            settings=(*rule.settings, off),
            threshold=None,
            formula="",
            checks=Moment.NEVER,
            reason="automatic compaction is switched off",
        )

    def _without_window(self, stretch: Stretch, typed: Typed) -> OwnRule:
        """The rule where a larger prompt than its window was answered: by the agent's own default, else without a
        threshold."""
        rule = self.rule(stretch._replace(window=None), typed)
        if rule.window is not None and not rule.contradicted_by(stretch.largest):
            return rule
        reason = CONTRADICTED.format(stretch.largest, stretch.window_tokens)
        unknown = RuleSetting(WINDOW, None, "tokens", Provenance.ASSUMED, reason)
        settings = tuple(unknown if item.name == WINDOW else item for item in rule.settings)
        return msgspec.structs.replace(rule, settings=settings, threshold=None, reason=reason)

    @cached_property
    def _known(self) -> dict[str, str]:
        own = {_plain(name): name for name in (*self.names, WINDOW)}
        return {_plain(alias): name for alias, name in self.aliases.items()} | own

    def _name_of(self, spelled: str, value: str) -> tuple[str, str]:
        """A setting and its value by the name here: a dotted name may be given whole or by its last part."""
        name = self._known.get(_plain(spelled)) or self._known.get(_plain(_last(spelled)))
        if name is None:
            raise SettingError(f"the rule of {self.label} has no setting {spelled[:60]!r}; it has: {self._allowed()}")
        return (name[1:], _opposite(spelled, value)) if name.startswith("!") else (name, value)

    def _allowed(self) -> str:
        """The settings for an error message, each with what the agent calls it."""
        words = []
        for name in (*self.names, WINDOW):
            own = [alias for alias, known in self.aliases.items() if known.removeprefix("!") == name]
            words.append(f"{name} ({', '.join(own)})" if own else name)
        return ", ".join(words)


WINDOW = "window"  # the setting that every rule has: the context window of the model, in tokens
AUTO = "auto"  # the setting of agents that can be told not to compact by themselves
SWITCH_WORDS = "automatic compaction: on or off"
_ON, _OFF = ("on", "true", "yes", "1"), ("off", "false", "no", "0")


def switched(typed: Typed, name: str = AUTO) -> bool:
    """Is a switch on, as it is where it was not typed. Raises SettingError."""
    value = typed.get(name, "on").strip().lower()
    if value not in _ON + _OFF:
        raise SettingError(f"{name} is on or off (true or false), not {typed[name][:20]!r}")
    return value in _ON


def _opposite(name: str, value: str) -> str:
    return "off" if switched({name: value}, name) else "on"


def _last(name: str) -> str:
    """The last part of a dotted name."""
    return name.rpartition(".")[2]


def _plain(name: str) -> str:
    """A name without the marks by which spellings differ: `autoCompactWindow`, `auto_compact_window`."""
    return re.sub(r"[-_\s]", "", name).lower()


def whole(typed: Typed, name: str, least: int = 1) -> int | None:
    """A number of tokens as typed (k and M allowed), None where it was not. Raises SettingError."""
    if name not in typed:
        return None
    return parse_count(typed[name], name, least, MAX_WINDOW, "tokens")


def percentage(typed: Typed, name: str, *, is_fraction: bool = True) -> float | None:
    """A percentage of 1 to 100 as typed, None where it was not. `is_fraction`: the agent itself has fractions, so that
    0.2 is 20 %. Raises SettingError."""
    if name not in typed:
        return None
    text = typed[name].strip()
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = 0.0
    if is_fraction and 0 < value < 1 and not text.endswith("%"):
        value = round(value * 100, 6)
    if not 1 <= value <= 100:
        also = ", or a fraction from 0.01 to 1" if is_fraction else ""
        raise SettingError(f"{name} is a percentage from 1 to 100{also}, not {text[:20]!r}")
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


CONTRADICTED = "a prompt of {:,} tokens was answered, so the window is not {:,}: set it"
NO_WINDOW = "the context window is not known: set it"


def windows_of(stretch: Stretch, more: tuple[int, ...] = ()) -> tuple[tuple[int, int], ...]:
    """The windows that hypotheses are made of, each with the settings that differ: 0 for the stretch's own, which comes
    first. `more`: of the agent's models. Where the own one is not known, round numbers are tried, too."""
    return _windows(None if stretch.window is None else stretch.window.value, more)


@lru_cache(maxsize=32)  # asked for each model of a session
def _windows(own: int | None, more: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    known = tuple(dict.fromkeys((*WINDOWS, *more)))
    if own is not None:
        return ((own, 0), *((value, 1) for value in known if value != own))
    return (*((value, 1) for value in known), *((value, 2) for value in round_limits(LARGEST_LIMIT)))


def part_of(share: float, tokens: int) -> int:
    """A share of a number of tokens, rounded down as agents do."""
    return int(share * tokens)


@lru_cache(maxsize=32)
def round_limits(most: int) -> tuple[int, ...]:
    """Round numbers of tokens that a person may have typed, the roundest first."""
    units = (50_000, 10_000, 5_000, 1_000)
    return tuple(dict.fromkeys(limit for unit in units for limit in range(unit, min(most, LARGEST_LIMIT) + 1, unit)))
