"""`trim`: drops the oldest of the messages behind the first user message, and calls and results left without their
other half."""

from __future__ import annotations

from typing import Any, ClassVar

from guard_core.forms import WithoutCalls
from guard_core.ledger import Ledger
from guard_core.policies.inspect_ai.passes import InspectPolicy, PassResult, parted
from guard_core.policies.pieces.lists import ListRequest
from guard_core.policies.pieces.messages import (
    ASSISTANT,
    TOOL,
    ListMessage,
    answered_by,
    calls_of,
    messages_of,
    role_of,
    roles_in,
    view_of,
)
from guard_core.views import View


class InspectTrim(InspectPolicy):
    """The policy; see the package."""

    name: ClassVar[str] = "inspect-trim"

    def applied(self, request: ListRequest, state: Any, view: View) -> PassResult:
        ledger = request.ledger
        system, first, others = parted(ledger, messages_of(view))
        start = int(len(others) * (1 - self.settings.preserve))
        kept = _with_both_halves(ledger, others[start:])
        if kept and role_of(ledger, kept[-1]) == ASSISTANT:
            kept.pop()
        after = view_of(ledger, [*system, *first, *kept])
        return PassResult(after, state, request.passed((), after))


def _with_both_halves(ledger: Ledger, messages: list[ListMessage]) -> list[ListMessage]:
    """The messages without results whose call is not in the answer before them, and without calls that have none."""
    kept, open_calls, answered = [], set[int](), set[int]()
    for message, role in zip(messages, roles_in(ledger, messages), strict=True):
        calls = calls_of(ledger, message)
        if role == TOOL:
            rows = open_calls.intersection(answered_by(ledger, message))
            if not rows:
                continue
            answered |= rows
        else:
            open_calls = set(calls) if role == ASSISTANT else set()
        kept.append((message, calls))
    return [_without_open_calls(message, calls, answered) if calls else message for message, calls in kept]


def _without_open_calls(message: ListMessage, calls: list[int], answered: set[int]) -> ListMessage:
    """An answer without those of its calls whose results are not there."""
    places = tuple([place for place, row in enumerate(calls) if row not in answered])
    return message.joined(WithoutCalls(which=places).name) if places else message
