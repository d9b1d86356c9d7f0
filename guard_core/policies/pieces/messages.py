"""Lists of messages: a view as the messages of a list, what a library counts of each, and back to a view.

A message is an event of the log, in a form or as it is, or a message that was inserted. An event with several tool
results is one message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

import numpy as np

from guard_core.costs import CALL, HAS_RESULT, MODEL, RESULT, SYSTEM
from guard_core.events import Role
from guard_core.forms import form_names
from guard_core.ledger import Ints, Ledger
from guard_core.view_sums import SHORT, ViewSums, sums_of
from guard_core.views import Segment, Span, Synthetic, View, followed

USER, ASSISTANT, TOOL, SYSTEM_ROLE = range(4)
JOINED_AT_ONCE = 3  # segments of a view that may change when others follow it (`_join_last`)
ANSWERED = -1  # no kind of parts: the calls that results answer
ROLE_OF = {Role.USER: USER, Role.MODEL: ASSISTANT, Role.SYSTEM: SYSTEM_ROLE}


class ListMessage(NamedTuple):
    """One message of a list: event `event` of the log in `form` ("" as it is), or `inserted` (event -1)."""

    event: int = -1
    form: str = ""
    inserted: Synthetic | None = None

    def joined(self, form: str) -> ListMessage:
        """The message in one more form."""
        return self._replace(form=f"{self.form}+{form}" if self.form else form)

    def is_in(self, form: str) -> bool:
        """Is the message in this form, alone or among others."""
        return form in form_names(self.form)

    def as_span(self) -> Span:
        """The event alone, in its form."""
        return Span(self.event, self.event + 1, self.form)


def messages_of(view: View) -> list[ListMessage]:
    """A view as a list with one entry for each message."""
    messages: list[ListMessage] = []
    for segment in view:
        if isinstance(segment, Span):
            messages += map(ListMessage, range(segment.start, segment.stop), repeat(segment.form))
        else:
            assert isinstance(segment, Synthetic), "replayed lists hold events and inserted messages"
            messages.append(ListMessage(inserted=segment))
    return messages


def view_of(ledger: Ledger, messages: Iterable[ListMessage], before: View = ()) -> View:
    """The view of a list of messages, behind the view `before` them: as few spans as there can be, each beginning and
    ending with an event that its form changes, so that equal lists are equal views."""
    stays = max(len(before) - JOINED_AT_ONCE, 0)
    return followed(before, stays, joined_view(ledger, (*before[stays:], *_runs(messages))))


def _runs(messages: Iterable[ListMessage]) -> Iterator[Segment]:
    """The messages as segments: consecutive events in the same form are one span."""
    first = last = -1
    form = ""
    for event, named, inserted in messages:
        if inserted is None and event == last + 1 and named == form and first >= 0:
            last = event
            continue
        if first >= 0:
            yield Span(first, last + 1, form)
        if inserted is None:
            first, last, form = event, event, named
        else:
            first = -1
            yield inserted
    if first >= 0:
        yield Span(first, last + 1, form)


def joined_view(ledger: Ledger, segments: Iterable[Segment]) -> View:
    """The view of some segments one after the other, with spans as `view_of` makes them."""
    joined: list[Segment] = []
    for segment in segments:
        if not isinstance(segment, Span):
            joined.append(segment)
            continue
        for span in _trimmed(ledger, segment):
            joined.append(span)
            _join_last(ledger, joined)
    return tuple(joined)


def _trimmed(ledger: Ledger, span: Span) -> Iterator[Span]:
    """A span in parts: what its form leaves as it is at its beginning and its end is in no form."""
    start, stop, form = span.start, span.stop, span.form
    if form:
        first, last = ledger.changed_between(start, stop, form)
        parts: tuple[Span, ...] = (Span(start, first), Span(first, last, form), Span(last, stop))
    else:
        parts = (span,)
    yield from (part for part in parts if part.start < part.stop)


def parted_at(view: View, event: int) -> tuple[View, View]:
    """The view of messages in the log's order before an event, and from it on. Inserted messages go with what is
    before them."""
    place = stop = len(view)
    while stop:
        last = view[stop - 1]
        if isinstance(last, Span) and last.start < last.stop:
            if last.stop <= event:
                break
            place = stop - 1
        stop -= 1
    segment = view[place] if place < len(view) else None
    if not isinstance(segment, Span) or segment.start >= event:
        return view[:place], tuple(view[place:])
    head, rest = Span(segment.start, event, segment.form), Span(event, segment.stop, segment.form)
    return followed(view, place, (head,)), (rest, *view[place + 1 :])


def until(view: View, stop: int) -> View:
    """A view of spans of the log, up to event `stop`."""
    spans = (item for item in view if isinstance(item, Span) and item.start < stop)
    return tuple(Span(item.start, min(item.stop, stop), item.form) for item in spans)


def _join_last(ledger: Ledger, segments: list[Segment]) -> None:
    """Join the last span with the one before it, and over one that its form leaves as it is."""
    last = segments[-1]
    before = segments[-2] if len(segments) > 1 else None
    if not isinstance(last, Span) or not isinstance(before, Span) or before.stop != last.start:
        return
    if before.form == last.form:
        segments[-2:] = [Span(before.start, last.stop, last.form)]
        return
    earlier = segments[-3] if len(segments) > 2 else None
    if before.form or not isinstance(earlier, Span) or (earlier.stop, earlier.form) != (before.start, last.form):
        return
    if ledger.first_changed(before.start, last.form) >= before.stop:
        segments[-3:] = [Span(earlier.start, last.stop, last.form)]


def roles_of(ledger: Ledger) -> Ints:
    """The role of each event: USER, ASSISTANT, TOOL (an event with tool results) or SYSTEM_ROLE."""
    if "list roles" not in ledger.derived:
        flags = ledger.events["flags"]
        role = np.where(flags & MODEL, ASSISTANT, np.where(flags & SYSTEM, SYSTEM_ROLE, USER))
        ledger.derived["list roles"] = np.where(flags & HAS_RESULT, TOOL, role)
    roles: Ints = ledger.derived["list roles"]
    return roles


def role_of(ledger: Ledger, message: ListMessage) -> int:
    """USER, ASSISTANT, TOOL (an event with tool results) or SYSTEM_ROLE."""
    event, _, inserted = message
    return role_numbers(ledger)[event] if inserted is None else ROLE_OF[inserted.role]


def roles_in(ledger: Ledger, messages: Iterable[ListMessage]) -> list[int]:
    """The role of each of some messages."""
    known = role_numbers(ledger)
    return [known[event] if inserted is None else ROLE_OF[inserted.role] for event, _, inserted in messages]


def role_numbers(ledger: Ledger) -> list[int]:
    """`roles_of` as plain numbers: policies that look at messages one by one ask for thousands."""
    if "list role numbers" not in ledger.derived:
        ledger.derived["list role numbers"] = roles_of(ledger).tolist()
    roles: list[int] = ledger.derived["list role numbers"]
    return roles


@dataclass(frozen=True)
class MessageCosts:
    """What a library adds up over messages, in its own unit (characters, tokens).

    `events` gives it for every event from the columns of the parts in a form; `inserted` for an inserted message. `key`
    names it, with the settings that it depends on: sums over one ledger are made once. `is_local`: what it gives for an
    event follows from that event's own columns alone.
    """

    key: str
    events: Callable[[Ledger, dict[str, Ints]], Ints]
    inserted: Callable[[Synthetic], int]
    is_local: bool = False

    def prefix(self, ledger: Ledger, form: str = "") -> Ints:
        """Prefix sums over the log's events, in a form if named."""
        key = f"{self.key}/{form}"
        known = ledger.known_prefix(key)
        if known is None:
            known = ledger.prefix_by(key, lambda ledger: self.events(ledger, ledger.parts_in(form)))
        return known

    def view(self, ledger: Ledger, view: View) -> int:
        """The messages of a view together."""
        if len(view) < SHORT:
            return sum([self.segment(ledger, segment) for segment in view])
        return self.sums(ledger).total(view)

    def sums(self, ledger: Ledger) -> ViewSums:
        """The sums over the segments of views of a ledger's log."""
        return sums_of(ledger, ("costs", self.key), lambda segment: self.segment(ledger, segment))

    def segment(self, ledger: Ledger, segment: Segment) -> int:
        """One segment of a view."""
        if isinstance(segment, Span):
            start, stop, form = segment.start, segment.stop, segment.form
            if form and self.is_local:
                alone = ledger.of_one(start, stop, form, self.key, self._in_form)
                if alone is not None:
                    return alone
            prefix = self.prefix(ledger, form)
            return prefix.item(stop) - prefix.item(start)
        assert isinstance(segment, Synthetic)
        return self.inserted(segment)

    def look_up(self, ledger: Ledger, spans: Iterable[Span]) -> None:
        """Find what many events cost in forms of their own at once (`Ledger.look_up`)."""
        if self.is_local:
            ledger.look_up(spans, self.key, self._in_form)

    def _in_form(self, ledger: Ledger, form: str) -> Ints:
        """The costs of a ledger's events in a form."""
        return self.events(ledger, ledger.parts_in(form))

    def message(self, ledger: Ledger, message: ListMessage) -> int:
        """What a message costs in its form."""
        if message.inserted is not None:
            return self.inserted(message.inserted)
        prefix = self.prefix(ledger, message.form)
        return prefix.item(message.event + 1) - prefix.item(message.event)

    def messages(self, ledger: Ledger, messages: Iterable[ListMessage]) -> list[int]:
        """Each of some messages."""
        prefixes: dict[str, Ints] = {}
        costs = []
        for event, form, inserted in messages:
            if inserted is not None:
                costs.append(self.inserted(inserted))
                continue
            if form not in prefixes:
                prefixes[form] = self.prefix(ledger, form)
            prefix = prefixes[form]
            costs.append(prefix.item(event + 1) - prefix.item(event))
        return costs


# What a library adds up that counts messages alone.
ONE = MessageCosts("one each", lambda ledger, parts: np.ones(ledger.event_count, dtype=np.int64), lambda message: 1)


def calls_of(ledger: Ledger, message: ListMessage) -> list[int]:
    """The rows (in the columns of parts) of the calls that a message still has, in their order."""
    return _rows(ledger, message, CALL)


def results_of(ledger: Ledger, message: ListMessage) -> list[int]:
    """The rows of the tool results of a message."""
    return _rows(ledger, message, RESULT)


def answered_by(ledger: Ledger, message: ListMessage) -> list[int]:
    """The rows of the calls that the results of a message answer, -1 where that is not known."""
    event, form, _ = message
    if event < 0:
        return []
    if not form:
        return _in_log(ledger, ANSWERED)[event]
    answers = ledger.parts["answers"]
    return [answers.item(row) for row in results_of(ledger, message)]


def _rows(ledger: Ledger, message: ListMessage, kind: int) -> list[int]:
    event, form, _ = message
    if event < 0:
        return []
    if not form:
        return _in_log(ledger, kind)[event]
    starts, kinds = ledger.part_starts, ledger.parts_in(form)["kind"]
    rows = range(starts.item(event), starts.item(event + 1))
    return [row for row in rows if kinds.item(row) == kind]


def _in_log(ledger: Ledger, kind: int) -> list[list[int]]:
    """The rows of a kind of every event as it is in the log, or the rows that its results answer (ANSWERED); once for a
    ledger, for policies ask it of the same messages at every step. Who gets a list does not change it."""
    key = "rows by event", kind
    if key not in ledger.derived:
        rows = np.flatnonzero(ledger.parts["kind"] == (RESULT if kind == ANSWERED else kind))
        values = (ledger.parts["answers"][rows] if kind == ANSWERED else rows).tolist()
        none: list[int] = []
        lists = [none] * ledger.event_count
        for event, value in zip(ledger.parts["event"][rows].tolist(), values, strict=True):
            if lists[event] is none:
                lists[event] = []
            lists[event].append(value)
        ledger.derived[key] = lists
    known: list[list[int]] = ledger.derived[key]
    return known
