"""The rules that are known: one line per agent."""

from __future__ import annotations

from guard_core.rules import (
    adk,
    aider,
    anthropic,
    claude_code,
    cline,
    codex,
    contextguard,
    copilot_cli,
    crush,
    gemini_cli,
    gptme,
    guarded,
    hermes,
    inspect_ai,
    kimi_cli,
    kimi_code,
    langchain,
    letta_code,
    mistral_vibe,
    oh_my_pi,
    openai,
    openclaw,
    opencode,
    openhands,
    pi,
    qwen_code,
    roo,
    swe_agent,
)
from guard_core.rules.base import Agent
from guard_core.rules.settings import Typed
from guard_core.sessions import Session

NOTHING: Typed = {}

AGENTS: tuple[Agent, ...] = (
    guarded.AGENT,
    contextguard.AGENT,
    claude_code.AGENT,
    codex.AGENT,
    letta_code.AGENT,
    oh_my_pi.AGENT,
    openclaw.AGENT,
    pi.AGENT,
    opencode.KILO_AGENT,
    opencode.AGENT,
    gemini_cli.SILENT_AGENT,
    gemini_cli.AGENT,
    qwen_code.SILENT_AGENT,
    qwen_code.AGENT,
    kimi_cli.AGENT,
    hermes.AGENT,
    kimi_code.AGENT,
    mistral_vibe.AGENT,
    crush.EARLY_GO_AGENT,
    crush.GO_AGENT,
    crush.SHARE_AGENT,
    crush.AGENT,
    roo.AGENT,
    cline.SDK_AGENT,
    cline.AGENT,
    inspect_ai.AGENT,
    adk.INTERVAL_AGENT,
    adk.AGENT,
    langchain.AGENT,
    openhands.AGENT,
    copilot_cli.AGENT,
    swe_agent.AGENT,
    swe_agent.MINI_AGENT,
    aider.AGENT,
    gptme.AGENT,
    anthropic.AGENT,
    openai.AGENT,
)


def agent_of(session: Session, typed: Typed = NOTHING) -> Agent | None:
    """The agent that wrote a session, None where its rule is not known.

    Where a format has two rules (ADK compacts by tokens or by invocations), the one whose setting was `typed`.
    """
    own = [agent for agent in AGENTS if agent.format in ("", session.agent_format) and agent.wrote(session)]
    others = [agent for agent in AGENTS if agent.format == session.agent_format and agent not in own]
    return next((agent for agent in (*own, *others) if typed and agent.has(typed)), own[0] if own else None)
