"""A first look at a wire or a context of Kimi CLI: tokens of each answer, and compactions."""

from __future__ import annotations

import msgspec

from guard_core.recordings.reading import fields, looks, summary_words
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.source import ByteSource


class _Message(msgspec.Struct, gc=False):
    type: str = ""
    payload: msgspec.Raw = msgspec.Raw()


class _Line(msgspec.Struct, gc=False):
    """One line, as far as it shows a call or a compaction."""

    message: _Message | None = None
    role: str = ""
    token_count: int | None = None
    content: msgspec.Raw = msgspec.Raw()


_PROMPT_TOKENS = ("input_other", "input_cache_read", "input_cache_creation")  # together: the prompt


def look(source: ByteSource) -> FirstLook:
    """Calls and compactions from one quick pass."""
    calls = looks.CallsInOrder()
    window, pending = 0, None
    for line in looks.lines_of(source, _Line):
        if line.message is not None and line.message.type == "CompactionEnd":
            calls.compacted()
        elif line.message is not None and line.message.type == "StatusUpdate":
            payload = looks.value_of(line.message.payload)
            usage = fields.mapping(payload, "token_usage")
            calls.call(sum(fields.tokens(usage, name) or 0 for name in _PROMPT_TOKENS))
            window = fields.window(payload, "max_context_tokens") or window
        elif line.role == "_usage":
            pending = looks.tokens_of(line.token_count)
        elif line.role == "_checkpoint":
            pending = None
        elif line.role == "assistant":
            calls.call(pending)
            pending = None
        elif line.role == "user" and summary_words.KIMI_CLI.encode() in bytes(line.content):
            calls.compacted()
    return msgspec.structs.replace(calls.look(), window=window)
