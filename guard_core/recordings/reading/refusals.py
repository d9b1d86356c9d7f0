"""Whether a provider refused a request because it was too long: agents compact then, whatever their threshold."""

from __future__ import annotations

import re

_TOO_LONG = re.compile(r"context|input length|too (long|large|many)|exceed|maximum.*tokens", re.IGNORECASE)
_TOO_OFTEN = re.compile(r"rate.?limit|too many requests|throttl|overloaded|quota", re.IGNORECASE)


def says_too_long(message: str) -> bool:
    """Does a provider's error say that the request was too long, and not that there were too many."""
    return _TOO_LONG.search(message) is not None and _TOO_OFTEN.search(message) is None
