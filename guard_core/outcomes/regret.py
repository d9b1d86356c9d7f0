"""Regret: what an agent had to read again, as the requests of a side no longer had it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from guard_core.findings.repeated_results import RepeatedResult
from guard_core.outcomes.losses import Verbatim
from guard_core.outcomes.sent import SentRequests


def read_again(sent: SentRequests, results: Sequence[RepeatedResult]) -> int:
    """Prompt tokens (attributed) of the `results` that a recording got again (`findings.repeated_results`) and that
    the request of this side lacks, too, at the step whose answer asks for them.

    What the recording never lost is not among them: that an agent would have asked for it again cannot be known.
    """
    texts = Verbatim(sent.ledger, np.array(sorted({old for one in results for old in one.earlier}), dtype=np.int64))
    steps = np.searchsorted(sent.ledger.steps["at"], [one.call for one in results], side="right") - 1
    tokens = 0
    for one, step in zip(results, steps.tolist(), strict=True):
        ranges = texts.ranges(sent.view(max(0, step))[0]).tolist()
        if not any(first <= old < stop for old in one.earlier for first, stop in ranges):
            tokens += one.tokens
    return tokens
