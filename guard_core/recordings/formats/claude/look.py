"""A first look at a Claude Code transcript: usage of the conversation itself by message, and compaction boundaries."""

from __future__ import annotations

import msgspec

from guard_core.recordings.reading import looks
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.source import ByteSource


def look(source: ByteSource) -> FirstLook:
    """Prompt tokens by call, and compactions; every line can be understood by itself."""
    return looks.look(source, _Line)


class _Usage(msgspec.Struct, gc=False):
    """Gateways to other providers write null for what those do not count."""

    input_tokens: int | None = 0
    cache_read_input_tokens: int | None = 0
    cache_creation_input_tokens: int | None = 0


class _Message(msgspec.Struct, gc=False):
    id: str = ""
    model: str = ""
    usage: _Usage | None = None


class _Line(msgspec.Struct, gc=False):
    """Usage by message id, and compaction boundaries."""

    type: str = ""
    subtype: str = ""
    isSidechain: bool = False  # noqa: N815 - the file's own spelling
    message: _Message | None = None

    @property
    def tokens(self) -> int:
        message = self.message
        if self.type != "assistant" or self.isSidechain or message is None or message.usage is None or not message.id:
            return 0
        usage = message.usage
        cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
        return (usage.input_tokens or 0) + cached

    @property
    def key(self) -> str:
        return self.message.id if self.message else ""

    @property
    def model_name(self) -> str:
        return self.message.model if self.message and self.tokens else ""

    @property
    def compacts(self) -> bool:
        return self.type == "system" and self.subtype == "compact_boundary"
