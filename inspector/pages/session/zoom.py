"""A stretch of the steps of a session: what the strip and the chart of the overview show when they are zoomed.

An address names it by its first and last step, counted from 1: `?zoom=1200-1800`.
"""

from __future__ import annotations

import re
from typing import Any

from django.http import HttpRequest

from inspector.pages.shared.numbers import step_index, step_number

PARAMETER = "zoom"
SMALLEST = 10  # steps: below this each is wide enough to be chosen
FACTOR = 2  # of one key press
PAN = 4  # a press moves by this part of what is shown
AROUND = 400  # steps around one that a link shows: as many as keep their single marks
PATTERN = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


def zoom_of(request: HttpRequest, count: int) -> range:
    """The steps from 0 that the address names, within the session; all of them where it names none."""
    named = PATTERN.fullmatch(request.GET.get(PARAMETER, ""))
    if named is None:
        return range(count)
    first, last = sorted(int(number) for number in named.groups())
    return _within(step_index(first), last - first + 1, count)


def moves(shown: range, count: int, at: int | None) -> list[dict[str, Any]]:
    """What each key of the zoom makes of the steps shown; without steps where it would change nothing. `at`: the step
    that stays in view when it is one of them."""
    size = len(shown)
    middle = at if at is not None and at in shown else shown.start + size // 2
    nearer, farther = -(-size // FACTOR), size * FACTOR  # rounded up, so that the way out leads back to all of them
    ranges = (
        ("A", "‹", "earlier steps", _within(shown.start - size // PAN, size, count)),
        ("D", "›", "later steps", _within(shown.start + size // PAN, size, count)),
        ("S", "−", "zoom out", _within(middle - farther // 2, farther, count)),
        ("W", "+", "zoom in", shown if size <= SMALLEST else _within(middle - nearer // 2, nearer, count)),
    )
    return [
        {"key": key, "sign": sign, "title": title, "steps": None if steps == shown else steps}
        for key, sign, title, steps in ranges
    ]


def around(at: int, count: int) -> range:
    """The steps around one."""
    return _within(at - AROUND // 2, AROUND, count)


def words(steps: range, count: int) -> str:
    """The steps as an address names them; "" for all."""
    return "" if len(steps) == count else f"{step_number(steps.start)}-{steps.stop}"


def _within(start: int, size: int, count: int) -> range:
    size = min(count, max(size, SMALLEST))
    start = max(0, min(start, count - size))
    return range(start, start + size)
