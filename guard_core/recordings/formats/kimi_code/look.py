"""A first look at a Kimi Code wire log: the usage at the end of each step, and compactions."""

from __future__ import annotations

import msgspec

from guard_core.recordings.reading import looks
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.source import ByteSource


def look(source: ByteSource) -> FirstLook:
    """Prompt tokens by call, and compactions; every line can be understood by itself."""
    return looks.look(source, _Line)


class _Usage(msgspec.Struct, gc=False):
    inputOther: int = 0  # noqa: N815 - the file's own spelling
    inputCacheRead: int = 0  # noqa: N815
    inputCacheCreation: int = 0  # noqa: N815


class _Event(msgspec.Struct, gc=False):
    type: str = ""
    usage: _Usage | None = None


class _Line(msgspec.Struct, gc=False):
    """The end of a step, the request that began it, or a compaction."""

    type: str = ""
    kind: str = ""
    model: str = ""
    event: _Event | None = None

    @property
    def tokens(self) -> int:
        usage = self.event.usage if self.event and self.event.type == "step.end" else None
        return usage.inputOther + usage.inputCacheRead + usage.inputCacheCreation if usage else 0

    @property
    def key(self) -> str:
        return ""

    @property
    def model_name(self) -> str:
        return self.model if self.type == "llm.request" and self.kind != "compaction" else ""

    @property
    def compacts(self) -> bool:
        return self.type == "context.apply_compaction"
