"""Whether a provider refused a request because it was too long: agents compact then, whatever their threshold."""

from __future__ import annotations

import re

_TOO_LONG = re.compile(r"context|input length|too (long|large|many)|exceed|maximum.*tokens", re.IGNORECASE)
_TOO_OFTEN = re.compile(r"rate.?limit|too many requests|throttl|overloaded|quota", re.IGNORECASE)
# The answers of providers to a prompt that is longer than the window: Anthropic (older versions count the answer's room
# in), Amazon Bedrock, DashScope, OpenAI and servers with its interface, Google, MiniMax, Moonshot.
_NAMES_LENGTH = re.compile(
    r"prompt is too long|input length and `?max_tokens`? exceed context limit"
    r"|input is too long for"
    r"|range of input length should be"
    r"|context_length_exceeded|maximum (context|prompt) length|exceeds the (context window|available context size)"
    r"|input token count.{0,40}exceeds the maximum number of tokens"
    r"|context window exceeds limit|exceeded model token limit",
    re.IGNORECASE,
)


def names_length(message: str) -> bool:
    """Do the words of an error leave no doubt that the request was too long; one about the length of an answer or of a
    file, or about tokens per minute, does not."""
    return _NAMES_LENGTH.search(message) is not None


def says_too_long(message: str) -> bool:
    """May a provider's error say that the request was too long, and not that there were too many: enough to explain a
    compaction that follows, not to report an overflow (`names_length`)."""
    return _TOO_LONG.search(message) is not None and _TOO_OFTEN.search(message) is None
