"""Policies: one module each behind one protocol, one line each in GROUPS."""

from __future__ import annotations

from typing import Any

from guard_core.errors import UnknownName
from guard_core.policies import (
    agent_framework,
    agno,
    aider,
    autogen,
    claude_code,
    cline,
    cline_sdk,
    codex,
    contextguard,
    crush,
    deepagents,
    gemini_cli,
    google_adk,
    goose,
    gptme,
    hermes,
    inspect_ai,
    kilo,
    kimi_cli,
    kimi_code,
    langchain,
    letta,
    letta_code,
    litellm,
    llama_index,
    mistral_vibe,
    none,
    oh_my_pi,
    openai_agents,
    openclaw,
    opencode,
    openhands,
    pi,
    providers,
    pydantic_ai,
    qwen_code,
    roo,
    semantic_kernel,
    strands,
    sweagent,
    sweagent_summary,
    vscode_copilot,
)
from guard_core.policies.base import Check, Decision, Point, Policy, Quiet, ReplayRun
from guard_core.policies.settings import PolicyKind, Profile, Setting

__all__ = [
    "GROUPS",
    "POLICIES",
    "Check",
    "Decision",
    "Point",
    "Policy",
    "PolicyKind",
    "Profile",
    "Quiet",
    "ReplayRun",
    "Setting",
    "get_policy",
    "policy_kind",
]

# The policies by what they belong to, in the order of menus and lists.
GROUPS: dict[str, tuple[PolicyKind, ...]] = {
    "Baseline": (none.KIND,),
    "ContextGuard": (contextguard.THRESHOLD, contextguard.SLIDING),
    "Agents": (
        aider.KIND,
        claude_code.KIND,
        cline.KIND,
        cline_sdk.KIND,
        codex.KIND,
        crush.KIND,
        gemini_cli.KIND,
        goose.KIND,
        gptme.KIND,
        hermes.KIND,
        kilo.KIND,
        kimi_cli.KIND,
        kimi_code.KIND,
        letta.KIND,
        letta_code.KIND,
        mistral_vibe.KIND,
        oh_my_pi.KIND,
        openclaw.KIND,
        opencode.KIND,
        openhands.KIND,
        pi.KIND,
        qwen_code.KIND,
        roo.KIND,
        sweagent.KIND,
        sweagent_summary.KIND,
        vscode_copilot.KIND,
    ),
    "Libraries": (
        *agent_framework.KINDS,
        agno.KIND,
        *autogen.KINDS,
        deepagents.KIND,
        *google_adk.KINDS,
        *inspect_ai.KINDS,
        *langchain.KINDS,
        litellm.KIND,
        *llama_index.KINDS,
        openai_agents.KIND,
        *pydantic_ai.KINDS,
        *semantic_kernel.KINDS,
        *strands.KINDS,
    ),
    "Provider APIs": providers.KINDS,
}
POLICIES: dict[str, PolicyKind] = {kind.name: kind for kinds in GROUPS.values() for kind in kinds}
DEFAULT_POLICY = contextguard.THRESHOLD.name  # the policy of this project's own agents


def policy_kind(name: str) -> PolicyKind:
    """What is published of a policy. Raises UnknownName, naming those that are known."""
    if name not in POLICIES:
        raise UnknownName(f"there is no policy {str(name)[:40]!r}; known are {', '.join(POLICIES)}")
    return POLICIES[name]


def get_policy(policy: str, /, **settings: Any) -> Policy:
    """The policy of a name with settings (values of their own type, or text as typed); `profile` is one of them.

    Raises UnknownName for an unknown policy or profile and SettingError for an unknown setting or value; both name
    what is allowed.
    """
    return policy_kind(policy).make(**settings)
