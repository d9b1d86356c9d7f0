"""Values as bytes: deterministic, versioned, exact in the round trip."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from guard_core.errors import GuardError

T = TypeVar("T")


def encode(value: object) -> bytes:
    """A value as MessagePack; equal values give equal bytes."""
    return msgspec.msgpack.encode(value, order="deterministic")


def decode(data: bytes, kind: type[T], what: str) -> T:
    """The value again; bytes that are something else raise GuardError with a sentence."""
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise GuardError(f"the stored {what} cannot be read ({error}): import the session again") from error


def check_version(found: int, expected: int, what: str) -> None:
    """Stored bytes of another version are not guessed at."""
    if found != expected:
        raise GuardError(f"the stored {what} has version {found}, not {expected}: import the session again")
