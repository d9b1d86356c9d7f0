"""Mistral Vibe to 3.0.2: a threshold of its own, or 80 % of a window that is declared, or 200,000 tokens.

Source of the rules: version 3.0.2, run against a scripted provider, and the specification of new policies, section 2
(2.18.4). The count is that of the last answer alone; what was added since is not in it. Not modelled: the oldest round
goes, at most three times, where the request for the summary overflows; and Vibe's own estimate of the request, which
counts where it is more than that count.
"""

from __future__ import annotations

from guard_core.policies.base import Point
from guard_core.policies.mistral_vibe.settings import MistralVibeSettings
from guard_core.policies.pieces.counted import CountedPolicy
from guard_core.policies.pieces.plans import Ask, CompactableHistory, Plan, SummaryMessage
from guard_core.policies.pieces.requests import newest_requests
from guard_core.views import Synthetic

CONTEXT, FRAME = 228, 118  # characters: a note before the messages, and around the summary; runs of 3.0.2


class MistralVibe(CountedPolicy):
    """The policy; see the module."""

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
