"""`edit`: clears the results of all but the newest tool calls, and the reasoning of all but the newest answers."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import HAS_REASONING, tool_key
from guard_core.events import Event, TextPart, ToolCallPart
from guard_core.forms import Removed, Replaced, WithoutCalls, brings_form
from guard_core.ledger import Ledger
from guard_core.policies.inspect_ai.passes import COSTS, NO_TOOLS, InspectPolicy, PassResult, tokens_of
from guard_core.policies.pieces.lists import ListMemory, ListRequest, Sizes
from guard_core.policies.pieces.messages import (
    ASSISTANT,
    TOOL,
    USER,
    ListMessage,
    answered_by,
    calls_of,
    messages_of,
    parted_at,
    role_numbers,
    role_of,
    roles_of,
    view_of,
)
from guard_core.views import Span, View

CLEARED = "(Tool result removed)"  # 0.3.285: what a cleared result says
BEFORE_TOOL, AFTER_TOOL = "[Tool call: ", " (parameters and results removed from history)]"  # 0.3.285
TOOL_SEARCH = "tool_search"  # its result holds definitions of tools and stays (0.3.285)
WITHOUT_REASONING = Removed(what="reasoning").name
SHORTEST = Replaced(text=CLEARED, over=len(CLEARED)).name  # no list can be left shorter than in this form


@brings_form
class CallsAsTexts(WithoutCalls, frozen=True):
    """Calls replaced by notes at the end of the message, the note of the last call first."""

    kind: ClassVar[str] = "calls as texts"

    def message(self, event: Event) -> Event:
        calls = [part for part in event.parts if isinstance(part, ToolCallPart)]
        removed = [call for place, call in enumerate(calls) if not self.which or place in self.which]
        kept = tuple(part for part in event.parts if not any(part is call for call in removed))
        notes = tuple(TextPart(self.before + call.name + self.after) for call in reversed(removed))
        return msgspec.structs.replace(event, parts=kept + notes) if removed else event


class CallWithResult(NamedTuple):
    """A call with a result: places in the list, and of the call among those of its message and of the result."""

    call_at: int
    call: int
    result_at: int
    result: int


class EditMemory(ListMemory, frozen=True, omit_defaults=True):
    """The part of the list with events before `settled` stays as the last compaction left it, unless a result that
    came after it (event `settled_at` and later) answers one of its calls. Where the list was still over the threshold,
    and stays as it was, `attempt` is that part as it was edited in vain; it is not used where any result behind it
    answers one of its calls."""

    settled: int = 0
    settled_at: int = 0
    attempt: View = ()


class InspectEdit(InspectPolicy):
    """The policy; see the package."""

    name: ClassVar[str] = "inspect-edit"
    edits_once: ClassVar[bool] = True
    acts_in_runs: ClassVar[bool] = True
    state_type: ClassVar[type] = EditMemory

    def fails(self, sizes: Sizes, limit: int) -> NDArray[np.bool_]:
        """Where the list would be over the threshold with every result cleared that is longer than the note."""
        if not self.settings.keep_tool_inputs:
            return super().fails(sizes, limit)
        ledger, head = sizes.ledger, sizes.head
        prefix = COSTS.prefix(ledger, SHORTEST)
        of_head = sum(prefix.item(item.stop) - prefix.item(item.start) for item in head.view if isinstance(item, Span))
        least = max(sizes.fixed, NO_TOOLS) + tokens_of(of_head + prefix[sizes.at] - prefix[head.kept_from])
        begun, roles = sizes.at > 0, roles_of(ledger)
        last = roles[sizes.at[begun] - 1]
        begun[begun] = last != ASSISTANT  # an answer at the end is dropped
        return np.asarray((least > limit) & begun)

    def begun(self, request: ListRequest, state: EditMemory) -> View:
        rest = parted_at(request.view, state.settled)[1] if state.attempt else ()
        if not state.attempt or _answers_settled(request.ledger, state, messages_of(rest)):
            return request.view
        return (*state.attempt, *rest)

    def applied(self, request: ListRequest, state: EditMemory, view: View) -> PassResult:
        ledger = request.ledger
        before, messages = _unsettled(ledger, state, view)
        after = self._edited(ledger, messages)
        if before and not after:
            before, after = (), self._edited(ledger, messages_of(view))
        edited = view_of(ledger, after, before)
        return PassResult(edited, state, request.passed((), edited))

    def remembered(self, request: ListRequest, state: EditMemory, view: View) -> EditMemory:
        """Settled is what comes before everything that is still whole because it is among the newest."""
        ledger, at = request.ledger, request.check.at
        _, messages = _unsettled(ledger, state, view)
        uses = self._tool_uses(ledger, messages)
        kept = uses[-self.settings.keep_tool_uses :] if self.settings.keep_tool_uses else []
        newest = [messages[place].event for use in kept for place in (use.call_at, use.result_at)]
        newest += [message.event for message in messages if _has_reasoning(ledger, message)]
        newest += [message.event for message in messages[-1:]]
        return msgspec.structs.replace(state, settled=min(newest, default=0), settled_at=at, attempt=())

    def failed(self, request: ListRequest, state: EditMemory, view: View) -> EditMemory:
        settled = self.remembered(request, state, view)
        return msgspec.structs.replace(settled, attempt=parted_at(view, settled.settled)[0])

    def _edited(self, ledger: Ledger, messages: list[ListMessage]) -> list[ListMessage]:
        """The strategy over a list, or over its end where the rest is settled."""
        after = self._without_reasoning(ledger, messages)
        uses = self._tool_uses(ledger, after)
        keep = self.settings.keep_tool_uses
        cleared = uses[:-keep] if keep else uses
        after = (
            _results_cleared(ledger, after, cleared)
            if self.settings.keep_tool_inputs
            else _removed(ledger, after, cleared)
        )
        while after and role_of(ledger, after[-1]) == ASSISTANT:
            after.pop()
        return after

    def _without_reasoning(self, ledger: Ledger, messages: list[ListMessage]) -> list[ListMessage]:
        after, answers = list(messages), 0
        for place in range(len(after) - 1, -1, -1):
            message = after[place]
            if role_of(ledger, message) == ASSISTANT:
                answers += 1
                if answers > self.settings.keep_thinking_turns and _has_reasoning(ledger, message):
                    after[place] = message.joined(WITHOUT_REASONING)
        return after

    def _tool_uses(self, ledger: Ledger, messages: list[ListMessage]) -> list[CallWithResult]:
        """The calls that have a result and may be cleared, in the order of the calls."""
        names = (name.strip() for name in self.settings.exclude_tools.split(","))
        excluded = {tool_key(name) for name in (*names, TOOL_SEARCH) if name}
        known, tools = role_numbers(ledger), ledger.parts["tool"]
        roles = [known[message.event] if message.event >= 0 else USER for message in messages]  # inserted: no tools
        results = {}
        for place, role in enumerate(roles):
            if role == TOOL:
                results.update({row: (place, nth) for nth, row in enumerate(answered_by(ledger, messages[place]))})
        uses = []
        for place, role in enumerate(roles):
            if role != ASSISTANT:
                continue
            for nth, row in enumerate(calls_of(ledger, messages[place])):
                if row in results and tools.item(row) not in excluded:
                    uses.append(CallWithResult(place, nth, *results[row]))
        return uses


def _has_reasoning(ledger: Ledger, message: ListMessage) -> bool:
    """Is it an answer that still has its reasoning."""
    if role_of(ledger, message) != ASSISTANT or message.event < 0 or message.is_in(WITHOUT_REASONING):
        return False
    return bool(ledger.events["flags"].item(message.event) & HAS_REASONING)


def _unsettled(ledger: Ledger, state: EditMemory, view: View) -> tuple[View, list[ListMessage]]:
    """The settled part of a list, and the messages behind it."""
    before, rest = parted_at(view, state.settled)
    messages = messages_of(rest)
    return ((), messages_of(view)) if _answers_settled(ledger, state, messages) else (before, messages)


def _answers_settled(ledger: Ledger, state: EditMemory, messages: list[ListMessage]) -> bool:
    """Does a result behind the settled part, which the last edit has not dealt with, answer one of its calls. What an
    edit in vain did behind that part is gone."""
    first, since = ledger.part_starts.item(state.settled), state.settled if state.attempt else state.settled_at
    new = (item for item in messages if item.event >= since and role_of(ledger, item) == TOOL)
    return any(0 <= row < first for item in new for row in answered_by(ledger, item))


def _results_cleared(ledger: Ledger, messages: list[ListMessage], uses: list[CallWithResult]) -> list[ListMessage]:
    after = list(messages)
    for use in uses:
        message = after[use.result_at]
        several = len(answered_by(ledger, message)) > 1
        form = Replaced(text=CLEARED, which=(use.result,) if several else ()).name
        if not message.is_in(form):
            after[use.result_at] = message.joined(form)
    return after


def _removed(ledger: Ledger, messages: list[ListMessage], uses: list[CallWithResult]) -> list[ListMessage]:
    """The results removed, and their calls replaced by notes. Of an event with several results, each of which is a
    message of its own in Inspect, the others stay."""
    after: list[ListMessage | None] = list(messages)
    calls: dict[int, list[int]] = {}
    results: dict[int, list[int]] = {}
    for use in uses:
        results.setdefault(use.result_at, []).append(use.result)
        calls.setdefault(use.call_at, []).append(use.call)
    for place, which in results.items():
        is_last = len(which) == len(answered_by(ledger, messages[place]))
        after[place] = None if is_last else messages[place].joined(Removed(tuple(sorted(which)), "result").name)
    for place, which in calls.items():
        form = CallsAsTexts(which=tuple(which), before=BEFORE_TOOL, after=AFTER_TOOL)
        after[place] = messages[place].joined(form.name)
    return [message for message in after if message is not None]
