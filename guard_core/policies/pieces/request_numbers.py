"""Messages and heuristic estimates of requests that begin with a head: the columns that every trace has."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from guard_core.estimation.estimators import Heuristic
from guard_core.ledger import Ints, Ledger
from guard_core.trace import Head
from guard_core.view_sums import messages_in

REFUSED = "the provider refused the request"  # the reason of a compaction at Point.ON_OVERFLOW


def only_grow(ledger: Ledger, head: Head, start: int, stop: int) -> bool:
    """Do the requests of some steps, at least one, that begin with a head only grow from each to the next."""
    key = "steps with fewer events"
    if key not in ledger.derived:
        ledger.derived[key] = (np.flatnonzero(np.diff(ledger.steps["at"]) < 0) + 1).tolist()
    fewer: list[int] = ledger.derived[key]
    is_behind = ledger.steps["at"].item(start) >= head.kept_from
    return is_behind and bisect_left(fewer, start + 1) == bisect_left(fewer, stop)


def sent_columns(costs: Heuristic, head: Head, at: Ints) -> dict[str, Ints]:
    """Messages and heuristics of requests over `at` events that begin with a head."""
    first = np.maximum(at, head.kept_from)
    formed = costs.log(head.form)
    sent = costs.fixed + costs.contents(head.view) + formed[first] - formed[head.kept_from]
    contents = messages_in(costs.ledger, head.view) + first - head.kept_from
    return {
        "contents_built": at,
        "contents_decided": contents,
        "contents_sent": contents,
        "heuristic_built": costs.prefix[at] + costs.fixed,
        "heuristic_decided": sent,
        "heuristic_sent": sent,
    }


def sent_numbers(costs: Heuristic, head: Head, at: int) -> dict[str, int]:
    """The same of one request."""
    first, formed = max(at, head.kept_from), costs.log(head.form)
    sent = costs.request(head.view) + formed.item(first) - formed.item(head.kept_from)
    contents = messages_in(costs.ledger, head.view) + first - head.kept_from
    return {
        "contents_built": at,
        "contents_decided": contents,
        "contents_sent": contents,
        "heuristic_built": costs.prefix.item(at) + costs.fixed,
        "heuristic_decided": sent,
        "heuristic_sent": sent,
    }
