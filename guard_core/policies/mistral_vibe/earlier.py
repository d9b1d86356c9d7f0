"""Mistral Vibe to 3.0.2: a threshold of its own, or 80 % of a window that is declared, or 200,000 tokens.

Source of the rules: 2.26.1 and 3.0.2, run against a scripted provider, and the specification of new policies, section 2
(2.18.4). The count is that of the last answer; what was added since is not in it. From 2.26 on Vibe's own estimate of
the request counts where it is more. Not modelled: the oldest round goes, at most three times, where the request for the
summary overflows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Point
from guard_core.policies.mistral_vibe.settings import MistralVibeSettings
from guard_core.policies.mistral_vibe.sizes import ESTIMATE, head_tokens, message_bytes
from guard_core.policies.pieces.counted import CountedPolicy
from guard_core.policies.pieces.counters import ProviderCounts, UsageCounter, outputs_of
from guard_core.policies.pieces.estimates import TokenEstimate
from guard_core.policies.pieces.looks import PolicyLooks
from guard_core.policies.pieces.plans import Ask, CompactableHistory, Plan, SummaryMessage
from guard_core.policies.pieces.requests import newest_requests
from guard_core.trace import Head
from guard_core.views import Synthetic

CONTEXT, FRAME = 228, 118  # characters: a note before the messages, and around the summary; runs of 3.0.2


class MistralVibe(CountedPolicy):
    """The policy before 2.26; see the module."""

    settings: MistralVibeSettings
    name = "mistral-vibe"
    agent = "mistral-vibe"
    looks = (Point.AFTER_RESULTS, Point.BEFORE_TURN)

    def threshold(self, window: int) -> int:
        return self.settings.limit(window)[1]

    def rule(self, window: int) -> str:
        return self.settings.limit(window)[0]

    def plan(self, history: CompactableHistory) -> Plan:
        """A note, the person's newest messages within a budget, and a summary of all."""
        users = newest_requests(history.ledger, history.stop, self.settings.user_budget)
        summary = SummaryMessage((Ask(history.view, self.settings.summary_budget),), frame=FRAME)
        return Plan((Synthetic("note", CONTEXT), *users, summary), cut=(history.stop,) * 3)


class EstimatingVibe(MistralVibe):
    """The policy from 2.26 to 3.0.2."""

    @property
    def uncounted(self) -> TokenEstimate | None:
        return ESTIMATE

    @property
    def counter(self) -> UsageCounter:
        return UsageCounter(pending=message_bytes, pending_words="how much more Vibe's estimate of the request is")

    def _numbers(
        self, ledger: Ledger, looks: PolicyLooks, counts: ProviderCounts, uncounted: Ints, head: Head | None = None
    ) -> dict[str, Ints]:
        columns = super()._numbers(ledger, looks, counts, uncounted, head)
        tokens, as_of = counts
        total = tokens + outputs_of(ledger)[as_of]
        estimate = uncounted if head is None else head_tokens(ledger, head, looks.stop)
        pending = np.where(as_of >= 0, np.maximum(estimate - total, 0), 0)
        return columns | {"pending": pending, "decision_tokens": np.where(as_of >= 0, total + pending, uncounted)}

    def _uncounted(self, ledger: Ledger, head: Head, at: Ints, state: Any) -> Ints:
        return head_tokens(ledger, head, at)
