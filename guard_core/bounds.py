"""Bounds of the numbers in a session: what every store, page and browser takes. A decoder refuses what is outside."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

MAX_TOKENS = 2**53  # a count of tokens above this is not a count; JavaScript would round it, too
LAST_SECOND = 253_402_300_799.0  # year 9999: the last that stores and pages can show
LARGEST = 1e15  # of a setting; floats hold every whole number below it

Count = Annotated[int, Meta(ge=0, le=MAX_TOKENS)]
Whole = Annotated[int, Meta(ge=-MAX_TOKENS, le=MAX_TOKENS)]
Number = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
Ratio = Annotated[float, Meta(gt=0.0, le=LARGEST)]
Moment = Annotated[float, Meta(ge=0.0, le=LAST_SECOND)]  # seconds since the epoch (UTC)
