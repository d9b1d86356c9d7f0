"""Anchors: a modelled request costs the recorded count that it extends, plus what was added.

Attribution leaves a residual where the recorded counts hold more, or less, than the events explain. Along the log the
residual moves from call to call; these movements are added to the tokens of the events, so that a request which grows
out of a recorded one begins at exactly its count, and one that keeps a part of the log keeps that part's movements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from guard_core.compaction_bases import EDIT, SEALED
from guard_core.estimation.attribution import Attribution
from guard_core.estimation.baselines import continued, silent_truncations
from guard_core.estimation.unrecorded import Unrecorded, unrecorded
from guard_core.ledger import Ints, Ledger
from guard_core.views import Span


@dataclass(frozen=True)
class Anchors:
    """Prefix sums over the log's events, in tokens, and where each stretch between compactions begins.

    `whole` is for requests with the log's beginning, or what a recorded compaction left of it; `kept` for requests that
    a replayed compaction has cut: content that was silently cut away elsewhere is not missing in them. `begins` is the
    residual of the first reported call by epoch + 1.
    """

    whole: Ints
    kept: Ints
    begins: Ints
    unrecorded: Unrecorded

    @classmethod
    def of(cls, ledger: Ledger, attribution: Attribution) -> Anchors:
        """The anchors of a session."""
        first, last = continued(ledger)
        moved = attribution.residual[last] - attribution.residual[first]
        cut = np.isin(last, [item.step for item in silent_truncations(ledger)])
        # Reasoning that is not sent any more after the last reported call, by event; before it the counts show it.
        reported = np.flatnonzero(ledger.steps["prompt_tokens"] > 0)
        later = np.arange(ledger.step_count) > (reported[-1] if len(reported) else -1)
        dropped_later = _running(ledger.steps["at"][later], attribution.dropped[later], ledger.event_count + 1)
        prefix, at = attribution.prices.prefix - dropped_later, ledger.steps["at"][last]
        known = unrecorded(ledger, attribution.residual, attribution.lexical_ratios)
        return cls(
            whole=prefix + _running(at, moved, len(prefix)),
            kept=prefix + _running(at, np.where(cut, 0, moved), len(prefix)),
            begins=_begins(ledger, attribution, known),
            unrecorded=known,
        )


def _running(at: Ints, moved: Ints, size: int) -> Ints:
    jumps = np.zeros(size, dtype=np.int64)
    np.add.at(jumps, at, moved)
    return np.cumsum(jumps)


def _begins(ledger: Ledger, attribution: Attribution, known: Unrecorded) -> Ints:
    usual = [0 if base.kind == EDIT else known.after(epoch) for epoch, base in enumerate(ledger.bases)]
    begins = np.array([0, *usual], dtype=np.int64)
    for epoch, tokens in _beyond_estimates(ledger, attribution, known):
        begins[epoch + 1] = tokens
    reported = np.flatnonzero(ledger.steps["prompt_tokens"] > 0)
    epochs, places = np.unique(ledger.steps["epoch"][reported], return_index=True)
    begins[epochs + 1] = attribution.residual[reported[places]]
    return begins


def _beyond_estimates(ledger: Ledger, attribution: Attribution, known: Unrecorded) -> Iterator[tuple[int, int]]:
    """The residual after sealed compactions, by epoch, where the recorder estimated what each left: the first prompt is
    as much larger than that estimate as it was at the last one before."""
    measured = {epoch: residual for epoch, residual, _ in known.measured}
    beyond: int | None = None
    for epoch, base in enumerate(ledger.bases):
        if base.kind != SEALED or base.tokens_after <= 0:
            continue
        explained = attribution.price((*base.view, Span(base.at, base.at)), epoch) - base.tokens_after
        if beyond is not None:
            yield epoch, beyond - explained
        if epoch in measured:
            beyond = explained + measured[epoch]
