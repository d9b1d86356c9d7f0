"""Compactions by providers: what a request held becomes one block, which takes the place of all messages before it.

Anthropic's block can be read. It is made within the request that reaches the trigger (`compact_20260112`), on demand of
the client just before that request, or in the background: then the conversation goes on, and the block takes the place
of the messages that were there when it was begun. OpenAI's item is encrypted, so that here only its size is modelled;
its explicit call leaves the messages of the user before the item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.errors import SettingError, SummaryFailed
from guard_core.estimation.usage import normal
from guard_core.events import Role
from guard_core.ledger import Ints
from guard_core.policies.pieces.lists import ListMemory, ListOutcome, ListRequest, Sizes
from guard_core.policies.pieces.message_columns import between, of_the_user
from guard_core.policies.providers.requests import ProviderPolicy
from guard_core.summaries.base import Summary
from guard_core.trace import SUMMARISER_FAILED, UNDER_WAY
from guard_core.views import Synthetic, View, content_count, followed

THRESHOLD, ON_DEMAND, BACKGROUND = "threshold", "on-demand", "background"
SERVER, EXPLICIT = "server", "explicit"
LEAST_TRIGGER = 50_000  # tokens of compact_20260112; specification of new policies section 1
BLOCK, OPAQUE = "summary", "opaque compaction item"  # kinds of inserted messages


class AnthropicSettings(msgspec.Struct, frozen=True):
    """Sizes in tokens; `arrives_after` is a number of model calls."""

    profile: str
    trigger: int
    arrives_after: int
    summary_budget: int

    def __post_init__(self) -> None:
        if self.profile == THRESHOLD and self.trigger < LEAST_TRIGGER:
            raise SettingError(
                f"Trigger (trigger) is at least {LEAST_TRIGGER:,} tokens in the profile {THRESHOLD}, not "
                f"{self.trigger:,}; {ON_DEMAND} and {BACKGROUND} have no minimum"
            )


class OpenAiSettings(msgspec.Struct, frozen=True):
    """Sizes in tokens."""

    profile: str
    compact_threshold: int
    summary_budget: int


class CompactionMemory(ListMemory, frozen=True, omit_defaults=True):
    """The step at which a block was begun in the background (-1: none), and the events of the log then."""

    begun: int = -1
    begun_at: int = 0


class AnthropicCompaction(ProviderPolicy):
    """Anthropic's; see the module."""

    name: ClassVar[str] = "anthropic-compaction"
    relation: ClassVar[str] = ">="
    state_type: ClassVar[type] = CompactionMemory
    settings: AnthropicSettings

    @property
    def delay(self) -> int:
        """Model calls until the block is there."""
        return self.settings.arrives_after if self.settings.profile == BACKGROUND else 0

    def limit(self, window: int) -> int:
        return self.settings.trigger

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> NDArray[np.bool_]:
        if sizes.state.begun >= 0:
            return np.asarray(sizes.rows >= sizes.state.begun + self.delay)
        return self.over(counted, limit)

    def compact(self, request: ListRequest, state: CompactionMemory) -> ListOutcome:
        check, view = request.check, request.view
        if state.begun < 0 and self.delay:
            begun = msgspec.structs.replace(state, begun=check.step, begun_at=check.at)
            return ListOutcome(view, begun, held=UNDER_WAY)
        stop = state.begun_at if state.begun >= 0 else check.at
        count = content_count(view)
        cut = count - (check.at - stop)
        state = msgspec.structs.replace(state, begun=-1, begun_at=0)
        given, tail = between(view, 0, cut), between(view, cut, count)

        def leaves(summary: Summary) -> View:
            return normal((Synthetic(BLOCK, summary.bytes, summary.text, Role.MODEL), *tail))

        return replaced(request, state, given, stop, self.settings.summary_budget, leaves)

    def reason(self, request: ListRequest) -> str:
        if self.delay:
            return f"the block begun {self.delay} calls ago is there; a request had reached {request.limit:,} tokens"
        return super().reason(request)


class OpenAiCompaction(ProviderPolicy):
    """OpenAI's; see the module."""

    name: ClassVar[str] = "openai-compaction"
    settings: OpenAiSettings

    def limit(self, window: int) -> int:
        return self.settings.compact_threshold

    def compact(self, request: ListRequest, state: ListMemory) -> ListOutcome:
        users = of_the_user(request.ledger, request.view) if self.settings.profile == EXPLICIT else ()

        def leaves(summary: Summary) -> View:
            return followed(users, len(users), (Synthetic(OPAQUE, summary.bytes, None, Role.MODEL),))

        return replaced(request, state, request.view, request.check.at, self.settings.summary_budget, leaves)


def replaced(
    request: ListRequest, state: Any, given: View, stop: int, budget: int, leaves: Callable[[Summary], View]
) -> ListOutcome:
    """The messages `given`, which hold the first `stop` events of the log, as a block; `leaves` gives the list with it.
    `budget` are the tokens that a share of a summary refers to."""
    try:
        summary, state = request.summarise(state, given, budget)
    except SummaryFailed:
        asked = msgspec.structs.replace(state, calls=state.calls + 1)
        return ListOutcome(request.view, asked, held=SUMMARISER_FAILED)
    if not summary.bytes:
        return ListOutcome(request.view, state, held=SUMMARISER_FAILED)
    after = leaves(summary)
    state = msgspec.structs.replace(state, watermark=stop, summary_bytes=summary.bytes)
    return ListOutcome(after, state, (request.passed(given, after, summary_bytes=summary.bytes),))
