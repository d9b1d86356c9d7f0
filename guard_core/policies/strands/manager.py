"""What both managers share: the projected tokens of a request, pinned messages, blank answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import CALL, HAS_CALL, IS_BLANK, MODEL, REASONING, RESULT, TEXT, is_blank, text_sizes
from guard_core.events import Event, Part, Role, TextPart, ToolCallPart
from guard_core.forms import Form, brings_form
from guard_core.forms.base import GONE, SIZES, LogColumns, PartColumns
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Point
from guard_core.policies.pieces.counters import ProviderCounts, in_steps, outputs_as_of
from guard_core.policies.pieces.groups import MessageGroup, groups_of
from guard_core.policies.pieces.lists import ListMemory, ListOutcome, ListPolicy, ListRequest, Sizes
from guard_core.policies.pieces.messages import ASSISTANT, ListMessage, MessageCosts, messages_of, roles_of, view_of
from guard_core.trace import Head
from guard_core.views import Span, Synthetic

BLANK = "[blank text]"  # 1.62.0: what an answer of blanks says in a request
REQUESTS = 61  # of one step: the first, and as many after refusals as the recorded runs allow
# Refusals in one turn, which are calls within calls: after so many Python's limit was met (scripted runs of 1.62.0).
MOST_REFUSALS = 726


class StrandsMemory(ListMemory, frozen=True, omit_defaults=True):
    """`pinned`: events before this one are pinned, -1: nothing is yet; `pinned_answer` is the last answer of these (-1:
    none) and `pinned_count` what the provider counted at it, with its output (0: nothing). `refusals` counts requests
    that were refused, `in_turn` those of the turn number `turn`."""

    pinned: int = -1
    pinned_answer: int = -1
    pinned_count: int = 0
    refusals: int = 0
    in_turn: int = 0
    turn: int = -1


@brings_form
class BlankAnswers(Form, frozen=True):
    """Answers of empty texts or blanks alone say so; beside calls such texts are left out."""

    kind: ClassVar[str] = "blank answers"

    @property
    def words(self) -> str:
        return f"the blank answer is sent as {BLANK}, or without its text beside calls"

    def touches(self, kind: int) -> bool:
        return kind == TEXT

    def parts(self, ledger: LogColumns, parts: PartColumns) -> PartColumns:
        flags = ledger.events["flags"][parts["event"]]
        is_blank = (parts["chars"] == 0) | ((flags & IS_BLANK) > 0)
        blank = (parts["kind"] == TEXT) & ((flags & MODEL) > 0) & is_blank
        without, replaced = blank & ((flags & HAS_CALL) > 0), blank & ((flags & HAS_CALL) == 0)
        new = {name: np.where(replaced, size, parts[name]) for name, size in text_sizes(BLANK).items()}
        sizes = {name: np.where(without, 0, new.get(name, parts[name])) for name in SIZES}
        return {**parts, **sizes, "kind": np.where(without, GONE, parts["kind"])}

    def message(self, event: Event) -> Event:
        if event.role is not Role.MODEL:
            return event
        has_calls, all_blank = any(isinstance(part, ToolCallPart) for part in event.parts), is_blank(event)
        parts: list[Part] = []
        for part in event.parts:
            if not isinstance(part, TextPart) or (part.text and not all_blank):
                parts.append(part)
            elif not has_calls:
                parts.append(TextPart(BLANK))
        return event if tuple(parts) == event.parts else msgspec.structs.replace(event, parts=tuple(parts))


def block_tokens(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """The library's estimate of each event: characters / 4 of texts, characters / 2 of arguments as JSON, each rounded
    up."""
    kind = parts["kind"]
    text = np.where(np.isin(kind, (TEXT, RESULT, REASONING)), -(-parts["chars"] // 4), 0)
    json_chars = parts["chars"] + parts["separators"] + 5 * parts["non_ascii"] + 6 * (parts["utf16"] - parts["chars"])
    call = -(-parts["name_chars"] // 4) + -(-json_chars // 2)
    return ledger.by_event(np.where(kind == CALL, call, text))


ESTIMATE = MessageCosts("strands", block_tokens, lambda message: -(-message.bytes // 4))


class StrandsManager(ListPolicy):
    """The base of both."""

    relation: ClassVar[str] = ">="
    forgets: ClassVar[bool] = False
    most_attempts: ClassVar[int] = REQUESTS
    gives_up: ClassVar[bool] = False  # it would try for ever
    points: ClassVar[tuple[Point, ...]] = (Point.BEFORE_CALL, Point.ON_OVERFLOW)
    state_type: ClassVar[type] = StrandsMemory

    @property
    def sent_form(self) -> str:
        return BlankAnswers().name

    def costs(self) -> MessageCosts:
        return ESTIMATE

    def limit(self, window: int) -> int:
        """The fewest tokens that reach the share of the window; -1 without proactive compression."""
        if not self.settings.proactive or window <= 0:
            return -1
        share = self.settings.compression_threshold
        tokens = int(share * window)
        while tokens / window < share:
            tokens += 1
        return tokens

    def over(self, counted: Ints, limit: int) -> NDArray[np.bool_]:
        return np.asarray(super().over(counted, limit) & (limit >= 0))

    def counted(self, sizes: Sizes) -> Ints:
        """The count of the list's last answer with its output, and an estimate of what follows that answer; without an
        answer in the list an estimate of all. The last answer is that of the last call, or a pinned one; where the
        provider gave no prompt tokens, its output alone counts."""
        ledger, head, at = sizes.ledger, sizes.head, sizes.at
        prefix, answers = ESTIMATE.prefix(ledger), _last_answers(ledger)[at]
        in_log, in_head = answers >= head.kept_from, _last_in_head(ledger, head)
        after_head = ESTIMATE.view(ledger, view_of(ledger, in_head[1])) + prefix[at] - prefix[head.kept_from]
        new = np.where(in_log, prefix[at] - prefix[np.where(in_log, answers + 1, 0)], after_head)
        last = np.where(in_log, answers, in_head[0])
        known = (sizes.as_of >= 0) & (in_steps(ledger, "at", sizes.as_of, -1) == last)
        pinned = np.where(last == sizes.state.pinned_answer, sizes.state.pinned_count, _reported_outputs(ledger)[last])
        base = np.where(known, sizes.last + outputs_as_of(ledger, sizes.as_of), pinned)
        system, tools = -(-ledger.system_chars // 4), self.settings.tool_tokens or ledger.tools_tokens
        cold = sizes.whole + system + tools
        return np.where(last >= 0, base + new, cold)

    def recounted(self, request: ListRequest, messages: list[ListMessage], state: Any) -> int:
        """The count of a list that was changed at this step."""
        check, ledger = request.check, request.ledger
        head = Head(view_of(ledger, messages), check.at)
        row, at, tokens, as_of = np.array([[check.step], [check.at], [state.tokens], [state.as_of]], dtype=np.int64)
        last = ProviderCounts(tokens, as_of)
        return int(self.counted(self.sizes(ledger, head, row, at, last, state, check.window))[0])

    def compact(self, request: ListRequest, state: Any) -> ListOutcome:
        messages = request.messages
        if request.check.point is Point.ON_OVERFLOW:
            reduced = self.reduced(request, messages, state, refused=True)
            is_same = not (reduced.passes or reduced.error)
            state = _refused(request, reduced.state, REQUESTS - request.check.attempt if is_same else 1)
            if state.in_turn > MOST_REFUSALS:
                return ListOutcome(request.view, state, error="maximum recursion depth exceeded")
            if reduced.error:
                return ListOutcome(request.view, state, error=reduced.error)
            messages = messages_of(reduced.view)
            counted = self.recounted(request, messages, state)
            done = reduced
        else:
            done, counted = ListOutcome(request.view, state), request.counted
        for again in self.checks(request, state, counted):
            if again(messages):
                more = self.reduced(request, messages, state, refused=False)
                messages, state = messages_of(more.view), more.state
                done = more._replace(passes=(*done.passes, *more.passes), held=0 if done.passes else more.held)
        return done._replace(view=view_of(request.ledger, messages), state=state, counted=counted)

    def checks(self, request: ListRequest, state: Any, counted: int) -> list[Callable[[list[ListMessage]], bool]]:
        """The checks before a call, in their order."""
        return [lambda messages: self.is_over(counted, request.limit)]

    @abstractmethod
    def reduced(self, request: ListRequest, messages: list[ListMessage], state: Any, *, refused: bool) -> ListOutcome:
        """What the library leaves of a list. Raises nothing: an error is part of the outcome."""

    def pinned(self, request: ListRequest, groups: list[MessageGroup], state: Any) -> Any:
        """The state in which the first messages are pinned, from the first reduction on: until then the list is the
        log."""
        count = self.settings.pin_first
        if not count or not groups or state.pinned >= 0:
            return state
        last = groups[min(count, len(groups)) - 1]
        stop = last.messages[-1].event + 1
        behind = groups[count] if last.has_calls and count < len(groups) else None
        if behind is not None and behind.has_results:  # the results of a pinned call are pinned, too
            stop = behind.messages[-1].event + 1
        answers = [group.first_event for group in groups if group.role == ASSISTANT and group.first_event < stop]
        if not answers:
            return msgspec.structs.replace(state, pinned=stop)
        count = self._count_at(request, answers[-1])
        return msgspec.structs.replace(state, pinned=stop, pinned_answer=answers[-1], pinned_count=count)

    def _count_at(self, request: ListRequest, answer: int) -> int:
        """What the provider counted at the call with an answer, whose request was the log before it, and its output."""
        ledger, usage = request.ledger, request.check.usage
        step = int(np.searchsorted(ledger.steps["at"], answer, side="right")) - 1
        if usage is None or step < 0 or ledger.steps["at"].item(step) != answer:
            return 0
        view = Head((), 0, self.sent_form).at(ledger, answer)
        counted = usage.one(step, view, request.costs.request(view))
        if not counted.reported or counted.tokens <= 0:
            return int(_reported_outputs(ledger)[answer])
        return counted.tokens + int(outputs_as_of(ledger, np.array([step]))[0])


def _refused(request: ListRequest, state: Any, count: int) -> Any:
    """The state after so many refusals: after one, or where the same list is sent again, after all of its step."""
    turn = int(request.ledger.steps["turn"][request.check.step])
    in_turn = state.in_turn + count if state.turn == turn else count
    return msgspec.structs.replace(state, refusals=state.refusals + count, in_turn=in_turn, turn=turn)


def is_pinned(group: MessageGroup, state: Any) -> bool:
    """Is a message pinned."""
    return 0 <= group.first_event < int(state.pinned)


def list_of(request: ListRequest, messages: list[ListMessage]) -> list[MessageGroup]:
    """The library's messages."""
    return groups_of(request.ledger, messages)


def _last_answers(ledger: Ledger) -> Ints:
    """The last answer before each event, and, as last entry, of all; -1: none."""
    if "last answers" not in ledger.derived:
        own = np.where(roles_of(ledger) == ASSISTANT, np.arange(ledger.event_count), -1)
        ledger.derived["last answers"] = np.append(-1, np.maximum.accumulate(own)).astype(np.int64)
    answers: Ints = ledger.derived["last answers"]
    return answers


def _reported_outputs(ledger: Ledger) -> Ints:
    """The output tokens that the provider reported at the call with each answer; 0 for other events, and, as last
    entry, for none."""
    if "reported outputs" not in ledger.derived:
        outputs = np.zeros(ledger.event_count + 1, dtype=np.int64)
        at, output = ledger.steps["at"], ledger.steps["output_tokens"]
        outputs[at[at < ledger.event_count]] = np.maximum(output[at < ledger.event_count], 0)
        ledger.derived["reported outputs"] = outputs
    reported: Ints = ledger.derived["reported outputs"]
    return reported


def _last_in_head(ledger: Ledger, head: Head) -> tuple[int, list[ListMessage]]:
    """The last answer in a head, -1: none, and the messages behind it there."""
    behind: list[ListMessage] = []
    for segment in reversed(head.view):
        if isinstance(segment, Span):
            last = int(_last_answers(ledger)[segment.stop])
            if last >= segment.start:
                return last, [*(ListMessage(event, segment.form) for event in range(last + 1, segment.stop)), *behind]
            behind = [*(ListMessage(event, segment.form) for event in range(segment.start, segment.stop)), *behind]
        else:
            assert isinstance(segment, Synthetic)
            behind = [ListMessage(inserted=segment), *behind]
    return -1, behind
