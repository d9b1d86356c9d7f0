"""Plans: what a compaction leaves, as a policy decides it before a summariser is asked; and what that answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from guard_core.errors import SummaryFailed
from guard_core.estimation.agents_view import largest_answered
from guard_core.estimation.estimators import Heuristic
from guard_core.estimation.usage import normal
from guard_core.events import Role
from guard_core.ledger import Ledger
from guard_core.policies.base import Check, Point
from guard_core.policies.pieces.message_columns import MessageColumns, between, list_messages
from guard_core.summaries.base import Summary, SummaryRequest
from guard_core.trace import Pass
from guard_core.view_sums import messages_in
from guard_core.views import Segment, Synthetic, View, content_count


@dataclass(frozen=True)
class CompactableHistory:
    """What a compaction may replace: `view`, the messages sent up to event `stop` of the log (exclusive), which is
    what was in it at `point`. `state` is what the policy remembers."""

    check: Check
    state: Any
    view: View
    stop: int
    point: Point

    @property
    def ledger(self) -> Ledger:
        return self.check.ledger

    @cached_property
    def messages(self) -> MessageColumns:
        """The view as a list."""
        return list_messages(self.ledger, self.view)

    @property
    def within_turn(self) -> bool:
        """Does the turn go on after the compaction."""
        return self.stop == self.check.at


class Ask(NamedTuple):
    """One call of the summariser: what it is given, and the tokens that its answer may have."""

    given: View
    tokens: int


class SummaryMessage(NamedTuple):
    """The place of a summary: one message, made of the answers to all `asks`, with `frame` bytes of fixed text.

    `role` is the one that it is sent in. Without an answer the message has `if_none` bytes of text in its place; None:
    then nothing is compacted, but an answer without text is taken with `takes_empty`.
    """

    asks: tuple[Ask, ...]
    role: Role = Role.USER
    frame: int = 0
    if_none: int | None = None
    takes_empty: bool = False


class Plan(NamedTuple):
    """What a compaction leaves of a history, in order: events as they are or in a form, messages that no event holds,
    and the places of summaries. A plan without such a place (old results are cleared) asks no summariser.

    `cut` are the events at which the kept end begins: as computed, moved to a legal place, moved to an anchor. `notes`
    are sentences about this compaction. `dropped` counts messages that the summariser could not be given. `remembers`
    are fields of the policy's own state.
    """

    items: tuple[Segment | SummaryMessage, ...]
    cut: tuple[int, int, int] | None = None
    notes: tuple[str, ...] = ()
    dropped: int = 0
    remembers: Mapping[str, Any] = MappingProxyType({})


class SummariserCall(NamedTuple):
    """One call of the summariser: what it was given, an estimate of that, and what it gave."""

    given: View
    tokens: int
    summary: Summary
    failed: bool


NO_ANSWER = SummariserCall((), 0, Summary(0), failed=False)  # of a compaction that asks no summariser


def pass_of(history: CompactableHistory, answer: SummariserCall, after: View, sent: int, dropped: int) -> Pass:
    """The evidence of one call of the summariser, without one of what was cleared: `after` is the request that is sent
    then, of so many tokens by the estimate; so many messages were `dropped` before."""
    return Pass(
        contents_in=messages_in(history.ledger, history.view),
        tokens_in=Heuristic.of(history.ledger).contents(history.view),
        summariser_contents=messages_in(history.ledger, answer.given),
        summariser_tokens=answer.tokens,
        summary_bytes=answer.summary.bytes,
        contents_after=messages_in(history.ledger, after),
        tokens_after=sent,
        failed=answer.failed,
        empty=bool(answer.given) and not answer.summary.bytes and not answer.failed,
        dropped_before_summariser=dropped,
        summariser_view=answer.given,
    )


class AskedSummary(NamedTuple):
    """A summary message, None where there is no text for one, and the answers that it is made of."""

    message: Synthetic | None
    answers: tuple[SummariserCall, ...]


def view_left(plan: Plan, summaries: list[AskedSummary]) -> View:
    """What a plan leaves, with its summaries."""
    messages = iter([item.message for item in summaries if item.message is not None])
    items: list[Segment] = [next(messages) if isinstance(item, SummaryMessage) else item for item in plan.items]
    return normal(tuple(items))


def joined(asks: tuple[Ask, ...]) -> Ask:
    """Several calls as one, given all that they are given."""
    return Ask(tuple(segment for ask in asks for segment in ask.given), sum(ask.tokens for ask in asks))


def summarised(check: Check, request: Ask, tokens: int, previous: Summary, call: int) -> tuple[Summary, bool]:
    """The answer of the summariser to call number `call` of a run, and whether it failed; an answer without text has 0
    bytes. `tokens` is the estimate of what it is given."""
    try:
        return ask_for_summary(check, request, tokens, previous, call), False
    except SummaryFailed:
        return Summary(0), True


def ask_for_summary(check: Check, request: Ask, tokens: int, previous: Summary, call: int) -> Summary:
    """The same answer. Raises SummaryFailed."""
    asked = SummaryRequest(
        view=request.given,
        tokens=tokens,
        previous=previous,
        output_tokens=request.tokens,
        words=request.tokens * 3 // 4,
        call=call,
        step=check.step,
        session=check.session,
        todos=check.todos,
    )
    return check.summarizer.summarise(asked)


def fitting(history: CompactableHistory, view: View) -> tuple[View, int]:
    """What a summariser is sent of a view, the oldest messages of the history: while the request overflows the window,
    the oldest message goes, with the results of a call that went; and how many went. One message is always left."""
    check, costs, count = history.check, Heuristic.of(history.ledger), content_count(view)

    def fits(dropped: int) -> bool:
        assert check.usage is not None
        rest, most = between(view, dropped, count), largest_answered(check.usage, check.window)
        return check.usage.one(check.step, rest, costs.request(rest)).tokens <= most

    if check.usage is None or count < 2 or fits(0):
        return view, 0
    low, high = 0, count - 1  # the fewest that must go lie above `low`
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    results = list_messages(history.ledger, view).has_results
    while high < count - 1 and results[high]:
        high += 1
    return between(view, high, count), high
