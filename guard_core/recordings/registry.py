"""Every recording format, in the order in which they are asked; a new format is one line here."""

from __future__ import annotations

from guard_core.recordings import (
    adk,
    adk_sqlite,
    aider,
    anthropic_messages,
    atif,
    claude_code,
    claude_stream,
    cline,
    codex,
    codex_exec,
    copilot_cli,
    crush,
    gemini_cli,
    hermes,
    inspect_log,
    langchain,
    mini_swe_agent,
    native,
    openai_chat,
    openai_responses,
    opencode,
    openhands,
    otlp,
    pi,
    pi_events,
    swe_agent,
)
from guard_core.recordings.base import RecordingFormat

# Databases first, then zip archives, JSON values and JSON Lines; the particular goes before the general.
FORMATS: list[RecordingFormat] = [
    native.FORMAT,
    adk_sqlite.FORMAT,
    adk.FORMAT,
    hermes.FORMAT,
    crush.FORMAT,
    inspect_log.FORMAT,
    atif.FORMAT,
    mini_swe_agent.FORMAT,
    swe_agent.FORMAT,
    copilot_cli.FORMAT,
    openhands.FORMAT,
    otlp.FORMAT,
    langchain.FORMAT,
    codex.FORMAT,
    codex_exec.FORMAT,
    pi.FORMAT,
    pi_events.FORMAT,
    opencode.FORMAT,
    gemini_cli.FORMAT,
    claude_code.FORMAT,
    claude_stream.FORMAT,
    cline.FORMAT,
    openai_responses.FORMAT,
    anthropic_messages.FORMAT,
    openai_chat.FORMAT,
    aider.FORMAT,
]

# What people call a format. Of formats that share a name (ADK: database, session) the last, the more general, speaks.
LABELS: dict[str, str] = {format_.name: format_.label for format_ in FORMATS}
