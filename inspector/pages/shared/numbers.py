"""Numbers as people read them: grouped, with their unit, never rounded where a decision turns on one token."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from guard_core.shares import per_cent

DASH = "–"
ABOUT = "≈"  # before a count that is modelled or estimated
NARROW = "\u00a0"  # between a number and its sign, so that no line ends there


Place = TypeVar("Place", int, NDArray[np.int64])


def step_number(index: Place) -> Place:
    """The number by which people know a step: they count from 1 on pages and in addresses, the engine from 0."""
    return index + 1


def step_index(number: Place) -> Place:
    """The engine's index of the step that people know by this number."""
    return number - 1


message_number = compaction_number = turn_number = part_number = step_number
message_index = compaction_index = turn_index = part_index = step_index


def tokens(value: float | None) -> str:
    """A count with comma groups; a dash where it is not known."""
    if value is None or (isinstance(value, float) and math.isnan(value)) or value < 0:
        return DASH
    return f"{value:,.0f}"


def signed(value: float | None) -> str:
    """A difference with its sign: +1,200, −300, ±0."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return DASH
    return f"{'+' if value > 0 else '−' if value < 0 else '±'}{abs(value):,.0f}"


def grouped(text: str) -> str:
    """A setting as typed, with comma groups where it is a whole number."""
    return f"{int(text):,}" if text.isascii() and text.isdigit() else text


def short(value: float | None) -> str:
    """Tokens where there is little room: 950, 8.7k, 180k, 1.05M, 5.47B (thousands, millions, billions)."""
    if value is None or value < 0:
        return DASH
    if value < 1000:
        return f"{value:.0f}"
    if value < 99_950:
        return f"{value / 1000:.1f}k".replace(".0k", "k")
    if value < 999_500:
        return f"{value / 1000:.0f}k"
    if value < 999_995_000:
        return f"{value / 1_000_000:.2f}M".replace(".00M", "M")
    return f"{value / 1_000_000_000:,.2f}B".replace(".00B", "B")


def amount(value: int) -> str:
    """A sum of tokens in a sentence: 600,000, 12.4 million, 5.47 billion."""
    if value < 999_500:
        return tokens(value)
    number = short(value)
    return f"{number[:-1]} {'million' if number.endswith('M') else 'billion'}"


def percent(part: float | None, whole: float | None, digits: int = 0) -> str:
    """A share in per cent; a dash where one of the two is not known. Nothing is rounded to 0 or to 100."""
    if part is None or not whole or part < 0:
        return DASH
    return f"{per_cent(part / whole, digits)}{NARROW}%"


def signed_percent(ratio: float | None, digits: int = 1) -> str:
    """A relative error: −22.6 %, +3.1 %."""
    if ratio is None or math.isnan(ratio):
        return DASH
    shown = round(100 * ratio, digits)
    return f"{'+' if shown > 0 else '−' if shown < 0 else '±'}{abs(shown):.{digits}f}{NARROW}%"


def points(first: float | None, other: float | None) -> str:
    """How far one share is from another: +12.8 points."""
    if first is None or other is None:
        return ""
    shown = round(100 * (other - first), 1)
    return f"{'+' if shown > 0 else '−'}{abs(shown):.1f} points" if shown else "±0"


def factor(value: float | None) -> str:
    """A correction factor with three digits after the point."""
    return DASH if value is None or math.isnan(value) else f"{value:.3f}"


def size(count: int) -> str:
    """Bytes: 812 bytes, 39 kB, 2.2 MB, 1.4 GB."""
    if count < 1000:
        return counted(count, "byte")
    if count < 999_500:
        return f"{count / 1000:.0f} kB"
    if count < 999_950_000:
        return f"{count / 1_000_000:.1f} MB"
    return f"{count / 1_000_000_000:,.1f} GB"


def moment(seconds: float | None) -> str:
    """A point in time, UTC."""
    if seconds is None:
        return ""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return ""


def counted(count: int, one: str, many: str = "") -> str:
    """A count with its noun: 1 step, 2 steps."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
