"""A first look at a Codex rollout: token counts, and compacted histories."""

from __future__ import annotations

import msgspec

from guard_core.recordings.reading import looks
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.source import ByteSource


def look(source: ByteSource) -> FirstLook:
    """Prompt tokens by call, and compactions; every line can be understood by itself."""
    return looks.look(source, _Line)


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int = 0
    total_tokens: int = 0


class _Info(msgspec.Struct, gc=False):
    last_token_usage: _Usage | None = None
    total_token_usage: _Usage | None = None


class _Payload(msgspec.Struct, gc=False):
    type: str = ""
    model: str = ""
    info: _Info | None = None


class _Line(msgspec.Struct, gc=False):
    """Token counts by the running total, which stays where a count is only repeated, and compacted histories."""

    type: str = ""
    payload: _Payload | None = None

    @property
    def tokens(self) -> int:
        info = self.payload.info if self.payload else None
        return info.last_token_usage.input_tokens if info and info.last_token_usage else 0

    @property
    def key(self) -> str:
        info = self.payload.info if self.payload else None
        total = info.total_token_usage if info else None
        return f"{total.input_tokens} {total.total_tokens}" if total else ""

    @property
    def model_name(self) -> str:
        return self.payload.model if self.payload and self.type == "turn_context" else ""

    @property
    def compacts(self) -> bool:
        return self.type == "compacted"
