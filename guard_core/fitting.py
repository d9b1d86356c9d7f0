"""Fitting: what the counted prompts of a session say of tokens by kind of content, by tool, and of answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from guard_core.intervals import Intervals
from guard_core.ledger import Ints, Ledger
from guard_core.outputs import (
    DROPS_REASONING,
    LEAST_MEASURED,
    Answers,
    answers,
    believed,
    size_of,
    without_answers,
    written,
)
from guard_core.ratios import RESULTS, Floats, Ratios, content, estimates, fit, starting, tool_factors

MOST_TOOLS = 12  # tools that get a factor of their own: those with the most results
FOLLOWED = 0.6  # counts follow characters where these leave at most this share of the error that lexical tokens leave
LEAST_FOLLOWED, MOST_FOLLOWED = 4, 200  # intervals that this is decided on, evenly spaced
DRIFT_BELIEF = 10.0  # intervals that must have been measured before their mean error counts for half
DRIFT_TAIL = 10  # of so many errors in order, the first and the last count no more than their neighbour


def measure(ledger: Ledger, amounts: Ints) -> tuple[Intervals, Ratios, Answers]:
    """The intervals of a session, the ratios fitted over them, and what outputs say of answers.

    Intervals that look like edits under the first fit are dropped and the ratios fitted again.
    """
    every = Intervals.of(ledger)
    found, ratios = _fitted(ledger, every.grown(), amounts)
    output = written(ledger)
    rest = without_answers(amounts, output)
    other = _believed(ledger, found, output, (amounts, rest), ratios)
    if other is None:
        return found, ratios, Answers.unknown(ledger)
    says = answers(ledger, amounts, other, every)
    grown = every.grown(says.dropped_between(every.first, every.last))
    edited = grown.edited(grown.totals(says.over(other.estimates(amounts, ledger.events["tool"]))))
    return grown.pick(~edited), other, says


def characters(ledger: Ledger) -> Ints | None:
    """Characters by four of each event, where the counts of a session follow them and no tokenizer; else None.

    Stand-ins for a provider, and agents that count themselves, report such estimates as usage.
    """
    every = Intervals.of(ledger).grown()
    size = len(every.tokens)
    if size < LEAST_FOLLOWED:
        return None
    if size > MOST_FOLLOWED:
        chosen = np.zeros(size, dtype=np.bool_)
        chosen[np.arange(MOST_FOLLOWED) * size // MOST_FOLLOWED] = True
        every = every.pick(chosen)
    weights = (ledger.events["chars"] + 2) // 4
    by_lexical, by_characters = (_error(ledger, every, content(ledger, unit)) for unit in (None, weights))
    return weights if by_characters <= FOLLOWED * by_lexical else None


def _error(ledger: Ledger, every: Intervals, amounts: Ints) -> float:
    start, mixed = starting(ledger.agent), every.amounts(amounts)
    keep = ~every.edited(estimates(mixed, start))
    mixed, tokens = mixed[keep], every.tokens[keep]
    return size_of(tokens - estimates(mixed, fit(mixed, tokens, start)))


def drift(ledger: Ledger, found: Intervals, estimate: Floats) -> float:
    """Tokens to add to answers after the last counted prompt: the mean growth that estimates leave unexplained.

    Reminders, reasoning and files that a recording does not hold come with nearly every call. It is at most as much as
    the messages themselves: counts that grow by more follow something else.
    """
    size = len(found.tokens)
    if not size or not (ledger.steps["prompt_tokens"] > 0).any():
        return 0.0
    expected = found.totals(estimate)
    error = np.sort(found.tokens - expected)
    tail = size // DRIFT_TAIL
    error = np.clip(error, error[tail], error[size - 1 - tail])
    mean, most = float(np.cumsum(error)[-1]) / (size + DRIFT_BELIEF), float(np.cumsum(expected)[-1]) / size
    return min(max(mean, -most), most)


def drifted(ledger: Ledger, estimate: Floats, drift: float) -> Floats:
    """Estimates of events with the drift added to the answers after the last counted prompt."""
    steps = ledger.steps
    reported = np.flatnonzero(steps["prompt_tokens"] > 0)
    added = np.zeros(ledger.event_count)
    if len(reported):
        added[steps["response"][steps["response"] >= steps["at"][reported[-1]]]] = drift
    return np.maximum(estimate + added, 0.0)


def _believed(
    ledger: Ledger, found: Intervals, output: Ints, amounts: tuple[Ints, Ints], ratios: Ratios
) -> Ratios | None:
    """The ratios of everything but answers where outputs are the better measure of these; else None."""
    turn, counted = ledger.steps["turn"], found.sums(np.maximum(output, 0))
    inside = turn[found.first] == turn[found.last]
    test = inside & (counted > 0)
    measured = int(test.sum()) >= LEAST_MEASURED
    if not (output >= 0).any() or not (measured or ledger.agent in DROPS_REASONING):
        return None
    whole, rest = amounts
    without = replace(found, tokens=np.maximum(found.tokens - counted, 0)).pick(inside)
    other = _ratios(ledger, without, rest)
    if measured:
        by_estimate = found.tokens - found.totals(ratios.estimates(whole, ledger.events["tool"]))
        by_output = found.tokens - counted - found.totals(other.estimates(rest, ledger.events["tool"]))
        if not believed(by_output[test], by_estimate[test]):
            return None
    return other


def _fitted(ledger: Ledger, candidates: Intervals, amounts: Ints) -> tuple[Intervals, Ratios]:
    start, mixed = starting(ledger.agent), candidates.amounts(amounts)
    keep = ~candidates.edited(Ratios(start).estimates(mixed, mixed[:, 0]))
    first = Ratios(fit(mixed[keep], candidates.tokens[keep], start))
    found = candidates.pick(~candidates.edited(first.estimates(mixed, mixed[:, 0])))
    return found, _ratios(ledger, found, amounts)


def _ratios(ledger: Ledger, found: Intervals, amounts: Ints) -> Ratios:
    """The ratios that explain some intervals, with a factor for each tool."""
    mixed, tools = found.amounts(amounts), ledger.events["tool"]
    plain = Ratios(fit(mixed, found.tokens, starting(ledger.agent)))
    by_tool = {
        key: found.sums(np.where(tools == key, amounts[:, RESULTS], 0)) * plain.kinds[RESULTS]
        for key in _tools(tools, amounts[:, RESULTS])
    }
    factors = tool_factors(plain.estimates(mixed, mixed[:, 0]), found.tokens, by_tool)
    return Ratios(plain.kinds, factors)


def _tools(tools: Ints, results: Ints) -> list[int]:
    """The tools whose results hold the most, in the order of their keys."""
    keys, owner = np.unique(tools, return_inverse=True)
    sizes = np.bincount(owner, results, len(keys)).astype(np.int64)
    largest = np.lexsort((keys, -sizes))[:MOST_TOOLS]
    return sorted(int(keys[place]) for place in largest if keys[place] and sizes[place])
