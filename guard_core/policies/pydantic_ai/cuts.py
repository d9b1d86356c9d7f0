"""Where the sliding window and the summarising compaction cut, and when: what both share."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, pairwise
from typing import ClassVar, NamedTuple

import msgspec
import numpy as np

from guard_core.costs import HAS_TEXT, USER
from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.counters import outputs_of
from guard_core.policies.pieces.lists import ListMemory, ListOutcome, ListRequest, Sizes
from guard_core.policies.pieces.message_columns import list_messages
from guard_core.policies.pieces.messages import (
    ASSISTANT,
    TOOL,
    ListMessage,
    answered_by,
    calls_of,
    messages_of,
    role_of,
    roles_of,
)
from guard_core.policies.pieces.request_numbers import sent_columns
from guard_core.policies.pydantic_ai.counting import CHARS_PER_TOKEN, COSTS, GROUPS
from guard_core.policies.pydantic_ai.limits import LimitedPolicy
from guard_core.policies.pydantic_ai.parameters import SOURCE, limit_settings
from guard_core.policies.settings import COUNT, SWITCH, Setting
from guard_core.trace import Head

# `find_first_user_message` takes a request as a whole, and with a prompt behind results these stay, too.
PARTS_PAIRS = "the user's first message stays with the results before it even if their call, which began the log, goes"
PAIR_SEARCH = 5  # `_TOOL_PAIR_SEARCH_RANGE`: messages before a cut in which it looks for calls whose result is behind


class WindowSettings(msgspec.Struct, frozen=True):
    """Of both; a limit of 0 does not act, and `keep_tokens` of 0 leaves it to `keep_messages`."""

    max_tokens: int = 0
    max_fraction: float = 0.0
    context_window: int = 0
    max_messages: int = 0
    keep_messages: int = 40
    keep_tokens: int = 0
    preserve_first_user_message: bool = True


class Anchor(msgspec.Struct, frozen=True):
    """The prompt tokens that the provider counted at the call of an answer, event `event` of the log."""

    event: int
    step: int
    tokens: int


class WindowMemory(ListMemory, frozen=True, omit_defaults=True):
    """`anchors`: counts at answers that the last compaction left, which was at step `since`. `breaks`: the places in
    the list at which it left messages of the library side by side that become one in a later turn than `turn`."""

    anchors: tuple[Anchor, ...] = ()
    since: int = 0
    breaks: tuple[int, ...] = ()
    turn: int = -1


class LibraryMessage(NamedTuple):
    """One message of the library: an answer, or everything between two answers."""

    messages: list[ListMessage]
    is_answer: bool


def groups_of(ledger: Ledger, messages: Iterable[ListMessage], breaks: tuple[int, ...] = ()) -> list[LibraryMessage]:
    """The library's messages of a list; a new one begins at each of the places `breaks`, too."""
    groups: list[LibraryMessage] = []
    for place, message in enumerate(messages):
        is_answer = role_of(ledger, message) == ASSISTANT
        if is_answer or not groups or groups[-1].is_answer or place in breaks:
            groups.append(LibraryMessage([message], is_answer))
        else:
            groups[-1].messages.append(message)
    return groups


def is_prompt(ledger: Ledger, message: ListMessage) -> bool:
    """Is a message the user's, maybe together with tool results."""
    if message.event < 0:
        return False
    flags = int(ledger.events["flags"][message.event])
    is_result = role_of(ledger, message) == TOOL
    return bool(flags & USER) and (not is_result or bool(flags & HAS_TEXT))


def first_prompt(ledger: Ledger, groups: list[LibraryMessage]) -> int:
    """The first of the library's messages with a prompt of the user, their number where there is none."""
    prompts = (index for index, group in enumerate(groups) if any(is_prompt(ledger, item) for item in group.messages))
    return next(prompts, len(groups))


def flat(groups: Iterable[LibraryMessage]) -> list[ListMessage]:
    """The messages of the log in some of the library's."""
    return [message for group in groups for message in group.messages]


class PydanticAIWindow(LimitedPolicy):
    """The base of both."""

    state_type: ClassVar[type] = WindowMemory

    def counted_messages(self, sizes: Sizes) -> Ints:
        """The library's messages in the list at some steps."""
        if not sizes.state.breaks:
            return _counts(sizes, ())
        turns = sizes.ledger.steps["turn"][sizes.rows]
        return np.where(turns == sizes.state.turn, _counts(sizes, sizes.state.breaks), _counts(sizes, ()))

    # ---- where it cuts

    def groups(self, request: ListRequest, state: WindowMemory) -> list[LibraryMessage]:
        """The library's messages of the list: within a turn those that a compaction left side by side are still apart,
        for only a new run joins them."""
        same = int(request.ledger.steps["turn"][request.check.step]) == state.turn
        return groups_of(request.ledger, request.messages, state.breaks if same else ())

    def cut(self, request: ListRequest, groups: list[LibraryMessage], state: WindowMemory) -> int:
        """The first of the library's messages that stays because it is new; 0: nothing goes."""
        if not self.settings.keep_tokens:
            return safe_cut(request.ledger, groups, self.settings.keep_messages)
        tail = np.cumsum(self._group_tokens(request, groups, state)[::-1])[::-1]
        enough = np.flatnonzero(tail >= self.settings.keep_tokens)
        return _with_calls(request.ledger, groups, int(enough[-1])) if len(enough) else 0

    def _group_tokens(self, request: ListRequest, groups: list[LibraryMessage], state: WindowMemory) -> Ints:
        """What each of the library's messages adds to a request: by the provider's counts between two answers that have
        one, else the characters / 4 of their texts, and of an answer at least its output."""
        ledger = request.ledger
        anchors = {anchor.event: anchor for anchor in self.anchors(request, state)}
        chars = (sum(COSTS.messages(ledger, group.messages)) for group in groups)
        tokens = np.array([size // CHARS_PER_TOKEN for size in chars], dtype=np.int64)
        places: list[tuple[int, Anchor]] = []
        for place, group in enumerate(groups):
            if group.is_answer and group.messages[0].event in anchors:
                anchor = anchors[group.messages[0].event]
                tokens[place] = max(tokens[place], int(outputs_of(ledger)[anchor.step]))
                places.append((place, anchor))
        for (first, before), (last, after) in pairwise(places):
            added = after.tokens - before.tokens
            if added > 0:
                shares = tokens[first:last] * added // max(int(tokens[first:last].sum()), 1)
                shares[0] += added - shares.sum()
                tokens[first:last] = shares
        return tokens

    def anchors(self, request: ListRequest, state: WindowMemory) -> list[Anchor]:
        """The provider's counts at the answers in the list, as far as they are known."""
        check, ledger = request.check, request.ledger
        if check.usage is None or check.step <= state.since or not self.settings.keep_tokens:
            return list(state.anchors)
        head = Head(state.head, state.kept_from)
        at = ledger.steps["at"][state.since : check.step]
        heuristics = sent_columns(request.costs, head, np.maximum(at, head.kept_from))["heuristic_sent"]
        counted = check.usage.run(state.since, check.step, head.view, head.kept_from, heuristics)
        known = counted.reported & (counted.tokens > 0)
        new = (
            Anchor(int(at[place]), place + state.since, int(counted.tokens[place]))
            for place in np.flatnonzero(known).tolist()
        )
        return [*state.anchors, *new]

    def after(
        self, request: ListRequest, state: WindowMemory, outcome: ListOutcome, parts: Iterable[list[ListMessage]]
    ) -> ListOutcome:
        """The outcome with what is remembered of the list, made of some parts, and of the counts whose answers are
        still in it."""
        events = {message.event for message in messages_of(outcome.view)}
        anchors = tuple(anchor for anchor in self.anchors(request, state) if anchor.event in events)
        memory = msgspec.structs.replace(
            outcome.state,
            anchors=anchors,
            since=request.check.step,
            breaks=tuple(accumulate(map(len, parts)))[:-1],
            turn=int(request.ledger.steps["turn"][request.check.step]),
        )
        if memory.as_of >= 0 and int(request.ledger.steps["at"][memory.as_of]) not in events:
            memory = msgspec.structs.replace(memory, tokens=0, as_of=-1)
        return outcome._replace(state=memory)


def _counts(sizes: Sizes, breaks: tuple[int, ...]) -> Ints:
    """The library's messages in the list at some steps, with some places at which one begins. What follows the head is
    part of its last message where neither is an answer and none begins there."""
    ledger, start = sizes.ledger, sizes.head.kept_from
    prefix, roles = GROUPS.prefix(ledger), roles_of(ledger)
    messages = list_messages(ledger, sizes.head.view)
    answers = messages.is_model & ~messages.has_results
    begins = answers | np.append(True, answers)[: len(answers)]
    begins[[place for place in breaks if place < len(begins)]] = True
    behind = prefix[sizes.at] - prefix[np.minimum(start + 1, sizes.at)]
    follows = len(answers) and not answers[-1] and len(answers) not in breaks
    own = not follows or (start < len(roles) and int(roles[start]) == ASSISTANT)
    return np.asarray(int(begins.sum()) + behind + np.where(sizes.at > start, int(own), 0))


def safe_cut(ledger: Ledger, groups: list[LibraryMessage], keep: int) -> int:
    """The cut that leaves `keep` of the library's messages, at least the newest, moved back to where no call near it is
    parted from its results; 0: nothing goes."""
    keep = max(keep, 1)
    if len(groups) <= keep:
        return 0
    target = len(groups) - keep
    calls = _call_places(ledger, groups)
    parted: set[int] = set()
    for place in range(target - PAIR_SEARCH, len(groups)):
        if place < 0 or groups[place].is_answer:
            continue
        for row in (row for message in groups[place].messages for row in answered_by(ledger, message)):
            call = calls.get(row, place)
            parted.update(range(call + 1, min(place, call + PAIR_SEARCH) + 1))
    return next(cut for cut in range(target, -1, -1) if cut not in parted)


def _with_calls(ledger: Ledger, groups: list[LibraryMessage], cut: int) -> int:
    """The cut moved back to the calls whose results it leaves."""
    calls = _call_places(ledger, groups)
    for place in range(len(groups) - 1, -1, -1):
        if place < cut:
            break
        rows = (row for message in groups[place].messages for row in answered_by(ledger, message))
        cut = min([cut, *(calls.get(row, place) for row in rows)])
    return cut


def _call_places(ledger: Ledger, groups: list[LibraryMessage]) -> dict[int, int]:
    """Which of the library's messages holds each call."""
    return {
        row: place
        for place, group in enumerate(groups)
        for message in group.messages
        for row in calls_of(ledger, message)
    }


def window_settings(keep: int, keeps: str) -> tuple[Setting, ...]:
    """The settings of both; `keep` is the default of messages that stay."""
    return (
        *limit_settings("acts"),
        Setting(
            "max_messages",
            "Most messages",
            COUNT,
            0,
            "acts above this (everything between two answers is one message); 0: never",
            SOURCE,
            unit="messages",
            main=True,
        ),
        Setting(
            "keep_messages",
            "Messages kept",
            COUNT,
            keep,
            f"newest messages that {keeps}, at least one",
            SOURCE,
            unit="messages",
            main=True,
        ),
        Setting(
            "keep_tokens",
            "Tokens kept",
            COUNT,
            0,
            "minimum tokens of the newest messages that stay, instead of a number of messages; 0: counts messages",
            SOURCE,
            unit="tokens",
        ),
        Setting(
            "preserve_first_user_message",
            "First request",
            SWITCH,
            True,
            "the user's first message always stays",
            SOURCE,
        ),
    )
