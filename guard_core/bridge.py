"""The bridge of a compaction: from the last request before it to the first one after it, by parts, in prompt tokens.

Both ends are requests of one side, recorded or replayed, with the counts that its trace gives them. In between each
part has what it held before, what grew since, what the compaction removed and what it inserted; every row and every
column adds up exactly. Whatever the file does not explain is a part of its own, and its change a column of its own: no
compaction is said to have inserted it.
"""

from __future__ import annotations

import msgspec
import numpy as np

from guard_core.costs import HAS_CALL, HAS_MEDIA, HAS_REASONING, HAS_RESULT, MODEL
from guard_core.estimation.attribution import Attribution
from guard_core.estimation.ratios import KINDS, content, estimates
from guard_core.estimation.usage import PROVIDER, Usage
from guard_core.ledger import Ints, Ledger
from guard_core.sessions import Provenance
from guard_core.trace import PROMPT_SOURCES, Trace
from guard_core.views import Inserted, Rewritten, Span, View, has_beginning

UNRECORDED = "messages without content"  # the file has them, not what they say
# Messages by class, each with the kinds of content that make it up; the framing of a message goes with its content.
CLASSES = {
    "user text": ("user text",),
    "model text": ("model text",),
    "reasoning": ("reasoning", "opaque reasoning"),
    "tool calls": ("tool calls",),
    "tool results": ("tool results",),
    "media": ("media",),
    UNRECORDED: (),
}
FIXED, PROLOGUE, UNEXPLAINED = "fixed", "prologue", "unexplained"
REPEATED = "repeated"  # messages of the log that a resumed history has once more
INSERTED = "inserted"  # what compactions wrote: summaries, notes


class BridgePart(msgspec.Struct, frozen=True, gc=False):
    """One part of the requests in prompt tokens: before + grown - removed + inserted + unexplained = after."""

    name: str  # FIXED, PROLOGUE, one of CLASSES, REPEATED, INSERTED, UNEXPLAINED
    before: int
    grown: int  # in the log since the request before; of UNEXPLAINED what the provider counted more, or less, than that
    removed: int
    inserted: int  # by the compaction
    after: int
    unexplained: int = 0  # change of UNEXPLAINED, less than 0 where the counts fell more than the messages; else 0


class Bridge(msgspec.Struct, frozen=True):
    """All parts, in the order of a request, and the two requests they lead between."""

    parts: tuple[BridgePart, ...]
    before_step: int | None  # index of the call before; None: there is none, the file begins with this compaction
    after_step: int | None  # index of the call after; None: none came, the request after it is modelled
    before_source: str  # of the count before: a Provenance
    after_source: str
    is_sealed: bool = False  # the summary is not readable: its tokens are not INSERTED but in UNEXPLAINED
    is_blind: bool = False  # the file does not hold what was removed: the request that was replaced is not known

    def total(self, column: str) -> int:
        """The sum of a column over all parts; of `before` and `after` it is the count of the request."""
        return sum(getattr(part, column) for part in self.parts)

    @property
    def uncompacted(self) -> int:
        """The request that the compaction replaced: the one before it, and what grew since."""
        return self.total("before") + self.total("grown")

    @property
    def uncompacted_source(self) -> str:
        """The provenance of `uncompacted`: that of the request before where nothing grew, else it is modelled; "" where
        there is no request before and nothing grew."""
        return Provenance.MODELLED.value if self.total("grown") else str(self.before_source)


class _BridgeEnd(msgspec.Struct, frozen=True):
    """A request at one end of a bridge. `tokens` None: as the attribution prices it."""

    view: View
    epoch: int
    at: int  # events in the log
    step: int | None = None
    tokens: int | None = None
    source: str = Provenance.MODELLED


def recorded_bridge(ledger: Ledger, attribution: Attribution, observed: Trace, place: int) -> Bridge:
    """The bridge of the recorded compaction with this index among all recorded ones."""
    epochs, base = ledger.steps["epoch"], ledger.bases[place]
    later, earlier = np.flatnonzero(epochs == place), np.flatnonzero(epochs == place - 1)
    after = _BridgeEnd(base.view, place, base.at)
    if len(later):
        after = _recorded(ledger, observed, int(later[0]))
    before = None
    if len(earlier):
        before = _recorded(ledger, observed, int(earlier[-1]))
    elif place:
        before = _BridgeEnd(ledger.bases[place - 1].view, place - 1, ledger.bases[place - 1].at)
    whole = _bridge(ledger, attribution, before, after)
    return msgspec.structs.replace(whole, is_sealed=base.is_sealed, is_blind=base.removes_nothing and not base.is_edit)


def replayed_bridge(ledger: Ledger, attribution: Attribution, usage: Usage, replayed: Trace, index: int) -> Bridge:
    """The bridge of a compaction that a replay makes. Where the recording sent the request that it replaced, the
    provider's count of that says how much grew, also what the file does not explain."""
    record = replayed.compactions[index]
    step = record.step
    before = _replayed(ledger, replayed, step - 1) if step else None
    replaced = usage.one(step, record.before, record.tokens_before)
    counted = replaced.tokens if replaced.source == PROVIDER else None
    wrote = any(one.summary_bytes for one in record.passes)
    return _bridge(ledger, attribution, before, _replayed(ledger, replayed, step), counted, wrote=wrote)


def _recorded(ledger: Ledger, observed: Trace, step: int) -> _BridgeEnd:
    view, epoch = ledger.recorded_view(step)
    return _counted(observed, step, view, epoch, int(ledger.steps["at"][step]))


def _replayed(ledger: Ledger, replayed: Trace, step: int) -> _BridgeEnd:
    at = int(ledger.steps["at"][step])
    return _counted(replayed, step, replayed.view(step, at), -1, at)


def _counted(trace: Trace, step: int, view: View, epoch: int, at: int) -> _BridgeEnd:
    tokens = int(trace.columns["modelled_prompt_tokens"][step])
    source = PROMPT_SOURCES[int(trace.columns["prompt_tokens_source"][step])]
    return _BridgeEnd(view, epoch, at, step, tokens if tokens >= 0 else None, source)


def _bridge(
    ledger: Ledger,
    attribution: Attribution,
    before: _BridgeEnd | None,
    after: _BridgeEnd,
    replaced: int | None = None,
    *,
    wrote: bool = False,
) -> Bridge:
    """`replaced` as in `_unexplained`; `wrote`: did the compaction write a summary, be it like the one before."""
    size = max(before.at if before else 0, after.at)
    costs = class_tokens(ledger, attribution)[:size]
    held, after_tokens = np.zeros_like(costs), _held(after.view, costs, attribution)
    grown = costs.copy()
    if before:
        held = _held(before.view, costs, attribution)
        grown[: before.at] = 0
    grown[after.at :] = 0
    change = after_tokens - held - grown
    columns = (held, grown, np.maximum(-change, 0), np.maximum(change, 0), after_tokens)
    messages = [
        BridgePart(name, *(int(column[:, place].sum()) for column in columns)) for place, name in enumerate(CLASSES)
    ]
    ends = [_ends(ledger, attribution, request) for request in (before, after)]
    parts = {name: _part(name, ends[0][name], ends[1][name], bool(before)) for name in ends[1]}
    if before and (wrote or _written(before) != _written(after)):  # perhaps of the same size
        was, now = ends[0][INSERTED], ends[1][INSERTED]
        parts[INSERTED] = BridgePart(INSERTED, was, 0, was, now, now)
    known = (parts[FIXED], parts[PROLOGUE], *messages, parts[REPEATED], parts[INSERTED])
    return Bridge(
        parts=(*known, _unexplained(known, before, after, replaced)),
        before_step=before.step if before else None,
        after_step=after.step,
        before_source=before.source if before else "",
        after_source=after.source,
    )


def class_tokens(ledger: Ledger, attribution: Attribution) -> Ints:
    """The attributed tokens of every event shared out to CLASSES, one row per event; its sum is the event's tokens."""
    # What the content of each class is worth by the session's ratios, in any unit.
    amounts, columns = content(ledger), []
    for kinds in CLASSES.values():
        places = [KINDS.index(kind) for kind in kinds]
        columns.append(estimates(amounts[:, places], attribution.prices.ratios.kinds[places]))
    weights = np.stack(columns, axis=1)
    weights[np.arange(len(weights)), _framed(ledger)] += weights.sum(axis=1) == 0
    ends = np.cumsum(weights, axis=1) / np.sum(weights, axis=1, keepdims=True)
    shares: Ints = np.diff(np.floor(ends * attribution.tokens[:, None] + 0.5).astype(np.int64), axis=1, prepend=0)
    return shares


def _framed(ledger: Ledger) -> Ints:
    """The class that takes the framing of an event without any content, by what it is: an index into CLASSES."""
    flags, names = ledger.events["flags"], list(CLASSES)
    is_empty = np.diff(ledger.part_starts) == 0
    kinds = (
        (HAS_RESULT, "tool results"),
        (HAS_CALL, "tool calls"),
        (HAS_MEDIA, "media"),
        (HAS_REASONING, "reasoning"),
        (MODEL, "model text"),
    )
    classes: Ints = np.select(
        [is_empty, *(flags & flag > 0 for flag, _ in kinds)],
        [names.index(UNRECORDED), *(names.index(name) for _, name in kinds)],
    )
    return classes


def _held(view: View, costs: Ints, attribution: Attribution) -> Ints:
    """What a view holds of each event, by class: all of it, nothing, or what an edit left."""
    held = np.zeros_like(costs)
    for segment in view:
        match segment:
            case Span(start, stop):
                held[start:stop] += costs[start:stop]
            case Rewritten(event=event) if event < len(held):
                held[event, int(np.argmax(costs[event]))] += attribution.prices.segment(segment, -1)
    return held


def _written(request: _BridgeEnd) -> tuple[int, View]:
    """The messages that compactions wrote, and whose they are."""
    written = tuple(item for item in request.view if not isinstance(item, Span | Rewritten))
    return (request.epoch if written else -1), written


def _ends(ledger: Ledger, attribution: Attribution, request: _BridgeEnd | None) -> dict[str, int]:
    """The parts of a request that are not messages of the log."""
    if request is None:
        return {FIXED: 0, PROLOGUE: 0, REPEATED: 0, INSERTED: 0}
    begins = has_beginning(request.view, request.at)
    parts = {FIXED: attribution.overhead, PROLOGUE: attribution.prologue if begins else 0, REPEATED: 0, INSERTED: 0}
    repeated = ledger.repeated[request.epoch] if request.epoch >= 0 else frozenset()
    for item in request.view:
        if not isinstance(item, Span | Rewritten):
            name = REPEATED if isinstance(item, Inserted) and item.index in repeated else INSERTED
            parts[name] += attribution.prices.segment(item, request.epoch)
    return parts


def _part(name: str, before: int, after: int, has_before: bool) -> BridgePart:
    """A part that a compaction keeps or replaces as a whole."""
    if before == after:
        return BridgePart(name, before, 0, 0, 0, after)
    if not has_before and name not in (REPEATED, INSERTED):
        return BridgePart(name, 0, after, 0, 0, after)
    return BridgePart(name, before, 0, before, after, after)


def _unexplained(
    known: tuple[BridgePart, ...], before: _BridgeEnd | None, after: _BridgeEnd, replaced: int | None = None
) -> BridgePart:
    """What the counts of the two requests hold beyond the known parts; it closes every sum. `replaced` is the count of
    the request that the compaction replaced, where that is known: what it holds beyond them has grown."""
    rests = []
    for column, request in (("before", before), ("after", after)):
        explained = sum(getattr(part, column) for part in known)
        rests.append(0 if request is None or request.tokens is None else request.tokens - explained)
    explained = sum(part.before + part.grown for part in known)
    grown = 0 if replaced is None else replaced - explained - rests[0]
    return BridgePart(UNEXPLAINED, rests[0], grown, 0, 0, rests[1], rests[1] - rests[0] - grown)
