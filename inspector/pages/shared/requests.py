"""What one request held: the view of a step as rows in order, and the events that were no longer in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from guard_core.events import Event, Role, TextPart
from guard_core.forms import get_form
from guard_core.views import Inserted, Rewritten, Segment, Span, Synthetic, View, content_count, held_events
from inspector.pages.shared.numbers import message_number
from inspector.pages.shared.parts import role_of, shown

PAGE = 24  # messages of one window, three screens of short ones; each has about twenty elements to make and to paint

KEPT, REWRITTEN, INSERTED, REPEATED = "kept", "rewritten", "inserted", "repeated"
SUMMARISED, DROPPED = "summarised", "dropped"
STATES = {
    KEPT: ("sent as it is in the log", ""),
    REWRITTEN: ("sent with its content changed", "badge-tool"),
    INSERTED: ("written by a compaction, not part of the log", "badge-compaction"),
    REPEATED: ("sent once more by a resumed history, not part of the log", ""),
    SUMMARISED: ("no longer sent; a summary replaced it", "badge-compaction"),
    DROPPED: ("no longer sent, and no summary was made of it", "badge-overflow"),
}


@dataclass(frozen=True)
class MessageRow:
    """One message of a request, or one event that is not in it any more."""

    state: str
    event: int | None = None  # index in the log; None: it is not part of the log
    message: Event | None = None  # set where the log's own event is not what was sent
    note: str = ""
    size: int | None = None  # UTF-8 bytes of a synthetic message, which may be all that is known of it
    position: int | None = None  # index in the request; None: it is not in it
    form: str = ""  # the form that the policy sends the log in; it changes some events

    def sent(self, event: Event | None) -> MessageRow:
        """The row with what was sent of the log's own event, where a form changed it."""
        if not self.form or event is None:
            return self
        form = get_form(self.form)
        message = form.message(event)
        return self if message is event else replace(self, state=REWRITTEN, message=message, note=form.words)


def rows_of(
    view: View, start: int, stop: int, inserted: Sequence[Event] = (), repeated: frozenset[int] = frozenset()
) -> list[MessageRow]:
    """The messages `start` to `stop` (exclusive) of a view, in its order. `inserted` are those that its recorded
    compaction or resumed history brought; `repeated` says which of them repeat the log."""
    rows: list[MessageRow] = []
    position = 0
    for segment in view:
        count = content_count((segment,))
        low, high = max(start, position), min(stop, position + count)
        if low < high:
            segment_rows = _segment_rows(segment, low - position, high - position, inserted, repeated)
            rows += [replace(row, position=place) for place, row in enumerate(segment_rows, low)]
        position += count
    return rows


def _segment_rows(
    segment: Segment, low: int, high: int, inserted: Sequence[Event], repeated: frozenset[int]
) -> list[MessageRow]:
    match segment:
        case Span(first, _, form):
            return [MessageRow(KEPT, index, form=form) for index in range(first + low, first + high)]
        case Rewritten(event=index, message=message, reason=reason):
            return [MessageRow(REWRITTEN, index, message, reason)]
        case Inserted(index):
            text = inserted[index] if index < len(inserted) else None
            if index in repeated:
                return [MessageRow(REPEATED, None, text, "repeated by the resumed history")]
            return [MessageRow(INSERTED, None, text, "inserted by the recorded compaction")]
        case Synthetic(kind=kind, text=text, bytes=size):
            words = text if text is not None else f"({size:,} bytes; only the size of this text is modelled)"
            return [MessageRow(INSERTED, None, Event(Role.USER, (TextPart(words),)), kind, size)]


def gone_ranges(view: View, at: int) -> list[range]:
    """The events of the log before `at` that a view does not hold in any form, in order."""
    held = sorted((span.start, span.stop) for span in held_events(view))
    held += [(segment.event, segment.event + 1) for segment in view if isinstance(segment, Rewritten)]
    removed, position = [], 0
    for start, stop in sorted(held):
        if start > position:
            removed.append(range(position, start))
        position = max(position, stop)
    if position < at:
        removed.append(range(position, at))
    return removed


def gone_rows(removed: Sequence[range], start: int, stop: int, seen: Sequence[range]) -> list[MessageRow]:
    """The rows `start` to `stop` of the events that are gone. `seen`: what a summary was made of."""
    rows: list[MessageRow] = []
    position = 0
    for part in removed:
        low, high = max(start, position), min(stop, position + len(part))
        rows += [
            MessageRow(SUMMARISED if any(index in stretch for stretch in seen) else DROPPED, index)
            for index in part[max(0, low - position) : max(0, high - position)]
        ]
        position += len(part)
    return rows


def present(
    row: MessageRow, event: Event | None, heuristic: int | None, attributed: int | None, source: str
) -> dict[str, Any]:
    """A row for the template. `event` is the log's own; a row that was sent otherwise shows what was sent."""
    row = row.sent(event)
    message = row.message or event
    title, badge = STATES[row.state]
    return {
        "gap": "",
        "number": None if row.event is None else message_number(row.event),
        "state": row.state,
        "state_title": title,
        "badge": badge,
        "note": row.note,
        "role": role_of(message) if message else "unknown",
        "author": message.author if message else "",
        "line": message.line if message else None,
        "heuristic": heuristic,
        "attributed": attributed,
        "source": source,
        "parts": [shown(part, index) for index, part in enumerate(message.parts)] if message else [],
    }
