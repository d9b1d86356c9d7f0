"""How clients open the summary of a compaction: what a log of requests, which records no compaction, shows of one."""

from __future__ import annotations

import re
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
HEADING_CHARS = 200  # of a message, in which it is headed
_OPENINGS = tuple(words.casefold() for words in (CLAUDE_CODE, CODEX, SNAPSHOT, *HERMES, KIMI_CLI, LANGCHAIN, PI))

# How a message is headed that gives the gist of a conversation before it, whoever wrote it: ours. In English, German,
# French, Spanish, Portuguese, Italian, Chinese, Japanese and Korean.
_TALK = r"(?:conversation|context|session|chat|dialogue|discussion|exchange|history|messages|work|progress)"
_EARLIER = r"(?:previous|prior|earlier|past|preceding|compacted|condensed|running|so-far)"
_HEADED = re.compile(
    r"[\W_]*(?:(?:(?:here(?:['’]s| is)|this is|below is|the following is) )?(?:(?:a|an|the|your) )?(?:\w+ )?"
    rf"summary of (?:(?:the|our|this|my|all|what) )?(?:{_EARLIER} )?{_TALK}\b"
    rf"|(?:{_EARLIER}[\s_-])?{_TALK}[\s_-](?:history[\s_-])?(?:summary|summari[sz]ed|compacted)\b"
    rf"|{_EARLIER} {_TALK} (?:was|were|has been|have been|is|are) (?:summari[sz]ed|compacted|condensed)"
    r"|zusammenfassung (?:de[rs]|unser(?:es|er)) (?:(?:bisherigen|vorherigen|früheren|letzten) )?(?:gespr(?:ä|ae)chs"
    r"|unterhaltung|konversation|sitzung|verlaufs|kontexts|chats)"
    r"|résumé de (?:la|notre|cette) (?:conversation|session|discussion)"
    r"|resumen de (?:la|nuestra|esta) (?:conversación|sesión)|resumo d[ae] (?:conversa|sessão)"
    r"|riassunto della conversazione"
    r"|(?:之前|先前|此前|以上)?(?:的)?(?:对话|對話|会话|會話|上下文)(?:历史|歷史)?(?:的)?(?:摘要|总结|總結)"
    r"|(?:これまで|以前)?の?(?:会話|対話)の(?:要約|まとめ)|(?:이전 )?대화(?:의)? 요약)",
    re.IGNORECASE,
)


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


def may_begin_with_summary(messages: Iterable[Event]) -> bool:
    """Is a text before the model's first message headed as the summary of a conversation."""
    opening = takewhile(lambda event: event.role is not Role.MODEL, messages)
    texts = (part.text for event in opening for part in event.parts if isinstance(part, TextPart))
    return any(_HEADED.match(text[:HEADING_CHARS]) for text in texts)
