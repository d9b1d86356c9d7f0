"""The settings that are tried, nearest first: one changed setting, another version, a larger window, another policy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from guard_core.errors import GuardError
from guard_core.findings.facts import Facts
from guard_core.policies import DEFAULT_POLICY, GROUPS, POLICIES, PolicyKind, Setting
from guard_core.policies.settings import CHOICE, COUNT, NUMBER, SHARE, SIZE, SWITCH, Value

SETTING, PROFILE, WINDOW, POLICY = "setting", "profile", "window", "policy"
TIERS = (SETTING, PROFILE, WINDOW, POLICY)
# Ours: what is tried of a setting, as multiples of its value, and of a share.
FACTORS = (0.25, 0.33, 0.5, 0.67, 0.8, 0.9, 1.1, 1.25, 1.5, 2, 2.5, 3, 4, 6, 8)
SHARES = tuple(number / 20 for number in range(1, 20))
PARTS = tuple(f"{number}%" for number in range(5, 100, 5))  # of the window
# Of the window, for a limit in tokens that is not set: the loosest is the nearest to none.
LIMITS = (0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3)
WINDOWS = (128_000, 200_000, 256_000, 400_000, 1_000_000, 2_000_000)  # tokens, of models in the price table
OTHERS = ("Baseline", "ContextGuard", "Agents")  # groups of policies that guard a whole agent
MOST_SETTINGS = 150  # values of settings that are tried


@dataclass(frozen=True)
class StartingSettings:
    """The settings that are changed: a policy with `values` that are not at its defaults, and a window in tokens.
    `name` is how sentences call it; `kind` is None where the rule of the recording's agent is not known."""

    kind: PolicyKind | None
    values: dict[str, Any]
    window: int
    name: str


class Way(msgspec.Struct, frozen=True):
    """One change. `settings` are what the policy is made with, `window` is in tokens; `name`, `old` and `new` are what
    was changed, from which value and to which, `label` how people call it."""

    tier: str
    policy: str
    settings: dict[str, Any]
    window: int
    name: str
    label: str
    old: Value
    new: Value
    unit: str = ""


def base_of(facts: Facts) -> StartingSettings:
    """The rule by which a recording compacted; ContextGuard for one that was only simulated."""
    window, rule = facts.window.value, facts.explanation.rule
    if facts.is_contextguards:
        kind = POLICIES[DEFAULT_POLICY]
        return StartingSettings(kind, facts.made_with(kind), window, kind.title)
    if rule is None or rule.policy not in POLICIES:
        return StartingSettings(None, {}, window, "the recording's own rule")
    kind = POLICIES[rule.policy]
    return StartingSettings(kind, facts.made_with(kind), window, kind.title)


def ways(base: StartingSettings, tier: str) -> list[Way]:
    """The changes of one tier, nearest first: by the logarithm of the change, or in the order that is published."""
    if tier == POLICY:
        return list(_policies(base))
    if tier == WINDOW:
        policy, old = base.kind.name if base.kind else "none", base.window
        sizes = (size for size in WINDOWS if size > old)
        return [Way(WINDOW, policy, base.values, size, "window", "window", old, size, "tokens") for size in sizes]
    if base.kind is None:
        return []
    return list(_profiles(base, base.kind)) if tier == PROFILE else _settings(base, base.kind)


def _settings(base: StartingSettings, kind: PolicyKind) -> list[Way]:
    in_use = kind.make(**base.values).settings
    unused = kind.unused(str(base.values.get("profile", "")))
    tried: list[tuple[bool, float, Way]] = []
    for setting in kind.settings:
        if setting in unused:
            continue
        old = getattr(in_use, setting.name, setting.default)
        shown = old if isinstance(old, str | int | float | bool) else str(old)
        for place, value in enumerate(_values(setting, old, base.window)):
            settings = {**base.values, setting.name: value}
            try:
                kind.make(**settings)
            except GuardError:
                continue  # it does not fit the other settings
            way = Way(
                SETTING, kind.name, settings, base.window, setting.name, setting.label, shown, value, setting.unit
            )
            tried.append((not setting.main, _distance(old, value, place), way))
    return [way for _, _, way in sorted(tried, key=lambda item: item[:2])[:MOST_SETTINGS]]


def _values(setting: Setting, old: Any, window: int) -> list[Value]:
    """The values that are tried of a setting in place of `old`."""
    is_number = isinstance(old, int | float) and not isinstance(old, bool)
    values: list[Any] = list(setting.sweep)
    if setting.kind in (COUNT, NUMBER) and is_number and old:
        scaled = [old * factor for factor in FACTORS]
        values += (
            [_rounded(value) for value in scaled] if setting.kind == COUNT else [round(item, 2) for item in scaled]
        )
    elif setting.kind == COUNT and setting.unit == "tokens":
        values += [int(window * share) for share in LIMITS]
    elif setting.kind == SHARE:
        values += SHARES
    elif setting.kind == SIZE:
        values += PARTS
    elif setting.kind == SWITCH:
        values = [not old]
    elif setting.kind == CHOICE:
        values = list(setting.choices)
    return [value for value in dict.fromkeys(_allowed(setting, values)) if value != old]


def _allowed(setting: Setting, values: list[Any]) -> Iterator[Value]:
    """The values that a setting accepts: a share or a multiple may be out of its bounds."""
    for value in values:
        try:
            yield setting.parse(value)
        except GuardError:
            continue


def _rounded(value: float) -> int:
    """To two significant digits, as people set it."""
    digits = max(0, math.floor(math.log10(value)) - 1) if value >= 1 else 0
    size = int(10**digits)
    return max(1, round(value / size)) * size


def _distance(old: Any, new: Any, place: int) -> float:
    """How far a value is from the one in use: the logarithm of their ratio; without two numbers, its place in the
    list."""
    numbers = [
        value for value in (old, new) if isinstance(value, int | float) and not isinstance(value, bool) and value
    ]
    return abs(math.log(numbers[1] / numbers[0])) if len(numbers) == 2 else 1 + place / 100


def _profiles(base: StartingSettings, kind: PolicyKind) -> Iterator[Way]:
    """The policy in each of its other profiles, with the settings in use."""
    old = str(base.values.get("profile", kind.default_profile))
    for name in kind.profile_names:
        if name != old:
            settings = {**base.values, "profile": name}
            yield Way(PROFILE, kind.name, settings, base.window, "profile", "profile", old, name)


def _policies(base: StartingSettings) -> Iterator[Way]:
    """Every other policy with its defaults."""
    for group in OTHERS:
        for kind in GROUPS[group]:
            if kind is not base.kind:
                yield Way(POLICY, kind.name, {}, base.window, "policy", kind.title, base.name, kind.name)
