"""What Codex writes into a conversation by itself: how its messages open, and the items of a replaced history.

Source: https://github.com/openai/codex, codex-rs/core/src/context (versions 0.20 to 0.169).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

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
# Codex keeps results of tools in its history cut in their middle to a limit with room for their serialisation
# (codex-rs/core/src/truncate.rs), and writes them into the file as they were. 0.98.0, 0.114.0 and 0.122.0, run: of a
# limit of 10,000 tokens 48,000 bytes are sent. From 0.128 on the file has what is sent, from 0.134 on no limit either.
ROOM_SHARE, BYTES_PER_TOKEN = 1.2, 4

# Kinds of content that newer versions name (`content_item_kinds`) without saying who wrote it.
_UNTOLD = frozenset({"", "unknown"})


class OutputLimit(NamedTuple):
    """How many bytes of a result are sent, 0: all, and whether the mark of a cut counts characters, not tokens."""

    size: int = 0
    in_chars: bool = False


def output_limit(context: dict[str, Any]) -> OutputLimit:
    """What is sent of a result in the turns of a `turn_context`."""
    policy = fields.mapping(context, "truncation_policy")
    limit, unit = fields.tokens(policy, "limit") or 0, fields.text(policy, "mode")
    if unit not in ("tokens", "bytes"):
        return OutputLimit()
    in_bytes = unit == "bytes"
    return OutputLimit(int(limit * (1 if in_bytes else BYTES_PER_TOKEN) * ROOM_SHARE), in_bytes)


def as_sent(item: dict[str, Any], limit: OutputLimit) -> dict[str, Any]:
    """An output of a tool with as much of its text as is sent, cut as Codex cuts it."""
    text, size = item.get("output"), limit.size
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) and size else b""
    if not isinstance(text, str) or len(data) <= size:
        return item
    head = data[: size // 2].decode("utf-8", "ignore")
    tail = data[len(data) - (size - size // 2) :].decode("utf-8", "ignore")
    if limit.in_chars:
        removed = f"{len(text) - len(head) - len(tail)} chars"
    else:
        removed = f"{-(-(len(data) - size) // BYTES_PER_TOKEN)} tokens"
    return {**item, "output": f"{head}…{removed} truncated…{tail}"}


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
