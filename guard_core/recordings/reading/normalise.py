"""One normaliser for every text and number before any store: SQLite and PostgreSQL take, show and refuse the same.

The JSON reader mends escapes before it parses; the functions here are for text and numbers from elsewhere (databases,
Markdown, zip members), and for the fields that a reader expects to be numbers or times.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any

from guard_core.bounds import LAST_SECOND, MAX_TOKENS
from guard_core.defaults import MAX_WINDOW, MIN_WINDOW
from guard_core.errors import DamagedRecording

NUL_MARK = "␀"  # U+2400, the visible sign for NUL
REPLACEMENT = "�"  # U+FFFD
ALLOWED = f"allowed are whole numbers from 0 to {MAX_TOKENS}, or null"  # as a count of tokens
ALLOWED_WINDOW = f"allowed are {MIN_WINDOW:,} to {MAX_WINDOW:,} tokens, or 0 or null where it is not known"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def text(value: str) -> tuple[str, int]:
    """The text as every store takes it, and how many characters were replaced."""
    if value.isascii() and "\x00" not in value:
        return value, 0
    return _UNSTORABLE.subn(lambda match: NUL_MARK if match[0] == "\x00" else REPLACEMENT, value)


def clean(value: str) -> str:
    """The text as every store takes it."""
    return text(value)[0]


def tree(value: Any) -> tuple[Any, int]:
    """A JSON-like value with every text, key and number as every store takes it, and how many places were changed."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        pairs = [(text(str(key)), tree(item)) for key, item in value.items()]
        return {key: item for (key, _), (item, _) in pairs}, sum(k[1] + v[1] for k, v in pairs)
    if isinstance(value, list | tuple):
        items = [tree(item) for item in value]
        return [item for item, _ in items], sum(count for _, count in items)
    if isinstance(value, float):
        if not math.isfinite(value):
            return None, 1
        return (0.0, 1) if value == 0.0 and math.copysign(1.0, value) < 0 else (value, 0)
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return str(value), 1
    return value, 0


def count(value: Any, name: str = "the count") -> int | None:
    """A count of tokens: None stays None. Text, fractions, negatives and booleans raise DamagedRecording."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not float(value).is_integer():
        kind = "text" if isinstance(value, str) else type(value).__name__
        raise DamagedRecording(f"{name} is {_shown(value)} ({kind}), not a whole number")
    if not 0 <= value <= MAX_TOKENS:
        raise DamagedRecording(f"{name} is {_shown(value)}, outside 0 to {MAX_TOKENS}")
    return int(value)


def timestamp(value: Any) -> float | None:
    """Seconds since the epoch (UTC) from ISO 8601 text or a number of seconds or milliseconds; else None."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return seconds(float(value) / 1000 if abs(value) >= 1e11 else float(value))
    if not isinstance(value, str) or not 8 <= len(value) <= 40:
        return None
    try:
        moment = datetime.fromisoformat(value)
        return seconds((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError, OSError):
        return None


def seconds(value: float) -> float | None:
    """A time that stores and pages can show (years 1970 to 9999), else None."""
    return value if math.isfinite(value) and 0 <= value <= LAST_SECOND else None


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:40] + "…"
