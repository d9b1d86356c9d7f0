"""Numbers as people type them: 200000, 200_000, 200,000, 200k, 1.5M, 15%, auto. The one parser for all of them."""

from __future__ import annotations

import re
from decimal import Decimal

from guard_core.errors import SettingError

_NUMBER = re.compile(r"(\d{1,15})(?:\.(\d{1,6}))?([kKmM]?)", re.ASCII)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


def parse_count(text: str, what: str, least: int, most: int, unit: str = "") -> int:
    """A whole number. Raises SettingError that names the bounds."""
    plain = "".join(text.split()).replace("_", "").replace(",", "")
    number = _NUMBER.fullmatch(plain)
    value = -1
    if number:
        whole, fraction = number[1], number[2] or ""
        scaled = int(whole + fraction) * _UNITS[number[3].lower()]
        value = scaled // 10 ** len(fraction) if scaled % 10 ** len(fraction) == 0 else -1
    if not least <= value <= most:
        allowed = f"a whole number from {least:,} to {most:,}{f' {unit}' if unit else ''}, such as 500, 20k or 1.5M"
        raise SettingError(f"{what} is {allowed}; not {text.strip()[:40]!r}")
    return value


def parse_share(text: str, what: str) -> str:
    """A share of the window such as 15%, in its plain form. Raises SettingError."""
    plain = text.strip()
    try:
        share = float(plain.removesuffix("%"))
    except ValueError:
        share = -1.0
    if not plain.endswith("%") or not 0 <= share <= 100:
        raise SettingError(f"{what} is a share of the window from 0% to 100%, not {plain[:40]!r}")
    return plain


def parse_amount(text: str) -> Decimal:
    """A number as typed, exactly, with a fraction or k or M where wanted: 0.5, 20k, 1.5M. Raises ValueError."""
    number = _NUMBER.fullmatch("".join(text.split()).replace("_", ""))
    if number is None:
        raise ValueError(f"not a number: {text.strip()[:40]!r}")
    return Decimal(f"{number[1]}.{number[2] or 0}") * _UNITS[number[3].lower()]
