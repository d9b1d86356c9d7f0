"""A first look at a Claude Code transcript: usage of the conversation itself by message, and compaction boundaries."""

from __future__ import annotations

from typing import Any

import msgspec

from guard_core.recordings.reading import looks
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import ModelCall


def look(source: ByteSource) -> FirstLook:
    """Prompt tokens by call, and compactions; every line can be understood by itself."""
    calls = looks.CallsOfAnthropic()
    for line in looks.lines_of(source, _Line):
        if line.compacts:
            calls.compacted()
        elif (call := line.call) is not None:
            calls.counted(call, call.source_id)
    return calls.look()


class _Usage(msgspec.Struct, gc=False):
    """Gateways to other providers write null for what those do not count."""

    input_tokens: int | None = 0
    cache_read_input_tokens: int | None = 0
    cache_creation_input_tokens: int | None = 0
    output_tokens: Any = None


class _Message(msgspec.Struct, gc=False):
    id: str = ""
    model: str = ""
    usage: _Usage | None = None
    stop_reason: Any = None


class _Line(msgspec.Struct, gc=False):
    """Usage by message id, and compaction boundaries."""

    type: str = ""
    subtype: str = ""
    isSidechain: bool = False  # noqa: N815 - the file's own spelling
    message: _Message | None = None

    @property
    def call(self) -> ModelCall | None:
        """The counts of a call of the conversation itself; None of any other line."""
        message = self.message
        if self.type != "assistant" or self.isSidechain or message is None or message.usage is None or not message.id:
            return None
        usage = message.usage
        read, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
        return ModelCall(
            at=0,
            prompt_tokens=(usage.input_tokens or 0) + read + written,
            cached_tokens=read,
            cache_write_tokens=written,
            output_tokens=looks.tokens_of(usage.output_tokens) if message.stop_reason else None,
            model=message.model,
            source_id=message.id,
        )

    @property
    def compacts(self) -> bool:
        return self.type == "system" and self.subtype == "compact_boundary"
