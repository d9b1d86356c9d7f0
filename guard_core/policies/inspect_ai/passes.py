"""What the strategies share: the count, the threshold, and applying a strategy until the list is below it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np

from guard_core.costs import CALL, HAS_RESULT, MEDIA, REASONING, TEXT
from guard_core.errors import SummaryFailed
from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.lists import ListOutcome, ListPolicy, ListRequest, Sizes
from guard_core.policies.pieces.messages import SYSTEM_ROLE, USER, ListMessage, MessageCosts, role_of, roles_in
from guard_core.trace import Pass
from guard_core.views import Synthetic, View

CHARS_PER_TOKEN = 4  # ours; see the package
IMAGE_TOKENS = 765  # a picture without the detail "low" (0.3.285)
MORE_PASSES = 3  # after the first (0.3.285)
NO_TOOLS = 1  # tokens of an empty list of tools (0.3.285)


def joined_chars(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """Characters of each event's texts joined by line breaks, one more for each text, pictures as characters.

    An event without a text of its own has an empty one. A call is two texts: the name of its tool, and its arguments
    as JSON with spaces and in ASCII.
    """
    kind = parts["kind"]
    arguments = parts["chars"] + parts["separators"] + 5 * parts["non_ascii"] + 6 * (parts["utf16"] - parts["chars"])
    chars = np.where(kind == CALL, parts["name_chars"] + arguments + 2, parts["chars"] + 1)
    chars = np.where(kind == MEDIA, IMAGE_TOKENS * CHARS_PER_TOKEN, chars)
    chars = np.where((kind == REASONING) | (kind < 0), 0, chars)
    has_text = (ledger.by_event((kind == TEXT).astype(np.int64)) > 0) | (ledger.events["flags"] & HAS_RESULT > 0)
    return np.asarray(ledger.by_event(chars) + np.where(has_text, 0, 1))


def inserted_chars(message: Synthetic) -> int:
    """The same of an inserted message."""
    return message.bytes + 1


COSTS = MessageCosts("inspect_ai", joined_chars, inserted_chars)


def tokens_of(joined: Any) -> Any:
    """The estimate of messages whose texts have so many characters, joined."""
    return np.maximum((joined - 1) // CHARS_PER_TOKEN, 1)


class PassResult(NamedTuple):
    """What one application of a strategy gives: the list afterwards and what its summariser was given."""

    view: View
    state: Any
    record: Pass


class InspectPolicy(ListPolicy):
    """The loop around a strategy. `edits_once`: applied to what it has left, it changes nothing."""

    edits_once: ClassVar[bool] = False

    def costs(self) -> MessageCosts:
        return COSTS

    def limit(self, window: int) -> int:
        threshold = self.settings.threshold
        return int(threshold) if threshold > 1 else int(threshold * window)

    def counted(self, sizes: Sizes) -> Ints:
        since = np.where(sizes.new_messages > 0, tokens_of(sizes.new), 0)
        return np.where(sizes.last > 0, sizes.last + since, max(sizes.fixed, NO_TOOLS) + tokens_of(sizes.whole))

    def compact(self, request: ListRequest, state: Any) -> ListOutcome:
        passes: list[Pass] = []
        view, before = self.begun(request, state), None
        for _ in range(1 + MORE_PASSES):
            try:
                step = self.applied(request, state, view)
            except SummaryFailed as error:
                asked = msgspec.structs.replace(state, calls=state.calls + 1)
                return ListOutcome(request.view, asked, error=f"the summariser failed: {error}")
            view, state = step.view, step.state
            passes.append(step.record)
            total = self.total(request, view)
            if total <= request.limit or self.edits_once or (before is not None and total >= before):
                break
            before = total
        if total > request.limit:
            still = f"{total:,} tokens are still over the threshold of {request.limit:,}"
            return ListOutcome(request.view, self.failed(request, state, view), error=still)
        return ListOutcome(view, self.remembered(request, state, view), tuple(passes))

    def total(self, request: ListRequest, view: View) -> int:
        """The library's estimate of a list with the tools."""
        chars = COSTS.view(request.ledger, view)
        return max(request.costs.fixed, NO_TOOLS) + int(tokens_of(chars))

    def begun(self, request: ListRequest, state: Any) -> View:
        """The list that the strategy is applied to first, or one of which it makes the same."""
        return request.view

    def failed(self, request: ListRequest, state: Any, view: View) -> Any:
        """The state where the strategy left this list, which is still over the threshold."""
        return state

    @abstractmethod
    def applied(self, request: ListRequest, state: Any, view: View) -> PassResult:
        """The strategy, applied once to a list."""

    def remembered(self, request: ListRequest, state: Any, view: View) -> Any:
        """The state after a compaction that left this list."""
        return state


class Partition(NamedTuple):
    """A list as the strategies part it: system messages, the messages up to the first of the user, and the others."""

    system: list[ListMessage]
    first: list[ListMessage]
    others: list[ListMessage]


def parted(ledger: Ledger, messages: list[ListMessage]) -> Partition:
    """The parts of a list. A summary is never among the first messages."""
    roles = roles_in(ledger, messages)
    system = [item for item, role in zip(messages, roles, strict=True) if role == SYSTEM_ROLE]
    rest = [item for item, role in zip(messages, roles, strict=True) if role != SYSTEM_ROLE] if system else messages
    end = 0
    while end < len(rest) and rest[end].inserted is None:
        end += 1
        if role_of(ledger, rest[end - 1]) == USER:
            break
    return Partition(system, rest[:end], rest[end:])
