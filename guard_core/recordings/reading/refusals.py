"""Whether a provider refused a request because it was too long, and the sizes that it stated: agents compact then,
whatever their threshold."""

from __future__ import annotations

import re
from typing import NamedTuple

from guard_core.defaults import MAX_WINDOW, MIN_WINDOW

_LONGEST = 20_000  # characters: errors quote whole requests
_TOO_LONG = re.compile(r"context|input length|too (long|large|many)|exceed|maximum.*tokens", re.IGNORECASE)
_TOO_OFTEN = re.compile(r"rate.?limit|too many requests|throttl|overloaded|quota", re.IGNORECASE)
# The answers of providers to a prompt that is longer than the window: Anthropic (older versions count the answer's room
# in), Amazon Bedrock, DashScope, OpenAI and servers with its interface, Google, MiniMax, Mistral, Moonshot, vLLM; of
# z.ai, LiteLLM, Poolside, Together AI, LM Studio, GitHub Copilot and DS4 as pi 1.6.0 knows them (pi-ai, overflow.js).
_NAMES_LENGTH = re.compile(
    r"prompt (is )?too long|prompt exceeds max length|input length and `?max_tokens`? exceed context limit"
    r"|input is too long for"
    r"|range of input length should be"
    r"|context_length_exceeded|maximum (context|prompt|model) length"
    r"|exceeds the (context window|available context size)"
    r"|input tokens exceed the configured limit"
    r"|input token count.{0,40}exceeds the maximum number of tokens"
    r"|context window exceeds limit|exceeded model token limit|context window exceeded"
    r"|exceeds the maximum allowed input length|is (longer|greater) than the (model'?s )?context length"
    r"|prompt token count of .{0,20}exceeds the limit of|but the configured context size is",
    re.IGNORECASE,
)

_LIMIT, _TOKENS = (rf"(?P<{name}>\d[\d,]{{0,14}})" for name in ("limit", "tokens"))
# The same answers with their figures. The size of a request is taken where it is the prompt's alone, without the room
# that was asked for the answer; a number behind "requested" has that in it.
_STATED = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"prompt is too long: {_TOKENS} tokens > {_LIMIT} maximum",  # Anthropic
        rf"input length and .?max_tokens.? exceed context limit: {_TOKENS} \+ \d+ > {_LIMIT}",  # Anthropic, older
        rf"input token count \(?{_TOKENS}\)? exceeds the maximum number of tokens allowed \(?{_LIMIT}",  # Google
        rf"input token count exceeds the maximum number of tokens allowed \(?{_LIMIT}",
        rf"maximum prompt length is {_LIMIT} but the request contains {_TOKENS} tokens",  # xAI
        rf"request \({_TOKENS} tokens\) exceeds the available context size \({_LIMIT} tokens",  # llama.cpp
        rf"exceeds the available context size \({_LIMIT} tokens",
        rf"prompt token count of {_TOKENS} exceeds the limit of {_LIMIT}",  # GitHub Copilot
        rf"input length \(?{_TOKENS}\)? exceeds the maximum allowed input length of {_LIMIT}",  # Poolside
        rf"input length \(?{_TOKENS}\)? exceeds (?:the )?(?:model'?s )?maximum context length \({_LIMIT}",
        rf"exceeds (?:the )?(?:model'?s )?maximum context length of {_LIMIT}",  # LiteLLM
        rf"input \({_TOKENS} tokens\) is longer than the model'?s context length \({_LIMIT}",  # Together AI
        rf"prompt has {_TOKENS} tokens?, but the configured context size is {_LIMIT}",  # DS4
        rf"exceeded model token limit: {_LIMIT}",  # Moonshot
        rf"range of input length should be \[\d+, ?{_LIMIT}\]",  # DashScope
        rf"prompt contains {_TOKENS} tokens.{{0,60}}too large for model with {_LIMIT} maximum",  # Mistral
        rf"prompt \(length {_TOKENS}\) is longer than the maximum model length of {_LIMIT}",  # vLLM
        rf"input tokens exceed the configured limit of {_LIMIT} tokens\. your messages resulted in {_TOKENS} tokens",
        # OpenAI, OpenRouter, DeepSeek, vLLM
        rf"maximum context length is {_LIMIT} tokens.{{0,40}}messages resulted in {_TOKENS} tokens",
        rf"maximum context length is {_LIMIT} tokens.{{0,80}}\({_TOKENS} (?:in the messages|of text input)",
        rf"maximum context length is {_LIMIT} tokens.{{0,40}}request has {_TOKENS} input tokens",
        rf"maximum context length is {_LIMIT} tokens",
    )
)


class StatedSizes(NamedTuple):
    """The sizes in a provider's refusal, both in prompt tokens, 0 where it does not state one: of the request, and the
    most that it takes."""

    tokens: int = 0
    limit: int = 0


def stated_sizes(message: str) -> StatedSizes:
    """What the words of a refusal state; a limit that is no context window is left out."""
    match = next(filter(None, (pattern.search(message[:_LONGEST]) for pattern in _STATED)), None)
    if match is None:
        return StatedSizes()
    groups = {name: int(text.replace(",", "")) for name, text in match.groupdict().items() if text}
    limit = groups.get("limit", 0)
    return StatedSizes(groups.get("tokens", 0), limit) if MIN_WINDOW <= limit <= MAX_WINDOW else StatedSizes()


def names_length(message: str) -> bool:
    """Do the words of an error leave no doubt that the request was too long; one about the length of an answer or of a
    file, or about tokens per minute, does not."""
    return _NAMES_LENGTH.search(message) is not None


def says_too_long(message: str) -> bool:
    """May a provider's error say that the request was too long, and not that there were too many: enough to explain a
    compaction that follows, not to report an overflow (`names_length`)."""
    return _TOO_LONG.search(message) is not None and _TOO_OFTEN.search(message) is None
