"""Views: what is sent at a step, as a short list of segments over the log. A view is priced, not built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar, cast, overload

import msgspec

from guard_core.bounds import Count
from guard_core.events import Event, Role

CHANGED = "changed in the request"  # of one that only a request shows
JOINT = "\n\n"
JOINED = "joined with the messages before it"  # of a `Rewritten` that holds all of its event

# `gc=False`: values hold no cycles, and a replay that compacts at every step makes hundreds of thousands of them.


class Span(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="span"):
    """Log events `start` to `stop` (exclusive), as they are or in a form that changes some (guard_core.forms)."""

    start: Count
    stop: Count
    form: str = ""


class Inserted(msgspec.Struct, frozen=True, gc=False, tag="inserted"):
    """Message `index` of the recorded compaction that this view belongs to."""

    index: Count


class Rewritten(msgspec.Struct, frozen=True, omit_defaults=True, tag="rewritten"):
    """Log event `event` with its content changed: pruned, truncated, deduplicated, a placeholder. `joins` are earlier
    events whose text the message has, too, perhaps shortened, with JOINT between them."""

    event: Count
    message: Event
    reason: str
    joins: tuple[Count, ...] = ()


class Synthetic(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag="synthetic"):
    """A message that no event holds: summary, continuation, note. One text part.

    `bytes` is its UTF-8 length; `text` is None where only the size is modelled. `quotes_results`: most of it are words
    of tool results, which cost otherwise than those of a model.
    """

    kind: str
    bytes: Count
    text: str | None = None
    role: Role = Role.USER
    quotes_results: bool = False


T = TypeVar("T")
Segment = Span | Inserted | Rewritten | Synthetic
View = tuple[Segment, ...]  # long ones are a `SharedView`, which does what is asked of such a tuple

Pieces = tuple[tuple[View, int], ...]  # tuples, and how many of the first segments of each count
LONG = 64  # segments; ours: copying fewer costs less than sharing them
CHUNK = 64  # segments that are compared at once
MOVED_BEHIND = 3  # ours: a compaction leaves a summary, the end of a span, and then what there was
REMEMBERED = 16  # pairs of long views; ours: a step of a replay compares about half as many


class SharedView(Sequence[Segment]):
    """A long view that shares its beginning with others, so that thousands of views of thousands of segments fit into
    memory. It is equal to the tuple of its segments.

    It is made of pieces, tuples of which the first so many segments count. Each is at least twice as long as all behind
    it together when it is made, so that there are few, and what two views have in common is found by comparing pieces.
    """

    __slots__ = ("_hash", "_pieces", "_size")  # a trace may hold a hundred thousand of these

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._size = sum([count for _, count in pieces])
        self._hash: int | None = None

    @property
    def pieces(self) -> Pieces:
        """Tuples, and how many of their first segments count."""
        return self._pieces

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Segment]:
        for piece, count in self._pieces:
            yield from piece if count == len(piece) else piece[:count]

    def from_place(self, start: int) -> View:
        """The segments from a place on, as a tuple."""
        parts: View = ()
        stop = self._size
        for piece, count in reversed(self._pieces):  # what differs is mostly at the end
            first = stop - count
            behind = piece[max(start - first, 0) : count]
            parts = behind + parts if parts else behind
            if first <= start:
                break
            stop = first
        return parts

    def until(self, stop: int) -> View:
        """The first so many segments."""
        if stop <= LONG:
            return tuple(self._pieces[0][0][:stop]) if stop <= self._pieces[0][1] else tuple(self)[:stop]
        if stop >= self._size:
            return cast(View, self)
        return cast(View, SharedView(tuple(_first_pieces(self._pieces, stop))))

    @overload
    def __getitem__(self, place: int) -> Segment: ...
    @overload
    def __getitem__(self, place: slice) -> View: ...
    def __getitem__(self, place: int | slice) -> Segment | View:
        if isinstance(place, slice):
            if place.stop is None and place.step is None and place.start is not None and place.start > 0:
                return self.from_place(place.start)
            start, stop, step = place.indices(self._size)
            if step != 1:
                return tuple(self)[place]
            if start == 0:
                return self.until(stop)
            return self.from_place(start)[: max(stop - start, 0)]
        index = place + self._size if place < 0 else place
        if not 0 <= index < self._size:
            raise IndexError("a view has no such segment")
        stop = self._size
        for piece, count in reversed(self._pieces):
            stop -= count
            if stop <= index:
                return piece[index - stop]
        raise AssertionError

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SharedView | tuple):
            return NotImplemented
        return len(other) == self._size and common_length(cast(View, self), cast(View, other)) == self._size

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(tuple(self))
        return self._hash

    def __repr__(self) -> str:
        return repr(tuple(self))


def followed(view: tuple[T, ...], same: int, rest: Iterable[T]) -> tuple[T, ...]:
    """The first `same` segments of a view and then others; of a long view the first ones are shared. Other values that
    a policy remembers in a row of thousands are shared in the same way."""
    added: tuple[Any, ...] = tuple(rest)
    if same + len(added) <= LONG:
        return (*view[:same], *added)
    if same < LONG // 2:
        added = (*view[:same], *added)
        return cast("tuple[T, ...]", SharedView(((added, len(added)),)))
    pieces = _first_pieces(_pieces_of(view), same)
    while added and pieces and pieces[-1][1] < 2 * len(added):
        piece, count = pieces.pop()
        added = (*piece[:count], *added)
    if added:
        pieces.append((added, len(added)))
    return cast("tuple[T, ...]", SharedView(tuple(pieces)))


def _first_pieces(pieces: Pieces, size: int) -> list[tuple[View, int]]:
    """The pieces of the first so many segments."""
    first = []
    for piece in pieces:
        if size <= 0:
            break
        first.append(piece if piece[1] <= size else (piece[0], size))
        size -= piece[1]
    return first


def shared(before: View, view: View) -> View:
    """The same view, sharing what it begins with in common with one before it, if it is long."""
    if len(view) <= LONG or isinstance(view, SharedView):
        return view
    same = common_length(before, view)
    return followed(before, same, view[same:])


def plain_values(value: Any) -> Any:
    """What an encoder writes of a view that is not a tuple: an `enc_hook` of msgspec."""
    if isinstance(value, SharedView):
        return tuple(value)
    raise NotImplementedError(f"values of {type(value).__name__} are not encoded")


def _pieces_of(view: tuple[Any, ...]) -> Pieces:
    return view.pieces if isinstance(view, SharedView) else ((view, len(view)),)


def tuples_of(views: Iterable[View]) -> Iterator[View]:
    """The tuples of segments that some views are made of, each once. Of one the last segments may be in no view."""
    known: set[int] = set()
    for view in views:
        for piece, _ in _pieces_of(view):
            if id(piece) not in known:
                known.add(id(piece))
                yield piece


def common_length(first: tuple[Any, ...], second: tuple[Any, ...]) -> int:
    """How many segments two views have in common at their beginning."""
    if first is second:
        return len(first)
    if not isinstance(first, SharedView) and not isinstance(second, SharedView):
        return _common_beginning(first, 0, second, 0, min(len(first), len(second)))
    key = id(first), id(second)
    known = _compared.get(key)
    if known is not None and known[0] is first and known[1] is second:
        return known[2]
    common = _common_of_pieces(_pieces_of(first), _pieces_of(second))
    if len(_compared) >= REMEMBERED:
        _compared.clear()
    _compared[key] = first, second, common
    return common


# The long views that were compared last, by their ids: every sum over views asks for the same two.
_compared: dict[tuple[int, int], tuple[tuple[Any, ...], tuple[Any, ...], int]] = {}


class SegmentRun(NamedTuple):
    """A row of the same segments in two views: its place in the `old` and in the `new` one, and its `size`."""

    old: int
    new: int
    size: int


NO_ROW = SegmentRun(0, 0, 0)


class ViewDifference(NamedTuple):
    """What two views do not have in common: the segments `removed`, and those `added` in their place. `kept` is a row
    that both have behind their common beginning, the longest that is known."""

    removed: View
    added: View
    kept: SegmentRun = NO_ROW


def difference(before: View, view: View) -> ViewDifference:
    """How a view differs from one before it. Segments that are in neither part are the same at the beginning, and at
    the end, of both."""
    same = common_length(before, view)
    removed, added = before[same:], view[same:]
    size = min(len(removed), len(added))
    if size <= CHUNK:
        return ViewDifference(removed, added)
    stays = _common_end(tuple(removed), tuple(added), size)  # as where the oldest messages went
    kept = SegmentRun(len(before) - stays, len(view) - stays, stays)
    return ViewDifference(removed[: len(removed) - stays], added[: len(added) - stays], kept)


def exchanged(before: View, view: View) -> ViewDifference:
    """The segments of a view that are not in the one after it, and the reverse, as far as that is seen at a glance: a
    long row of the same ones may have moved, as where the oldest messages went and newer ones came behind the
    others."""
    key = id(before), id(view)
    known = _exchanged.get(key)
    if known is not None and known[0] is before and known[1] is view:
        return known[2]
    differs = difference(before, view)
    removed, added, kept = differs
    if min(len(removed), len(added)) > CHUNK:
        begin = len(before) - len(removed) - kept.size
        differs = _without_moved(tuple(removed), tuple(added), begin, kept)
    if len(_exchanged) >= REMEMBERED:
        _exchanged.clear()
    _exchanged[key] = before, view, differs
    return differs


_exchanged: dict[tuple[int, int], tuple[View, View, ViewDifference]] = {}  # as `_compared`


def _without_moved(removed: View, added: View, begin: int, kept: SegmentRun) -> ViewDifference:
    """Both, which `begin` at that place of their views, without a long row of the same segments, which begins with one
    of the first that were added; `kept` is the row at their end."""
    for place, segment in enumerate(added[:MOVED_BEHIND]):
        if segment in removed:
            old = removed.index(segment)
            same = _common_beginning(removed, old, added, place, min(len(removed) - old, len(added) - place))
            if same > CHUNK:
                moved = SegmentRun(begin + old, begin + place, same)
                removed, added = removed[:old] + removed[old + same :], added[:place] + added[place + same :]
                return ViewDifference(removed, added, max(moved, kept, key=lambda row: row.size))
    return ViewDifference(removed, added, kept)


def _common_end(first: View, second: View, size: int) -> int:
    """How many segments two views have in common at their end, up to `size`."""
    mine, other, stays = len(first), len(second), 0
    while stays < size:
        step = min(CHUNK, size - stays)
        if first[mine - stays - step : mine - stays] != second[other - stays - step : other - stays]:
            break
        stays += step
    while stays < size and first[mine - stays - 1] == second[other - stays - 1]:
        stays += 1
    return stays


def _common_of_pieces(first: Pieces, second: Pieces) -> int:
    """The same of two views in pieces, of which the same ones need not be compared."""
    common = mine = at = behind = 0  # piece of each, and the place in it
    for one, two in zip(first, second, strict=False):
        if one is not two:
            break
        common, mine = common + one[1], mine + 1
    other = mine
    while mine < len(first) and other < len(second):
        (piece, ones), (another, twos) = first[mine], second[other]
        size = min(ones - at, twos - behind)
        if piece is not another or at != behind:
            same = _common_beginning(piece, at, another, behind, size)
            if same < size:
                return common + same
        common, at, behind = common + size, at + size, behind + size
        if at == ones:
            mine, at = mine + 1, 0
        if behind == twos:
            other, behind = other + 1, 0
    return common


def _common_beginning(first: tuple[Any, ...], at: int, second: tuple[Any, ...], behind: int, size: int) -> int:
    place = 0
    while place + CHUNK <= size:
        if first[at + place : at + place + CHUNK] != second[behind + place : behind + place + CHUNK]:
            break
        place += CHUNK
    while place < size and first[at + place] == second[behind + place]:
        place += 1
    return place


def content_count(view: View) -> int:
    """How many messages the view has."""
    count = 0
    for segment in view:
        count += segment.stop - segment.start if isinstance(segment, Span) else 1
    return count


def event_count(view: View) -> int:
    """How many messages of the log the view has, as they are or changed: a summary and a note are none."""
    count = 0
    for segment in view:
        if isinstance(segment, Span):
            count += segment.stop - segment.start
        else:
            count += isinstance(segment, Rewritten)
    return count


def has_beginning(view: View, at: int) -> bool:
    """Does a view begin where the log does, and have as many messages of the log as its first `at` events: none was
    left out, though some may be changed. What a conversation had before its log began is taken to be in such a request
    alone, as a compaction takes the oldest messages first."""
    begins = any(isinstance(segment, Span) and segment.start == 0 for segment in view)
    return begins and event_count(view) >= at


def held_events(view: View) -> Iterator[Span]:
    """The ranges of log events that the view still holds, as they are or in a form, in the view's order."""
    for segment in view:
        if isinstance(segment, Span) and segment.start < segment.stop:
            yield segment


def kept_events(view: View) -> Iterator[range]:
    """The ranges of log events that the view still holds as they are, in the view's order."""
    for segment in view:
        if isinstance(segment, Span) and segment.start < segment.stop and not segment.form:
            yield range(segment.start, segment.stop)
