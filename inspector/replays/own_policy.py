"""What is replayed of a session where nothing is chosen: the policy of the agent that wrote it."""

from __future__ import annotations

from guard_core.policies import POLICIES
from guard_core.rules import OwnRule
from inspector.models import Session
from inspector.replays.choice import OwnPolicy
from inspector.storage import explanations

NEVER_COMPACTS = "none"


def own_policy(row: Session) -> OwnPolicy:
    """That of a stored session, under the window and the settings in use. Raises loading.Outdated."""
    return policy_of(explanations.load(row).rule)


def policy_of(rule: OwnRule | None) -> OwnPolicy:
    """The policy that plays a rule; the default one for a rule without a policy, and for one that never compacts, whose
    replay would be the recording."""
    if rule is None or rule.policy not in POLICIES or rule.policy == NEVER_COMPACTS:
        return OwnPolicy()
    kind = POLICIES[rule.policy]
    return OwnPolicy(kind.name, rule.profile if rule.profile in kind.profile_names else "")
