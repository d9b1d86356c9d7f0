"""Sums over the segments of views, where one view after the other begins alike.

A policy that replaces each old result by a message of its own has views of thousands of segments, and every request
begins as the one before, or lacks its oldest messages. Sums are kept with the last long view, so that only what differs
is added up again.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import add, sub
from typing import Any, NamedTuple

import numpy as np

from guard_core.ledger import Ints, Ledger, prefix_sums
from guard_core.views import Segment, Span, View, common_length, content_count, exchanged, followed

SHORT = 16  # segments; ours: a shorter view is added up at once


class _Last(NamedTuple):
    """The last long view with its sums, and a much shorter one that came after it."""

    view: View = ()
    sums: Any = ()
    aside: View = ()
    aside_sums: Any = ()

    def known(self, view: View) -> Any:
        """The sums of a view that is remembered; None of another one."""
        if view is self.view:
            return self.sums
        return self.aside_sums if view is self.aside else None

    def after(self, view: View, sums: Any, *, is_new: bool) -> _Last:
        """What is remembered after another view; `is_new`: all of it was added up. One that is short beside the last
        one is remembered besides that: what a summariser is given comes between a list and the list behind it, which
        begins as the former did. A second one is of another list."""
        if is_new and not self.aside and 2 * len(view) < len(self.view):
            return self._replace(aside=view, aside_sums=sums)
        return _Last(view, sums)


class ViewSums:
    """Sums of one number per segment. What is remembered is one value that is replaced as a whole, so that threads may
    share it."""

    def __init__(self, cost: Callable[[Segment], int]) -> None:
        self._cost = cost
        self._last = _Last(sums=0)

    def total(self, view: View) -> int:
        """The sum over all segments."""
        if len(view) < SHORT:
            return sum(map(self._cost, view))
        last = self._last
        known: int | None = last.known(view)
        if known is not None:
            return known
        removed, added, _ = exchanged(last.view, view)
        is_new = len(removed) + len(added) >= len(view)
        total = sum(map(self._cost, view if is_new else added))
        if not is_new:
            total += last.sums - sum(map(self._cost, removed))
        self._last = last.after(view, total, is_new=is_new)
        return total

    def prefix(self, view: View) -> Ints:
        """The sums of the first segments, one longer than the view."""
        return prefix_sums(np.fromiter(map(self._cost, view), dtype=np.int64, count=len(view)))


class ManySums:
    """Several sums over the same views, remembered together as ViewSums remembers one. `sums` gives them for some
    segments."""

    def __init__(self, sums: Callable[[View], tuple[int, ...]]) -> None:
        self._sums = sums
        self._last = _Last()

    def totals(self, view: View) -> tuple[int, ...]:
        """The sums over all segments."""
        if len(view) < SHORT:
            return self._sums(view)
        last = self._last
        known: tuple[int, ...] | None = last.known(view)
        if known is not None:
            return known
        removed, added, _ = exchanged(last.view, view)
        is_new = len(removed) + len(added) >= len(view)
        totals = self._sums(view if is_new else added)
        if not is_new:
            totals = tuple(map(add, totals, map(sub, last.sums, self._sums(removed))))
        self._last = last.after(view, totals, is_new=is_new)
        return totals


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
    if len(view) < SHORT:
        return content_count(view)
    sums = sums_of(ledger, "messages", lambda item: item.stop - item.start if isinstance(item, Span) else 1)
    return sums.total(view)
