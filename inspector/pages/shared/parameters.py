"""Values of an address as people type them. What makes no sense is left out, and `unread` says so."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime

from django.http import QueryDict

MAX_TEXT = 200  # characters of a search
MAX_QUOTED = 40  # characters of a value that is not read
NO_DATE = "is not a date such as 2026-03-31 (from 1900 on), so it is not applied."
NO_NUMBER = "is not a number of 0 or more, so it is not applied."


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


def unread(given: QueryDict, *, days: Iterable[str] = (), numbers: Iterable[str] = ()) -> dict[str, str]:
    """Why a value of an address is not applied, by its name, for each of these: "" where it is, or none is given."""
    words = {}
    for names, read, reason in ((days, day, NO_DATE), (numbers, number, NO_NUMBER)):
        for name in names:
            value = text(given.get(name, ""))
            is_unread = bool(value) and read(value) is None
            words[name] = f"“{value[:MAX_QUOTED]}” {reason}" if is_unread else ""
    return words
