"""ADK's plugin that filters each request: only the last invocations are sent, once there are some more than that.

Source of the rule: google-adk 2.13.0, `plugins/context_filter_plugin.py`, and scripted runs of it. The log stays, and
each request is made of it anew. An invocation begins with the user's messages up to an answer. Once the log has
`num_invocations_to_keep` + `remove_amount` invocations, every request has only the newest `num_invocations_to_keep`.
Not here: a filter of one's own, and calls whose results come after a later message of the user.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import IN_PAIR
from guard_core.ledger import Ints, Ledger
from guard_core.policies.google_adk.policy import without_words
from guard_core.policies.google_adk.sizes import ESTIMATE
from guard_core.policies.pieces.compared import TURNS
from guard_core.policies.pieces.editing import ActingSteps, Edited, EditingPolicy
from guard_core.policies.pieces.lists import ListOutcome, ListRequest, Sizes, without
from guard_core.policies.pieces.messages import USER, MessageCosts, roles_of
from guard_core.policies.settings import COUNT, Setting
from guard_core.view_columns import ViewColumns
from guard_core.views import Span

_SOURCE = "google-adk 2.13.0, ContextFilterPlugin"
_OFF = -1  # the limit where no number of invocations is set


class ContextFilterSettings(msgspec.Struct, frozen=True):
    """By name; both in invocations."""

    num_invocations_to_keep: int = 0
    remove_amount: int = 1


class AdkContextFilter(EditingPolicy):
    """The policy; see the module."""

    name: ClassVar[str] = "adk-context-filter"
    relation: ClassVar[str] = ">="
    settings: ContextFilterSettings

    @property
    def compares(self) -> str:
        return TURNS

    @property
    def acts_below(self) -> str:
        return "messages without words are not sent"

    def costs(self) -> MessageCosts:
        return ESTIMATE

    def limit(self, window: int) -> int:
        newest = self.settings.num_invocations_to_keep
        return newest + self.settings.remove_amount if newest else _OFF

    def counted(self, sizes: Sizes) -> Ints:
        return np.searchsorted(invocation_starts(sizes.ledger), sizes.at)

    def counted_over_log(self, ledger: Ledger) -> Ints:
        return np.searchsorted(invocation_starts(ledger), ledger.steps["at"])

    def over(self, counted: Ints, limit: int) -> NDArray[np.bool_]:
        return np.asarray(super().over(counted, limit) & (limit != _OFF))

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> NDArray[np.bool_]:
        blank = np.append(0, np.cumsum(without_words(sizes.ledger)))
        return np.asarray(self.over(counted, limit) | (blank[sizes.at] > 0))

    def edited(self, steps: ActingSteps) -> Edited | None:
        if without_words(steps.ledger)[: int(steps.at.max(initial=0))].any():
            return None
        return Edited(ViewColumns.spans((self._begins(steps.ledger, steps.counted, steps.limit), steps.at)))

    def compact(self, request: ListRequest, state: Any) -> ListOutcome:
        ledger, at = request.ledger, request.check.at
        begins = int(self._begins(ledger, np.array([request.counted]), request.limit)[0])
        return ListOutcome(without((Span(begins, at),) if begins < at else (), without_words(ledger)), state)

    def _begins(self, ledger: Ledger, counted: Ints, limit: int) -> Ints:
        """The first event that is sent, by the number of invocations in the log; no call is parted from its result."""
        starts = invocation_starts(ledger)
        first = np.maximum(counted - self.settings.num_invocations_to_keep, 0)
        begins = np.where(self.over(counted, limit), np.append(starts, 0)[first], 0)
        whole = np.flatnonzero((ledger.events["flags"] & IN_PAIR) == 0)
        place = np.searchsorted(whole, begins, side="right") - 1
        return np.where(place >= 0, np.append(whole, 0)[place], 0)


def invocation_starts(ledger: Ledger) -> Ints:
    """The events with which the invocations of a log begin: messages of the user that follow none of the user's."""
    if "adk invocations" not in ledger.derived:
        sent = np.flatnonzero(~without_words(ledger))
        asks = roles_of(ledger)[sent] == USER
        ledger.derived["adk invocations"] = sent[asks & ~np.append(False, asks[:-1])[: len(asks)]]
    starts: Ints = ledger.derived["adk invocations"]
    return starts


FILTER_SETTINGS = (
    Setting(
        "num_invocations_to_keep",
        "Invocations kept",
        COUNT,
        5,
        "newest invocations that are sent; 0: all; the library has no default",
        _SOURCE,
        unit="turns",
        most=10_000_000,
        main=True,
        sweep=(1, 3, 5, 10),
    ),
    Setting(
        "remove_amount",
        "Invocations before it acts",
        COUNT,
        1,
        "invocations beyond those kept from which on it acts; from then on it acts at each request",
        _SOURCE,
        needs="num_invocations_to_keep",
        unit="turns",
        least=1,
        most=10_000_000,
    ),
)
