"""One request and its answer as they went through the proxy, and which of them are calls of a model."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

MOST_BYTES = 100_000_000  # of a body that is recorded; a larger one goes through unrecorded
# Ends of the paths that are calls of a model, with the API whose bodies they have.
CALLS = {
    "/messages": "anthropic",
    "/chat/completions": "chat",
    "/responses": "responses",
    ":generateContent": "gemini",
    ":streamGenerateContent": "gemini",
}


@dataclass
class Body:
    """The bytes of a body, up to MOST_BYTES of them."""

    encoding: str = ""  # Content-Encoding, lower case
    kind: str = ""  # Content-Type
    chunks: list[bytes] = field(default_factory=list)
    size: int = 0  # bytes that went through
    is_complete: bool = False

    def add(self, data: bytes) -> None:
        """More bytes went through."""
        self.size += len(data)
        if self.size <= MOST_BYTES:
            self.chunks.append(bytes(data))
        else:
            self.chunks.clear()

    @property
    def is_kept(self) -> bool:
        """Are all bytes that went through here?"""
        return self.size <= MOST_BYTES


@dataclass
class Exchange:
    """A request and its answer. Headers are not kept: they carry credentials."""

    path: str  # without the query, which may carry a key
    api: str
    user_agent: str = ""
    began: float = field(default_factory=time.time)  # seconds since the epoch
    clock: float = field(default_factory=time.monotonic)
    seconds: float = 0.0  # until the end of the answer
    status: int = 0  # of the answer; 0: there was none
    request: Body = field(default_factory=Body)
    answer: Body = field(default_factory=Body)


def api_of(method: str, path: str) -> str:
    """The API of a request that calls a model; "" for any other."""
    if method != "POST":
        return ""
    return next((api for end, api in CALLS.items() if path.endswith(end)), "")
