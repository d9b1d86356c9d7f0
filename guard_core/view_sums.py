"""Sums over the segments of views, where one view after the other begins alike.

A policy that replaces each old result by a message of its own has views of thousands of segments, and every request
begins as the one before, or lacks its oldest messages. Sums are kept with the last long view, so that only what differs
is added up again.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import add, sub

import numpy as np

from guard_core.ledger import Ints, Ledger, prefix_sums
from guard_core.views import Segment, Span, View, common_length, content_count, exchanged, followed

SHORT = 16  # segments; ours: a shorter view is added up at once


class ViewSums:
    """Sums of one number per segment. What is remembered is one value that is replaced as a whole, so that threads may
    share it."""

    def __init__(self, cost: Callable[[Segment], int]) -> None:
        self._cost = cost
        self._last: tuple[View, int] = ((), 0)

    def total(self, view: View) -> int:
        """The sum over all segments."""
        if len(view) < SHORT:
            return sum(map(self._cost, view))
        before, total = self._last
        if view is before:
            return total
        removed, added, _ = exchanged(before, view)
        if len(removed) + len(added) < len(view):
            total += sum(map(self._cost, added)) - sum(map(self._cost, removed))
        else:
            total = sum(map(self._cost, view))
            if _is_an_aside(view, before):
                return total
        self._last = view, total
        return total

    def prefix(self, view: View) -> Ints:
        """The sums of the first segments, one longer than the view."""
        return prefix_sums(np.fromiter(map(self._cost, view), dtype=np.int64, count=len(view)))


class ManySums:
    """Several sums over the same views, remembered together as ViewSums remembers one. `sums` gives them for some
    segments."""

    def __init__(self, sums: Callable[[View], tuple[int, ...]]) -> None:
        self._sums = sums
        self._last: tuple[View, tuple[int, ...]] = ((), ())

    def totals(self, view: View) -> tuple[int, ...]:
        """The sums over all segments."""
        if len(view) < SHORT:
            return self._sums(view)
        before, totals = self._last
        if view is before:
            return totals
        removed, added, _ = exchanged(before, view)
        if len(removed) + len(added) < len(view):
            totals = tuple(map(add, totals, map(sub, self._sums(added), self._sums(removed))))
        else:
            totals = self._sums(view)
            if _is_an_aside(view, before):
                return totals
        self._last = view, totals
        return totals


def _is_an_aside(view: View, before: View) -> bool:
    """Is a view, of which all was added up, so short beside the one before it that the next one is likelier to begin as
    that one does: what a summariser is given comes between the list before and the list behind it."""
    return 2 * len(view) < len(before)


class FirstPlaces:
    """Where views have their first segment of some kind; of one that begins as the last one did, only what differs is
    looked at. Threads may share it as they may ViewSums."""

    def __init__(self, is_one: Callable[[Segment], object]) -> None:
        self._is_one = is_one
        self._last: tuple[View, int] = ((), 0)

    def first(self, view: View) -> int:
        """The place of the first such segment; the view's length where it has none."""
        before, place = self._last
        same = common_length(before, view)
        if place >= same:
            old, new, size = exchanged(before, view).kept
            if (first := self._among(view, same, new)) < new:
                place = first
            elif old <= place < old + size:  # what is before it in the row is none in either view
                place += new - old
            else:
                place = self._among(view, max(same, new + size if place >= old else new), len(view))
        self._last = view, place
        return place

    def _among(self, view: View, start: int, stop: int) -> int:
        """The place of the first such segment from `start` on, `stop` where there is none before that."""
        places = (place for place, item in enumerate(view[start:stop], start) if self._is_one(item))
        return next(places, stop)


class PlainViews:
    """Views in their normal form (`usage.normal`) with their events as they are in the log, of long views only what
    differs from the one before. Threads may share it as they may ViewSums."""

    def __init__(self) -> None:
        self._last: tuple[View, View] = ((), ())

    def of(self, view: View) -> View:
        """The view without forms, with neighbouring spans joined and empty ones left out."""
        if len(view) < SHORT:
            return _plain(view)
        before, plain = self._last
        if view is before:
            return plain
        same = common_length(before, view)
        last = _last_filled(view, same)
        kept = len(plain) - _begun(before[same:], last) if same else 0
        segments: list[Segment] = []
        if kept and isinstance(joined := plain[kept - 1], Span):  # it may have been joined with what comes behind
            assert isinstance(last, Span)
            kept -= 1
            segments.append(Span(joined.start, last.stop))
        for segment in view[same:]:
            _append(segments, segment)
        result = followed(plain, kept, segments)
        self._last = view, result
        return result


def _plain(view: View) -> View:
    """The normal form of a short view, without forms."""
    segments: list[Segment] = []
    for segment in view:
        _append(segments, segment)
    return tuple(segments)


def _last_filled(view: View, stop: int) -> Segment | None:
    """The last of the first `stop` segments that is not an empty span."""
    for place in range(stop - 1, -1, -1):
        segment = view[place]
        if not isinstance(segment, Span) or segment.start < segment.stop:
            return segment
    return None


def _begun(segments: View, last: Segment | None) -> int:
    """How many segments the normal form of some has that it does not join with the `last` one before them."""
    count = 0
    for segment in segments:
        if isinstance(segment, Span) and segment.start >= segment.stop:
            continue
        joined = isinstance(segment, Span) and isinstance(last, Span) and last.stop == segment.start
        count += not joined
        last = segment
    return count


def _append(segments: list[Segment], segment: Segment) -> None:
    last = segments[-1] if segments else None
    if not isinstance(segment, Span):
        segments.append(segment)
    elif segment.start < segment.stop:
        if isinstance(last, Span) and last.stop == segment.start:
            segments[-1] = Span(last.start, segment.stop)
        else:
            segments.append(Span(segment.start, segment.stop) if segment.form else segment)


def sums_of(ledger: Ledger, key: object, cost: Callable[[Segment], int]) -> ViewSums:
    """The sums of a cost over views of a ledger's log, the same ones for the same key."""
    name = ("view sums", key)
    sums: ViewSums | None = ledger.derived.get(name)
    if sums is None:
        sums = ledger.derived.setdefault(name, ViewSums(cost))
    return sums


def messages_in(ledger: Ledger, view: View) -> int:
    """How many messages a view has, as `views.content_count`."""
    return content_count(view) if len(view) < SHORT else sums_of(ledger, "messages", _messages).total(view)


def _messages(segment: Segment) -> int:
    return segment.stop - segment.start if isinstance(segment, Span) else 1
