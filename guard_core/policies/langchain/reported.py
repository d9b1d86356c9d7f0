"""Counting as LangChain's summarization does: an approximate count, scaled by what the provider last reported.

The scale is what the provider counted of the last answer in the list and its request, divided by the approximate count
up to that answer, at least 1 and at most 1.25.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np

from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Acted, Quiet, ReplayRun
from guard_core.policies.pieces.counters import in_steps, outputs_as_of, outputs_of
from guard_core.policies.pieces.lists import ListMemory, ListPolicy, Sizes
from guard_core.policies.pieces.messages import ASSISTANT, ListMessage, messages_of, roles_of
from guard_core.views import Span

LEAST_SCALE, MOST_SCALE = 1.0, 1.25  # langchain-core 1.7.2, count_tokens_approximately


class ReportedMemory(ListMemory, frozen=True):
    """And the prompt tokens that the provider reported of each step so far, 0 where it reported none."""

    reported: tuple[int, ...] = ()


def scaled(tokens: Any, reported: Any, up_to: Any) -> Any:
    """Approximate counts in the provider's tokens: it `reported` so many of what counts `up_to` approximately (0: not
    known)."""
    scale = np.clip(reported / np.maximum(up_to, 1), LEAST_SCALE, MOST_SCALE)
    return np.ceil(tokens * np.where((reported > 0) & (up_to > 0), scale, 1.0)).astype(np.int64)


class ReportedPolicy(ListPolicy):
    """A list policy that counts like this. `fixed_tokens` are counted with every list."""

    forgets: ClassVar[bool] = False
    state_type: ClassVar[type] = ReportedMemory

    def fixed_tokens(self, ledger: Ledger) -> int:
        """Tokens of what is counted before the messages."""
        return 0

    def fixed_messages(self, ledger: Ledger) -> int:
        """How many messages are counted before those of the list."""
        return 0

    def observe(self, state: Any, prompt_tokens: int | None, step: int) -> Any:
        state = super().observe(state, prompt_tokens, step)
        return _with_reported(state, step, [max(prompt_tokens or 0, 0)])

    def scan(self, run: ReplayRun, start: int, stop: int, state: Any) -> Quiet | Acted | None:
        quiet = super().scan(run, start, stop, state)
        if quiet is None:
            return None
        counts = np.where(quiet.counted.reported, np.maximum(quiet.counted.tokens, 0), 0)
        return quiet._replace(state=_with_reported(quiet.state, start, counts.tolist()))

    def counted(self, sizes: Sizes) -> Ints:
        fixed = self.fixed_tokens(sizes.ledger)
        several = sizes.messages + self.fixed_messages(sizes.ledger) > 1
        reported, answer = self._last_reported(sizes)
        tokens = sizes.whole + fixed
        return np.asarray(scaled(tokens, np.where(several, reported, 0), tokens - self._behind(sizes, answer)))

    def _last_reported(self, sizes: Sizes) -> tuple[Ints, Ints]:
        """What the provider counted of the last answer that it counted and of its request, 0 where that answer is no
        longer in the list; and the event of the answer."""
        ledger, head = sizes.ledger, sizes.head
        answer = in_steps(ledger, "response", sizes.as_of, -1)
        total = sizes.last + outputs_as_of(ledger, sizes.as_of)
        is_held = answer >= head.kept_from
        for span in (segment for segment in head.view if isinstance(segment, Span)):
            is_held |= (answer >= span.start) & (answer < span.stop)
        known = (sizes.as_of >= 0) & (sizes.last > 0) & is_held & (answer < sizes.at)
        return np.where(known, total, 0), answer

    def _behind(self, sizes: Sizes, answer: Ints) -> Ints:
        """The approximate count of what the list has behind an answer in it."""
        head, prefix = sizes.head, self.costs().prefix(sizes.ledger)
        behind = prefix[sizes.at] - prefix[np.minimum(np.maximum(answer + 1, head.kept_from), sizes.at)]
        for event in np.unique(answer).tolist():
            if not 0 <= event < head.kept_from:
                continue
            messages = messages_of(head.view)
            places = [place for place, message in enumerate(messages) if message.event == event]
            if places:
                kept = sum(self.costs().messages(sizes.ledger, messages[places[0] + 1 :]))
                behind = behind + np.where(answer == event, kept, 0)
        return np.asarray(behind)

    def reported(self, sizes: Sizes) -> Ints:
        """What the provider reported of the last answer in the list and its request, 0: nothing."""
        total, answer = self._last_reported(sizes)
        return np.where(answer == _last_answers(sizes.ledger)[sizes.at], total, 0)


def _with_reported(state: Any, step: int, counts: list[int]) -> Any:
    """The state with the counts of steps from `step` on; without any the state as it is."""
    if not any(counts) and not state.reported:
        return state
    before = (*state.reported[:step], *[0] * (step - len(state.reported)))
    return msgspec.structs.replace(state, reported=(*before, *counts))


def _last_answers(ledger: Ledger) -> Ints:
    """For every number of events the last answer of the model among them, -1: none."""
    if "last answers" not in ledger.derived:
        roles = roles_of(ledger)
        places = np.where(roles == ASSISTANT, np.arange(len(roles)), -1)
        ledger.derived["last answers"] = np.append(-1, np.maximum.accumulate(places) if len(places) else places)
    answers: Ints = ledger.derived["last answers"]
    return answers


class BackwardCount(NamedTuple):
    """The count of the last messages of a list, which the library reads from the end: the scale is then that of the
    first answer among them. `sums` and `reported` are of the messages from a place on, `up_to` the sum that goes with
    what was reported."""

    sums: Ints
    reported: Ints
    up_to: Ints

    @classmethod
    def of(cls, costs: Sequence[int], reported: Sequence[int]) -> BackwardCount:
        """From the approximate count of each message, and what the provider reported of it."""
        sums = np.append(np.cumsum(np.array(costs[::-1], dtype=np.int64))[::-1], 0)
        totals = np.array([*reported, 0], dtype=np.int64)
        places = np.where(totals > 0, np.arange(len(totals)), len(totals) - 1)
        first = np.minimum.accumulate(places[::-1])[::-1]
        return cls(sums, totals[first], sums[first])

    def since(self, place: int, more: int = 0) -> int:
        """The messages from `place` on, and one more before them that counts `more` (0: none)."""
        several = len(self.sums) - 1 - place + (more > 0) > 1
        reported = self.reported[place] if several else np.int64(0)
        return int(scaled(self.sums[place] + more, reported, self.up_to[place]))


def reported_of(ledger: Ledger, messages: Sequence[ListMessage], state: ReportedMemory) -> list[int]:
    """What the provider reported of each message of a list: of an answer, its tokens and those of its request."""
    counts = np.array(state.reported, dtype=np.int64)
    known = np.flatnonzero(counts > 0)
    answers = ledger.steps["response"][known]
    totals = np.zeros(ledger.event_count + 1, dtype=np.int64)
    totals[answers] = counts[known] + outputs_of(ledger)[known]
    totals[-1] = 0
    return [totals.item(message.event) for message in messages]
