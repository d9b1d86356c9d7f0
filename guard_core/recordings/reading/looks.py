"""First looks at long JSON Lines files: of each line only what shows a call's prompt tokens or a compaction.

One struct a format names the keys that are looked at; everything else on a line is passed over without being built.
Here is what these looks share; the structs are in the module `look` of each format.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar

import msgspec

from guard_core.bounds import MAX_TOKENS
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.cached_tokens import CachedTokens
from guard_core.recordings.reading.file_bytes import BOM
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import ModelCall

T = TypeVar("T")


class LookedAt(Protocol):
    """One line. `tokens`: prompt tokens, cached ones included, 0 where it is about no call. `key`: what repeated
    records of one call share; "" where each is a call of its own."""

    @property
    def tokens(self) -> int: ...

    @property
    def key(self) -> str: ...

    @property
    def model_name(self) -> str: ...

    @property
    def compacts(self) -> bool: ...


class CallsInOrder:
    """Calls and compactions in the order of the file."""

    def __init__(self) -> None:
        self.model = ""
        self._tokens: dict[object, int] = {}
        self._compactions: list[int] = []

    def call(self, tokens: int | None, key: str = "", model: str = "") -> None:
        """A call; one whose tokens are not a count is none. `key`: of a call that may be recorded again; the last
        counts."""
        if tokens and 0 < tokens <= MAX_TOKENS:
            self._tokens[key or len(self._tokens)] = tokens
            self.model = model or self.model

    def counted(self, call: ModelCall, key: str = "", chain: str = "") -> None:
        """A call with all of its counts, of a conversation `chain`."""
        self.call(call.prompt_tokens, key, call.model)

    def __len__(self) -> int:
        return len(self._tokens)

    def compacted(self, at: int | None = None) -> None:
        """A compaction before the next call, or before the call of that number."""
        self._compactions.append(len(self) if at is None else at)

    def look(self) -> FirstLook:
        stop = len(self)
        return FirstLook(tuple(self._tokens.values()), tuple(at for at in self._compactions if at < stop), self.model)


class CallsOfAnthropic(CallsInOrder):
    """Calls whose prompts are sums of Anthropic's counts, unless the file shows that `input_tokens` holds the cached
    tokens, too."""

    def __init__(self) -> None:
        super().__init__()
        self._cached = CachedTokens()
        self._counted: dict[object, ModelCall] = {}

    def counted(self, call: ModelCall, key: str = "", chain: str = "") -> None:
        place = key or len(self)
        super().counted(call, key, chain)
        if place in self._tokens:
            self._counted[place] = call
            self._cached.hear(chain, str(place), call)

    def look(self) -> FirstLook:
        if self._cached.judge():
            self._tokens |= {
                place: self._cached.counted(call).prompt_tokens or 0 for place, call in self._counted.items()
            }
        return super().look()


def lines_of(source: ByteSource, kind: type[T]) -> Iterator[T]:
    """Lines that are damaged, or of another shape, are passed over: the full reading reports them."""
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
    """The look at a format each of whose lines can be understood by itself."""
    calls = CallsInOrder()
    for line in lines_of(source, kind):
        if line.compacts:
            calls.compacted()
        else:
            calls.call(line.tokens, line.key)
        calls.model = line.model_name or calls.model
    return calls.look()
