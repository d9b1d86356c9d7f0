"""A first look at a pi session file: usage of assistant messages, and compaction entries."""

from __future__ import annotations

import msgspec

from guard_core.recordings.reading import looks
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.source import ByteSource


def look(source: ByteSource) -> FirstLook:
    """Prompt tokens by call, and compactions; every line can be understood by itself."""
    return looks.look(source, _Line)


class _Usage(msgspec.Struct, gc=False):
    input: int = 0
    cacheRead: int = 0  # noqa: N815 - the file's own spelling
    cacheWrite: int = 0  # noqa: N815


class _Message(msgspec.Struct, gc=False):
    role: str = ""
    model: str = ""
    usage: _Usage | None = None


class _Line(msgspec.Struct, gc=False):
    """Usage of assistant messages, and compaction entries."""

    type: str = ""
    message: _Message | None = None

    @property
    def tokens(self) -> int:
        usage = self.message.usage if self.message and self.message.role == "assistant" else None
        return usage.input + usage.cacheRead + usage.cacheWrite if usage else 0

    @property
    def key(self) -> str:
        return ""

    @property
    def model_name(self) -> str:
        return self.message.model if self.message and self.tokens else ""

    @property
    def compacts(self) -> bool:
        return self.type == "compaction"
