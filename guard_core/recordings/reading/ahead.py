"""Events of a session that are told while the rest of the file is still being read.

A reader knows only at the end of a file what its session is: lines may be taken back, joined, or turn out to be a
branch that was left. So events are told once some more have come behind them, and in the end the session that was read
is compared with what was told.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from operator import is_not

from guard_core.events import Event, ToolCallPart, ToolResultPart
from guard_core.recordings.reading.pairing import Pairing, pair
from guard_core.recordings.reading.shelf import ShelvedEvents

NEWEST = 64  # events that are not told yet: readers still change them


class Ahead:
    """Tells the events of the first session of a source, in order, while it grows."""

    def __init__(self, tell: Callable[[Event], object]) -> None:
        self._tell = tell
        self._pairing = Pairing()
        self._told: list[Event] = []  # without their texts
        self._places = array("q")
        self._over = False

    def follow(self, events: ShelvedEvents) -> None:
        """The session has grown: tell what is not among its newest events any more, until told ones are taken back."""
        self._over = self._over or len(events) < len(self._told)
        if self._over:
            return
        for index in range(len(self._told), len(events) - NEWEST):
            place, outline = events.places[index], events.outlines[index]
            known = self._pairing.paired(outline)
            if known is not outline and _has_ids(outline):
                events.outlines[index] = known
            self._told.append(known)
            self._places.append(place)
            self._tell(events.filled(known, place))

    def paired(self, outlines: Sequence[Event]) -> Sequence[Event]:
        """The events of the whole session, results named after their calls: told ones as they were told."""
        told = len(self._told)
        if self._over or len(outlines) < told or any(map(is_not, self._told, outlines)):
            return pair(outlines)
        return [*self._told, *map(self._pairing.paired, outlines[told:])]

    def agreed(self, events: Sequence[Event]) -> int:
        """How many events at the beginning of the session that was read in the end are those that were told."""
        if not isinstance(events, ShelvedEvents):
            return 0
        told = zip(self._told, self._places, events.outlines, events.places, strict=False)
        same = 0
        for known, place, found, there in told:
            if place != there or known != found:
                break
            same += 1
        return same


def _has_ids(event: Event) -> bool:
    """Do its calls and results name one another by ids of their own? Others are told apart by their place, which may
    change."""
    return all(
        part.id if isinstance(part, ToolCallPart) else part.call_id
        for part in event.parts
        if isinstance(part, ToolCallPart | ToolResultPart)
    )
