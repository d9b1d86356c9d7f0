"""The rule by which the agent that wrote a recording compacts: its inequality with its own numbers and their sources.

OwnRule     one rule with its settings, for one stretch of a session
Stretch     calls of one model, one version of the agent and one context window
Agent       how the rule of an agent follows from a stretch and from what the user typed
Hypothesis  a threshold that the rule's formula gives with other settings
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

import msgspec

from guard_core.errors import SettingError
from guard_core.ledger import Ints, Ledger
from guard_core.rules.counters import Checks, RuleCounter, unit_of
from guard_core.rules.settings import AUTO, OF_MODEL, WINDOW, RuleNumber, Typed, switched, whole
from guard_core.sessions import AgentSetting, Provenance, RecordedCompaction, Session, Sourced
from guard_core.windows import models
from guard_core.windows.agent_windows import has_fixed_window

NOTHING_LEFT = "max("  # begins a formula "max(30,000 − 50,000 (reserve), 0)"
_NUMBER = re.compile(r"\d[\d,]*")


class Moment(StrEnum):
    """When an agent compares its count with the threshold."""

    BEFORE_CALL = "before every call"
    TURN_END = "at the end of a turn"
    REFUSAL = "only when the provider refuses the request"
    GUARD = "where its guard checks"
    NEVER = "never"


class OwnRule(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The rule of an agent on one stretch of a session.

    It compacts where `count relation threshold`; `counter` names the count (guard_core.rules.counters), in tokens.
    `threshold` is None where there is none or a setting is not known, which `reason` says. `formula` is the threshold
    as a sum with its numbers. `profile` is the group of versions with the same rule. `is_window_assumed`: little or
    nothing says that the window among its settings is the model's. `is_window_doubted`: the agent compacted far below
    it. `failing` says why a compaction may have failed at a check that seems to have passed, "" where the file would
    show it or that was not measured. A module states what differs from the values below; `Agent.ruled` adds agent,
    version, `failing` and the usual reason.
    """

    agent: str = ""
    version: str = ""
    policy: str
    profile: str = "current"
    settings: tuple[RuleNumber, ...]
    counter: str
    relation: str = ">="
    threshold: int | None
    formula: str
    checks: Moment = Moment.BEFORE_CALL
    reason: str = ""
    is_window_assumed: bool = False
    is_window_doubted: bool = False
    failing: str = ""

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
        typed in, or that a guard was given, is what was asked for."""
        window = self.window
        if window is None or self.threshold is None or window.source is Provenance.USER or self.checks is Moment.GUARD:
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


def switched_off(rule: OwnRule, *settings: RuleNumber) -> OwnRule:
    """A rule whose automatic compaction is switched off, by `settings` besides its own."""
    return msgspec.structs.replace(
        rule,
        settings=(*rule.settings, *settings),
        threshold=None,
        formula="",
        checks=Moment.NEVER,
        reason="automatic compaction is switched off",
    )


def equation(threshold: int, formula: str, sign: str = " = ") -> str:
    """A threshold in tokens and the sum that gives it: "155,000 = 200,000 − 45,000". A formula that is that very number
    ("40,000 (in the file)") says it alone, and one that leaves nothing says so."""
    if not threshold and formula.startswith(NOTHING_LEFT):
        return f"{formula.removeprefix(NOTHING_LEFT).removesuffix(', 0)')} leaves nothing"
    is_sum = any(mark in formula for mark in "−%/")
    if not is_sum and _NUMBER.findall(formula) == [f"{threshold:,}"]:
        return formula
    return f"{threshold:,}{sign}{formula}"


class Stretch(NamedTuple):
    """Calls from `start` up to `stop` (steps from 0) of one model, version and window.

    `window` is None where neither the file nor the model table has it. `largest` is the largest prompt among the calls
    in tokens. `settings` are the agent's own as far as the file has them. `is_window_doubted`: the agent compacts far
    below it. `guarded_by` is the policy that guarded the agent, by its name, empty where none is known.
    """

    start: int
    stop: int
    version: str
    model: str
    window: Sourced | None
    largest: int = 0
    settings: tuple[AgentSetting, ...] = ()
    is_window_doubted: bool = False
    guarded_by: str = ""

    @property
    def window_tokens(self) -> int:
        """Its window in tokens, 0 where that is not known."""
        return 0 if self.window is None else self.window.value

    def setting(self, name: str) -> AgentSetting | None:
        """A setting in the file, by its name."""
        return next((item for item in self.settings if item.name == name), None)


class KeptShape(StrEnum):
    """Which messages of the log an agent keeps as they were."""

    NOTHING = "none"
    USERS = "users' messages, and what the agent's software added"
    TAIL = "the newest"


class Keeps(msgspec.Struct, frozen=True):
    """What a rule keeps at a compaction: in words, and what can be checked of it. `limit` is in tokens, bytes / 4.

    `is_derived`: the file does not say what was kept, so that its reader takes it from the rule.
    """

    words: str
    shape: KeptShape
    limit: int | None = None
    is_derived: bool = False


class Hypothesis(msgspec.Struct, frozen=True, gc=False):
    """A threshold in tokens that a known formula gives; `changes` counts the settings that differ from the default."""

    formula: str
    threshold: int
    changes: int


def no_hold(_: Session, __: Ledger, checks: Checks, ___: Typed) -> Ints:
    """An agent that compacts whenever its rule fires."""
    return checks.step * 0


CONTRADICTED = "a prompt of {:,} tokens was answered, so the window is not {:,}: set it"
NO_WINDOW = "the context window is not known: set it"


@dataclass(frozen=True)
class Agent:
    """How the rule of an agent follows from a stretch. One module of this package each.

    `rule` and `variants` are called by `ruled` and `hypotheses` alone; `variants` are thresholds with other settings.
    `names` are the settings that can be typed, with what they mean; `aliases` say which of them each name of the
    agent's own configuration or environment is: "!" before it where true and false are exchanged, WINDOW for the
    context window. `held` marks checks (not 0) at which the agent did not or could not compact for another reason than
    a count; `held_reason` says why, of an agent with several reasons one for each bit of that mark. `uncounted` says
    why a check has no count, where that is not for want of the provider's. A compaction there at which the rule fires
    is compared like any other, for the file may not name a version that does compact there. `records_count`: the agent
    writes the compared count into the recording (`tokens_before`), from the version `records_from` on; `recorded_by` is
    the counter of that where what is pending is estimated otherwise than for the count compared. `forgets_on_resume`:
    in a resumed session the last count is not known until the next answer. `clears_apart` says why what it compares is
    not known until the next answer once the file says that messages were cleared or changed, "" where it is.
    `fitted` is the formula of a threshold that a setting typed by hand gives, for one that no listed variant explains.
    `wrote` says whether it wrote a session of this format; an empty format is any. `series` gives the counts of an
    agent that compares an estimate of its own, `settled` bounds of those at compactions, by which its rule fires or
    does not, UNKNOWN where that is open. `learns` gives the windows that it has learned itself, each with the step from
    which it uses it where it is smaller. `keeps` says what stays verbatim at a compaction, None where it was not
    measured. `shows_refusal` says by what a compaction shows that a refused request forced it, "" where nothing does.
    `uses_stated_window`: the window in its file is its own, which it uses whatever its model accepts. `answers` is the
    setting of the most tokens that it allows an answer, "" where its rule has none. `failing` is as in `OwnRule`.
    `scoped` is the counter that a setting makes of another one. `turn_ends` are thresholds that it may have besides at
    the ends of turns: first, without a change, that of a setting that was typed. `within_turns` says what else than its
    rule makes an agent compact within a turn that looks at the ends of turns alone. `plays`: policies whose replays use
    the settings of its rule, each with the names that these have there, where they differ.
    """

    format: str
    label: str
    rule: Callable[[Stretch, Typed], OwnRule]
    variants: Callable[[Stretch, Typed], Iterable[Hypothesis]]
    counter: Callable[[Stretch], RuleCounter]
    names: Mapping[str, str]
    plays: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    held: Callable[[Session, Ledger, Checks, Typed], Ints] = no_hold
    held_reason: str | Mapping[int, str] = ""
    uncounted: str = ""
    records_count: bool = False
    records_from: tuple[int, ...] = ()
    recorded_by: Callable[[Stretch], RuleCounter | None] = lambda _: None
    forgets_on_resume: bool = False
    clears_apart: str = ""
    uses_stated_window: bool = False
    answers: str = ""
    failing: str = ""
    shows_refusal: Callable[[Stretch, Ledger, RecordedCompaction], str] = lambda _, __, ___: ""
    wrote: Callable[[Session], bool] = lambda _: True
    fitted: Callable[[Stretch, int], str] | None = None
    series: Callable[[Session, Ledger, Checks, Stretch], Ints] | None = None
    settled: Callable[[Session, Ledger, Checks, OwnRule], Ints] | None = None
    learns: Callable[[Session, Ledger], Iterable[tuple[int, Sourced]]] | None = None
    keeps: Callable[[Stretch, OwnRule], Keeps | None] | None = None
    turn_ends: Callable[[Stretch, Typed], Iterable[Hypothesis]] | None = None
    within_turns: str = "after a refused request, or because a person asked for it"
    scoped: Callable[[RuleCounter, Stretch, Typed], RuleCounter] = lambda counter, _, __: counter

    def compared(self, stretch: Stretch, typed: Typed) -> RuleCounter:
        """What is compared in a stretch with the settings that were typed."""
        return self.scoped(self.counter(stretch), stretch, typed)

    def why_held(self, mark: int) -> str:
        """Why it did not or could not compact at a check with a mark."""
        if isinstance(self.held_reason, str):
            return self.held_reason
        return ", or ".join(reason for bit, reason in self.held_reason.items() if mark & bit)

    def check_typed(self, typed: Typed) -> None:
        """SettingError for a setting that this rule does not have."""
        self.named(typed)

    def has(self, typed: Typed) -> bool:
        """Does the rule have all of these settings."""
        names = [name.partition(OF_MODEL)[0] for name in typed]
        return all(self._known.get(_plain(name)) or self._known.get(_plain(_last(name))) for name in names)

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
        rule = self._stated(stretch, typed)
        # Does the agent go by this window whatever its model accepts?
        is_stated = stretch.window is not None and stretch.window.source is Provenance.RECORDER
        is_fixed = has_fixed_window(self.format) or (self.uses_stated_window and is_stated)
        if not is_fixed and rule.contradicted_by(stretch.largest):
            rule = self._without_window(stretch, typed)
        if rule.window is not None and models.is_assumed(rule.window, stretch.model):
            rule = msgspec.structs.replace(rule, is_window_assumed=True)
        if stretch.is_window_doubted and rule.window == stretch.window:
            rule = msgspec.structs.replace(rule, is_window_doubted=True)
        return rule if switched(typed) else switched_off(rule, RuleNumber(AUTO, 0, "", Provenance.USER, "switched off"))

    def hypotheses(self, stretch: Stretch, typed: Typed) -> Iterator[Hypothesis]:
        """Thresholds that the rule gives: its own first, then those with other settings."""
        own = self.rule(stretch, typed)
        if own.threshold is not None:
            yield Hypothesis(own.formula, own.threshold, 0)
        yield from self.variants(stretch, typed)

    def _stated(self, stretch: Stretch, typed: Typed) -> OwnRule:
        """The rule as its module states it, with agent, version, and why there is no threshold."""
        rule = self.rule(stretch, typed)
        reason = rule.reason or (NO_WINDOW if rule.threshold is None else "")
        about = {"agent": rule.agent or self.label, "version": stretch.version, "failing": self.failing}
        return msgspec.structs.replace(rule, **about, reason=reason)

    def _without_window(self, stretch: Stretch, typed: Typed) -> OwnRule:
        """The rule where a larger prompt than its window was answered: by the agent's own default, else without a
        threshold."""
        rule = self._stated(stretch._replace(window=None), typed)
        if rule.window is not None and not rule.contradicted_by(stretch.largest):
            return rule
        reason = CONTRADICTED.format(stretch.largest, stretch.window_tokens)
        unknown = RuleNumber(WINDOW, None, "tokens", Provenance.ASSUMED, reason)
        settings = tuple(unknown if item.name == WINDOW else item for item in rule.settings)
        return msgspec.structs.replace(rule, settings=settings, threshold=None, reason=reason)

    @property
    def bounds_counts(self) -> bool:
        """Is what is known of its count at a compaction a bound alone: below a threshold it was at most that."""
        return self.settled is not None

    @cached_property
    def _known(self) -> dict[str, str]:
        own = {_plain(name): name for name in (*self.names, WINDOW)}
        return {_plain(alias): name for alias, name in self.aliases.items()} | own

    def _name_of(self, spelled: str, value: str) -> tuple[str, str]:
        """A setting and its value by the name here: a dotted name may be given whole or by its last part, a window with
        the model whose window it is."""
        spelled, _, model = spelled.partition(OF_MODEL)
        names = (self.aliases.get(_last(spelled)), *(self._known.get(_plain(one)) for one in (spelled, _last(spelled))))
        name = next(filter(None, names), None)
        if name is None:
            raise SettingError(f"the rule of {self.label} has no setting {spelled[:60]!r}; it has: {self._allowed()}")
        if model and name != WINDOW:
            raise SettingError(f"{name} of the rule of {self.label} is one for all models, not one for {model[:60]!r}")
        if model:
            name = f"{WINDOW}{OF_MODEL}{model}"
            whole({name: value}, name)
        if not name.startswith("!"):
            return name, value
        return name[1:], "off" if switched({spelled: value}, spelled) else "on"

    def _allowed(self) -> str:
        """The settings for an error message, each with what the agent calls it."""
        words = []
        for name in (*self.names, WINDOW):
            own = [alias for alias, known in self.aliases.items() if known.removeprefix("!") == name]
            words.append(f"{name} ({', '.join(own)})" if own else name)
        return ", ".join(words)


def _last(name: str) -> str:
    """The last part of a dotted name."""
    return name.rpartition(".")[2]


def _plain(name: str) -> str:
    """A name without the marks by which spellings differ: `autoCompactWindow`, `auto_compact_window`."""
    return re.sub(r"[-_\s]", "", name).lower()
