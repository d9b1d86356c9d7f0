"""The strategies of Agent Framework as policies."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np

from guard_core.estimation.usage import normal
from guard_core.ledger import Ints, Ledger
from guard_core.policies.agent_framework import settings as own
from guard_core.policies.agent_framework.counting import message_costs
from guard_core.policies.agent_framework.groups import (
    NOT_SYSTEM_GROUPS,
    NOT_SYSTEM_MESSAGES,
    SYSTEM_MESSAGES,
    TOOL_GROUPS,
    Included,
    Insertion,
    is_each_a_run,
    is_plain,
    next_returning,
    run_starts,
    tokens_in,
    with_events,
)
from guard_core.policies.agent_framework.runs import GroupRule, walked
from guard_core.policies.agent_framework.strategies import (
    GroupSummaries,
    ListInWork,
    collapsed_tool_groups,
    fitting,
    last_groups,
    lines_of,
    protected,
    shortened,
    summarised,
    summary_message,
    summary_tokens,
    without_oldest,
    without_tool_groups,
)
from guard_core.policies.base import Check
from guard_core.policies.pieces.compared import GROUPS, MESSAGES, TOKENS
from guard_core.policies.pieces.lists import ListMemory, ListOutcome, ListRequest, Sizes
from guard_core.policies.pieces.messages import MessageCosts
from guard_core.policies.pieces.stages import Act, ScanRequest, StagedPolicy, Walked
from guard_core.trace import NOTHING_TO_COMPACT, SUMMARISER_FAILED, Column, Head, head_of
from guard_core.view_sums import messages_in
from guard_core.views import Span, Synthetic, shared


class ListState(ListMemory, frozen=True, omit_defaults=True):
    """`inserted` are the messages inserted in the list, in order; `added` is how many messages were ever inserted."""

    inserted: tuple[Insertion, ...] = ()
    added: int = 0


class AgentFrameworkPolicy(StagedPolicy):
    """What all strategies share: a list of which groups are left out, and the count of its tokens."""

    state_type: ClassVar[type] = ListState
    own_columns: ClassVar[tuple[Column, ...]] = (
        Column("list_tokens", "tokens of the list before, by the library's own estimate", none=-1),
    )
    settings: own.ListSettings

    def noted(self, sizes: Sizes) -> dict[str, Ints]:
        return {"list_tokens": self.list_tokens(sizes)}

    def noted_of(
        self, asked: ScanRequest, heads: Sequence[Head], states: Sequence[Any], before: Ints
    ) -> dict[str, Ints]:
        costs = message_costs(self.settings.id_prefix)
        prefix = costs.prefix(asked.ledger)
        more = [
            costs.view(asked.ledger, head.view) + tokens_in(asked.ledger, state.inserted) - prefix.item(head.kept_from)
            for head, state in zip(heads, states, strict=True)
        ]
        return {"list_tokens": np.array(more)[before] + prefix[asked.at[: len(before)]]}

    def list_tokens(self, sizes: Sizes) -> Ints:
        """Tokens of the list at some steps, by the library's own estimate."""
        costs = message_costs(self.settings.id_prefix)
        prefix, head = costs.prefix(sizes.ledger), sizes.head
        before = costs.view(sizes.ledger, head.view) + tokens_in(sizes.ledger, sizes.state.inserted)
        return np.asarray(before + prefix[sizes.at] - prefix[head.kept_from])

    def next_returning(self, ledger: Ledger, state: Any) -> int:
        group = next_returning(ledger, state.head, state.kept_from)
        return ledger.event_count if group is None else group.at

    def with_returned(self, ledger: Ledger, state: Any, at: int) -> Any:
        """A result that comes after other messages brings the rest of its group back if that was left out."""
        group = next_returning(ledger, state.head, state.kept_from)
        while group is not None and group.at < at:
            view = with_events(state.head, state.inserted, group.events)
            head = head_of(normal((*view, Span(state.kept_from, at))), at)
            state = msgspec.structs.replace(state, head=head.view, kept_from=head.kept_from)
            group = next_returning(ledger, state.head, state.kept_from)
        return state

    def costs(self) -> MessageCosts:
        return message_costs(self.settings.id_prefix)

    def counted(self, sizes: Sizes) -> Ints:
        return self.list_tokens(sizes) if self.compares == TOKENS else sizes.whole

    @abstractmethod
    def worked(self, work: ListInWork) -> ListInWork:
        """What the strategy makes of the list."""

    def compact(self, request: ListRequest, state: Any) -> ListOutcome:
        included = Included(request.view, state.inserted, state.added)
        work = self.worked(ListInWork(request, state, included, self.settings.id_prefix))
        view, state = work.included.view, work.state
        if not work.changed:
            return ListOutcome(view, state, held=SUMMARISER_FAILED if work.failed else NOTHING_TO_COMPACT)
        state = msgspec.structs.replace(state, inserted=work.included.inserted, added=work.included.added)
        return ListOutcome(view, state, work.passes)


class AgentFrameworkTruncation(AgentFrameworkPolicy):
    """TruncationStrategy."""

    name: ClassVar[str] = "agent-framework-truncation"
    acts_in_runs: ClassVar[bool] = False
    settings: own.TruncationSettings

    @property
    def compares(self) -> str:
        return TOKENS if self.settings.tokens else MESSAGES

    def counted(self, sizes: Sizes) -> Ints:
        return self.list_tokens(sizes) if self.settings.tokens else sizes.messages

    def limit(self, window: int) -> int:
        return self.settings.max_n

    def worked(self, work: ListInWork) -> ListInWork:
        settings, groups = self.settings, work.groups
        amounts = groups.tokens if settings.tokens else groups.sizes
        stay = protected(groups, system=settings.preserve_system, first_user=settings.preserve_first_user_group)
        return without_oldest(work, groups, amounts, min(settings.compact_to, settings.max_n), stay)


class _Grouping(AgentFrameworkPolicy):
    """A strategy that counts groups."""

    @property
    def compares(self) -> str:
        return GROUPS


class AgentFrameworkSlidingWindow(_Grouping):
    """SlidingWindowStrategy."""

    name: ClassVar[str] = "agent-framework-sliding-window"
    settings: own.SlidingWindowSettings

    def costs(self) -> MessageCosts:
        return NOT_SYSTEM_GROUPS

    def limit(self, window: int) -> int:
        return self.settings.keep_last_groups

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> Any:
        """A message of the system goes at once where those are not kept."""
        over = self.over(counted, limit)
        if self.settings.preserve_system:
            return over
        prefix, head = SYSTEM_MESSAGES.prefix(sizes.ledger), sizes.head
        system = SYSTEM_MESSAGES.view(sizes.ledger, head.view) + prefix[sizes.at] - prefix[head.kept_from]
        return over | (system > 0)

    @property
    def acts_below(self) -> str:
        return "the list has a message of the system"

    def worked(self, work: ListInWork) -> ListInWork:
        return last_groups(work, self.settings.keep_last_groups, system=self.settings.preserve_system)

    def walks(self, ledger: Ledger, state: Any) -> bool:
        return not state.head and self.settings.keep_last_groups > 0 and is_plain(ledger, state.kept_from)

    def act(self, asked: ScanRequest, row: int, head: Head, state: Any) -> Act:
        starts = run_starts(asked.ledger)
        count = bisect_left(starts, asked.at.item(row))
        return Act(Head((), starts[count - self.settings.keep_last_groups]), state)


class _ToolGroups(_Grouping):
    """A strategy that counts tool groups."""

    settings: own.ToolGroupSettings

    def costs(self) -> MessageCosts:
        return TOOL_GROUPS

    def limit(self, window: int) -> int:
        return self.settings.keep_last_tool_call_groups


class SelectiveToolCall(_ToolGroups):
    """SelectiveToolCallCompactionStrategy."""

    name: ClassVar[str] = "agent-framework-selective-tool-call"

    def worked(self, work: ListInWork) -> ListInWork:
        return without_tool_groups(work, self.settings.keep_last_tool_call_groups)

    def walked(self, asked: ScanRequest) -> Walked | None:
        rule = GroupRule(self.settings.keep_last_tool_call_groups, collapses=False, limit=self.limit(asked.run.window))
        return walked(self, rule, asked)


class ToolResult(_ToolGroups):
    """ToolResultCompactionStrategy."""

    name: ClassVar[str] = "agent-framework-tool-result"

    def worked(self, work: ListInWork) -> ListInWork:
        return collapsed_tool_groups(work, self.settings.keep_last_tool_call_groups)

    def walked(self, asked: ScanRequest) -> Walked | None:
        rule = GroupRule(self.settings.keep_last_tool_call_groups, collapses=True, limit=self.limit(asked.run.window))
        return walked(self, rule, asked)


def _rule(settings: own.AgentFrameworkSummarizationSettings) -> GroupSummaries:
    return GroupSummaries(
        settings.target_count, settings.threshold, settings.max_summary_input_tokens, settings.summary_budget
    )


class AgentFrameworkSummarization(AgentFrameworkPolicy):
    """SummarizationStrategy."""

    name: ClassVar[str] = "agent-framework-summarization"
    settings: own.AgentFrameworkSummarizationSettings

    @property
    def compares(self) -> str:
        return MESSAGES

    def costs(self) -> MessageCosts:
        return NOT_SYSTEM_MESSAGES

    def limit(self, window: int) -> int:
        return self.settings.target_count + self.settings.threshold

    def worked(self, work: ListInWork) -> ListInWork:
        return summarised(work, _rule(self.settings))

    def walks(self, ledger: Ledger, state: Any) -> bool:
        """Before the log there is one summary at most."""
        is_summary = all(isinstance(each, Synthetic) for each in state.head) and len(state.head) <= 1
        return is_summary and is_plain(ledger, state.kept_from)

    def act(self, asked: ScanRequest, row: int, head: Head, state: Any) -> Act | int | None:
        ledger, settings, at = asked.ledger, self.settings, asked.at.item(row)
        starts, kept_from = run_starts(ledger), head.kept_from
        cut = starts[bisect_right(starts, at - max(settings.target_count, 1)) - 1]
        older = starts[bisect_left(starts, kept_from) : bisect_right(starts, cut)]  # and where the newest of them ends
        if cut < kept_from or not (head.view or kept_from < cut):
            return NOTHING_TO_COMPACT
        if settings.max_summary_input_tokens:
            lines = list(lines_of(ledger, head.view, older))
            if len(fitting(lines, settings.max_summary_input_tokens)) < len(lines):
                return None
        given = (*head.view, Span(kept_from, cut)) if kept_from < cut else head.view
        costs, budget = self.estimator(ledger), settings.summary_budget
        summary, state, asked_for = asked.summarised(row, given, costs, state, budget)
        message = summary_message(summary)
        if not message.bytes:
            return None
        begin = state.inserted[0].before if head.view else kept_from
        insertion = Insertion(summary_tokens(message, at + state.added), begin)
        state = msgspec.structs.replace(
            state, summary_bytes=message.bytes, inserted=(insertion,), added=state.added + 1
        )
        return Act(Head((message,), cut), state, (asked_for._replace(summary_bytes=message.bytes),))


class ContextWindow(AgentFrameworkPolicy):
    """ContextWindowCompactionStrategy."""

    name: ClassVar[str] = "agent-framework-context-window"
    settings: own.ContextWindowSettings

    def _share(self, window: int, share: float) -> int:
        """A share of the window without the answer."""
        budget = (self.settings.max_context_window_tokens or window) - self.settings.max_output_tokens
        return int(max(budget, 1) * share)

    def limit(self, window: int) -> int:
        return self._share(window, self.settings.tool_eviction_threshold)

    def worked(self, work: ListInWork) -> ListInWork:
        settings, window = self.settings, work.request.check.window
        work = collapsed_tool_groups(work, settings.keep_last_tool_call_groups)
        if work.tokens <= self._share(window, settings.truncation_threshold):
            return work
        return shortened(work, work.request.limit, system=True, first_user=settings.preserve_first_user_group)

    def walked(self, asked: ScanRequest) -> Walked | None:
        window, keep = asked.run.window, self.settings.keep_last_tool_call_groups
        most = self._share(window, self.settings.truncation_threshold)
        return walked(self, GroupRule(keep, collapses=True, limit=self.limit(window), by_tokens=True, most=most), asked)


class TokenBudget(AgentFrameworkPolicy):
    """TokenBudgetComposedStrategy."""

    name: ClassVar[str] = "agent-framework-token-budget"
    settings: own.TokenBudgetSettings

    def limit(self, window: int) -> int:
        return self.settings.token_budget or window

    def worked(self, work: ListInWork) -> ListInWork:
        most = work.request.limit
        for name, number in own.inner_strategies(self.settings.inner):
            work = self._tried(work, name, number)
            if self.settings.early_stop and work.tokens <= most:
                return work
        for system in (True, False):  # first the groups that are not of the system, then those of it
            if work.tokens > most:
                work = shortened(work, most, system=system)
        return work

    def walks(self, ledger: Ledger, state: Any) -> bool:
        """Where no result brings back what was left out (`next_returning`)."""
        return is_each_a_run(ledger)

    def more_than_log(self, ledger: Ledger, head: Head, state: Any, window: int) -> int:
        return super().more_than_log(ledger, head, state, window) + tokens_in(ledger, state.inserted)

    def act(self, asked: ScanRequest, row: int, head: Head, state: Any) -> Act | int | None:
        ledger, run, at = asked.ledger, asked.run, asked.at.item(row)
        check = Check(ledger, asked.start + row, at, run.window, run.summarizer, session=run.session, todos=run.todos)
        costs, view, limit = self.estimator(ledger), head.at(ledger, at), self.limit(run.window)
        sizes = messages_in(ledger, view), costs.contents(view)
        request = ListRequest(check, view, -1, limit, costs, *sizes)  # no strategy asks for what was compared
        outcome = self.compact(request, state)
        if outcome.held:
            return outcome.held if outcome.state == state else None
        return Act(self._head(shared(view, outcome.view), at), outcome.state, outcome.passes)

    def _tried(self, work: ListInWork, name: str, number: int) -> ListInWork:
        """The list after one of the strategies."""
        if name == "sliding":
            return last_groups(work, number, system=True)
        if name == "tools":
            return collapsed_tool_groups(work, self.settings.keep_last_tool_call_groups)
        return summarised(work, _rule(self.settings))
