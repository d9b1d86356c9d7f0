"""Attribution: recorded prompt tokens shared out to the single events, with what is left over kept as residual.

Between two calls where the request only grew, the difference of their prompt tokens is the real cost of the events in
between. It is shared out by weight: lexical tokens (or a tokenizer's counts), each kind and tool at the session's own
ratio. The first call fixes the overhead (system prompt, tools, framing). A recorded compaction, another model or a
request that shrank starts a new baseline. What no call measured is estimated at the session's ratios. Where only the
total of a session is recorded, the overhead makes the modelled requests sum to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise

import msgspec
import numpy as np

from guard_core.columns import Packed, pack_columns, unpack_columns
from guard_core.compaction_bases import CompactionBase
from guard_core.costs import event_columns
from guard_core.estimation.fitting import drift, drifted, measure, weighed
from guard_core.estimation.intervals import EDIT_FLOOR, EDIT_SHARE
from guard_core.estimation.outputs import Habit
from guard_core.estimation.ratios import (
    KINDS,
    MESSAGE,
    MODEL_TEXT,
    RESULTS,
    STARTING,
    TEXT_KINDS,
    Factors,
    Floats,
    Ratios,
    content,
    content_of,
)
from guard_core.estimation.sharing import ASSUMED, SESSION, SHARED, TOTAL, USUAL, share_out
from guard_core.estimation.unrecorded import usual_overhead
from guard_core.ledger import Ints, Ledger, prefix_sums
from guard_core.packing import decode_version, encode
from guard_core.views import Inserted, Segment, Span, Synthetic, View, has_beginning

ATTRIBUTION_VERSION = 11
INSERTED_ERROR = 4  # the estimate of a message that a compaction inserted is off by one part in so many at most
_COLUMNS = ("tokens", "source", "residual", "baseline", "dropped")
_SCALARS = ("inserted", "overhead", "overhead_source", "prologue", "ratios", "lexical_ratios", "tools", "weights")
Guesses = tuple[tuple[int, ...], ...]  # tokens of each message that recorded compactions inserted, by compaction
_LEARNT = ("fitted_events", "drift", "habit")


class _StoredAttribution(msgspec.Struct, frozen=True):
    version: int
    columns: Packed
    inserted: tuple[tuple[int, ...], ...]
    overhead: int
    overhead_source: int
    prologue: int
    ratios: dict[str, float]
    lexical_ratios: dict[str, float]
    tools: Factors
    weights: str
    fitted_events: int = -1  # stored before sessions could be extended
    drift: float = 0.0
    habit: Habit | None = None


@dataclass(frozen=True)
class PriceList:
    """What views cost: prefix sums of the events' tokens, the inserted messages, and ratios for anything else.

    `ratios` are those of messages whose text is known; of a synthetic one only its bytes are, at `text_ratio` tokens
    per byte, or `result_ratio` where it quotes tool results.
    """

    prefix: Ints
    inserted: tuple[tuple[int, ...], ...]
    ratios: Ratios = STARTING
    text_ratio: float = 0.0
    prologue: int = 0
    result_ratio: float = 0.0

    def view(self, view: View, epoch: int, at: int) -> int:
        """Prompt tokens of a view once the log has `at` events, without the overhead; with the prologue where no
        message was left out (`has_beginning`)."""
        begins = self.prologue and has_beginning(view, at)
        return (self.prologue if begins else 0) + sum(self.segment(segment, epoch) for segment in view)

    def segment(self, segment: Segment, epoch: int) -> int:
        """Prompt tokens of one segment of a view. Class tests and `item`, as in `Heuristic.segment`."""
        if isinstance(segment, Span):
            start, stop = segment.start, segment.stop
            return self.prefix.item(stop) - self.prefix.item(start) if stop > start else 0
        if isinstance(segment, Synthetic):
            ratio = self.result_ratio if segment.quotes_results else self.text_ratio
            return round(segment.bytes * ratio + self._message_ratio)
        if isinstance(segment, Inserted):
            return self.inserted[epoch][segment.index]
        row = {name: np.array([value], dtype=np.int64) for name, value in event_columns(segment.message).items()}
        return round(float(self.ratios.estimates(content_of(row), row["tool"])[0]))

    @cached_property
    def _message_ratio(self) -> float:
        """Tokens of a message besides its content."""
        return float(self.ratios.kinds[MESSAGE])


@dataclass(frozen=True)
class Attribution:
    """Tokens of every event as the provider counted them, and what could not be explained.

    `tokens` and `source` (index into ATTRIBUTION_SOURCES) are per event; `residual` (recorded minus attributed, 0
    where nothing was reported), `baseline` (its number) and `dropped` (tokens of the turn before that are not sent from
    here on) per step; `inserted` per recorded compaction and message.
    `prologue` is what a recording that begins in the middle of a conversation leaves out: it is sent along with the
    log's first event, until a compaction cuts both. `ratios` are tokens per byte of each kind in KINDS (per picture
    and per message for those two), `lexical_ratios` tokens per lexical token, `tools` factors on the latter for the
    results of single tools, by tool key. These were learnt from the first `fitted_events` events of the log (-1: not
    known), as were `drift` (tokens that come with an answer after the last count) and `habit`.
    """

    tokens: Ints
    source: Ints
    residual: Ints
    baseline: Ints
    dropped: Ints
    inserted: tuple[tuple[int, ...], ...]
    overhead: int
    overhead_source: int
    ratios: dict[str, float]
    lexical_ratios: dict[str, float]
    tools: Factors
    prologue: int = 0
    weights: str = "lexical"
    fitted_events: int = -1
    drift: float = 0.0
    habit: Habit | None = None

    @cached_property
    def prices(self) -> PriceList:
        """What views cost by this attribution."""
        ratios = Ratios(np.array([self.lexical_ratios[kind] for kind in KINDS]), self.tools)
        text_ratio, result_ratio = (self.ratios[KINDS[kind]] for kind in (MODEL_TEXT, RESULTS))
        return PriceList(prefix_sums(self.tokens), self.inserted, ratios, text_ratio, self.prologue, result_ratio)

    def price(self, view: View, epoch: int = -1) -> int:
        """Prompt tokens of a request: the overhead and a view that ends with the last events of the log, if only with
        an empty span behind them. `epoch` says whose inserted messages the view means."""
        last = next((segment.stop for segment in reversed(view) if isinstance(segment, Span)), 0)
        return self.overhead + self.prices.view(view, epoch, last)

    def prefix_at(self, at: Ints) -> Ints:
        """Attributed tokens of all events before each index."""
        return self.prices.prefix[at]

    @property
    def measured(self) -> bool:
        """Did the provider report any single call, so that the tokens of the events rest on it."""
        return self.overhead_source not in (ASSUMED, TOTAL)

    def to_bytes(self) -> bytes:
        """The attribution as bytes: equal attributions give equal bytes."""
        columns = pack_columns({name: getattr(self, name) for name in _COLUMNS}, _COLUMNS)
        scalars = {name: getattr(self, name) for name in (*_SCALARS, *_LEARNT)}
        return encode(_StoredAttribution(version=ATTRIBUTION_VERSION, columns=columns, **scalars))

    @classmethod
    def from_bytes(cls, data: bytes) -> Attribution:
        """The attribution again; GuardError for bytes of another version or of something else."""
        stored = decode_version(data, _StoredAttribution, ATTRIBUTION_VERSION, "attribution")
        columns = unpack_columns(stored.columns)
        return cls(
            tokens=columns["tokens"],
            source=columns["source"],
            residual=columns["residual"],
            baseline=columns["baseline"],
            dropped=columns["dropped"],
            inserted=stored.inserted,
            overhead=stored.overhead,
            overhead_source=stored.overhead_source,
            ratios=stored.ratios,
            lexical_ratios=stored.lexical_ratios,
            tools=stored.tools,
            prologue=stored.prologue,
            weights=stored.weights,
            fitted_events=stored.fitted_events,
            drift=stored.drift,
            habit=stored.habit,
        )


def without(ledger: Ledger, steps: Ints) -> Ledger:
    """The ledger as if the provider had reported nothing at these steps."""
    recorded = ledger.steps["prompt_tokens"].copy()
    recorded[steps] = -1
    return replace(ledger, steps={**ledger.steps, "prompt_tokens": recorded})


def attribute(ledger: Ledger, weights: Ints | None = None, *, weights_name: str = "tokenizer") -> Attribution:
    """Divide the recorded prompt tokens of a session among its events.

    `weights`: tokenizer counts per event; without them text is weighed by the tokenizer of its model where the ledger
    has these counts, else by its lexical tokens, or by its characters where the counts follow these.
    """
    weights, start, name = weighed(ledger, weights, weights_name)
    amounts = content(ledger, weights)
    intervals, ratios, says = measure(ledger, amounts, start)
    estimate = says.over(ratios.estimates(amounts, ledger.events["tool"]))
    later = drift(ledger, intervals, estimate)
    estimate = drifted(ledger, estimate, later)
    tokens, source = share_out(ledger, intervals, estimate, anything=len(intervals.tokens) > 0)
    lexical = ratios if weights is None else ratios.scaled(_share(weights.sum(), ledger.events["lexical_tokens"].sum()))
    guesses = guesses_of(ledger, lexical)
    overhead, prologue, overhead_source = _overhead(ledger, tokens, source, guesses)
    inserted = inserted_tokens(ledger, tokens, overhead, guesses, prologue)
    attributed = attributed_steps(ledger, overhead, PriceList(prefix_sums(tokens), inserted, prologue=prologue))
    recorded = ledger.steps["prompt_tokens"]
    # A step's baseline has the number of the reported calls up to it that did not only grow.
    begins = (ledger.steps["prompt_tokens"] > 0).astype(np.int64)
    begins[intervals.last] = 0
    baseline = np.maximum(np.cumsum(begins) - 1, 0)
    return Attribution(
        tokens=tokens,
        source=source,
        residual=np.where(recorded > 0, recorded - attributed, 0),
        baseline=baseline,
        dropped=says.dropped,
        inserted=inserted,
        overhead=overhead,
        overhead_source=overhead_source,
        prologue=prologue,
        ratios=_named(_byte_ratios(ledger, lexical)),
        lexical_ratios=_named(lexical.kinds),
        tools=lexical.tools,
        weights=name,
        fitted_events=ledger.event_count,
        drift=later,
        habit=says.habit,
    )


def _named(ratios: Floats) -> dict[str, float]:
    return dict(zip(KINDS, (float(ratio) for ratio in ratios), strict=True))


def _share(part: int, whole: int) -> float:
    return int(part) / max(1, int(whole))


def _byte_ratios(ledger: Ledger, ratios: Ratios) -> Floats:
    """Tokens per byte of each kind of text as this session has it, for messages of which only the size is known."""
    events, scaled = ledger.events, ratios.kinds.copy()
    size = {name: events[name].sum() for name in ("bytes", "lexical_tokens")}
    in_kind = ledger.of_events(
        "bytes by kind", lambda: content_of({**events, "lexical_tokens": events["bytes"]}).sum(axis=0)
    )
    lexical = content(ledger).sum(axis=0)
    usual = _share(size["lexical_tokens"], size["bytes"]) or 1 / 4
    for kind in range(TEXT_KINDS):
        scaled[kind] *= _share(lexical[kind], in_kind[kind]) or usual
    return np.round(scaled, 6)


def _overhead(ledger: Ledger, tokens: Ints, source: Ints, guesses: Guesses) -> tuple[int, int, int]:
    """What the first reported request holds besides its events; a negative rest is taken off those events.

    A recording may begin in the middle of a conversation. Then the request after a recorded compaction is clearly
    smaller than the first one allows: its rest is the overhead, and what the first request holds beyond that is the
    prologue. Before such a request is known, an overhead far beyond what is usual for the agent says the same.
    Returns overhead, prologue and the overhead's source.
    """
    first = _first_calls(ledger)
    if not first:
        return _overhead_of_total(ledger, tokens, source, guesses)
    sizes, rests = _rests(ledger, first, tokens, guesses)
    if rests[0] < 0:
        step = next(iter(first.values()))
        _shrink(tokens, source, int(ledger.steps["at"][step]), 1 + rests[0] / sizes[0])
        return 0, 0, SHARED
    unsure = [size // EDIT_SHARE + EDIT_FLOOR for size in sizes]
    lower = [rest for rest, margin in zip(rests, unsure, strict=True) if 0 <= rest < rests[0] - margin]
    begun = next(iter(first)) < 0
    if not lower and begun and len(rests) == 1:
        usual = usual_overhead(ledger, rests[0])
        return usual, rests[0] - usual, USUAL if usual < rests[0] else SHARED
    overhead = min(lower, default=rests[0])
    return overhead, rests[0] - overhead if begun else 0, SHARED


def _overhead_of_total(ledger: Ledger, tokens: Ints, source: Ints, guesses: Guesses) -> tuple[int, int, int]:
    """The overhead where no call was reported: with it the modelled requests sum to the total that was recorded. Where
    their messages alone are estimated at more, these estimates are too high, and are made smaller.

    Where the total covers other calls than the log has, their averages are made equal. Without a total it is what the
    file holds of the fixed part.
    """
    total, calls = ledger.prompt_tokens_total, ledger.total_calls
    if not total or not calls or not ledger.step_count:
        return ledger.system_tokens + ledger.tools_tokens, 0, ASSUMED
    views = attributed_steps(ledger, 0, PriceList(prefix_sums(tokens), guesses))
    average, estimated = total / calls, float(views.mean())
    if estimated > average:
        _shrink(tokens, source, len(tokens), average / estimated)
    return max(0, round(average - estimated)), 0, TOTAL


def _first_calls(ledger: Ledger) -> dict[int, int]:
    """The first reported step of every epoch that has one, in order."""
    steps = np.flatnonzero(ledger.steps["prompt_tokens"] > 0)
    epochs, places = np.unique(ledger.steps["epoch"][steps], return_index=True)
    return {int(epoch): int(steps[place]) for epoch, place in zip(epochs, places, strict=True)}


def _rests(
    ledger: Ledger, first: dict[int, int], tokens: Ints, guesses: Guesses, prologue: int = 0
) -> tuple[list[int], list[int]]:
    """For the first call of each epoch: tokens of its view, and what the recorded count holds beyond it."""
    prices = PriceList(prefix_sums(tokens), guesses, prologue=prologue)
    at = ledger.steps["at"]
    priced = [prices.view(*ledger.recorded_view(step), at=int(at[step])) for step in first.values()]
    recorded = [int(ledger.steps["prompt_tokens"][step]) for step in first.values()]
    return priced, [count - size for count, size in zip(recorded, priced, strict=True)]


def _shrink(tokens: Ints, source: Ints, stop: int, share: float) -> None:
    """Scale the estimated events up to one, such as those before the first reported call so that they fit into it."""
    events = np.flatnonzero((np.arange(len(tokens)) < stop) & ((source == SESSION) | (source == ASSUMED)))
    tokens[events] = np.floor(tokens[events] * max(0.0, share)).astype(np.int64)


def guesses_of(ledger: Ledger, ratios: Ratios) -> Guesses:
    """Estimates of the messages that recorded compactions inserted."""
    if not ledger.bases:
        return ()
    names = ledger.bases[0].costs
    rows = {
        name: np.array([value for base in ledger.bases for value in base.costs[name]], dtype=np.int64) for name in names
    }
    estimates = np.rint(ratios.estimates(content_of(rows), rows["tool"])).astype(np.int64).tolist()
    ends = accumulate(len(base.costs["tool"]) for base in ledger.bases)
    return tuple(tuple(estimates[start:stop]) for start, stop in pairwise([0, *ends]))


def inserted_tokens(ledger: Ledger, tokens: Ints, overhead: int, guesses: Guesses, prologue: int) -> Guesses:
    """The estimates corrected by the first reported call after each compaction, within the error of an estimate; it
    gives the size of what is sealed, too.
    """
    inserted = list(guesses)
    first = _first_calls(ledger)
    _, rests = _rests(ledger, first, tokens, guesses, prologue)
    for epoch, rest in zip(first, rests, strict=True):
        if epoch >= 0:
            inserted[epoch] = _explained(guesses[epoch], rest - overhead, ledger.bases[epoch])
    return tuple(inserted)


def _explained(guess: tuple[int, ...], missing: int, base: CompactionBase) -> tuple[int, ...]:
    """The guesses scaled so that nothing is missing, between a half and INSERTED_ERROR more (or all that is sealed).

    What is missing beyond that is in no message of the file: it stays residual.
    """
    total = sum(guess)
    if not total:
        return guess
    most = total + total // INSERTED_ERROR + sum(base.costs["opaque_bytes"])
    goal = min(max(total + missing, total // 2), most)
    ends = np.floor(np.cumsum(guess) * (goal / total) + 0.5).astype(np.int64)
    return tuple(int(value) for value in np.diff(ends, prepend=0))


def attributed_steps(ledger: Ledger, overhead: int, prices: PriceList) -> Ints:
    """What an attribution says of the request that was really sent at every step."""
    bases = [
        prices.view(base.view, epoch, base.at) - int(prices.prefix[base.at]) for epoch, base in enumerate(ledger.bases)
    ]
    offsets = np.array([prices.prologue, *bases], dtype=np.int64)
    return overhead + offsets[ledger.steps["epoch"] + 1] + prices.prefix[ledger.steps["at"]]
