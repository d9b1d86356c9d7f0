"""The model contexts of AutoGen: the last messages, the first and the last ones, or as many as fit without the middle.

Source of the rules: autogen-core 0.7.5, `model_context/`, and scripted runs of it. The list stays whole, and each
request is made of it anew. All results of one answer are one message. Not here: token limits by `remaining_tokens` of
a model client, for which the window is taken.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import CALL, HAS_CALL, RESULT, TEXT
from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.compared import MESSAGES
from guard_core.policies.pieces.editing import ActingSteps, Edited, EditingPolicy
from guard_core.policies.pieces.lists import Sizes
from guard_core.policies.pieces.messages import ASSISTANT, TOOL, USER, MessageCosts, roles_of
from guard_core.policies.settings import BEGINS_WITH_ANSWER, COUNT, KnownProblem, PolicyKind, RecordedRuns, Setting
from guard_core.view_columns import ViewColumns
from guard_core.views import Synthetic

CHARS_PER_TOKEN = 4  # as in the scripted runs; the library asks its model client
_SOURCE = "autogen-core 0.7.5, model_context"


def _chars(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """Characters of texts, results and arguments (as JSON with ASCII alone) of each event."""
    kind, chars = parts["kind"], parts["chars"]
    escaped = chars + parts["separators"] + 5 * parts["non_ascii"] + 6 * (parts["utf16"] - chars)
    counted = np.where(kind == CALL, escaped, np.where((kind == TEXT) | (kind == RESULT), chars, 0))
    return ledger.by_event(counted)


COSTS = MessageCosts("autogen characters", _chars, lambda message: message.bytes)


def list_tokens(ledger: Ledger, at: int) -> int:
    """Tokens of the whole list over `at` events."""
    return int(COSTS.prefix(ledger)[at]) // CHARS_PER_TOKEN


def message_starts(ledger: Ledger) -> Ints:
    """The event at which each message of the list begins."""
    if "autogen messages" not in ledger.derived:
        results = roles_of(ledger) == TOOL
        ledger.derived["autogen messages"] = np.flatnonzero(~(results & np.append(False, results[:-1])[: len(results)]))
    starts: Ints = ledger.derived["autogen messages"]
    return starts


class BufferedSettings(msgspec.Struct, frozen=True):
    """Of BufferedChatCompletionContext."""

    buffer_size: int = 10


class HeadAndTailSettings(msgspec.Struct, frozen=True):
    """Of HeadAndTailChatCompletionContext."""

    head_size: int = 3
    tail_size: int = 10


class TokenLimitedSettings(msgspec.Struct, frozen=True):
    """Of TokenLimitedChatCompletionContext; `token_limit` is 0 where the window counts."""

    token_limit: int = 0


class _Context(EditingPolicy):
    """What the contexts share: messages of several events, a list that stays whole."""

    def costs(self) -> MessageCosts:
        return COSTS

    @property
    def acts_below(self) -> str:
        return "the list begins with tool results"

    def first_sent(self, steps: ActingSteps, count: Ints, first: Ints) -> Ints:
        """Where the messages from number `first` of `count` on begin, less that one where it holds results."""
        starts = message_starts(steps.ledger)
        begins = _begin(starts, first, count, steps.at)
        is_results = (first < count) & (np.append(roles_of(steps.ledger), USER)[begins] == TOOL)
        return _begin(starts, first + is_results, count, steps.at)


class _Counting(_Context):
    """A context that counts messages."""

    @property
    def compares(self) -> str:
        return MESSAGES

    def counted(self, sizes: Sizes) -> Ints:
        return np.searchsorted(message_starts(sizes.ledger), sizes.at)


class Buffered(_Counting):
    """The last messages."""

    name: ClassVar[str] = "autogen-buffered"
    settings: BufferedSettings

    def limit(self, window: int) -> int:
        return self.settings.buffer_size

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> NDArray[np.bool_]:
        return np.asarray(self.over(counted, limit) | _begins_with_results(sizes.ledger))

    def edited(self, steps: ActingSteps) -> Edited:
        first = np.maximum(steps.counted - self.settings.buffer_size, 0)
        return Edited(ViewColumns.spans((self.first_sent(steps, steps.counted, first), steps.at)))


class HeadAndTail(_Counting):
    """The first and the last messages, with a note between them."""

    name: ClassVar[str] = "autogen-head-and-tail"
    settings: HeadAndTailSettings

    def limit(self, window: int) -> int:
        return self.settings.head_size + self.settings.tail_size

    def edited(self, steps: ActingSteps) -> Edited:
        ledger, settings, count = steps.ledger, self.settings, steps.counted
        starts, head = message_starts(ledger), settings.head_size
        last = int(starts[head - 1])
        if roles_of(ledger)[last] == ASSISTANT and ledger.events["flags"][last] & HAS_CALL:
            head -= 1
        skipped = count - settings.head_size - settings.tail_size
        numbers, note = np.unique(skipped, return_inverse=True)
        texts = [f"Skipped {number} messages." for number in numbers.tolist()]
        tail = self.first_sent(steps, count, count - settings.tail_size)
        views = ViewColumns.spans((0, _begin(starts, np.full_like(count, head), count, steps.at)))
        notes = views.behind(-1 - note, -1 - note).behind(tail, np.maximum(tail, steps.at))
        return Edited(notes._replace(messages=tuple(Synthetic("skipped", len(text), text) for text in texts)))


class TokenLimited(_Context):
    """As many messages as fit; those in the middle go first."""

    name: ClassVar[str] = "autogen-token-limited"
    settings: TokenLimitedSettings

    def limit(self, window: int) -> int:
        return self.settings.token_limit or window

    def counted(self, sizes: Sizes) -> Ints:
        return np.asarray(sizes.whole // CHARS_PER_TOKEN)

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> NDArray[np.bool_]:
        return np.asarray(self.over(counted, limit) | _begins_with_results(sizes.ledger))

    def edited(self, steps: ActingSteps) -> Edited:
        """The message in the middle goes until the others fit: of k that stay the first half, rounded up, and the
        last half."""
        ledger, at = steps.ledger, steps.at
        starts, prefix = message_starts(ledger), COSTS.prefix(ledger)
        count = np.searchsorted(starts, at)

        def ends(kept: Ints) -> tuple[Ints, Ints]:
            return _begin(starts, (kept + 1) // 2, count, at), _begin(starts, count - kept // 2, count, at)

        fewest, most = np.zeros_like(count), count + 1  # the more that stay, the more tokens
        while (fewest < most).any():
            middle = (fewest + most) // 2
            left, right = ends(middle)
            fits = (prefix[left] + prefix[at] - prefix[right]) // CHARS_PER_TOKEN <= steps.limit
            searched = fewest < most
            fewest, most = np.where(searched & fits, middle + 1, fewest), np.where(searched & ~fits, middle, most)
        left, right = ends(np.maximum(fewest - 1, 0))
        joined = left >= right
        left = np.where(joined, at, left)
        first = np.where(left > 0, 0, right)
        is_results = np.append(roles_of(ledger), USER)[np.minimum(first, ledger.event_count)] == TOOL
        rest = _begin(starts, np.searchsorted(starts, first, side="right"), count, at)
        first = np.where(is_results & (first < at), rest, first)
        cut = np.where(left > 0, first, 0), left
        return Edited(ViewColumns.spans(cut, (np.where(left > 0, np.where(joined, at, right), first), at)))


def _begins_with_results(ledger: Ledger) -> bool:
    """Does a list begin with tool results, which no request begins with."""
    roles = roles_of(ledger)
    return len(roles) > 0 and int(roles[0]) == TOOL


def _begin(starts: Ints, number: Ints, count: Ints, at: Ints) -> Ints:
    """The event at which each of some messages begins, of `count` over `at` events; behind the last one the end."""
    begins = np.append(starts, 0)[np.minimum(number, len(starts))]
    return np.where(number < count, begins, at)


def _count(name: str, label: str, default: int, text: str, unit: str = "messages") -> Setting:
    least, most = (0, None) if unit == "tokens" else (1, 10_000_000)
    return Setting(name, label, COUNT, default, text, _SOURCE, unit=unit, main=True, least=least, most=most)


_WITHOUT_CALL = "a cut may fall between a call and its results; only results at the beginning are dropped"
BUFFERED = PolicyKind(
    Buffered.name,
    "AutoGen (buffered)",
    "Sends the last messages, without tool results at the beginning.",
    lambda **values: Buffered(BufferedSettings(**values)),
    (_count("buffer_size", "Buffer size", 10, "messages that are sent; the library has no default"),),
    summarises=False,
    judged_by=RecordedRuns("autogen-core", "buffered", tokens=list_tokens),
    known_problems=(BEGINS_WITH_ANSWER,),
)
HEAD_AND_TAIL = PolicyKind(
    HeadAndTail.name,
    "AutoGen (head and tail)",
    "Sends the first and the last messages, with a note in between.",
    lambda **values: HeadAndTail(HeadAndTailSettings(**values)),
    (
        _count("head_size", "Head size", 3, "messages sent from the beginning; the library has no default"),
        _count("tail_size", "Tail size", 10, "messages sent from the end; the library has no default"),
    ),
    summarises=False,
    judged_by=RecordedRuns("autogen-core", "head_and_tail", tokens=list_tokens),
    parts_pairs="the head may contain a call whose results are skipped",
    known_problems=(
        KnownProblem(
            "The results of the step are dropped",
            "With a tail of one message, the newest results are dropped because their call is.",
            "measured, specification of new policies section 3",
        ),
    ),
)
TOKEN_LIMITED = PolicyKind(
    TokenLimited.name,
    "AutoGen (token limited)",
    "Removes messages from the middle until the request fits.",
    lambda **values: TokenLimited(TokenLimitedSettings(**values)),
    (_count("token_limit", "Token limit", 0, "maximum tokens of a request; 0: the window", "tokens"),),
    summarises=False,
    judged_by=RecordedRuns("autogen-core", "token_limited"),
    parts_pairs=_WITHOUT_CALL,
    known_problems=(
        KnownProblem(
            "Calls are separated from results",
            "At a limit of 2,000, 258 of 503 steps send a call without its result, and 99 a result without its call.",
            "measured, specification of new policies section 3",
        ),
    ),
)
KINDS = (BUFFERED, HEAD_AND_TAIL, TOKEN_LIMITED)
