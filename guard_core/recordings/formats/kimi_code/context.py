"""What Kimi Code sends: the messages of its context, and what a compaction, an undo or a clearing leaves of them.

A compaction keeps the user's own messages, of more than 20,000 estimated tokens the first 2,000 and the last 18,000,
and puts the summary behind them; before 2026-07 it kept the last messages behind the summary. On the way to the model
neighbouring messages of the user become one.
Source: packages/agent-core-v2/src of https://github.com/MoonshotAI/kimi-code at d723cc47: compactionHandoff.ts and
contextOps.ts (agent/contextMemory), agent/contextProjector/projection.ts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from guard_core.events import Event, Role, TextPart
from guard_core.recordings.formats.kimi_code.messages import ROLE_TOKENS, estimated
from guard_core.views import JOINED, JOINT, Inserted, Rewritten, Segment, Span, View

KEPT_TOKENS = 20_000  # of the user's messages; COMPACT_USER_MESSAGE_MAX_TOKENS
HEAD_TOKENS = 2_000  # of these for the oldest; COMPACT_USER_MESSAGE_HEAD_TOKENS
SUMMARY, INJECTION, USER = "compaction_summary", "injection", "user"  # kinds of origin
ELISION = (
    "<system-reminder>\nSome of this conversation's user messages were omitted here during compaction: the messages"
    " above this note are the oldest user input, the messages below are the most recent, and roughly {} tokens in"
    " between were dropped. The omitted content is covered by the compaction summary at the end of the conversation.\n"
    "</system-reminder>"
)
SHORTENED = "shortened by the compaction"


class ContextMessage(NamedTuple):
    """One message of the context.

    `place` is its event in the log, None for one that the log does not hold; `event` is kept for those that may be
    sent otherwise than the log has them, `changed` says that it is. `is_users`: the user's own words, which a
    compaction keeps. `tokens` are estimated by Kimi Code.
    """

    place: int | None
    tokens: int
    origin: str = ""
    is_users: bool = False
    event: Event | None = None
    changed: bool = False


class KimiCodeContext:
    """The messages in the order in which they are sent; `pending`: estimated tokens of those behind the last count."""

    def __init__(self) -> None:
        self.messages: list[ContextMessage] = []
        self.pending: int | None = None

    def add(self, message: ContextMessage) -> None:
        """A message behind the others."""
        self.messages.append(message)
        if self.pending is not None:
            self.pending += message.tokens

    def pending_at_check(self) -> int | None:
        """Estimated tokens behind the last count when the context was checked: reminders of a step come after that,
        those of a new turn, which follow the user's message, before."""
        if self.pending is None:
            return None
        late = 0
        for message in reversed(self.messages):
            if message.is_users:
                return self.pending
            if message.origin != INJECTION:
                break
            late += message.tokens
        return max(0, self.pending - late)

    def compact(self, summary: Event) -> None:
        """The user's own messages, then the summary."""
        users = [message for message in self.messages if message.is_users]
        self.messages = [*_selected(users), ContextMessage(None, 0, SUMMARY, event=summary)]
        self.pending = None

    def compact_before(self, count: int, summary: Event) -> None:
        """The summary, then the messages behind the first `count`: compactions before 2026-07."""
        self.messages = [ContextMessage(None, 0, SUMMARY, event=summary), *self.messages[count:]]
        self.pending = None

    def undo(self, count: int) -> bool:
        """Take back the last `count` messages of the user and all that followed; False where there are not so many
        since the last compaction."""
        for place in range(len(self.messages) - 1, -1, -1):
            message = self.messages[place]
            if message.origin == SUMMARY:
                return False
            if message.is_users:
                count -= 1
                if count <= 0:
                    del self.messages[place:]
                    self.pending = None
                    return True
        return False

    def clear(self) -> None:
        """Nothing is sent any more."""
        self.messages, self.pending = [], None

    def view(self) -> tuple[View, tuple[Event, ...]]:
        """The messages as a view, with those that the log does not hold."""
        segments: list[Segment] = []
        inserted: list[Event] = []
        for is_own, group in groupby(self.messages, key=lambda message: message.origin == USER):
            run = list(group)
            if is_own and len(run) > 1:
                segments.append(_joined(run))
                continue
            for message in run:
                if message.place is None:
                    segments.append(Inserted(len(inserted)))
                    inserted.append(message.event or Event(Role.USER, ()))
                elif message.changed and message.event is not None:
                    segments.append(Rewritten(message.place, message.event, SHORTENED))
                elif segments and isinstance(last := segments[-1], Span) and last.stop == message.place:
                    segments[-1] = Span(last.start, message.place + 1)
                else:
                    segments.append(Span(message.place, message.place + 1))
        return tuple(segments), tuple(inserted)


def _joined(run: Sequence[ContextMessage]) -> Rewritten:
    """Messages of the user as the one that is sent; it counts as the last of them."""
    events = [message.event for message in run if message.event is not None]
    texts = [text for event in events if (text := _text(event))]
    others = [part for event in events for part in event.parts if not isinstance(part, TextPart)]
    last = run[-1]
    assert last.place is not None, "only the log's own messages are the user's"
    event = Event(Role.USER, (TextPart(JOINT.join(texts)), *others))
    joins = tuple(message.place for message in run[:-1] if message.place is not None)
    return Rewritten(last.place, event, SHORTENED if last.changed else JOINED, joins)


def _text(event: Event) -> str:
    return "".join(part.text for part in event.parts if isinstance(part, TextPart))


def _selected(users: Sequence[ContextMessage]) -> Iterable[ContextMessage]:
    """The user's messages that a compaction keeps: all, or the oldest and the latest round a note."""
    total = sum(message.tokens for message in users)
    if total <= KEPT_TOKENS:
        return users
    tail, dropped, stop = _latest(users, KEPT_TOKENS - HEAD_TOKENS)
    head = _oldest([*users[:stop], *dropped], HEAD_TOKENS)
    shown = sum(message.tokens for message in (*head, *tail))
    note = Event(Role.USER, (TextPart(ELISION.format(max(0, total - shown))),), meta=True, author=INJECTION)
    return [*head, ContextMessage(None, 0, INJECTION, event=note), *tail]


def _latest(users: Sequence[ContextMessage], budget: int) -> tuple[list[ContextMessage], list[ContextMessage], int]:
    """The latest messages within a budget, the beginning that one of them lost, and how many came before them."""
    tail: list[ContextMessage] = []
    for place in range(len(users) - 1, -1, -1):
        message = users[place]
        if budget <= 0:
            return tail[::-1], [], place + 1
        if message.tokens > budget:
            text = _text(message.event) if message.event else ""
            end = text[len(text) - _most(text[::-1], budget) :]
            lost = text[: len(text) - len(end)]
            return [_cut(message, end), *tail[::-1]], [_cut(message, lost)] if lost else [], place
        tail.append(message)
        budget -= message.tokens
    return tail[::-1], [], 0


def _oldest(messages: Sequence[ContextMessage], budget: int) -> list[ContextMessage]:
    """The oldest messages within a budget, the last of them shortened."""
    head: list[ContextMessage] = []
    for message in messages:
        if budget <= 0:
            break
        if message.tokens > budget:
            text = _text(message.event) if message.event else ""
            head.append(_cut(message, text[: _most(text, budget)]))
            break
        head.append(message)
        budget -= message.tokens
    return head


def _cut(message: ContextMessage, text: str) -> ContextMessage:
    """A message of which only this text is sent: its tokens are Kimi Code's own estimate."""
    event = Event(Role.USER, (TextPart(text),))
    return message._replace(event=event, changed=True, tokens=ROLE_TOKENS + estimated(text))


def _most(text: str, budget: int) -> int:
    """How many characters from the beginning are estimated at no more than so many tokens."""
    plain = other = 0
    for place, char in enumerate(text):
        plain, other = (plain + 1, other) if char < "\x80" else (plain, other + 1)
        if -(-plain // 4) + other > budget:
            return place
    return len(text)
