"""Several states of one session in a file: written twice, or again when it had grown. Its fullest state counts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from guard_core.recordings.reading.placeholders import is_placeholder


class SessionState(NamedTuple):
    """A session as a file has it at one place: its id, and a key of each message, in their order."""

    place: int
    session: str
    messages: tuple[Hashable, ...]


def content_key(value: object) -> bytes:
    """The key of a message without an id of its own."""
    return blake2b(msgspec.json.encode(value, order="deterministic"), digest_size=16).digest()


def superseded(states: Iterable[SessionState]) -> set[int]:
    """The places of those whose messages another state of the session begins with: of equal ones, all but the first."""
    fullest: dict[str, list[SessionState]] = {}
    shorter: set[int] = set()
    for state in states:
        if not state.session or is_placeholder(state.session):
            continue
        others = fullest.setdefault(state.session, [])
        if any(_begins_with(other, state) for other in others):
            shorter.add(state.place)
            continue
        earlier = [other for other in others if _begins_with(state, other)]
        shorter.update(other.place for other in earlier)
        fullest[state.session] = [*(other for other in others if other not in earlier), state]
    return shorter


def _begins_with(one: SessionState, other: SessionState) -> bool:
    return one.messages[: len(other.messages)] == other.messages
