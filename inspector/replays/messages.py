"""What the web process and a replaying process say to each other through pipes."""

from __future__ import annotations

from typing import IO

import msgspec

from inspector.project.pipes import read_frame, write_frame
from inspector.replays.choice import Choice


class ReplayMessage(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """One thing said."""


# What is computed: one replay, a comparison of all policies (in all profiles), or what would have avoided findings.
REPLAY, POLICIES, PROFILES, AVOID = "replay", "policies", "profiles", "avoid"


class Task(msgspec.Struct, frozen=True):
    """What the process is started for: a session under a choice of settings, and `work` that takes long."""

    session: str
    choice: Choice
    work: str = REPLAY


class ReplayProgress(ReplayMessage, frozen=True):
    """Steps replayed, of all."""

    done: int
    total: int


class Ready(ReplayMessage, frozen=True):
    """The analysis is there; from now on pages can be asked for."""


class ReplayFailed(ReplayMessage, frozen=True):
    """There will be no analysis: why, in words for a person."""

    words: str


class PageRequest(ReplayMessage, frozen=True):
    """A page of the session: the text values of the request's META."""

    meta: dict[str, str]


class PageResponse(ReplayMessage, frozen=True):
    """The answer to a PageRequest: whatever status the page has."""

    status: int
    headers: list[tuple[str, str]]
    cookies: list[str]  # values of Set-Cookie
    body: bytes


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(ReplayProgress | Ready | ReplayFailed | PageRequest | PageResponse)


def write(out: IO[bytes], message: ReplayMessage) -> None:
    """Write one message to a pipe."""
    write_frame(out, _ENCODER.encode(message))


def read(source: IO[bytes]) -> ReplayMessage | None:
    """The next message from a pipe; None at its end."""
    data = read_frame(source)
    return None if data is None else _DECODER.decode(data)
