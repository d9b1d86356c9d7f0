"""Where lists of messages are cut. An index is that of the first message that is kept."""

from __future__ import annotations

import numpy as np

from guard_core.ledger import Ints
from guard_core.policies.pieces.message_columns import Bools


def crossing(tokens: Ints, budget: int, *, start: int = 0, least: int = 1) -> int:
    """The newest message from `start` on with which the messages to the end exceed a budget, and are at least `least`;
    start - 1 where there is none."""
    sums = np.cumsum(tokens[start:][::-1])  # of the last 1, 2, ... messages; never falling
    place = max(int(np.searchsorted(sums, budget, side="right")), least - 1)
    return len(tokens) - 1 - place if place < len(sums) else start - 1


def next_legal(legal: Bools, index: int) -> int:
    """The first index from `index` on at which a cut is allowed; the number of messages where there is none."""
    places = np.flatnonzero(legal[index:])
    return index + int(places[0]) if len(places) else len(legal)


def last_legal(legal: Bools, index: int) -> int:
    """The last index up to `index` at which a cut is allowed; 0 where there is none."""
    places = np.flatnonzero(legal[: index + 1])
    return int(places[-1]) if len(places) else 0


def last_messages(count: int, keep: int) -> int:
    """A cut that keeps the last `keep` of `count` messages."""
    return max(count - keep, 0)


def last_marked(marked: Bools, keep: int) -> int:
    """A cut that keeps the last `keep` marked messages and all that follow the first of these; the number of messages
    to keep none."""
    places = np.flatnonzero(marked)
    if keep <= 0 or not len(places):
        return len(marked)
    return int(places[-min(keep, len(places))])
