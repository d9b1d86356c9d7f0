"""What replaces an id that was taken out: no identity, since many different things have it."""

from __future__ import annotations

import re

KEYS = frozenset(
    {"uuid", "parentUuid", "logicalParentUuid", "leafUuid", "id", "parentId", "parent_id", "parentID", "requestId"}
    | {"messageId", "message_id", "messageID", "tool_use_id", "tool_call_id", "toolCallId", "callID", "call_id"}
    | {"callId", "parent_tool_use_id", "response_id", "item_id", "run_id", "parent_run_id"}
)
_DIGIT = re.compile("[1-9]")  # what is numbered identifies something; most ids have one near their beginning
_LONGEST = 80  # characters of a placeholder
_BLOTTED = r"redact|remov|mask|hidden|anonym|scrub|saniti|placeholder|omit|censor|strip"
# A word for what was taken out, signs in the place of characters, or a name in brackets; behind a prefix as `call_`.
_PLACEHOLDER = re.compile(
    rf"(?:[a-z]{{2,12}}[_-])?\W*(?:[a-z _-]*(?:{_BLOTTED})[a-z _-]*|(?:[_-]*[x*.•…#?0]){{3,}}[_-]*|[_-]{{3,}}"
    r"|(?:uu)?id|null|none|unknown)\W*"
    r"|[\[<{(][a-z _-]*id[\])}>]",
    re.IGNORECASE,
)


def is_placeholder(value: str) -> bool:
    """Is it what people and tools put in the place of an id, so that many different things have it?"""
    return _DIGIT.search(value) is None and len(value) <= _LONGEST and _PLACEHOLDER.fullmatch(value) is not None
