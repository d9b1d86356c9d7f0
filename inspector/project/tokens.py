"""Secrets of links and keys: 256 random bits, of which only the SHA-256 is stored."""

from __future__ import annotations

import hashlib
import secrets

TOKEN_BYTES = 32
LONGEST_TOKEN = 100  # characters of an address or a header that are looked at


def new_token() -> str:
    """A token for an address or a header."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def hash_of(token: str) -> str:
    """What is stored of a token, and by which it is found; of a longer text, its beginning."""
    return hashlib.sha256(token[:LONGEST_TOKEN].encode("utf-8", "replace")).hexdigest()
