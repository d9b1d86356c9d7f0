"""Sharing out: the tokens that a prompt grew by, on the events that it grew by."""

from __future__ import annotations

import numpy as np

from guard_core.estimation.intervals import Intervals
from guard_core.estimation.ratios import Floats
from guard_core.ledger import Ints, Ledger

# Where the tokens of an event (`source`) or of the overhead (`overhead_source`) come from: an index into this.
ATTRIBUTION_SOURCES = (
    "assumed",  # nothing was measured in this session: starting ratios
    "exact",  # it is alone between two reported calls
    "shared",  # its part of the difference between two reported calls
    "session ratio",  # estimated at the session's own ratios
    "session total",  # the overhead with which the modelled requests average what the recorded total gives per call
    "usual of the agent",  # the overhead where the file begins in the middle of a conversation
)
ASSUMED, EXACT, SHARED, SESSION, TOTAL, USUAL = range(6)

# An event cannot cost more than one token per byte, or three times what the session's ratios say, plus framing.
# What a difference holds beyond that belongs to content that is not in the recording, and stays residual.
CAP_FACTOR, CAP_FRAME = 3, 64
_UNIT = 1_024  # weights are whole numbers of 1/1024 token, so that shares are exact


def share_out(ledger: Ledger, intervals: Intervals, estimate: Floats, *, anything: bool) -> tuple[Ints, Ints]:
    """Tokens of every event and their source: its part of its interval, by its estimate; that itself where no interval
    covers it. `anything`: was anything measured in this session."""
    units = np.floor(estimate * _UNIT).astype(np.int64) + 1
    by_ratio = np.ceil(estimate * CAP_FACTOR).astype(np.int64)
    caps = np.maximum(ledger.events["bytes"], by_ratio) + CAP_FRAME
    tokens, source = _shared(intervals, units, caps)
    # An event that no interval covers has its estimate.
    unmeasured = source < 0
    tokens[unmeasured] = np.rint(estimate[unmeasured]).astype(np.int64)
    source[unmeasured] = SESSION if anything else ASSUMED
    return tokens, source


def _shared(intervals: Intervals, units: Ints, caps: Ints) -> tuple[Ints, Ints]:
    """Every interval's tokens on its events, by largest remainder, so that the sums are exact."""
    tokens, source = np.zeros(len(units), dtype=np.int64), np.full(len(units), -1, dtype=np.int64)
    size = intervals.stop - intervals.start
    owner = np.repeat(np.arange(len(size)), size)
    events = np.arange(len(owner)) - np.repeat(np.cumsum(size) - size, size) + np.repeat(intervals.start, size)
    total = np.minimum(intervals.tokens, intervals.sums(caps))
    weight = intervals.sums(units)
    whole, part = np.divmod(total[owner] * units[events], weight[owner])
    tokens[events] = whole + _remainders(owner, part, total - np.bincount(owner, whole, len(size)).astype(np.int64))
    source[events] = np.where(size[owner] == 1, EXACT, SHARED)
    return tokens, source


def _remainders(owner: Ints, part: Ints, missing: Ints) -> Ints:
    """1 for the `missing` events of each interval with the largest remainders (the earlier one where equal), else 0."""
    order = np.lexsort((-part, owner))
    begin = np.searchsorted(owner, np.arange(len(missing)))
    rank = np.empty(len(owner), dtype=np.int64)
    rank[order] = np.arange(len(owner)) - begin[owner[order]]
    return (rank < missing[owner]).astype(np.int64)
