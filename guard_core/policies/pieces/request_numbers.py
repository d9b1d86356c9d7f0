"""Messages and heuristic estimates of requests that begin with a head: the columns that every trace has."""

from __future__ import annotations

import numpy as np

from guard_core.estimation.estimators import Heuristic
from guard_core.ledger import Ints
from guard_core.trace import Head
from guard_core.view_sums import messages_in

REFUSED = "the provider refused the request"  # the reason of a compaction at Point.ON_OVERFLOW


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
