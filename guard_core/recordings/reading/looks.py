"""First looks at long JSON Lines files: of each line only what tells a call's prompt tokens or a compaction.

One struct a format names the keys that are looked at; everything else on a line is passed over without being built.
Here are the means, and the formats whose lines tell all by themselves; others have a module of their own (`*_look.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar

import msgspec

from guard_core.recordings.reading import fields
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.normalise import MAX_TOKENS
from guard_core.recordings.reading.source import BOM, ByteSource

T = TypeVar("T")


class LookedAt(Protocol):
    """One line. `tokens`: prompt tokens, cached ones included, 0 where it tells no call. `key`: what repeated tellings
    of one call share; "" where each is a call of its own."""

    @property
    def tokens(self) -> int: ...

    @property
    def key(self) -> str: ...

    @property
    def model_name(self) -> str: ...

    @property
    def compacts(self) -> bool: ...


class Calls:
    """Calls and compactions in the order in which they are told."""

    def __init__(self) -> None:
        self.model = ""
        self._tokens: dict[object, int] = {}
        self._compactions: list[int] = []

    def call(self, tokens: int | None, key: str = "", model: str = "") -> None:
        """A call; one whose tokens are no count is none. `key`: of a call that may be told again; the last counts."""
        if tokens and 0 < tokens <= MAX_TOKENS:
            self._tokens[key or len(self._tokens)] = tokens
            self.model = model or self.model

    def __len__(self) -> int:
        return len(self._tokens)

    def compacted(self, at: int | None = None) -> None:
        """A compaction before the next call, or before the call of that number."""
        self._compactions.append(len(self) if at is None else at)

    def look(self) -> FirstLook:
        stop = len(self)
        return FirstLook(tuple(self._tokens.values()), tuple(at for at in self._compactions if at < stop), self.model)


def lines_of(source: ByteSource, kind: type[T]) -> Iterator[T]:
    """Lines that are damaged, or of another shape, are passed over: the full reading tells of them."""
    decoder = msgspec.json.Decoder(kind)
    with source.stream() as stream:
        if stream.read(len(BOM)) != BOM:
            stream.seek(0)
        while raw := stream.readline(source.limits.line_bytes):
            try:
                line = decoder.decode(raw)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            yield line


def text_of(value: Any) -> str:
    """A text; "" for anything else."""
    return value if isinstance(value, str) else ""


def tokens_of(value: Any) -> int | None:
    """A count of tokens; None for anything else."""
    return fields.tokens({"tokens": value}, "tokens")


def value_of(raw: msgspec.Raw) -> Any:
    """A value that was passed over at first; None where it is damaged."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def look(source: ByteSource, kind: type[LookedAt]) -> FirstLook:
    """The look at a format each of whose lines tells all by itself."""
    calls = Calls()
    for line in lines_of(source, kind):
        if line.compacts:
            calls.compacted()
        else:
            calls.call(line.tokens, line.key)
        calls.model = line.model_name or calls.model
    return calls.look()


class _AnthropicUsage(msgspec.Struct, gc=False):
    """Gateways to other providers write null for what those do not count."""

    input_tokens: int | None = 0
    cache_read_input_tokens: int | None = 0
    cache_creation_input_tokens: int | None = 0


class _AnthropicMessage(msgspec.Struct, gc=False):
    id: str = ""
    model: str = ""
    usage: _AnthropicUsage | None = None


class ClaudeCodeLine(msgspec.Struct, gc=False):
    """Usage by message id, and compaction boundaries."""

    type: str = ""
    subtype: str = ""
    isSidechain: bool = False  # noqa: N815 - the file's own spelling
    message: _AnthropicMessage | None = None

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


class _CodexUsage(msgspec.Struct, gc=False):
    input_tokens: int = 0
    total_tokens: int = 0


class _CodexInfo(msgspec.Struct, gc=False):
    last_token_usage: _CodexUsage | None = None
    total_token_usage: _CodexUsage | None = None


class _CodexPayload(msgspec.Struct, gc=False):
    type: str = ""
    model: str = ""
    info: _CodexInfo | None = None


class CodexLine(msgspec.Struct, gc=False):
    """Token counts by the running total, which stays where a count is only told again, and compacted histories."""

    type: str = ""
    payload: _CodexPayload | None = None

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


class _PiUsage(msgspec.Struct, gc=False):
    input: int = 0
    cacheRead: int = 0  # noqa: N815 - the file's own spelling
    cacheWrite: int = 0  # noqa: N815


class _PiMessage(msgspec.Struct, gc=False):
    role: str = ""
    model: str = ""
    usage: _PiUsage | None = None


class PiLine(msgspec.Struct, gc=False):
    """Usage of assistant messages, and compaction entries."""

    type: str = ""
    message: _PiMessage | None = None

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
