"""Policies: one module each behind one protocol, found by name in POLICIES."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from guard_core.errors import UnknownName
from guard_core.policies import contextguard, none
from guard_core.policies.base import Check, CheckEvidence, Decision, Policy, Quiet, Run

__all__ = ["POLICIES", "Check", "CheckEvidence", "Decision", "Policy", "Quiet", "Run", "get_policy", "setting_names"]

POLICIES: dict[str, Callable[..., Policy]] = {
    "none": none.make,
    "contextguard": contextguard.threshold,
    "contextguard-sliding": contextguard.sliding,
}


def get_policy(policy: str, /, **settings: Any) -> Policy:
    """The policy of a name with settings (values of their own type, or text as typed).

    Raises UnknownName for an unknown policy or profile and SettingError for an unknown setting or value; both name
    what is allowed.
    """
    if policy not in POLICIES:
        raise UnknownName(f"there is no policy {str(policy)[:40]!r}; known are {', '.join(POLICIES)}")
    return POLICIES[policy](**settings)


def setting_names(policy: str) -> tuple[str, ...]:
    """The names of a policy's settings, in order."""
    settings = get_policy(policy).settings
    names = getattr(settings, "__struct_fields__", None)
    return tuple(settings.__dataclass_fields__ if names is None else names)
