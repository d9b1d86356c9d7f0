"""What the provider of a running agent counted so far, and what it would count for a request that is not sent yet."""

from __future__ import annotations

import numpy as np

from guard_core import defaults
from guard_core.estimation.usage import ASSUMED, MODELLED, PROVIDER, CountedRun, RequestCount
from guard_core.ledger import Ints
from guard_core.policies.base import Policy
from guard_core.sessions import ModelCall
from guard_core.views import View


class LiveUsage:
    """The counts of the calls so far. A request that was not sent yet counts its estimate times the ratio of the last
    reported count to the estimate of its request; before the first report times the policy's default factor, assumed.
    """

    refuses = False  # whether a request is too large, the provider itself says

    def __init__(self, calls: tuple[ModelCall, ...], estimates: tuple[int, ...], policy: Policy) -> None:
        self._counts = [call.prompt_tokens for call in calls]
        pairs = zip(self._counts, estimates, strict=False)
        known = [(count, estimate) for count, estimate in pairs if count and estimate > 0]
        self._assumed = not known
        factor = getattr(policy.settings, "default_factor", defaults.DEFAULT_FACTOR)
        self.ratio = known[-1][0] / known[-1][1] if known else factor

    def one(self, step: int, view: View, heuristic: int, epoch: int = -1) -> RequestCount:
        count = self._counts[step] if step < len(self._counts) else None
        if count is not None:
            return RequestCount(count, True, PROVIDER)
        return RequestCount(int(heuristic * self.ratio), False, ASSUMED if self._assumed else MODELLED)

    def run(self, start: int, stop: int, head: View, kept_from: int, heuristics: Ints, form: str = "") -> CountedRun:
        each = [self.one(start + place, (), int(value)) for place, value in enumerate(heuristics)]
        return CountedRun(
            np.array([item.tokens for item in each], dtype=np.int64),
            np.array([item.reported for item in each], dtype=np.bool_),
            np.array([item.source for item in each], dtype=np.int64),
        )

    def notes(self, *, compacted: bool) -> tuple[str, ...]:
        return ()
