"""The price of each compaction: what it cost, what it has saved since, and the call at which it was earned back.

A compaction is held against the same calls without it, up to the next one: each request would then have been larger by
what it removed, and all of the one before would have been read from the cache. It costs the summariser's call and, at
its own step, what the smaller request writes anew; it saves what each later call would have paid for the rest.
Every step belongs to one compaction at most, so that prices add up.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from guard_core.ledger import Ints
from guard_core.outcomes.bill import Bill, summary_price
from guard_core.outcomes.sent import SentRequests


class Payback(msgspec.Struct, frozen=True):
    """The price of one compaction. Tokens are prompt tokens, money is in the unit of guard_core.prices (0 without
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
class _Without:
    """The requests had each compaction not been made: `read` from the cache, `costs` of the calls; and `tokens`."""

    tokens: Ints
    read: Ints
    costs: Ints


def paybacks(sent: SentRequests, bill: Bill) -> tuple[Payback, ...]:
    """The price of every compaction that a call followed, in order.

    Of several at one step the last one carries the price of all: no call was made between them.
    """
    steps = [item.step for item in sent.fired]
    last = [place for place, step in enumerate(steps) if step not in steps[place + 1 : place + 2]]
    starts = np.array([steps[place] for place in last], dtype=np.int64)
    stops = np.append(starts[1:], len(sent.tokens))[: len(starts)].astype(np.int64)
    first_before = {item.step: item.before for item in reversed(sent.fired)}  # before the first compaction of each step
    before = np.array([first_before[step] for step in starts.tolist()], dtype=np.int64)
    without = _without(sent, bill, starts, stops, before)
    less = np.concatenate([[0], np.cumsum(without.costs - bill.costs)])
    summaries = _summaries(bill)
    windows = np.where(sent.facts.other_windows > 0, sent.facts.other_windows, _window(sent))
    rows = []
    for place, start, stop, size in zip(last, starts.tolist(), stops.tolist(), before.tolist(), strict=True):
        summary = summaries.get(start, 0)
        balance = less[start + 1 : stop + 1] - less[start] - summary
        over = np.flatnonzero(without.tokens[start:stop] > windows[start:stop])
        rows.append(
            Payback(
                index=sent.fired[place].index,
                step=start,
                stop=stop,
                before=size,
                after=int(sent.tokens[start]),
                uncached=int(bill.uncached[start]),
                uncached_without=int(without.tokens[start] - without.read[start]),
                summary=summary,
                rewriting=int(less[start] - less[start + 1]),
                saved=int(less[stop] - less[start + 1]),
                earned_back=_earned(balance, start),
                needed_from=start + int(over[0]) if len(over) and _window(sent) else -1,
            )
        )
    return tuple(rows)


def _earned(balance: Ints, start: int) -> int:
    """The step from which on the balance stays at or above nothing; -1 where it ends below."""
    if not len(balance) or balance[-1] < 0:
        return -1
    below = np.flatnonzero(balance < 0)
    return start + (int(below[-1]) + 1 if len(below) else 0)


def _window(sent: SentRequests) -> int:
    """The window that the requests are held against, 0 where nothing can be said against it."""
    if sent.trace is not None:
        return sent.trace.window
    case = sent.facts.recording
    return case.window.value if case.window_counts else 0


def _without(sent: SentRequests, bill: Bill, starts: Ints, stops: Ints, before: Ints) -> _Without:
    """The same calls, each without the compaction that it follows."""
    added = np.zeros(len(sent.tokens), dtype=np.int64)
    read = bill.read.copy()
    for start, stop, size in zip(starts.tolist(), stops.tolist(), before.tolist(), strict=True):
        more = size - int(sent.tokens[start])
        added[start:stop] = more
        later = slice(start + 1, stop)
        read[later] = np.where(read[later] > 0, np.maximum(read[later] + more, 0), 0)
        read[start] = min(size, int(sent.tokens[start - 1])) if start and bill.alive[start] else 0
    tokens = np.maximum(sent.tokens + added, 0)
    read = np.minimum(read, tokens)
    written = np.where(bill.prices.writes(), tokens - read, 0)
    return _Without(tokens, read, bill.prices.costs(tokens, read, written, bill.output))


def _summaries(bill: Bill) -> dict[int, int]:
    """The price of the summariser's calls by step."""
    prices: dict[int, int] = {}
    for item in bill.summarising:
        prices[item.step] = prices.get(item.step, 0) + summary_price(bill.prices, item)
    return prices
