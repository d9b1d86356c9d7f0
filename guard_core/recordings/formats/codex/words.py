"""What Codex writes into a conversation by itself: how its messages open, and the items of a replaced history.

Source: https://github.com/openai/codex, codex-rs/core/src/context (versions 0.20 to 0.169).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guard_core.events import Event, Part, ReasoningPart, Role, TextPart
from guard_core.recordings.formats.openai import items as responses_items
from guard_core.recordings.reading import fields, summary_words

SUMMARY_BEGINS = "own analysis:"  # the end of what Codex writes before a summary
NO_SUMMARY = "(no summary available)"  # what it writes where there is none
# How the messages open that Codex writes in the user's name; it compares them without regard to case.
OWN_OPENINGS = (
    "<environment_context>",
    "<user_instructions>",
    "<instructions>",
    "# agents.md instructions",
    "<turn_aborted>",
    "<user_shell_command>",
    "<user_action>",
    "<skill>",
    "<subagent_notification>",
    "<codex_internal_context",
    "<goal_context>",
    "<external_",
    "<hook_prompt",
    "<recommended_plugins>",
    "warning: apply_patch was requested via",
    "warning: the maximum number of unified exec processes",
    summary_words.CODEX,
    "you are performing a context checkpoint compaction",
)
COMPACTION_PROMPT = OWN_OPENINGS[-1]
USER_ACTION = "<user_action>"  # what the user had done (a review): Codex writes the answer to it, too
# Kinds of content that newer versions name (`content_item_kinds`) without saying who wrote it.
_UNTOLD = frozenset({"", "unknown"})


def opens_with(parts: Sequence[Part], *openings: str) -> bool:
    """Does the first text open with one of these (in small letters)?"""
    first = next((part.text for part in parts if isinstance(part, TextPart)), "")
    return first.lstrip()[:80].lower().startswith(openings)


def is_own(item: dict[str, Any], parts: tuple[Part, ...]) -> bool:
    """Did Codex write this user message itself?"""
    kinds = fields.items(fields.mapping(item, "internal_chat_message_metadata_passthrough"), "content_item_kinds")
    labels = [kind for kind in kinds if isinstance(kind, str) and kind not in _UNTOLD]
    if labels and len(labels) == len(kinds):
        return not any(kind.startswith(("user.", "images.", "audio.")) for kind in labels)
    texts = [part for part in parts if isinstance(part, TextPart)]
    return bool(texts) and all(opens_with((part,), *OWN_OPENINGS) for part in texts)


def is_empty_summary(text: str) -> bool:
    """Is there nothing behind the words that Codex writes before a summary?"""
    before, begins, summary = text.partition(SUMMARY_BEGINS)
    if begins and before.lstrip().lower().startswith(summary_words.CODEX):
        text = summary
    return text.strip() in ("", NO_SUMMARY)


def replacing(item: dict[str, Any]) -> Event | None:
    """One item of a replacement history as the message it is."""
    kind, role = fields.text(item, "type"), fields.text(item, "role")
    parts: tuple[Part, ...]
    if kind == "message":
        parts = responses_items.message_parts(item)
        meta = role != "assistant" and (role != "user" or is_own(item, parts))
        speaker = {"assistant": Role.MODEL, "user": Role.USER}.get(role, Role.SYSTEM)
        return Event(role=speaker, parts=parts, source_id=fields.text(item, "id"), meta=meta)
    if responses_items.is_compaction(kind):
        return Event(role=Role.USER, parts=(responses_items.sealed_part(item),), meta=True)
    if kind in responses_items.CALLS:
        return Event(role=Role.MODEL, parts=(responses_items.call_part(item, kind),))
    if responses_items.is_output(kind):
        return Event(role=Role.USER, parts=responses_items.result_parts(item))
    if kind == "reasoning":
        return Event(role=Role.MODEL, parts=(responses_items.reasoning_part(item),))
    return None


def is_sealed(event: Event) -> bool:
    """Does a message hold something encrypted?"""
    return any(isinstance(part, ReasoningPart) and part.opaque_bytes for part in event.parts)
