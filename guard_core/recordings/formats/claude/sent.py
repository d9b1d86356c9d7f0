"""The log of a Claude Code session as its requests were sent: user lines and attachments wait for the request that has
them, and become events in the words, the order and the company in which it sent them.

A message in which reminders and the user's own words were sent together is an event for each: only the user's own words
begin a turn. A request that does not begin with the one before was built anew: after a compaction, which then has the
messages of that request for its view, else an edit of the history.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Protocol

import msgspec

from guard_core.events import Event, Part, Role, TextPart, ToolResultPart
from guard_core.recordings.formats.claude.lines import ClaudeLines, ClaudeMessage
from guard_core.recordings.formats.claude.requests import ClaudeRequests, SentMessage, holds
from guard_core.recordings.reading.build import SessionBuilder
from guard_core.recordings.reading.numbers_by_name import NumbersByName
from guard_core.sessions import Evidence, RecordedCompaction
from guard_core.views import JOINED, Inserted, Rewritten, Segment, Span

LOOKED_BACK = 64  # ours: events in which an answer that was kept is looked for; one to eight rounds were seen to be


class GrowingLog(Protocol):
    """What of a transcript's log is needed to put sent messages into it while it is read."""

    builder: SessionBuilder
    lines: ClaudeLines
    index: NumbersByName
    results: NumbersByName
    late: bool

    def event(self, message: ClaudeMessage, parts: tuple[Part, ...], place: int | None) -> int: ...
    def parts_of(self, message: ClaudeMessage | SentMessage) -> tuple[Part, ...]: ...


class SentLog:
    """What of the requests is in the log."""

    def __init__(self, log: GrowingLog, requests: ClaudeRequests) -> None:
        self._log = log
        self._requests = requests
        self._waiting: list[ClaudeMessage] = []
        self._sent: list[int] | None = []  # the messages of the last request, None: not known
        self._last = ""  # its id
        self._failed = ""  # that of the last one that failed
        self._answer: int | None = None  # the event that answered it
        self._events: dict[int, range] = {}  # of the messages that were sent
        self._unsent: dict[int, ClaudeMessage] = {}  # the user's own words that no request held yet, by their events

    def waits(self, message: ClaudeMessage) -> bool:
        """Take a message that the next request holds. False: the file has no requests."""
        if not len(self._requests):
            return False
        self._waiting.append(message)
        return True

    def answered(self, response: int) -> None:
        """The event that answers the request."""
        self._answer = response

    def has_unanswered(self, line: int) -> bool:
        """Is the last request before a line of the file one that was not answered."""
        return self._requests.last_before(line) not in ("", self._last)

    def was_not_sent(self, line: int) -> bool:
        """Was a request that failed before a line of the file never sent: every request in the file was answered, or
        failed before. Where automatic compaction is switched off, Claude Code stops by its own count (2.1.325)."""
        last = self._requests.last_before(line)
        is_new = last not in ("", self._last, self._failed)
        self._failed = last
        return len(self._requests) > 0 and not is_new

    def settle(self, line: int | None) -> None:
        """What waits becomes events: as the request was sent that follows the last one that was answered and was
        refused, where there is one before a line of the file; else as the lines have it."""
        if not self._waiting:
            return
        last = "" if line is None else self._requests.last_before(line)
        view = self._requests.view(last) if last not in ("", self._last) else None
        if view is not None and self._extends(view):
            self._add(view)
            self._sent, self._last, self._answer = view, last, None
        self._flush(self._waiting)

    def ask(self, request: str) -> None:
        """A request was answered: what waits is in it."""
        view = self._requests.view(request) if request else None
        if view is not None and self._extends(view):
            self._add(view)
        elif view is None or self._sent is None or not self._log.builder.events:
            self._flush(self._waiting)
        else:
            self._rebuild(view)
        self._flush([item for item in self._waiting if not item.attached])
        self._sent, self._last, self._unsent = view, request, {}

    def _extends(self, view: list[int]) -> bool:
        """Does a request begin with the last one, or the session with it."""
        if not self._sent:
            return self._sent is not None and not self._log.builder.events
        return view[: len(self._sent)] == self._sent

    def _add(self, view: list[int]) -> None:
        """The messages of a request behind those of the last one."""
        added = view[len(self._sent or ()) :]
        for number, key in enumerate(added):
            message = self._message(key)
            if message is not None and message.role is Role.USER:
                self._events[key] = self._emit(message)
            elif not number and self._answer is not None:
                self._events[key] = range(self._answer, self._answer + 1)
            elif message is None:
                self._log.late = True  # a line that is yet to come may have it

    def _message(self, key: int) -> SentMessage | None:
        """The message of a hash, as it is written or as its lines are; None for an answer."""
        written = self._requests.message(key)
        if written is not None:
            return written
        lines = [self._log.lines.messages.get(number) for number in self._requests.plain.of(key)]
        messages = [message for message in lines if message is not None]
        if not messages or len(messages) < len(lines):
            return None
        first = messages[0]
        if len(messages) == 1:
            return SentMessage(Role.USER, first.parts, first.place, first.node.line)
        parts = tuple(part for message in messages for part in self._log.parts_of(message))
        return SentMessage(Role.USER, parts, None, first.node.line)

    # -- events

    def _emit(self, message: SentMessage, skipped: int = 0) -> range:
        """A message as events: the user's own words, and what was sent with them. `skipped`: so many parts at its
        beginning are of no event."""
        parts, start = self._log.parts_of(message), len(self._log.builder.events)
        groups = list(self._divided(parts[skipped:]))
        for number, (own, group) in enumerate(groups):
            place = message.place if len(groups) == 1 and not skipped else None
            shown = message.parts if place is not None else group
            self._event(message, shown, group, place, own=own, joined=number > 0 or skipped > 0)
        return range(start, len(self._log.builder.events))

    def _event(
        self,
        message: SentMessage,
        parts: Sequence[Part],
        words: Sequence[Part],
        place: int | None,
        *,
        own: bool,
        joined: bool,
    ) -> None:
        origins = self._origins(words, own=own)
        first = origins[0] if origins else None
        index = self._log.builder.event(
            Role.SYSTEM if first is not None and all(item.role is Role.SYSTEM for item in origins) else Role.USER,
            tuple(parts),
            place=place,
            line=first.node.line if first else message.line,
            source_id=first.node.uuid if first else "",
            timestamp=first.timestamp if first else None,
            meta=not own and not any(isinstance(part, ToolResultPart) for part in words),
            joined=joined,
        )
        for part in words:
            if isinstance(part, ToolResultPart):
                self._log.results[part.call_id] = index
        for item in origins:
            self._log.index[item.node.uuid] = index
        taken = {id(item) for item in origins}
        self._waiting = [item for item in self._waiting if id(item) not in taken]

    def _origins(self, parts: Sequence[Part], *, own: bool) -> list[ClaudeMessage]:
        """The lines that an event of these parts is made of."""
        calls = {part.call_id for part in parts if isinstance(part, ToolResultPart)}
        origins = []
        for item in self._waiting:
            ids = {part.call_id for part in item.parts if isinstance(part, ToolResultPart)}
            if ids & calls or (not ids and item.meta != own):
                origins.append(item)
        return origins

    def _divided(self, parts: Sequence[Part]) -> Iterator[tuple[bool, tuple[Part, ...]]]:
        """Parts in a row that are the user's own words, or are not."""
        words = [part for item in self._waiting if not item.meta for part in self._log.parts_of(item)]
        texts = [part for part in words if not isinstance(part, ToolResultPart)]
        for own, group in groupby(parts, lambda part: any(_is_of(part, each) for each in texts)):
            yield own, tuple(group)

    def _flush(self, messages: list[ClaudeMessage]) -> None:
        """Messages that no request shows become events as the lines have them; nothing waits any more."""
        for item in messages:
            event = self._log.event(item, item.parts, item.place)
            if not item.meta and item.role is Role.USER:
                self._unsent[event] = item
        self._waiting = []

    # -- a history that was built anew

    def _rebuild(self, view: list[int]) -> None:
        """The view of the compaction that was just read, or of an edit of the history."""
        builder = self._log.builder
        at, last = len(builder.events), builder.compactions[-1] if builder.compactions else None
        if last is None or last.at != at or last.kind == "edit":
            last = None
        insertions = {part for event in last.messages for part in event.parts} if last else set()
        new = self._new(view, insertions)
        segments: list[Segment] = []
        inserted: list[Event] = []
        for key in view[: len(view) - new]:
            self._base(key, segments, inserted)
        skipped = self._before_lines(view[len(view) - new], insertions) if last and new else 0
        if skipped and (first := self._message(view[len(view) - new])) is not None:
            segments.append(Inserted(len(inserted)))
            inserted.append(Event(first.role, self._log.parts_of(first)[:skipped], line=first.line, meta=True))
        if last is not None:
            builder.compactions[-1] = msgspec.structs.replace(
                last, base=tuple(segments), messages=tuple(inserted), restored_tokens=None
            )
        else:
            builder.compaction(
                RecordedCompaction(at, Evidence.INFERRED, "edit", tuple(segments), tuple(inserted), note=BUILT_ANEW)
            )
        for number, key in enumerate(view[len(view) - new :]):
            message = self._message(key)
            if message is not None:
                self._events[key] = self._emit(message, 0 if number else skipped)

    def _new(self, view: list[int], insertions: set[Part]) -> int:
        """How many messages at the end of a request hold what was said since the history was built, and what the
        software put behind it. `insertions`: the parts that the compaction inserted, which may quote the user."""
        calls = {part.call_id for item in self._waiting for part in item.parts if isinstance(part, ToolResultPart)}
        new = 0
        for count, key in enumerate(reversed(view), 1):
            message = self._message(key)
            if message is None or message.role is Role.MODEL or key in self._events:
                break
            parts = [part for part in self._log.parts_of(message) if part not in insertions]
            results = {part.call_id for part in parts if isinstance(part, ToolResultPart)}
            if results & calls or any(own for own, _ in self._divided(parts)):
                new = count
            elif new:
                break
        return new

    def _before_lines(self, key: int, insertions: set[Part]) -> int:
        """How many parts at the beginning of a message come from no line that waits: the compaction inserted them."""
        message = self._message(key)
        parts = self._log.parts_of(message) if message else ()
        waiting = [part for item in self._waiting for part in self._log.parts_of(item)]
        for number, part in enumerate(parts):
            is_result = isinstance(part, ToolResultPart)
            if part not in insertions and (is_result or any(_is_of(part, each) for each in waiting)):
                return number
        return 0

    def _base(self, key: int, segments: list[Segment], inserted: list[Event]) -> None:
        """Add a message to a history: the events that hold it, a changed one, or one that is in no event."""
        message, known = self._message(key), self._events.get(key)
        if known is None and message is None and self._answer is not None:
            known = self._events[key] = range(self._answer, self._answer + 1)
            self._answer = None
        if known is not None:
            _hold(segments, known)
            return
        if message is None:
            self._log.late = True
            return
        sent = self._log.parts_of(message)
        if message.role is Role.MODEL and (answered := self._same_answer(sent)) is not None:
            _hold(segments, range(answered, answered + 1))
            return
        for place, parts in self._by_event(sent):
            event = Event(message.role, parts, line=message.line, meta=True)
            if place is None:
                segments.append(Inserted(len(inserted)))
                inserted.append(event)
            elif self._log.builder.events[place].parts == parts:
                _hold(segments, range(place, place + 1))
            else:
                segments.append(Rewritten(place, event, JOINED))

    def _same_answer(self, parts: tuple[Part, ...]) -> int | None:
        """The event of an answer that was given shortly before, and kept by a compaction as it was."""
        events = self._log.builder.events
        last = range(len(events) - 1, max(len(events) - 1 - LOOKED_BACK, -1), -1)
        return next(
            (place for place in last if events[place].role is Role.MODEL and events[place].parts == parts), None
        )

    def _by_event(self, parts: tuple[Part, ...]) -> list[tuple[int | None, tuple[Part, ...]]]:
        """The parts of a message by the event that has their result or, of the user's words, them; what has none with
        those before or behind it: results of calls in parallel are lines of their own, and one message. None: no event
        has any."""
        groups: list[tuple[int | None, tuple[Part, ...]]] = []
        for part in parts:
            place = self._log.results.get(part.call_id) if isinstance(part, ToolResultPart) else self._unsent_as(part)
            if groups and (place is None or groups[-1][0] in (None, place)):
                last, before = groups[-1]
                groups[-1] = last if place is None else place, (*before, part)
            else:
                groups.append((place, (part,)))
        return groups

    def _unsent_as(self, part: Part) -> int | None:
        """The event whose words a part has, where no request held them yet: the user wrote, then it was compacted."""
        for event, message in self._unsent.items():
            if any(_is_of(part, own) for own in self._log.parts_of(message)):
                return event
        return None


BUILT_ANEW = "the history was sent in another form"


def _hold(segments: list[Segment], events: range) -> None:
    """Events as they are, in one span with those right before them."""
    last = segments[-1] if segments else None
    if isinstance(last, Span) and last.stop == events.start:
        segments[-1] = Span(last.start, events.stop)
    else:
        segments.append(Span(events.start, events.stop))


def _is_of(sent: Part, own: Part) -> bool:
    """Is a part that was sent one of the user's own."""
    return holds(sent, own) if isinstance(sent, TextPart) else sent == own
