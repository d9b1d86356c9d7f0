"""The picture of a recording that is still being read: what the provider reported, call by call. No chart library."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from guard_core.recordings import FirstLook
from inspector.figures.sparkline import Sparkline, Trend, sparkline, trend

POINTS = 400  # of the line; the largest call of each group is kept
WIDTH, HEIGHT = 880, 220  # of the drawing box


class StoredLook(msgspec.Struct, frozen=True):
    """What is stored of a first look."""

    trend: Trend
    calls: int
    peak: int  # tokens
    compactions: int
    whole: bool = False  # of a session that was read; else of lines in the order of the file


@dataclass(frozen=True)
class LookPicture:
    """A look, drawn."""

    look: StoredLook
    drawn: Sparkline


def look_of(first: FirstLook, window: int, *, whole: bool = False) -> StoredLook:
    """A first look in few points. `window`: tokens."""
    tokens = np.array(first.prompt_tokens, dtype=np.int64)
    fired = np.zeros(len(tokens), dtype=np.int64)
    fired[list(first.compactions)] = 1
    over = (tokens > window).astype(np.int64)
    shown = trend(tokens, fired, over, threshold=0, window=window, points=POINTS)
    return StoredLook(shown, len(tokens), int(tokens.max(initial=0)), len(first.compactions), whole)


def picture(stored: str) -> LookPicture | None:
    """The picture of a stored look; None where there is none."""
    if not stored:
        return None
    look = msgspec.json.decode(stored, type=StoredLook)
    return LookPicture(look, sparkline(look.trend, WIDTH, HEIGHT))
