"""What provider-side policies share: they compare the provider's own count of the request that they are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.ledger import Ints
from guard_core.policies.base import ReplayRun
from guard_core.policies.pieces.compared import TOKENS
from guard_core.policies.pieces.lists import ListPolicy, ListRequest, Sizes
from guard_core.policies.pieces.messages import MessageCosts
from guard_core.trace import INDEX, PROMPT_SOURCES, Column, Term, Trace
from guard_core.views import View

ESTIMATE = "estimate"
COUNT_SOURCES = (ESTIMATE, *PROMPT_SOURCES[1:])
COUNT_SOURCE = Column("count_source", "where the count that was compared comes from", INDEX, words=COUNT_SOURCES)
COSTS = MessageCosts(
    "heuristic", lambda ledger, parts: ledger.by_event(parts["heuristic"]), lambda message: message.bytes // 4
)


class ProviderPolicy(ListPolicy):
    """A policy that the provider applies to a request before the model reads it.

    It compares its count of this very request, system prompt and tools included. A replay takes the recorded count
    where the request is the one that was sent, and models it elsewhere; the column `count_source` says which.
    """

    counts_request: ClassVar[bool] = True
    own_columns: ClassVar[tuple[Column, ...]] = (COUNT_SOURCE,)

    def costs(self) -> MessageCosts:
        return COSTS

    def counted(self, sizes: Sizes) -> Ints:
        return _counts(sizes)[0]

    def noted(self, sizes: Sizes) -> dict[str, Ints]:
        return {COUNT_SOURCE.name: _counts(sizes)[1]}

    def tokens(self, request: ListRequest, view: View) -> int:
        """The provider's count of another request of the same step."""
        usage, heuristic = request.check.usage, request.costs.request(view)
        counted = -1 if usage is None else usage.one(request.check.step, view, heuristic).tokens
        return counted if counted >= 0 else heuristic

    def shadow(self, run: ReplayRun, trace: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        """The comparison over recorded requests, of tokens by the recorded count where there is one."""
        recorded = run.ledger.steps["prompt_tokens"]
        columns = {**super().shadow(run, trace), COUNT_SOURCE.name: (recorded > 0).astype(np.int64)}
        if self.compares == TOKENS:
            counted, limit = np.where(recorded > 0, recorded, trace["heuristic_decided"]), self.limit(run.window)
            columns |= self._compared(counted, np.full(len(counted), limit))
            columns["fired"] = np.asarray(self.over(counted, limit), dtype=np.int64)
        return columns

    def explain(self, trace: Trace, step: int) -> tuple[Term, ...]:
        source = COUNT_SOURCES[int(trace.columns[COUNT_SOURCE.name][step])]
        words = "the provider's count" if source == PROMPT_SOURCES[1] else source
        return tuple(
            msgspec.structs.replace(term, expression=words) if term.name == "compared" and term.unit == TOKENS else term
            for term in super().explain(trace, step)
        )


def _counts(sizes: Sizes) -> tuple[Ints, Ints]:
    """The counts of some requests, and where each comes from."""
    assert sizes.request is not None, "policies that compare the request are given its count"
    return sizes.request.tokens, sizes.request.source
