"""The context windows that the calls of one session have, and which of them judges what."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec
import numpy as np

from guard_core.ledger import Ints

_BY_OWN = "Overflows and near misses are counted by each call's own"


class Judged(StrEnum):
    """What is said to be held against the windows; `first` is the window of the replays in tokens."""

    RECORDING = f"{_BY_OWN}."
    REPLAY = f"{_BY_OWN}; the policy compacts by {{first}} at every call."
    COMPARISON = (
        f"{_BY_OWN}; policies compact by {{first}} at every call, and the share of the peak and the room left are of "
        "it, too."
    )
    TRACE = "The replay is in a window of {first} at every call, and counts overflows by it."


class CallWindow(msgspec.Struct, frozen=True):
    """A context window in tokens, and how many of a session's calls have it."""

    tokens: int
    calls: int


def call_windows(others: Ints | Sequence[int], window: int) -> tuple[CallWindow, ...]:
    """The windows of the calls where that of a session is `window` tokens and `others` has another one for some calls,
    0 for the rest: the session's first, though no call may have it, then the others, the smallest first."""
    own = np.asarray(others, dtype=np.int64)
    sizes, calls = np.unique(np.where(own > 0, own, window), return_counts=True)
    counts = {window: 0, **dict(zip(sizes.tolist(), calls.tolist(), strict=True))}
    return tuple(CallWindow(size, count) for size, count in counts.items())


def windows_words(windows: Sequence[CallWindow], judged: Judged) -> str:
    """Which of several windows is used for what, the one of replays first; "" where all calls have one."""
    if len(windows) < 2:
        return ""
    sizes = ", ".join(f"{item.tokens:,} ({item.calls:,} {'call' if item.calls == 1 else 'calls'})" for item in windows)
    return (
        f"The calls have {len(windows):,} windows, in tokens: {sizes}. {judged.format(first=f'{windows[0].tokens:,}')}"
    )
