"""Changes: what a request has that the one before had not, what it lacks, and where it left the cached beginning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import numpy as np

from guard_core.context.filling import ContextFilling
from guard_core.ledger import Ints
from guard_core.outcomes.bill import OFF, Prices
from guard_core.views import Inserted, Rewritten, Segment, Span, Synthetic, View, content_count

ADDED, REMOVED, REWRITTEN, KEPT = "added", "removed", "rewritten", "kept"


class MessageChange(msgspec.Struct, frozen=True):
    """One message that differs between two requests. `event` is its index in the log (None: not part of it), `position`
    its index in the later request (None: it is not in it); `before` and `after` are tokens. `place` is its class."""

    kind: str
    place: int
    event: int | None
    position: int | None
    before: int
    after: int


class ChangeSum(msgspec.Struct, frozen=True):
    """All changes of a kind: messages, and their tokens before and after."""

    kind: str
    messages: int
    before: int
    after: int


class CacheBreak(msgspec.Struct, frozen=True):
    """What a provider's cache could give of a request, in prompt tokens.

    `previous` is the request before, `prompt` this one, `shared` what this one and the last one to the same model begin
    with as it is modelled, `message` the index of the first message that differs from the one before (None: the request
    only extends it), `read` what the provider read by the recording (None: not recorded, or a replay). `expired`: the
    last request to this model was too long ago, or there was none; `is_other_model`: the one before went to another.
    `cost` is the price of the tokens sent anew (`lost`), against reading them from the cache, in the unit of
    `windows.prices` (None: no price is known, or no cache is used).
    """

    previous: int
    prompt: int
    shared: int
    message: int | None
    read: int | None
    expired: bool
    is_other_model: bool
    cost: int | None

    @property
    def given(self) -> int:
        """Tokens of the request before that the cache gave: recorded, else modelled."""
        if self.read is not None:
            return min(self.read, self.previous)
        return 0 if self.expired else min(self.shared, self.previous)

    @property
    def why(self) -> str:
        """Why the cache gave less than the messages allow, in words; "" where nothing is known against it."""
        if self.expired:
            return "the last call to this model was too long ago, or there was none"
        return "the call before went to another model" if self.is_other_model else ""

    @property
    def lost(self) -> int:
        """Tokens sent anew of as many as both requests have, whether they are the same or others."""
        return max(0, min(self.previous, self.prompt) - self.given)


class RequestChanges(msgspec.Struct, frozen=True):
    """What changed at a step since the one before: sums of every kind, and the largest changes one by one (`more` are
    left out)."""

    step: int
    sums: tuple[ChangeSum, ...]
    changes: tuple[MessageChange, ...]
    more: int
    cache: CacheBreak


class RequestDifference(msgspec.Struct, frozen=True):
    """What the request of step `second` has and lacks beside that of step `first`, in either order: sums of every kind,
    and the largest changes one by one (`more` are left out)."""

    first: int
    second: int
    sums: tuple[ChangeSum, ...]
    changes: tuple[MessageChange, ...]
    more: int


@dataclass(frozen=True)
class _Held:
    """The log's events in a request: `kind` 0 not held, 1 as it is or in a form that leaves it, 2 in one that changes
    it, 3 rewritten; `tokens` and `position` of each; `rewrites` by event."""

    kind: Ints
    tokens: Ints
    position: Ints
    rewrites: dict[int, Rewritten]


def changes_at(filling: ContextFilling, step: int, prices: Prices, most: int) -> RequestChanges | None:
    """The changes since the request before; None at the first step. `most` changes are given one by one."""
    if step <= 0:
        return None
    changed = difference(filling, step - 1, step, most)
    return RequestChanges(step, changed.sums, changed.changes, changed.more, _cache(filling, step, prices))


def difference(filling: ContextFilling, first: int, second: int, most: int) -> RequestDifference:
    """The difference of the requests of two steps. `most` changes are given one by one."""
    (before, old), (after, epoch) = filling.sent.view(first), filling.sent.view(second)
    size = int(filling.ledger.steps["at"][[first, second]].max())
    one, two = (_held(filling, view, size) for view in (before, after))
    between = filling.sent.compacted[min(first, second) + 1 : max(first, second) + 1]
    inserted = _of_inserted(filling, (before, old), (after, epoch), is_compacted=bool(between.any()))
    changes = [*_of_events(filling, one, two), *inserted]
    sums = tuple(_sum(kind, [item for item in changes if item.kind == kind]) for kind in (ADDED, REMOVED, REWRITTEN))
    kept = _kept(filling, one, two, changes, after, epoch)
    changes.sort(key=lambda item: -max(item.before, item.after))
    shown = tuple(changes[:most])
    return RequestDifference(first, second, (*sums, kept), shown, len(changes) - len(shown))


def _held(filling: ContextFilling, view: View, size: int) -> _Held:
    kind, tokens, positions = (np.zeros(size, dtype=np.int64) for _ in range(3))
    rewrites: dict[int, Rewritten] = {}
    position = 0
    for segment in view:
        if isinstance(segment, Span):
            events = slice(segment.start, segment.stop)
            kind[events] = 1 + filling.ledger.changed_by(segment.form)[events] if segment.form else 1
            tokens[events] = filling.costs.costs(segment.form).rows(segment.start, segment.stop).sum(axis=1)
            positions[events] = position + np.arange(segment.stop - segment.start)
        elif isinstance(segment, Rewritten) and segment.event < size:
            kind[segment.event] = 3
            tokens[segment.event] = filling.costs.attribution.prices.segment(segment, -1)
            positions[segment.event] = position
            rewrites[segment.event] = segment
        position += content_count((segment,))
    return _Held(kind, tokens, positions, rewrites)


def _is_same(one: _Held, two: _Held) -> Ints:
    """Which events both requests hold alike, as 0 or 1."""
    same = (one.kind == two.kind) & (one.tokens == two.tokens) & (one.kind > 0)
    for event in one.rewrites.keys() & two.rewrites.keys():
        same[event] = one.rewrites[event] == two.rewrites[event]
    return np.asarray(same.astype(np.int64))


def _of_events(filling: ContextFilling, one: _Held, two: _Held) -> Iterator[MessageChange]:
    differs = (_is_same(one, two) == 0) & ((one.kind > 0) | (two.kind > 0))
    first = filling.costs.first_event_class
    for event in np.flatnonzero(differs).tolist():
        kind = REWRITTEN if one.kind[event] and two.kind[event] else ADDED if two.kind[event] else REMOVED
        position = int(two.position[event]) if two.kind[event] else None
        place = first + filling.costs.main_class(event)
        yield MessageChange(kind, place, event, position, int(one.tokens[event]), int(two.tokens[event]))


def _of_inserted(
    filling: ContextFilling, before: tuple[View, int], after: tuple[View, int], *, is_compacted: bool
) -> Iterator[MessageChange]:
    """The messages that compactions wrote. A compaction that leaves as many of a kind as there were has written them
    anew, even where one has the size of the one before."""
    old, new = (_inserted(*side) for side in (before, after))
    kinds = [Counter(_kind(segment) for segment, *_ in side) for side in (old, new)]
    fresh = {kind for kind, count in kinds[1].items() if is_compacted and count <= kinds[0][kind]}
    left = Counter((segment, epoch) for segment, epoch, _ in old if _kind(segment) not in fresh)
    kept: Counter[tuple[Segment, int]] = Counter()
    for segment, epoch, position in new:
        key = (segment, epoch)
        if left[key]:
            left[key] -= 1
            kept[key] += 1
            continue
        place, tokens = _priced(filling, segment, epoch)
        yield MessageChange(ADDED, place, None, position, 0, tokens)
    for segment, epoch, _ in old:
        key = (segment, epoch)
        if kept[key]:
            kept[key] -= 1
            continue
        place, tokens = _priced(filling, segment, epoch)
        yield MessageChange(REMOVED, place, None, None, tokens, 0)


def _inserted(view: View, epoch: int) -> list[tuple[Segment, int, int]]:
    """The messages of a view that are not of the log: each with its epoch and its position."""
    rows: list[tuple[Segment, int, int]] = []
    position = 0
    for segment in view:
        if isinstance(segment, Inserted | Synthetic):
            rows.append((segment, epoch if isinstance(segment, Inserted) else -1, position))
        position += content_count((segment,))
    return rows


def _kind(segment: Segment) -> str:
    return segment.kind if isinstance(segment, Synthetic) else "recorded"


def _priced(filling: ContextFilling, segment: Segment, epoch: int) -> tuple[int, int]:
    repeated = filling.ledger.repeated[epoch] if epoch >= 0 else frozenset()
    row = filling.costs.segment(segment, epoch, repeated)
    return int(np.argmax(row)), int(row.sum())


def _sum(kind: str, changes: list[MessageChange]) -> ChangeSum:
    """All changes of one kind, in tokens."""
    return ChangeSum(kind, len(changes), sum(item.before for item in changes), sum(item.after for item in changes))


def _kept(
    filling: ContextFilling, one: _Held, two: _Held, changes: list[MessageChange], after: View, epoch: int
) -> ChangeSum:
    """The messages that both requests have alike."""
    same = _is_same(one, two) > 0
    inserted = _inserted(after, epoch)
    added = sum(item.kind == ADDED and item.event is None for item in changes)
    written = sum(_priced(filling, segment, owner)[1] for segment, owner, _ in inserted)
    written -= sum(item.after for item in changes if item.event is None)
    tokens = int(two.tokens[same].sum()) + written
    return ChangeSum(KEPT, int(same.sum()) + len(inserted) - added, tokens, tokens)


def _cache(filling: ContextFilling, step: int, prices: Prices) -> CacheBreak:
    sent, steps = filling.sent, filling.ledger.steps
    previous, prompt = int(sent.tokens[step - 1]), int(sent.tokens[step])
    reach = prices.reach
    shared, is_other_model = int(reach.reached(sent.shared)[step]), int(reach.since[step]) != step - 1
    message = None
    if bool(np.isin(step, sent.changed)):
        common, before = content_count(sent.common(step)[0]), content_count(sent.view(step - 1)[0])
        message = common if common < before else None
    read = int(steps["cached_tokens"][step])
    recorded = read if sent.trace is None and read >= 0 else None
    expired = not bool(reach.alive[step])
    result = CacheBreak(previous, prompt, shared, message, recorded, expired, is_other_model, None)
    rates = prices.rates[int(prices.numbers[step])]
    if rates is None or prices.caching == OFF:
        return result
    given, most = min(result.given, prompt), min(previous, prompt)
    costs = [rates.cost(prompt, tokens, prompt - tokens if rates.has_writes else 0) for tokens in (given, most)]
    return msgspec.structs.replace(result, cost=max(0, costs[0] - costs[1]))
