"""oh-my-pi's sessions: pi's files, with a padded line for the title first, and entries of its own kinds.

A compaction that names its `method` is sent in words of its own, which are not in the file and are missing here.
Answers carry how much of their request were messages (`contextSnapshot`), entries of kind `custom` say when a tool
began and when a process ended, a compaction names its `method`, and a change of the model has its provider in the name.
Source: oh-my-pi 18.2.3, run; src/session/session-entries.ts of 18.3.4.
"""

from __future__ import annotations

from typing import Any

from guard_core.recordings.reading import fields
from guard_core.sessions import AgentSetting

NAME = "oh-my-pi"
# Methods of a compaction whose summary is asked for while the conversation continues (18.2.3: compaction-methods.ts).
_BESIDE = frozenset({"remote", "handoff", "soft"})
BESIDE = AgentSetting("summarises_beside", 1, "the method of a compaction")
UNWRITTEN = "oh-my-pi's own words around the summary are not in the file."
_KINDS = frozenset({"title", "title_change", "reset_boundary", "session_init"})
_CUSTOM = frozenset({"tool_execution_start", "session_exit"})


def is_its(entry: dict[str, Any]) -> bool:
    """Did oh-my-pi write an entry."""
    kind = fields.text(entry, "type")
    if kind == "message":
        return "contextSnapshot" in fields.mapping(entry, "message")
    if kind == "custom":
        return fields.text(entry, "customType") in _CUSTOM
    named = {"compaction": "method", "model_change": "model"}.get(kind, "")  # pi writes `provider` and `modelId`
    return kind in _KINDS or bool(named and fields.text(entry, named))


def printed_by_it(event: dict[str, Any]) -> bool:
    """Is a line of what a run prints (`--mode json`) one that only oh-my-pi has."""
    kind = fields.text(event, "type")
    return kind == "advisor_cost_changed" or (
        kind.startswith("auto_compaction_") and bool(fields.text(event, "action"))
    )


def hides_frame(entry: dict[str, Any]) -> bool:
    """Is the summary of a compaction sent in words that are not pi's (18.2.3, run: by `handoff` and by `soft`)."""
    return bool(fields.text(entry, "method"))


def summarises_beside(entry: dict[str, Any]) -> bool:
    """Does oh-my-pi ask for summaries as that of a compaction while it continues."""
    return fields.text(entry, "method") in _BESIDE
