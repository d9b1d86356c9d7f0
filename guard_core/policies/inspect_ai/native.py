"""`native`: the provider replaces the list by a block of its own, behind the system messages; `auto`: where it cannot,
the strategy `summary` does."""

from __future__ import annotations

from itertools import takewhile
from typing import Any, ClassVar

from guard_core.errors import SummaryFailed
from guard_core.events import Role
from guard_core.policies.inspect_ai.passes import InspectPolicy, PassResult
from guard_core.policies.inspect_ai.settings import ANTHROPIC, OPENAI, AutoSettings, NativeSettings
from guard_core.policies.inspect_ai.summary import InspectSummary
from guard_core.policies.pieces.lists import ListRequest
from guard_core.policies.pieces.message_columns import of_the_user
from guard_core.policies.pieces.messages import SYSTEM_ROLE, USER, messages_of, role_of, view_of
from guard_core.policies.providers.compaction import BLOCK, LEAST_TRIGGER, OPAQUE
from guard_core.summaries.base import Summary
from guard_core.views import Synthetic, View, followed

CONTINUE = "Please continue working."  # what follows Anthropic's block (0.3.285)


class InspectNative(InspectPolicy):
    """The policy; see the module."""

    name: ClassVar[str] = "inspect-native"
    settings: NativeSettings

    def applied(self, request: ListRequest, state: Any, view: View) -> PassResult:
        return natively(self, request, state, view)


class InspectAuto(InspectSummary):
    """The policy; see the module."""

    name: ClassVar[str] = "inspect-auto"
    settings: AutoSettings

    def applied(self, request: ListRequest, state: Any, view: View) -> PassResult:
        try:
            return natively(self, request, state, view)
        except SummaryFailed:
            return super().applied(request, state, view)


def natively(policy: InspectNative | InspectAuto, request: ListRequest, state: Any, view: View) -> PassResult:
    """One compaction by the provider. Raises SummaryFailed where it has none, or does not compact so few tokens."""
    ledger, settings = request.ledger, policy.settings
    if settings.provider not in (ANTHROPIC, OPENAI):
        raise SummaryFailed("the provider has no compaction of its own")
    if settings.provider == ANTHROPIC and policy.total(request, view) < LEAST_TRIGGER:
        raise SummaryFailed(f"Anthropic's compaction was not triggered, which takes {LEAST_TRIGGER:,} tokens")
    summary, state = request.summarise(state, view, settings.summary_budget)
    after = _left(request, settings.provider, view, summary)
    # The messages of the system that the list began with, up to the first message of the user.
    messages = (message for segment in view for message in messages_of((segment,)))
    beginning = takewhile(lambda message: role_of(ledger, message) != USER, messages)
    if system := view_of(ledger, (message for message in beginning if role_of(ledger, message) == SYSTEM_ROLE)):
        after = (*system, *after)
    return PassResult(after, state, request.passed(view, after, summary_bytes=summary.bytes, empty=not summary.bytes))


def _left(request: ListRequest, provider: str, view: View, summary: Summary) -> View:
    """What a provider leaves: Anthropic a block that can be read, OpenAI the user's messages and an encrypted item."""
    if provider == ANTHROPIC:
        return (
            Synthetic(BLOCK, summary.bytes, summary.text, Role.MODEL),
            Synthetic("continuation", len(CONTINUE), CONTINUE),
        )
    users = of_the_user(request.ledger, view)
    return followed(users, len(users), (Synthetic(OPAQUE, summary.bytes),))
