"""Which events OpenHands sends: all of them, less what condensations forget, with a summary in its place.

Definition: `openhands/sdk/context/view` and, for the older events, `openhands/memory/view.py`. A call and its result
are forgotten together, and so are the calls of one answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from guard_core.events import Event
from guard_core.recordings.reading.rebase import view_of
from guard_core.views import View


class SentEvents:
    """The ids of the events that a request holds, in its order. The actions of one answer are an entry each."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._summaries: dict[str, Event] = {}
        self._bonds: dict[str, tuple[str, ...]] = {}  # of an event: what goes with it

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def add(self, event_id: str, *bonds: str) -> None:
        """`bonds`: the ids of the call that is made or answered, and of the answer that made it; "" for none."""
        self._ids.append(event_id)
        self._bonds[event_id] = tuple(bond for bond in bonds if bond)

    def condense(self, name: str, forgotten: set[str], summary: Event | None, offset: int | None) -> None:
        """Forget events. A new summary holds what the one before it said; without an offset it is not sent."""
        summary = summary if offset is not None else None
        removed = self._bound(forgotten) | (set(self._summaries) if summary is not None else set())
        self._ids = [event_id for event_id in self._ids if event_id not in removed]
        if summary is not None:
            self._summaries[f"{name}-summary"] = summary
            self._ids.insert(offset or 0, f"{name}-summary")

    def _bound(self, forgotten: set[str]) -> set[str]:
        """The events that are forgotten, and those that go with them."""
        bound, fresh = set(forgotten), forgotten
        while fresh:
            bonds = {bond for event_id in fresh for bond in self._bonds.get(event_id, ())}
            fresh = {
                event_id
                for event_id in self._ids
                if event_id not in bound and bonds.intersection(self._bonds.get(event_id, ()))
            }
            bound |= fresh
        return bound

    def view(self, places: Mapping[str, int]) -> tuple[View, tuple[Event, ...]]:
        """The request as spans of the log (`places`: the index of each event there) and the summaries in it."""
        indexes: list[int | None] = []
        for event_id in self._ids:
            if event_id in self._summaries:
                indexes.append(None)
            elif event_id in places and places[event_id] not in indexes[-1:]:
                indexes.append(places[event_id])
        summaries = tuple(self._summaries[event_id] for event_id in self._ids if event_id in self._summaries)
        return view_of(indexes), summaries
