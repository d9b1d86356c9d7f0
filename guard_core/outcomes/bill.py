"""What the requests of a side cost: tokens read from the provider's cache, written anew and answered, and their price.

What the cache gives is modelled alike for recording and replays: what a request shares with the last one to the same
model, if that was sent within the cache's lifetime. What a recording's provider reported is a bill of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.defaults import CACHE_LEAST, CACHE_SECONDS
from guard_core.estimation.estimators import Estimator
from guard_core.findings.facts import Facts
from guard_core.ledger import Ints, Ledger
from guard_core.outcomes.sent import SentRequests, estimator_of
from guard_core.sessions import RecordedCompaction, Session
from guard_core.trace import Trace
from guard_core.views import Span, View, has_beginning
from guard_core.windows.models import ModelAnswers, answers_of, main_model
from guard_core.windows.prices import Rates, rates_of

# How it is known whether the agent used the provider's cache at all.
REPORTED, OFF, TAKEN = "reported", "off", "assumed"
WRITTEN_KINDS = ("summary", "summary+tail", "empty", "opaque")  # recorded compactions for which a model was asked


@dataclass(frozen=True)
class CacheReach:
    """Which earlier request the cache may have at every step: the last one to the same model. `since` is its step (-1:
    there is none), `alive`: is it in the cache still; `calls` are the steps of each model.

    Times are those of the last event of each request; where a recording has none, nothing has expired.
    """

    calls: tuple[Ints, ...]
    since: Ints
    alive: NDArray[np.bool_]

    @classmethod
    def of(cls, ledger: Ledger, seconds: float = CACHE_SECONDS) -> CacheReach:
        """`seconds`: how long the cache keeps a request."""
        model, sent = ledger.steps["model"], sent_at(ledger)
        calls = tuple(np.flatnonzero(model == one) for one in np.unique(model))
        since, alive = np.full(len(model), -1), np.zeros(len(model), dtype=np.bool_)
        for steps in calls:
            since[steps[1:]] = steps[:-1]
            alive[steps[1:]] = (np.diff(sent[steps]) <= 1_000 * seconds) | (sent[steps[:-1]] < 0)
        return cls(calls, since, alive)

    def reached(self, shared: Ints) -> Ints:
        """What each request and the last one to its model begin with, in prompt tokens; `shared` is what it and the one
        before begin with, whatever model that went to. Two requests begin alike at least as far as all those from the
        one to the other do."""
        reached = shared.copy()
        for steps in self.calls:
            if len(steps) > 1:
                reached[steps[1:]] = np.minimum.reduceat(shared[: steps[-1] + 1], steps[:-1] + 1)
        return reached

    def reached_without(self, without: Ints, shared: Ints, starts: Ints) -> Ints:
        """The same, had each compaction not been made until the next one: `without` is then in the place of `shared`
        from the last of their steps (`starts`) on. Requests before that were as they are."""
        reached, stops = self.reached(without), np.append(starts[1:], len(without))
        for steps in self.calls:
            firsts = np.searchsorted(steps, starts)  # the first call to this model from each of the steps on
            later = np.minimum(firsts, len(steps) - 1)
            began, ended = self.since[steps[later]], steps[later]
            is_apart = (firsts < len(steps)) & (began >= 0) & (began < starts - 1) & (ended < stops)
            for place in np.flatnonzero(is_apart).tolist():
                start, since, step = int(starts[place]), int(began[place]), int(ended[place])
                reached[step] = min(shared[since + 1 : start].min(), without[start : step + 1].min())
        return reached


@dataclass(frozen=True)
class Prices:
    """The prices of a session's calls. `rates` are by the number of the model (`models`), None where the table has
    none; `caching` says whether the cache counts, and how that is known, `seconds` how long it keeps a request: as the
    file says, else CACHE_SECONDS."""

    ledger: Ledger
    models: tuple[str, ...]
    rates: tuple[Rates | None, ...]
    caching: str
    seconds: float = CACHE_SECONDS

    @classmethod
    def of(cls, session: Session, ledger: Ledger, answers: dict[str, ModelAnswers] | None = None) -> Prices:
        """The prices of the models that a session names, each at the moment of its first call. `session` may be the
        head of a stored one, `answers` what its models answered, where that is known."""
        answers = answers_of(session) if answers is None else answers
        first = {name: answer.first for name, answer in answers.items() if name}
        models = (*first, main_model(session, answers))  # the last one for calls that name none
        seconds = session.cache_seconds or CACHE_SECONDS
        rates = [rates_of(name, first.get(name) or session.started_at) for name in models]
        if seconds > CACHE_SECONDS:
            rates = [one and one.for_an_hour() for one in rates]
        return cls(ledger, models, tuple(rates), _caching(ledger), seconds)

    @cached_property
    def numbers(self) -> Ints:
        """The number of every step's model."""
        model = self.ledger.steps["model"]
        return np.where(model >= 0, model, len(self.models) - 1)

    @property
    def main(self) -> Rates | None:
        """The prices of the model that answered most calls: the summariser's, too."""
        return self.rates[-1]

    @cached_property
    def _used(self) -> list[int]:
        """The numbers of the models that answered calls."""
        used: list[int] = np.unique(self.numbers).tolist()
        return used

    @cached_property
    def unknown(self) -> tuple[str, ...]:
        """The models of calls without a price; "" for calls whose model is not recorded."""
        return tuple(dict.fromkeys(self.models[number] for number in self._used if self.rates[number] is None))

    @property
    def has_prices(self) -> bool:
        """Has every call a price."""
        return self.ledger.step_count > 0 and not self.unknown and self.main is not None

    @cached_property
    def reach(self) -> CacheReach:
        """Which requests the cache has."""
        return CacheReach.of(self.ledger, self.seconds)

    def read(self, reached: Ints) -> Ints:
        """Prompt tokens of every request that the cache gives, of as many as it may have (`CacheReach.reached`)."""
        is_used = self.reach.alive & (reached >= CACHE_LEAST) & (self.caching != OFF)
        return np.where(is_used, reached, 0)

    def writes(self) -> NDArray[np.bool_]:
        """At which steps what is not read from the cache is written to it at a price of its own."""
        writing = np.array([rates is not None and rates.has_writes for rates in self.rates])
        return np.asarray(writing[self.numbers] & (self.caching != OFF))

    def costs(self, prompt: Ints, read: Ints, written: Ints, output: Ints) -> Ints:
        """The price of every step's call, in the unit of `windows.prices`; 0 where a model has none."""
        total = np.zeros(len(prompt), dtype=np.int64)
        for number in self._used:
            rates, steps = self.rates[number], self.numbers == number
            if rates is not None:
                total[steps] = rates.costs(prompt[steps], read[steps], written[steps], output[steps])
        return total


def _caching(ledger: Ledger) -> str:
    """Whether the recording's agent used the cache: no token of any call read or written says that it did not."""
    known = [ledger.steps[name] for name in ("cached_tokens", "cache_write_tokens")]
    if any((column > 0).any() for column in known):
        return REPORTED
    return OFF if any((column == 0).any() for column in known) else TAKEN


def sent_at(ledger: Ledger) -> Ints:
    """When each request was sent, in milliseconds: the latest time of the events before it, -1: none is known."""
    times = np.append(np.maximum.accumulate(ledger.events["time_ms"]), -1)
    sent: Ints = times[np.where(ledger.steps["at"] > 0, ledger.steps["at"] - 1, -1)]
    return sent


class SummaryCosts(msgspec.Struct, frozen=True):
    """What writing summaries took: calls, prompt tokens, of them read from the cache, and output tokens.

    `is_estimated`: from sizes, not from a provider's count.
    """

    step: int
    calls: int
    prompt: int
    read: int
    output: int
    is_estimated: bool


@dataclass(frozen=True)
class Bill:
    """The calls of one side, per step: `prompt` tokens, of them `read` from the cache and `written` to it at a price of
    its own, `output` tokens, and the `costs` in the unit of `windows.prices` (all 0 without prices)."""

    prices: Prices
    prompt: Ints
    read: Ints
    written: Ints
    output: Ints
    summarising: tuple[SummaryCosts, ...]

    @cached_property
    def costs(self) -> Ints:
        return self.prices.costs(self.prompt, self.read, self.written, self.output)

    @property
    def uncached(self) -> Ints:
        """Prompt tokens that no cache gave."""
        return self.prompt - self.read

    @property
    def summary_cost(self) -> int:
        """The price of all summariser calls, in the unit of `windows.prices`."""
        return sum(summary_prices(self.prices, self.summarising))

    @property
    def total(self) -> int | None:
        """The price of all calls, summarisers included, in the unit of `windows.prices`; None without prices."""
        return sum(self.costs.tolist()) + self.summary_cost if self.prices.has_prices else None


def summary_prices(prices: Prices, summarising: Sequence[SummaryCosts]) -> list[int]:
    """What writing each of some summaries costs, in the unit of `windows.prices`; 0 without prices."""
    rates = prices.main
    if rates is None:
        return [0] * len(summarising)
    rows = [(item.prompt, item.read, 0, item.output) for item in summarising]
    costs: list[int] = rates.costs(*np.array(rows, dtype=np.int64).reshape(-1, 4).T).tolist()
    return costs


def bill_of(sent: SentRequests, prices: Prices) -> Bill:
    """The bill of a side as the cache is modelled."""
    prompt, read = sent.tokens, prices.read(prices.reach.reached(sent.shared))
    written = np.where(prices.writes(), prompt - read, 0)
    return Bill(prices, prompt, read, written, output_tokens(sent.facts), _summarising(sent, prices))


def reported_bill(facts: Facts, prices: Prices) -> Bill | None:
    """The bill by what the provider reported of each call, without summaries; None where it did not report all of
    them."""
    steps = facts.ledger.steps
    prompt, read, written = (steps[name] for name in ("prompt_tokens", "cached_tokens", "cache_write_tokens"))
    if not facts.ledger.step_count or (prompt < 0).any() or (read < 0).any() or facts.ledger.usage_ratio is not None:
        return None
    read = np.minimum(read, prompt)
    paid = np.where(prices.writes(), np.clip(written, 0, prompt - read), 0)
    return Bill(prices, prompt, read, paid, output_tokens(facts), ())


def output_tokens(facts: Facts) -> Ints:
    """Output tokens of every call: recorded, else what its answer's message costs in a later prompt, 0 without one."""
    recorded, response = facts.ledger.steps["output_tokens"], facts.ledger.steps["response"]
    sizes = np.append(facts.attribution.tokens, 0)[response]
    return np.asarray(np.where(recorded >= 0, recorded, sizes))


def _summarising(sent: SentRequests, prices: Prices) -> tuple[SummaryCosts, ...]:
    """The summariser's calls of every compaction, also of a recording's that no call followed. What it is given is read
    from the cache as far as the call before sent it: if that is recent when the file says that the compaction was made,
    whatever came later, else if the next call still finds it there. Where another compaction came between, that is only
    what both begin with."""
    reach, caching = prices.reach, prices.caching != OFF
    alive = reach.alive & (reach.since == np.arange(len(reach.since)) - 1) & caching
    alive = np.append(alive, alive.any())  # behind the last call
    times = sent_at(sent.ledger)

    def item(
        step: int,
        calls: int,
        prompt: int,
        output: int,
        is_estimated: bool = True,
        moment: float | None = None,
        place: int = -1,
    ) -> SummaryCosts:
        is_warm = bool(step and alive[step])
        if step and moment is not None and times[step - 1] >= 0:
            is_warm = caching and 1_000 * moment - times[step - 1] <= 1_000 * prices.seconds
        before = sent.shared_behind(place - 1, step - 1) if is_warm else 0
        return SummaryCosts(step, calls, prompt, min(prompt, before), output, is_estimated)

    facts, last = sent.facts, len(sent.tokens)
    again = sent.compactions_as_recorded.values() if sent.trace is not None else sent.fired
    places = [(fired.step, fired.counted.place, fired.compacted) for fired in again if fired.counted is not None]
    if sent.trace is not None:
        modelled = [
            item(*row) for row in modelled_summaries(sent, sent.trace) if row[0] not in sent.compactions_as_recorded
        ]
        return tuple(sorted([*modelled, *_of_records(sent, places, item)], key=lambda costs: costs.step))
    grown = int(sent.tokens[-1]) if last else 0  # at least
    by = {
        replaced.place: fired.step
        for fired in sent.fired
        if fired.counted is not None
        for _, replaced in facts.replaced_by(fired.counted)
    }
    for counted in facts.counts.compactions:
        if counted.step < 0:
            step = by.get(counted.place, last)  # of one that another replaced before any call, that of the other
            least = grown if step == last else int(sent.tokens[step - 1]) if step else 0
            places.append((step, counted.place, max(least, facts.ledger.bases[counted.place].tokens_before)))
    return tuple(_of_records(sent, places, item))


def _of_records(
    sent: SentRequests, places: Iterable[tuple[int, int, int]], item: Callable[..., SummaryCosts]
) -> Iterator[SummaryCosts]:
    """The summaries of recorded compactions, each given by its step, its place in the recording and the prompt tokens
    before it."""
    for step, at, before in places:
        record = sent.facts.session.compactions[at]
        tokens = _recorded(sent, record, at, before)
        if tokens is not None:
            yield item(step, *tokens, record.timestamp, at)


def modelled_summaries(sent: SentRequests, trace: Trace) -> list[tuple[int, int, int, int]]:
    """Step, calls, prompt and output tokens of the summariser in a replay: the policy's own estimate of what it was
    given, with what a recording that begins within a conversation lacks of it, and the bytes of what it wrote, at the
    session's ratios."""
    per_estimate, per_byte = session_ratios(sent.facts, estimator_of(sent.ledger, trace))
    at: list[int] = sent.ledger.steps["at"].tolist()
    prologue = sent.facts.attribution.prologue
    rows = []
    for record in trace.compactions:
        passes = [one for one in record.passes if one.summariser_contents and not one.fallback]
        if passes:
            prompt = round(sum(one.summariser_tokens for one in passes) * per_estimate)
            if prologue and _begins(passes[0].summariser_view) and has_beginning(record.before, at[record.step]):
                prompt += prologue
            rows.append((record.step, len(passes), prompt, round(sum(one.summary_bytes for one in passes) * per_byte)))
    return rows


def _begins(view: View) -> bool:
    """Does a view begin where the log does."""
    first = view[0] if view else None
    return isinstance(first, Span) and not first.start


def session_ratios(facts: Facts, estimator: Estimator) -> tuple[float, float]:
    """Prompt tokens for one token of a policy's estimate of messages, and for one byte of a summary."""
    ratio = facts.ledger.usage_ratio
    if ratio is not None:
        return ratio, ratio / 4
    log = estimator.log()
    return int(facts.attribution.tokens.sum()) / max(1, int(log[-1])), facts.attribution.prices.text_ratio


def _recorded(
    sent: SentRequests, record: RecordedCompaction, place: int, before: int
) -> tuple[int, int, int, bool] | None:
    """Calls, prompt and output tokens of a recorded compaction's summariser; None where no model was asked."""
    call = record.summariser
    if call is not None and call.prompt_tokens is not None:
        return 1, call.prompt_tokens, call.output_tokens or 0, False
    if record.kind not in WRITTEN_KINDS:
        return None
    if not record.at and record.tokens_before is None:  # what it was given is not in the file, nor how much that was
        return None
    inserted = sent.facts.attribution.inserted
    return 1, before, sum(inserted[place]) if place < len(inserted) else 0, True
