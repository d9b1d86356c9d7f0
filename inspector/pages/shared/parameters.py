"""Values of an address as people type them. What makes no sense is left out, as if it had not been there."""

from __future__ import annotations

from datetime import UTC, date, datetime

MAX_TEXT = 200  # characters of a search


def text(value: str) -> str:
    """Words, without what a database cannot compare."""
    return " ".join(value.replace("\x00", "").encode("utf-8", "replace").decode().split())[:MAX_TEXT]


def number(value: str) -> float | None:
    """A number that is not negative."""
    plain = value.strip().replace(",", "")
    whole, _, rest = plain.partition(".")
    if not (
        whole.isascii() and whole.isdigit() and len(plain) <= 12 and (not rest or (rest.isascii() and rest.isdigit()))
    ):
        return None
    return float(plain)


def day(value: str) -> date | None:
    """A date as a browser sends it."""
    try:
        parsed = date.fromisoformat(value.strip()[:10])
    except ValueError:
        return None
    return parsed if 1900 <= parsed.year <= 9998 else None


def midnight(day: date | None) -> datetime | None:
    """The beginning of a day, UTC."""
    return None if day is None else datetime(day.year, day.month, day.day, tzinfo=UTC)
