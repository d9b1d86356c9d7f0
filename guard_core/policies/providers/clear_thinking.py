"""`clear_thinking_20251015` of Anthropic's API: only the newest turns with thinking keep it.

As with tool results, every request is edited anew; the conversation that the client keeps stays whole. A turn lasts
from a message of the user to the next one, and is counted where it has thinking.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np

from guard_core.costs import HAS_REASONING
from guard_core.forms import Removed
from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.compared import TURNS
from guard_core.policies.pieces.editing import ActingSteps, Edited, EditingPolicy
from guard_core.policies.pieces.lists import Sizes
from guard_core.policies.pieces.messages import USER, MessageCosts, roles_of
from guard_core.policies.providers.requests import COSTS
from guard_core.view_columns import ViewColumns

WITHOUT_THINKING = Removed(what="reasoning").name


class ClearThinkingSettings(msgspec.Struct, frozen=True):
    """`keep` is a number of turns."""

    keep: int


class ClearThinking(EditingPolicy):
    """The policy; see the module. It compares the number of turns with thinking."""

    name: ClassVar[str] = "anthropic-clear-thinking"
    relation: ClassVar[str] = ">="
    settings: ClearThinkingSettings

    @property
    def compares(self) -> str:
        return TURNS

    def costs(self) -> MessageCosts:
        return COSTS

    def limit(self, window: int) -> int:
        return self.settings.keep + 1

    def counted(self, sizes: Sizes) -> Ints:
        return np.searchsorted(_turns(sizes.ledger), sizes.at)

    def edited(self, steps: ActingSteps) -> Edited:
        turns = _turns(steps.ledger)
        cut = turns[np.searchsorted(turns, steps.at) - self.settings.keep]
        changes = steps.ledger.first_changed(0, WITHOUT_THINKING) < cut
        spans = (0, np.where(changes, cut, 0)), (np.where(changes, cut, 0), steps.at)
        return Edited(ViewColumns.spans(*spans, forms=(WITHOUT_THINKING, "")))

    def counted_over_log(self, ledger: Ledger) -> Ints:
        return np.searchsorted(_turns(ledger), ledger.steps["at"])


def _turns(ledger: Ledger) -> Ints:
    """Of every turn with thinking, the first event that has some."""
    if "thinking turns" not in ledger.derived:
        events = np.flatnonzero(ledger.events["flags"] & HAS_REASONING)
        turn = np.cumsum(roles_of(ledger) == USER)[events]
        ledger.derived["thinking turns"] = events[np.append(True, np.diff(turn) > 0)[: len(events)]]
    turns: Ints = ledger.derived["thinking turns"]
    return turns
