"""Every recording format, in the order in which they are asked; a new format is one line here."""

from __future__ import annotations

from guard_core.recordings.base import RecordingFormat
from guard_core.recordings.formats import (
    ai_sdk,
    aider,
    anthropic_messages,
    atif,
    autogen,
    chatgpt,
    claude_ai,
    crush,
    goose,
    lhar,
    managed_agents,
    mini_swe_agent,
    native,
    pydantic_ai,
    smolagents,
    swe_agent,
    trae_agent,
)
from guard_core.recordings.formats.adk import database as adk_sqlite
from guard_core.recordings.formats.adk import session as adk
from guard_core.recordings.formats.capture import format as capture
from guard_core.recordings.formats.claude import stream as claude_stream
from guard_core.recordings.formats.claude import transcript as claude_code
from guard_core.recordings.formats.claude import web as claude_web
from guard_core.recordings.formats.cline import format as cline
from guard_core.recordings.formats.codex import exec as codex_exec
from guard_core.recordings.formats.codex import rollout as codex
from guard_core.recordings.formats.copilot import format as copilot_cli
from guard_core.recordings.formats.gemini import format as gemini_cli
from guard_core.recordings.formats.gptme import format as gptme
from guard_core.recordings.formats.hermes import format as hermes
from guard_core.recordings.formats.inspect_ai import format as inspect_log
from guard_core.recordings.formats.kimi_cli import format as kimi_cli
from guard_core.recordings.formats.kimi_code import format as kimi_code
from guard_core.recordings.formats.langchain import format as langchain
from guard_core.recordings.formats.openai import completions as openai_chat
from guard_core.recordings.formats.openai import responses as openai_responses
from guard_core.recordings.formats.opencode import format as opencode
from guard_core.recordings.formats.openhands import format as openhands
from guard_core.recordings.formats.otlp import format as otlp
from guard_core.recordings.formats.pi import events as pi_events
from guard_core.recordings.formats.pi import session as pi
from guard_core.recordings.formats.provider_logs import format as provider_logs
from guard_core.recordings.formats.qwen import format as qwen_code
from guard_core.recordings.formats.trace_exports import format as trace_exports
from guard_core.recordings.formats.vibe import format as mistral_vibe

# Databases first, then zip archives, JSON values and JSON Lines; the particular goes before the general.
FORMATS: list[RecordingFormat] = [
    native.FORMAT,
    capture.FORMAT,
    lhar.FORMAT,
    provider_logs.FORMAT,
    adk_sqlite.FORMAT,
    adk.FORMAT,
    hermes.FORMAT,
    crush.FORMAT,
    goose.FORMAT,
    inspect_log.FORMAT,
    atif.FORMAT,
    gptme.FORMAT,
    mini_swe_agent.FORMAT,
    swe_agent.FORMAT,
    trae_agent.FORMAT,
    copilot_cli.FORMAT,
    kimi_cli.FORMAT,
    kimi_code.FORMAT,
    mistral_vibe.FORMAT,
    openhands.FORMAT,
    pydantic_ai.FORMAT,
    smolagents.FORMAT,
    autogen.FORMAT,
    managed_agents.FORMAT,
    ai_sdk.FORMAT,
    chatgpt.FORMAT,
    claude_ai.FORMAT,
    trace_exports.FORMAT,
    otlp.FORMAT,
    langchain.FORMAT,
    codex.FORMAT,
    codex_exec.FORMAT,
    pi.FORMAT,
    pi_events.FORMAT,
    opencode.FORMAT,
    qwen_code.FORMAT,
    gemini_cli.FORMAT,
    claude_code.FORMAT,
    claude_web.FORMAT,
    claude_stream.FORMAT,
    cline.FORMAT,
    openai_responses.FORMAT,
    anthropic_messages.FORMAT,
    openai_chat.FORMAT,
    aider.FORMAT,
]

# What people call a format. Of formats that share a name (ADK: database, session) the last, the more general, speaks.
LABELS: dict[str, str] = {format_.name: format_.label for format_ in FORMATS}
# Where the agent of a format leaves its recordings.
PLACES: dict[str, str] = {format_.name: format_.place for format_ in FORMATS if format_.place}
