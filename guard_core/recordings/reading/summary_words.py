"""How clients open the summary of a compaction: what a log of requests, which records no compaction, shows of one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

from guard_core.events import Event, Role, TextPart

CLAUDE_CODE = "This session is being continued from a previous conversation"  # also before it had boundary lines
# codex-rs/core/templates/compact/summary_prefix.md; Codex compares it without regard to case.
CODEX = "another language model started to solve this problem"
SNAPSHOT = "<state_snapshot>"  # Gemini CLI and Qwen Code: packages/core/src/core/prompts.ts
# What Gemini CLI has the model say to a summary, whether or not that is in the tag that was asked for.
GEMINI_ANSWER = "Got it. Thanks for the additional context!"  # packages/core/src/services/chatCompressionService.ts
HERMES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]")  # agent/context_compressor.py
KIMI_CLI = "<system>Previous context has been compacted. Here is the compaction output:</system>"  # soul/compaction.py
LANGCHAIN = "Here is a summary of the conversation to date:"  # its SummarizationMiddleware
# packages/coding-agent/src/core/messages.ts
PI = "The conversation history before this point was compacted into the following summary:"
_OPENINGS = tuple(words.casefold() for words in (CLAUDE_CODE, CODEX, SNAPSHOT, *HERMES, KIMI_CLI, LANGCHAIN, PI))


def is_empty_summary(message: Event) -> bool:
    """Is a message only the words with which a client opens a summary."""
    texts = (part.text for part in message.parts if isinstance(part, TextPart))
    return bool(message.parts) and " ".join(texts).strip().casefold() in _OPENINGS


def begins_with_summary(messages: Iterable[Event]) -> bool:
    """Does a text before the model's first message open as the summary of an earlier context."""
    opening = takewhile(lambda event: event.role is not Role.MODEL, messages)
    return any(
        isinstance(part, TextPart) and part.text.lstrip().casefold().startswith(_OPENINGS)
        for event in opening
        for part in event.parts
    )
