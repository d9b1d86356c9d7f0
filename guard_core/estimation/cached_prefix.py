"""What cache reads prove about the fixed part of requests: the system prompt and the tools.

A provider's cache holds prefixes of requests. Where a compaction keeps nothing of the log's beginning, the first
request after it shares only the fixed part with any request before it, so what it reads from the cache is of that part.
"""

from __future__ import annotations

import numpy as np

from guard_core.ledger import Ledger
from guard_core.views import Span


def cached_prefix(ledger: Ledger, place: int) -> int:
    """Tokens that the first request after a recorded compaction read from the cache, as the provider counted them.

    0 where the file has no such count, or where the compaction keeps the beginning of the log.
    """
    if any(isinstance(segment, Span) and segment.start == 0 < segment.stop for segment in ledger.bases[place].view):
        return 0
    epochs = ledger.steps["epoch"]
    first = int(np.searchsorted(epochs, place))
    if first == len(epochs) or epochs[first] != place or ledger.bases[place].is_edit:
        return 0
    return max(0, int(ledger.steps["cached_tokens"][first]))


def smallest_cached_prefix(ledger: Ledger) -> int:
    """The least of these over all compactions: every request has at least so many fixed tokens. 0: not known."""
    known = [tokens for place in range(len(ledger.bases)) if (tokens := cached_prefix(ledger, place)) > 0]
    return min(known, default=0)
