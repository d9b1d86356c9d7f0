"""Attribution: recorded prompt tokens shared out to the single events, with what is left over kept as residual.

Between two calls where the request only grew, the difference of their prompt tokens is the real cost of the events in
between. It is shared out by weight: the tokenizer's counts where given, else bytes, each kind at the session's own
ratio. The first call fixes the overhead (system prompt, tools, framing). A recorded compaction, or a request that
shrank, starts a new baseline. What no call measured gets the ratio of the nearest measured events of its kind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import msgspec
import numpy as np

from guard_core.columns import Packed, pack_columns, unpack_columns
from guard_core.costs import event_columns
from guard_core.ledger import Base, Ints, Ledger, prefix_sums
from guard_core.packing import decode_version, encode
from guard_core.ratios import KINDS, MESSAGE, MODEL_TEXT, Floats, content, content_of, estimates, fit, start_ratios
from guard_core.views import Inserted, Rewritten, Segment, Span, Synthetic, View

# Where an event's tokens come from; `source` holds an index into this.
ATTRIBUTION_SOURCES = (
    "assumed",  # nothing was measured in this session: starting ratios
    "exact",  # it is alone between two reported calls
    "shared",  # its part of the difference between two reported calls
    "nearest ratio",  # estimated at the ratio of the nearest measured events of its kind
    "session ratio",  # estimated at the session's own ratio: no event of its kind was measured
)
ASSUMED, EXACT, SHARED, NEAREST, SESSION = range(5)

ATTRIBUTION_VERSION = 2
# An event cannot cost more than one token per byte, or three times what the session's ratios say, plus framing.
# What a difference holds beyond that belongs to content that is not in the recording, and stays residual.
CAP_FACTOR, CAP_FRAME = 3, 64
# A difference below a quarter of the estimate (of at least 400 tokens) means that older content was cut away at
# the same call: the request did not only grow, and a new baseline begins.
EDIT_SHARE, EDIT_FLOOR = 4, 400
NEIGHBOURS = 8  # measured events on each side that make up "the nearest"
_COLUMNS = ("tokens", "source", "residual", "baseline")
_SCALARS = ("inserted", "overhead", "overhead_source", "prologue", "ratios", "weights")
_UNIT = 1_024  # weights are whole numbers of 1/1024 token, so that shares are exact


class _Stored(msgspec.Struct, frozen=True):
    version: int
    columns: Packed
    inserted: tuple[tuple[int, ...], ...]
    overhead: int
    overhead_source: int
    prologue: int
    ratios: dict[str, float]
    weights: str


@dataclass(frozen=True)
class PriceList:
    """What views cost: prefix sums of the events' tokens, the inserted messages, and ratios for anything else."""

    prefix: Ints
    inserted: tuple[tuple[int, ...], ...]
    ratios: Floats
    prologue: int = 0

    def view(self, view: View, epoch: int) -> int:
        """Prompt tokens of a view, without the overhead; with the prologue where the log's beginning is kept."""
        begins = any(isinstance(segment, Span) and segment.start == 0 for segment in view)
        return (self.prologue if begins else 0) + sum(self.segment(segment, epoch) for segment in view)

    def segment(self, segment: Segment, epoch: int) -> int:
        """Prompt tokens of one segment of a view."""
        match segment:
            case Span(start, stop):
                return int(self.prefix[stop] - self.prefix[start]) if stop > start else 0
            case Inserted(index):
                return self.inserted[epoch][index]
            case Rewritten(message=message):
                row = {name: np.array([value], dtype=np.int64) for name, value in event_columns(message).items()}
                return round(float(estimates(content_of(row), self.ratios)[0]))
            case Synthetic(bytes=size):
                return round(size * float(self.ratios[MODEL_TEXT]) + float(self.ratios[MESSAGE]))


@dataclass(frozen=True)
class Attribution:
    """Tokens of every event as the provider counted them, and what could not be explained.

    `tokens` and `source` (index into ATTRIBUTION_SOURCES) are per event; `residual` (recorded minus attributed, 0
    where nothing was reported) and `baseline` (its number) per step; `inserted` per recorded compaction and message.
    `prologue` is what a recording that begins in the middle of a conversation leaves out: it is sent along with the
    log's first event, until a compaction cuts both. `ratios` are tokens per byte of each kind in KINDS (per picture
    and per message for those two).
    """

    tokens: Ints
    source: Ints
    residual: Ints
    baseline: Ints
    inserted: tuple[tuple[int, ...], ...]
    overhead: int
    overhead_source: int
    ratios: dict[str, float]
    prologue: int = 0
    weights: str = "bytes"

    @cached_property
    def prices(self) -> PriceList:
        """What views cost by this attribution."""
        ratios = np.array([self.ratios[kind] for kind in KINDS])
        return PriceList(prefix_sums(self.tokens), self.inserted, ratios, self.prologue)

    def price(self, view: View, epoch: int = -1) -> int:
        """Prompt tokens of a request: the overhead and a view. `epoch` says whose inserted messages the view means."""
        return self.overhead + self.prices.view(view, epoch)

    def prefix_at(self, at: Ints) -> Ints:
        """Attributed tokens of all events before each index."""
        return self.prices.prefix[at]

    @property
    def measured(self) -> bool:
        """Did the provider report anything that this attribution rests on."""
        return self.overhead_source != ASSUMED

    def to_bytes(self) -> bytes:
        """The attribution as bytes: equal attributions give equal bytes."""
        columns = pack_columns({name: getattr(self, name) for name in _COLUMNS}, _COLUMNS)
        scalars = {name: getattr(self, name) for name in _SCALARS}
        return encode(_Stored(version=ATTRIBUTION_VERSION, columns=columns, **scalars))

    @classmethod
    def from_bytes(cls, data: bytes) -> Attribution:
        """The attribution again; GuardError for bytes of another version or of something else."""
        stored = decode_version(data, _Stored, ATTRIBUTION_VERSION, "attribution")
        columns = unpack_columns(stored.columns)
        return cls(
            tokens=columns["tokens"],
            source=columns["source"],
            residual=columns["residual"],
            baseline=columns["baseline"],
            inserted=stored.inserted,
            overhead=stored.overhead,
            overhead_source=stored.overhead_source,
            ratios=stored.ratios,
            prologue=stored.prologue,
            weights=stored.weights,
        )


@dataclass(frozen=True)
class Intervals:
    """The differences between neighbouring reported calls in which the request only grew, one entry each."""

    first: Ints  # step before
    last: Ints  # step after
    start: Ints  # events from here
    stop: Ints  # to here
    tokens: Ints  # difference of prompt tokens


def attribute(ledger: Ledger, weights: Ints | None = None, *, weights_name: str = "tokenizer") -> Attribution:
    """Share the recorded prompt tokens of a session out to its events.

    `weights`: tokenizer counts per event; without them text is weighed by its UTF-8 bytes.
    """
    amounts = content(ledger, weights)
    found, ratios = measure(ledger, amounts, start_ratios(weights, ledger))
    estimate = estimates(amounts, ratios)
    units = np.floor(estimate * _UNIT).astype(np.int64) + 1
    tokens, source = _shared(found, units, _caps(ledger, estimate))
    _fill(tokens, source, amounts, ratios, estimate, anything=len(found.tokens) > 0)
    byte_ratios = _byte_ratios(ledger, tokens, ratios, weights)
    overhead, prologue, overhead_source = _overhead(ledger, tokens, source, byte_ratios)
    inserted = _inserted(ledger, tokens, overhead, byte_ratios, prologue)
    attributed = attributed_steps(ledger, overhead, PriceList(prefix_sums(tokens), inserted, byte_ratios, prologue))
    recorded = ledger.steps["prompt_tokens"]
    return Attribution(
        tokens=tokens,
        source=source,
        residual=np.where(recorded > 0, recorded - attributed, 0),
        baseline=_baselines(ledger, found),
        inserted=inserted,
        overhead=overhead,
        overhead_source=overhead_source,
        prologue=prologue,
        ratios=dict(zip(KINDS, (float(ratio) for ratio in byte_ratios), strict=True)),
        weights="bytes" if weights is None else weights_name,
    )


def without(ledger: Ledger, steps: Ints) -> Ledger:
    """The ledger as if the provider had reported nothing at these steps."""
    recorded = ledger.steps["prompt_tokens"].copy()
    recorded[steps] = -1
    return replace(ledger, steps={**ledger.steps, "prompt_tokens": recorded})


def measure(ledger: Ledger, amounts: Ints, start: Floats) -> tuple[Intervals, Floats]:
    """The intervals of a session and the ratios fitted over them.

    Intervals that look like edits under the first fit are dropped and the ratios fitted again.
    """
    candidates = _grown(ledger)
    mixed = _amounts(candidates, amounts)
    keep = ~_edited(candidates, estimates(mixed, start))
    ratios = fit(mixed[keep], candidates.tokens[keep], start)
    keep = ~_edited(candidates, estimates(mixed, ratios))
    ratios = fit(mixed[keep], candidates.tokens[keep], start)
    return _pick(candidates, keep), ratios


def _grown(ledger: Ledger) -> Intervals:
    """Neighbouring reported calls of one epoch whose log and prompt did not shrink."""
    steps = ledger.steps
    index = np.flatnonzero(steps["prompt_tokens"] > 0)
    first, last = index[:-1], index[1:]
    start, stop = steps["at"][first], steps["at"][last]
    tokens = steps["prompt_tokens"][last] - steps["prompt_tokens"][first]
    highest = np.maximum.accumulate(steps["at"])
    grown = (
        (steps["epoch"][first] == steps["epoch"][last]) & (stop >= start) & (tokens >= 0) & (start == highest[first])
    )
    return _pick(Intervals(first, last, start, stop, tokens), grown)


def _pick(intervals: Intervals, keep: Ints) -> Intervals:
    names = ("first", "last", "start", "stop", "tokens")
    return Intervals(*(getattr(intervals, name)[keep] for name in names))


def _amounts(intervals: Intervals, amounts: Ints) -> Ints:
    prefix = np.concatenate([np.zeros((1, amounts.shape[1]), dtype=np.int64), np.cumsum(amounts, axis=0)])
    return np.asarray(prefix[intervals.stop] - prefix[intervals.start])


def _edited(intervals: Intervals, estimate: Floats) -> Ints:
    return np.asarray((estimate > EDIT_FLOOR) & (intervals.tokens * EDIT_SHARE < estimate))


def _caps(ledger: Ledger, estimate: Floats) -> Ints:
    by_ratio = np.ceil(estimate * CAP_FACTOR).astype(np.int64)
    return np.maximum(ledger.events["bytes"], by_ratio) + CAP_FRAME


def _shared(found: Intervals, units: Ints, caps: Ints) -> tuple[Ints, Ints]:
    """Every interval's tokens on its events, by largest remainder, so that the sums are exact."""
    tokens, source = np.zeros(len(units), dtype=np.int64), np.full(len(units), -1, dtype=np.int64)
    size = found.stop - found.start
    owner = np.repeat(np.arange(len(size)), size)
    events = np.arange(len(owner)) - np.repeat(np.cumsum(size) - size, size) + np.repeat(found.start, size)
    total = np.minimum(found.tokens, _sums(caps, found))
    weight = _sums(units, found)
    whole, part = np.divmod(total[owner] * units[events], weight[owner])
    tokens[events] = whole + _remainders(owner, part, total - np.bincount(owner, whole, len(size)).astype(np.int64))
    source[events] = np.where(size[owner] == 1, EXACT, SHARED)
    return tokens, source


def _sums(column: Ints, found: Intervals) -> Ints:
    prefix = prefix_sums(column)
    return prefix[found.stop] - prefix[found.start]


def _remainders(owner: Ints, part: Ints, missing: Ints) -> Ints:
    """1 for the `missing` events of each interval with the largest remainders (the earlier one where equal), else 0."""
    order = np.lexsort((-part, owner))
    begin = np.searchsorted(owner, np.arange(len(missing)))
    rank = np.empty(len(owner), dtype=np.int64)
    rank[order] = np.arange(len(owner)) - begin[owner[order]]
    return (rank < missing[owner]).astype(np.int64)


def _fill(tokens: Ints, source: Ints, amounts: Ints, ratios: Floats, estimate: Floats, *, anything: bool) -> None:
    """Give every event that no interval covers an estimate, in place."""
    kind = np.argmax(amounts * np.maximum(ratios, 1e-9), axis=1) if len(amounts) else np.zeros(0, dtype=np.int64)
    measured = source >= 0
    for number in range(len(KINDS)):
        open_ = np.flatnonzero(~measured & (kind == number))
        known = np.flatnonzero(measured & (kind == number))
        local, how = (1.0, SESSION) if not len(known) else (_nearest(open_, known, tokens, estimate), NEAREST)
        tokens[open_] = np.rint(estimate[open_] * local).astype(np.int64)
        source[open_] = how if anything else ASSUMED


def _nearest(open_: Ints, known: Ints, tokens: Ints, estimate: Floats) -> Floats:
    """Measured over estimated tokens of the measured events around each open one, between a half and two."""
    place = np.searchsorted(known, open_)
    low, high = np.maximum(place - NEIGHBOURS, 0), np.minimum(place + NEIGHBOURS, len(known))
    real = prefix_sums(tokens[known])
    guess = np.concatenate([[0.0], np.cumsum(estimate[known])])
    ratio = (real[high] - real[low]) / np.maximum(guess[high] - guess[low], 1.0)
    return np.asarray(np.round(np.clip(ratio, 0.5, 2.0), 6))


def _byte_ratios(ledger: Ledger, tokens: Ints, ratios: Floats, weights: Ints | None) -> Floats:
    """Tokens per byte of each kind, for messages whose text no tokenizer has counted."""
    if weights is None:
        return ratios
    scaled = ratios.copy()
    scaled[:5] *= weights.sum() / max(1, int(ledger.events["bytes"].sum()))
    return np.round(scaled, 6)


def _overhead(ledger: Ledger, tokens: Ints, source: Ints, ratios: Floats) -> tuple[int, int, int]:
    """What the first reported request holds beside its events; a negative rest is taken off those events.

    A recording may begin in the middle of a conversation. Then the request after a recorded compaction is clearly
    smaller than the first one allows: its rest is the overhead, and what the first request holds beyond that is the
    prologue. Returns overhead, prologue and the overhead's source.
    """
    first = _first_calls(ledger)
    if not first:
        return ledger.system_tokens + ledger.tools_tokens, 0, ASSUMED
    kept, rests = _rests(ledger, first, tokens, ratios)
    if rests[0] < 0:
        step = next(iter(first.values()))
        _shrink(tokens, source, int(ledger.steps["at"][step]), 1 + rests[0] / kept[0])
        return 0, 0, SHARED
    unsure = [size // EDIT_SHARE + EDIT_FLOOR for size in kept]
    lower = [rest for rest, margin in zip(rests, unsure, strict=True) if 0 <= rest < rests[0] - margin]
    overhead = min(lower, default=rests[0])
    return overhead, rests[0] - overhead if next(iter(first)) < 0 else 0, SHARED


def _first_calls(ledger: Ledger) -> dict[int, int]:
    """The first reported step of every epoch that has one, in order."""
    steps = np.flatnonzero(ledger.steps["prompt_tokens"] > 0)
    epochs, places = np.unique(ledger.steps["epoch"][steps], return_index=True)
    return {int(epoch): int(steps[place]) for epoch, place in zip(epochs, places, strict=True)}


def _rests(
    ledger: Ledger, first: dict[int, int], tokens: Ints, ratios: Floats, prologue: int = 0
) -> tuple[list[int], list[int]]:
    """For the first call of each epoch: tokens of its view, and what the recorded count holds beyond it."""
    inserted = tuple(_guesses(base, ratios) for base in ledger.bases)
    prices = PriceList(prefix_sums(tokens), inserted, ratios, prologue)
    kept = [prices.view(*ledger.recorded_view(step)) for step in first.values()]
    recorded = [int(ledger.steps["prompt_tokens"][step]) for step in first.values()]
    return kept, [count - size for count, size in zip(recorded, kept, strict=True)]


def _shrink(tokens: Ints, source: Ints, stop: int, share: float) -> None:
    """Scale the estimated events before the first reported call so that they fit into it."""
    events = np.flatnonzero((np.arange(len(tokens)) < stop) & ((source >= NEAREST) | (source == ASSUMED)))
    tokens[events] = np.floor(tokens[events] * max(0.0, share)).astype(np.int64)


def _inserted(
    ledger: Ledger, tokens: Ints, overhead: int, ratios: Floats, prologue: int
) -> tuple[tuple[int, ...], ...]:
    """Tokens of the messages that recorded compactions inserted, from the first reported call after each."""
    guesses = [_guesses(base, ratios) for base in ledger.bases]
    first = _first_calls(ledger)
    _, rests = _rests(ledger, first, tokens, ratios, prologue)
    for epoch, rest in zip(first, rests, strict=True):
        if epoch >= 0:
            guesses[epoch] = _explained(guesses[epoch], rest - overhead, ledger.bases[epoch])
    return tuple(guesses)


def _guesses(base: Base, ratios: Floats) -> tuple[int, ...]:
    rows = {name: np.array(values, dtype=np.int64) for name, values in base.costs.items()}
    return tuple(int(value) for value in np.rint(estimates(content_of(rows), ratios)))


def _explained(guess: tuple[int, ...], missing: int, base: Base) -> tuple[int, ...]:
    """The guesses scaled so that nothing is missing, between a half and one and a half (or all of a sealed message)."""
    total = sum(guess)
    if not total:
        return guess
    goal = min(max(total + missing, total // 2), total * 3 // 2 + sum(base.costs["opaque_bytes"]))
    ends = np.floor(np.cumsum(guess) * (goal / total) + 0.5).astype(np.int64)
    return tuple(int(value) for value in np.diff(ends, prepend=0))


def attributed_steps(ledger: Ledger, overhead: int, prices: PriceList) -> Ints:
    """What an attribution says of the request that was really sent at every step."""
    bases = [prices.view(base.view, epoch) - int(prices.prefix[base.at]) for epoch, base in enumerate(ledger.bases)]
    offsets = np.array([prices.prologue, *bases], dtype=np.int64)
    return overhead + offsets[ledger.steps["epoch"] + 1] + prices.prefix[ledger.steps["at"]]


def _baselines(ledger: Ledger, found: Intervals) -> Ints:
    """The number of the baseline each step belongs to: it goes up at every reported call that did not only grow."""
    begins = (ledger.steps["prompt_tokens"] > 0).astype(np.int64)
    begins[found.last] = 0
    return np.maximum(np.cumsum(begins) - 1, 0)
