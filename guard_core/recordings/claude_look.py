"""The first look at a Claude Code transcript: usage by message id and compaction boundaries, nothing else."""

from __future__ import annotations

import msgspec

from guard_core.recordings.first_look import FirstLook
from guard_core.recordings.source import Source


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0

    @property
    def prompt_tokens(self) -> int:
        return self.input_tokens + self.cache_read_input_tokens + self.cache_creation_input_tokens


class _Message(msgspec.Struct, gc=False):
    id: str = ""
    model: str = ""
    usage: _Usage | None = None


class _Line(msgspec.Struct, gc=False):
    type: str = ""
    subtype: str = ""
    isSidechain: bool = False  # noqa: N815 - the file's own spelling
    message: _Message | None = None

    @property
    def tokens(self) -> int:
        """Prompt tokens of a call of the main conversation; 0 for any other line."""
        message = self.message
        if self.type != "assistant" or self.isSidechain or message is None or message.usage is None or not message.id:
            return 0
        return message.usage.prompt_tokens


_DECODER = msgspec.json.Decoder(_Line)


def look(source: Source) -> FirstLook:
    """Lines that are damaged, or of another shape, are passed over: the full reading tells of them."""
    calls: dict[str, int] = {}
    compactions: list[int] = []
    model = ""
    with source.stream() as stream:
        while raw := stream.readline(source.limits.line_bytes):
            try:
                line = _DECODER.decode(raw)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            if line.type == "system" and line.subtype == "compact_boundary":
                compactions.append(len(calls))
            elif line.tokens > 0 and line.message is not None:
                calls[line.message.id], model = line.tokens, line.message.model
    return FirstLook(tuple(calls.values()), tuple(at for at in compactions if at < len(calls)), model)
