"""Values as bytes: deterministic, versioned, exact in the round trip."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from guard_core.errors import GuardError, OtherVersion
from guard_core.views import plain_values

T = TypeVar("T")


def encode(value: object) -> bytes:
    """A value as MessagePack; equal values give equal bytes."""
    return msgspec.msgpack.encode(value, enc_hook=plain_values, order="deterministic")


def decode(data: bytes, kind: type[T], what: str) -> T:
    """The value again; bytes that are something else raise GuardError with a sentence."""
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise GuardError(f"the stored {what} cannot be read ({error}): import the session again") from error


class _Versioned(msgspec.Struct):
    version: int


def decode_version(data: bytes, kind: type[T], version: int, what: str) -> T:
    """The same for a value that holds its version; OtherVersion where that is another one, which is not guessed at."""
    stored = decode(data, _Versioned, what).version
    if stored != version:
        raise OtherVersion(f"the stored {what} has version {stored}, not {version}: import the session again")
    return decode(data, kind, what)
