"""The settings of a recording's own rule as the policy of its agent takes them, so that a replay plays them."""

from __future__ import annotations

from collections.abc import Iterator

from guard_core.errors import GuardError
from guard_core.policies.settings import COUNT, SHARE, SIZE, SWITCH, PolicyKind, Setting, Value
from guard_core.rules.base import OwnRule
from guard_core.rules.registry import AGENTS
from guard_core.rules.settings import RuleNumber
from guard_core.sessions import Provenance

STATED = (Provenance.USER, Provenance.RECORDER)  # typed in, or in the file; all others are defaults of a version
# By policy of an agent: the names that settings of its agent's rule have there, where these differ.
PLAYED = {policy: names for agent in AGENTS for policy, names in agent.plays.items()}


def played_profile(kind: PolicyKind, rule: OwnRule | None) -> str:
    """The profile in which a replay of a policy plays a recording's own rule: that of the agent's version, where it is
    the rule of this policy, else the policy's default."""
    is_own = rule is not None and rule.policy == kind.name and rule.profile in kind.profile_names
    return rule.profile if rule is not None and is_own else kind.default_profile


def played(kind: PolicyKind, rule: OwnRule | None, profile: str) -> dict[str, Value]:
    """The settings with which a replay of a policy in one of its profiles plays a recording's own rule; none where it
    is the rule of another policy, or has no threshold.

    Those that the file states or a person typed hold in every profile, defaults of the agent's version only in the one
    that is played as that version.
    """
    if rule is None or rule.policy != kind.name or kind.name not in PLAYED or rule.threshold is None:
        return {}
    is_version = profile in ("", rule.profile)
    return {name: value for item in rule.settings for name, value in _in_policy(kind, item, is_version=is_version)}


def _in_policy(kind: PolicyKind, item: RuleNumber, *, is_version: bool) -> Iterator[tuple[str, Value]]:
    """A setting of the rule by the policy's name and in its unit; nothing where the policy has no such setting, or its
    own default is the better one: a size of "auto" follows the window."""
    name = PLAYED[kind.name].get(item.name, item.name)
    setting = next((setting for setting in kind.settings if setting.name == name), None)
    if setting is None or item.value is None:
        return
    if item.source not in STATED and (not is_version or setting.kind == SIZE):
        return
    try:
        yield name, setting.parse(_in_unit(setting, item.unit, item.value))
    except GuardError:
        return  # a value that the rule takes and the policy does not


def _in_unit(setting: Setting, unit: str, value: float) -> Value:
    """A number of a rule as the setting takes it: shares as fractions, sizes as texts, counts whole; a switch is on
    unless it is 0."""
    if setting.kind == SWITCH:
        return value != 0
    if setting.kind == SHARE:
        return value / 100 if unit == "%" else value
    return str(int(value)) if setting.kind == SIZE else int(value) if setting.kind == COUNT else str(value)
