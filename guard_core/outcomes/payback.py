"""The price of each compaction: what it cost, what it has saved since, and the call at which it was earned back.

A compaction is held against the same calls without it, up to the next one: each request would then have been larger by
what it removed, and what it has in common with the last one to its model, from the beginning, would have been read from
the cache, where that keeps so little. That is all of the one before, unless a policy makes its requests anew from the
whole log: then only the trimmed one had been sent. It costs the summariser's call and, at
its own step, what the smaller request writes anew; it saves what each later call would have paid for the rest.
Every step belongs to one compaction at most, so that prices add up.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from guard_core.findings.facts import Fired
from guard_core.ledger import Ints
from guard_core.outcomes.bill import Bill, summary_prices
from guard_core.outcomes.sent import SentRequests
from guard_core.windows.request_limits import NO_LIMIT


class Payback(msgspec.Struct, frozen=True):
    """The price of one compaction. Tokens are prompt tokens, money is in the unit of `windows.prices` (0 without
    prices), steps count from 0, -1: none.

    `index` is its number among the compactions of its side, `step` the first call after it and `stop` the step of the
    next compaction, or the end. `before` and `after` are the request at `step` without it and with it; `uncached` is
    what that call wrote and did not read from the cache, `uncached_without` what it would have written. `summary` is
    the price of the summariser's call, `rewriting` what the call at `step` cost more than without it (below 0: less),
    `saved` what the later calls cost less. `earned_back` is the step from which on it has cost less than it saved, and
    `needed_from` the first one whose request would have been over the window without it.
    """

    index: int
    step: int
    stop: int
    before: int
    after: int
    uncached: int
    uncached_without: int
    summary: int
    rewriting: int
    saved: int
    earned_back: int
    needed_from: int

    @property
    def paid(self) -> int:
        """What it cost at once; below 0 where the smaller request saved more than the summariser took."""
        return self.summary + self.rewriting

    @property
    def net(self) -> int:
        """What it cost in all, less what it saved; below 0: it has paid."""
        return self.paid - self.saved


@dataclass(frozen=True)
class _WithoutCompaction:
    """The requests had each compaction not been made: `read` from the cache, `costs` of the calls; and `tokens`."""

    tokens: Ints
    read: Ints
    costs: Ints


def paybacks(sent: SentRequests, bill: Bill) -> tuple[Payback, ...]:
    """The price of every compaction that a call followed, in order.

    Of several at one step the last one carries the price of all: no call was made between them. One whose request
    before is neither counted nor in the file has no price: what it saved is not known. Nor is it where the file begins
    behind what was removed: what the cache held of that is not known.
    """
    steps = [item.step for item in sent.fired]
    last = [place for place, step in enumerate(steps) if step not in steps[place + 1 : place + 2]]
    starts = np.array([steps[place] for place in last], dtype=np.int64)
    stops = np.append(starts[1:], len(sent.tokens))[: len(starts)].astype(np.int64)
    if not len(starts):
        return ()
    firsts = {item.step: item for item in reversed(sent.fired)}  # the first compaction of each step
    replaced = [firsts[step] for step in starts.tolist()]
    before = np.array([sent.facts.without(item) for item in replaced], dtype=np.int64)
    without = _without(sent, bill, starts, replaced, before)
    less = np.concatenate([[0], np.cumsum(without.costs - bill.costs)])
    prices = _summaries(bill)
    summaries = np.array([prices.get(step, 0) for step in starts.tolist()], dtype=np.int64)
    balance = less[1:] - _in_stretches(less[starts] + summaries, starts, len(sent.tokens))
    columns = (
        np.array([sent.fired[place].index for place in last], dtype=np.int64),
        starts,
        stops,
        before,
        sent.tokens[starts],
        bill.uncached[starts],
        without.tokens[starts] - without.read[starts],
        summaries,
        less[starts] - less[starts + 1],
        less[stops] - less[starts + 1],
        _earned(balance, starts, stops),
        _needed(sent, without, starts),
    )
    unknown = {item.step for item in sent.fired if item.counted and sent.facts.is_price_unknown(item.counted)}
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return tuple(price for price in (Payback(*row) for row in rows) if price.step not in unknown)


def _in_stretches(values: Ints, starts: Ints, size: int) -> Ints:
    """For every step the value of the compaction whose stretch it is in; 0 before the first."""
    place = np.searchsorted(starts, np.arange(size), side="right")
    return np.concatenate([[0], values])[place]


def _earned(balance: Ints, starts: Ints, stops: Ints) -> Ints:
    """For each stretch the step from which on its balance stays at or above nothing; -1 where it ends below."""
    below = np.maximum.reduceat(np.where(balance < 0, np.arange(len(balance)), -1), starts)
    return np.where(balance[stops - 1] < 0, -1, np.where(below < 0, starts, below + 1))


def _needed(sent: SentRequests, without: _WithoutCompaction, starts: Ints) -> Ints:
    """For each stretch the first step whose request would have been over the window; -1: none."""
    size, window = len(sent.tokens), _window(sent)
    others = sent.facts.other_windows
    windows = np.where(others > 0, others, np.where(others < 0, NO_LIMIT, window))
    over = np.minimum.reduceat(np.where(without.tokens > windows, np.arange(size), size), starts)
    return np.where((over < size) & (window > 0), over, -1)


def _window(sent: SentRequests) -> int:
    """The window that the requests are held against, 0 where nothing can be said against it."""
    if sent.trace is not None:
        return sent.trace.window
    case = sent.facts.recording
    return case.window.value if case.window_counts else 0


def _without(sent: SentRequests, bill: Bill, starts: Ints, firsts: list[Fired], before: Ints) -> _WithoutCompaction:
    """The same calls, each without the compaction that it follows; `before` are the requests at `starts`."""
    added = _in_stretches(before - sent.tokens[starts], starts, len(sent.tokens))
    tokens = np.maximum(sent.tokens + added, 0)
    parted = np.zeros(len(tokens), dtype=np.bool_)  # requests with nothing but the fixed part of the one before
    parted[sent.changed] = sent.shared[sent.changed] <= sent.fixed
    shared = np.where(parted, sent.shared, sent.shared + added)
    shared[starts] = sent.shared_without(firsts)
    shared = np.minimum(shared, tokens)
    read = bill.prices.read(bill.prices.reach.reached_without(shared, sent.shared, starts))
    written = np.where(bill.prices.writes(), tokens - read, 0)
    return _WithoutCompaction(tokens, read, bill.prices.costs(tokens, read, written, bill.output))


def _summaries(bill: Bill) -> dict[int, int]:
    """The price of the summariser's calls by step."""
    prices: dict[int, int] = {}
    for item, price in zip(bill.summarising, summary_prices(bill.prices, bill.summarising), strict=True):
        prices[item.step] = prices.get(item.step, 0) + price
    return prices
