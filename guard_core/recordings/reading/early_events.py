"""The first session's events, sent on while the rest of the file is still being read.

A reader knows only at the end of a file what its session is: lines may be taken back, joined, or turn out to be a
branch that was left. So an event is sent once some more have followed it, and at the end the session that was read is
compared with what was sent.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain, islice
from operator import ne
from typing import NamedTuple

import msgspec

from guard_core.events import Event, ToolCallPart, ToolResultPart
from guard_core.recordings.reading.pairing import Pairing
from guard_core.recordings.reading.shelf import ShelvedEvents


class SendingPace(NamedTuple):
    """How far the sending stays behind the reading, so that little of what was sent turns out to be wrong."""

    newest: int = 64  # events that are not sent yet: readers still change them
    stretch: int = 512  # lines of a transcript that are taken up together
    around: int = 128  # lines before and behind them that are looked at, too: forks of parallel calls are shorter


PACE = SendingPace()


class EarlyEvents:
    """Sends the events of the first session of a source, in order, while it grows."""

    def __init__(self, send: Callable[[Event], object], pace: SendingPace = PACE) -> None:
        self.pace = pace
        self._send = send
        self._pairing = Pairing()
        self._sent = array("Q")  # digests of the events without their texts
        self._places = array("q")  # of the texts
        self._over = False

    def follow(self, events: ShelvedEvents) -> None:
        """The session has grown: send what is no longer among its newest events, until a sent event is taken back."""
        self._over = self._over or len(events) < len(self._sent)
        if self._over:
            return
        for index in range(len(self._sent), len(events) - self.pace.newest):
            place, outline = events.places[index], events.outlines[index]
            paired = self._pairing.paired(outline)
            if paired is not outline and _has_ids(outline):
                events.outlines[index] = paired
            self._sent.append(_digest(paired))
            self._places.append(place)
            self._send(events.filled(paired, place))

    def paired(self, outlines: Sequence[Event]) -> Iterator[Event]:
        """The events of the whole session, results named after their calls; those that were sent as they were sent."""
        count = len(self._sent)
        if self._over or len(outlines) < count or any(map(ne, self._sent, map(_digest, outlines))):
            return map(Pairing().paired, outlines)
        return chain(islice(outlines, count), map(self._pairing.paired, islice(outlines, count, None)))

    def agreed(self, events: Sequence[Event]) -> int:
        """How many events at the beginning of the session that was read in the end equal those that were sent."""
        if not isinstance(events, ShelvedEvents):
            return 0
        pairs = zip(self._sent, self._places, events.outlines, events.places, strict=False)
        same = 0
        for sent, place, final, final_place in pairs:
            if place != final_place or sent != _digest(final):
                break
            same += 1
        return same


def _digest(event: Event) -> int:
    return int.from_bytes(blake2b(msgspec.msgpack.encode(event), digest_size=8).digest())


def _has_ids(event: Event) -> bool:
    """Do its calls and results have ids? Without them they are paired by their order, which may change."""
    return all(
        part.id if isinstance(part, ToolCallPart) else part.call_id
        for part in event.parts
        if isinstance(part, ToolCallPart | ToolResultPart)
    )
