"""The context windows that the calls of one session have, and which of them judges what."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec
import numpy as np

from guard_core.ledger import Ints
from guard_core.plural import counted

_BY_OWN = "Overflows and near misses are counted by each call's own"


class WindowWarning(StrEnum):
    """What is said to be held against the windows; `first` is the window of the replays in tokens."""

    RECORDING = f"{_BY_OWN}."
    REPLAY = f"{_BY_OWN}; the policy compacts by {{first}} at every call."
    COMPARISON = (
        f"{_BY_OWN}; policies compact by {{first}} at every call, and the share of the peak and the room left are of "
        "it, too."
    )
    TRACE = "The replay is in a window of {first} at every call, and counts overflows by it."


class CallWindow(msgspec.Struct, frozen=True):
    """A context window in tokens, and how many of a session's calls have it. 0 tokens: it is not known, for larger
    prompts of the calls' model were answered than the one that was known holds."""

    tokens: int
    calls: int


def call_windows(others: Ints | Sequence[int], window: int) -> tuple[CallWindow, ...]:
    """The windows of the calls where that of a session is `window` tokens and `others` has another one for some calls,
    a negative one where that is not known, 0 for the rest: the session's first, though no call may have it, then the
    others, the smallest first."""
    own = np.asarray(others, dtype=np.int64)
    sizes, calls = np.unique(np.where(own != 0, np.maximum(own, 0), window), return_counts=True)
    counts = {window: 0, **dict(zip(sizes.tolist(), calls.tolist(), strict=True))}
    return tuple(CallWindow(size, count) for size, count in counts.items())


def windows_words(windows: Sequence[CallWindow], judged: WindowWarning) -> str:
    """Which of several windows is used for what, the one of replays first; "" where all calls have one."""
    if len(windows) < 2:
        return ""
    sizes = [f"{item.tokens:,} ({counted(item.calls, 'call')})" for item in windows if item.tokens]
    subject = f"The calls have {len(sizes):,} windows, in tokens" if len(sizes) > 1 else "The window, in tokens"
    unknown = sum(item.calls for item in windows if not item.tokens)
    more = f"; of {counted(unknown, 'call')} it is not known, as larger prompts than the known one holds were answered"
    first = f"{windows[0].tokens:,}"
    return f"{subject}: {', '.join(sizes)}{more if unknown else ''}. {judged.format(first=first)}"
