"""Where a rollout of Codex comes from: the file it continues, and the thread whose sub-agent wrote it."""

from __future__ import annotations

from typing import Any

from guard_core.recordings.reading import fields
from guard_core.sessions import AgentSetting

CONTINUES = AgentSetting("continues_a_file", 1, "the history before its first turn is in another file")


def origin_notes(meta: dict[str, Any], copied: bool) -> list[str]:
    """What a rollout continues, and whose sub-agent wrote it, in words."""
    source, parent = fields.mapping(meta, "source").get("subagent"), parent_of(meta)
    forked, base = fields.text(meta, "forked_from_id"), continued(meta)
    notes = []
    if forked:
        notes.append(f"Forked from session {forked}" + (": the parent's history comes first." if copied else "."))
    if base:
        notes.append(f"It continues another file, of thread {base}: the history up to there is not here.")
    if parent or source:
        notes.append(f"A sub-agent of session {parent}." if parent else "A sub-agent of another session.")
    return notes


def continued(meta: dict[str, Any]) -> str:
    """The thread whose file a rollout continues, "" for none."""
    return fields.text(fields.mapping(meta, "history_base"), "thread_id")


def parent_of(meta: dict[str, Any]) -> str:
    """The thread whose sub-agent wrote a rollout, "" for none."""
    spawn = fields.mapping(fields.mapping(fields.mapping(meta, "source"), "subagent"), "thread_spawn")
    return fields.text(meta, "parent_thread_id") or fields.text(spawn, "parent_thread_id")
