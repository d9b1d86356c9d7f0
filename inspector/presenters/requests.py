"""What one request held: the view of a step as rows in order, and the events that were no longer in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from guard_core.events import Event, Role, TextPart
from guard_core.views import Inserted, Rewritten, Segment, Span, Synthetic, View, content_count, kept_events
from inspector.presenters.numbers import message_number
from inspector.presenters.parts import role_of, shown

PAGE = 40  # messages of one window

KEPT, REWRITTEN, INSERTED, SUMMARISED, DROPPED = "kept", "rewritten", "inserted", "summarised", "dropped"
STATES = {
    KEPT: ("sent as it is in the log", ""),
    REWRITTEN: ("sent with its content changed", "badge-tool"),
    INSERTED: ("written by a compaction, not part of the log", "badge-compaction"),
    SUMMARISED: ("not sent any more; a summary stands for it", "badge-compaction"),
    DROPPED: ("not sent any more, and no summariser saw it", "badge-overflow"),
}


@dataclass(frozen=True)
class Row:
    """One message of a request, or one event that is not in it any more."""

    state: str
    event: int | None = None  # index in the log; None: it is not part of the log
    message: Event | None = None  # set where the log's own event is not what was sent
    note: str = ""
    size: int | None = None  # UTF-8 bytes of a synthetic message, which may be all that is known of it
    position: int | None = None  # index in the request; None: it is not in it


def rows_of(view: View, start: int, stop: int, inserted: Sequence[Event] = ()) -> list[Row]:
    """The messages `start` to `stop` (exclusive) of a view, in its order."""
    rows: list[Row] = []
    position = 0
    for segment in view:
        count = content_count((segment,))
        low, high = max(start, position), min(stop, position + count)
        if low < high:
            found = _segment_rows(segment, low - position, high - position, inserted)
            rows += [replace(row, position=place) for place, row in enumerate(found, low)]
        position += count
    return rows


def _segment_rows(segment: Segment, low: int, high: int, inserted: Sequence[Event]) -> list[Row]:
    match segment:
        case Span(first, _):
            return [Row(KEPT, index) for index in range(first + low, first + high)]
        case Rewritten(event=index, message=message, reason=reason):
            return [Row(REWRITTEN, index, message, reason)]
        case Inserted(index):
            message = inserted[index] if index < len(inserted) else None
            return [Row(INSERTED, None, message, "inserted by the recorded compaction")]
        case Synthetic(kind=kind, text=text, bytes=size):
            words = text if text is not None else f"({size:,} bytes; only the size of this text is modelled)"
            return [Row(INSERTED, None, Event(Role.USER, (TextPart(words),)), kind, size)]


def gone_ranges(view: View, at: int) -> list[range]:
    """The events of the log before `at` that a view does not hold in any form, in order."""
    held = sorted((span.start, span.stop) for span in kept_events(view))
    held += [(segment.event, segment.event + 1) for segment in view if isinstance(segment, Rewritten)]
    gone, position = [], 0
    for start, stop in sorted(held):
        if start > position:
            gone.append(range(position, start))
        position = max(position, stop)
    if position < at:
        gone.append(range(position, at))
    return gone


def gone_rows(gone: Sequence[range], start: int, stop: int, seen: Sequence[range] | None) -> list[Row]:
    """The rows `start` to `stop` of the events that are gone. `seen`: what the summariser saw, None: not known."""
    rows: list[Row] = []
    position = 0
    for part in gone:
        low, high = max(start, position), min(stop, position + len(part))
        rows += [
            Row(_gone_state(index, seen), index) for index in part[max(0, low - position) : max(0, high - position)]
        ]
        position += len(part)
    return rows


def _gone_state(index: int, seen: Sequence[range] | None) -> str:
    return SUMMARISED if seen is None or any(index in part for part in seen) else DROPPED


def event_runs(rows: Sequence[Row]) -> Iterator[tuple[int, int]]:
    """The runs of log events that must be loaded to show the rows, as (start, stop)."""
    wanted = sorted({row.event for row in rows if row.event is not None and row.message is None})
    run: list[int] = []
    for index in wanted:
        if run and index != run[-1] + 1:
            yield run[0], run[-1] + 1
            run = []
        run.append(index)
    if run:
        yield run[0], run[-1] + 1


def present(
    row: Row, event: Event | None, heuristic: int | None, attributed: int | None, source: str
) -> dict[str, Any]:
    """A row for the template. `event` is the log's own; a row that was sent otherwise shows what was sent."""
    message = row.message or event
    title, badge = STATES[row.state]
    return {
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
        "foldable": row.message is None,
    }


def presented(
    rows: Sequence[Row],
    load: Callable[[int, int], Sequence[Event]],
    costs: Callable[[Row], tuple[int | None, int | None, str]],
) -> list[dict[str, Any]]:
    """Rows for the template, their events loaded run by run, each with (heuristic, attributed, source of that)."""
    events: dict[int, Event] = {}
    for start, stop in event_runs(rows):
        events |= dict(zip(range(start, stop), load(start, stop), strict=True))
    return [present(row, events.get(row.event) if row.event is not None else None, *costs(row)) for row in rows]
