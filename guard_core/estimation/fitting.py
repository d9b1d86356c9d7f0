"""Fitting: what the counted prompts of a session say of tokens by kind of content, by tool, and of answers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from guard_core.costs import HAS_MEDIA, MODEL
from guard_core.estimation.intervals import Intervals
from guard_core.estimation.model_families import encoding_of
from guard_core.estimation.outputs import (
    LEAST_MEASURED,
    OutputEvidence,
    answers,
    believed,
    believed_at_once,
    drops_reasoning,
    without_answers,
    written,
)
from guard_core.estimation.ratios import (
    EVEN_START,
    RESULTS,
    Floats,
    Ratios,
    Start,
    fit,
    starting,
    starting_exact,
    tool_factors,
)
from guard_core.ledger import Ints, Ledger

LEXICAL, CHARACTERS = "lexical", "characters"  # names of what text is weighed by, where that is no tokenizer
MOST_TOOLS = 12  # tools that get a factor of their own: those with the most results
# Counts follow characters where one ratio for all text and one for messages explain every interval to so many tokens a
# message (role, names and ids are framed with it); of those beyond LEAST_FOLLOWED one in four may hold something else.
FRAMING = 8
# Besides, these errors must make the counts likelier than the errors of lexical tokens do, by this factor: our guess of
# how many recordings with a tokenizer's counts there are for one of these. Source of both: ours, of 6, 8 and 10 tokens
# and factors of 1 to 1,000 chosen on samples with counts of characters, of whose 98 beginnings they recognise 97, and
# on 70 public recordings of Claude Code and Codex, of whose 384 they take none for such. Of 552 beginnings of 60 other
# public ones they take 5, none longer than 6 intervals.
ODDS = 20.0
LEAST_FOLLOWED, MOST_FOLLOWED = 4, 200  # intervals that this is decided on, evenly spaced
DRIFT_BELIEF = 10.0  # intervals that must have been measured before their mean error counts for half
# Tokens that come with an answer where the recording has neither results nor users' words. Source: the median of the
# mean growth per call in eleven recordings of seven agents and libraries (400 to 1,450), rounded.
LACKING = 1_000.0
DRIFT_TAIL = 10  # of so many errors in order, the first and the last count no more than their neighbour


def measure(ledger: Ledger, amounts: Ints, start: Start | None = None) -> tuple[Intervals, Ratios, OutputEvidence]:
    """The intervals of a session, the ratios fitted over them, and what outputs say of answers.

    Intervals that look like edits under the first fit are dropped and the ratios fitted again. The fit begins at
    `start`; without it at what is usual for the agent.
    """
    start = starting(ledger.agent, ledger.main_model) if start is None else start
    every = Intervals.of(ledger)
    candidates = every.grown()
    mixed = candidates.amounts(amounts)
    keep = ~candidates.edited(Ratios(start.ratios).estimates(mixed, mixed[:, 0]))
    first = fit(mixed[keep], candidates.tokens[keep], start)
    kept = ~candidates.edited(Ratios(first).estimates(mixed, mixed[:, 0]))
    intervals, mixed = candidates.pick(kept), mixed[kept]
    kinds = first if (kept == keep).all() else fit(mixed, intervals.tokens, start)
    ratios = _with_tools(ledger, intervals, amounts, mixed, kinds)
    output = written(ledger)
    rest = without_answers(amounts, output)
    other = _believed(ledger, intervals, output, (amounts, rest), ratios, start)
    if other is None:
        return intervals, ratios, OutputEvidence.unknown(ledger)
    says = answers(ledger, amounts, other, every)
    grown = every.grown(says.dropped_between(every.first, every.last))
    edited = grown.edited(grown.totals(says.over(other.estimates(amounts, ledger.events["tool"]))))
    return grown.pick(~edited), other, says


def characters(ledger: Ledger) -> Ints | None:
    """Characters by four of each event, where the counts of a session follow them and no tokenizer; else None.

    Stand-ins for a provider, and agents that count themselves, report such estimates as usage: of the texts, or of the
    request as JSON, in which quotation marks, line breaks and the like take two characters.
    """
    every = Intervals.of(ledger).grown()
    unread = ((ledger.events["flags"] & HAS_MEDIA) > 0) | (ledger.events["opaque_bytes"] > 0)
    lexical = ledger.events["lexical_tokens"]
    every = every.pick(
        (every.sums(unread.astype(np.int64)) == 0) & ~every.edited(every.sums(lexical).astype(np.float64))
    )
    size = len(every.tokens)
    if size < LEAST_FOLLOWED:
        return None
    if size > MOST_FOLLOWED:
        chosen = np.zeros(size, dtype=np.bool_)
        chosen[np.arange(MOST_FOLLOWED) * size // MOST_FOLLOWED] = True
        every, size = every.pick(chosen), MOST_FOLLOWED
    in_json = ledger.of_events("characters in JSON", lambda: ledger.by_event(ledger.parts["json_chars"]))
    units = [(chars + 2) // 4 for chars in (ledger.events["chars"], in_json)]
    messages = every.sums(np.ones(ledger.event_count, dtype=np.int64))
    *errors, by_lexical = (_unexplained(every.sums(unit), messages, every.tokens) for unit in (*units, lexical))
    best = int(np.argmin([_squares(error) for error in errors]))
    outside = int((np.abs(errors[best]) > FRAMING * messages).sum())
    likelier = size * math.log(_squares(by_lexical) / _squares(errors[best]))
    return units[best] if outside <= (size - LEAST_FOLLOWED) // 4 and likelier >= 2 * math.log(ODDS) else None


def _unexplained(units: Ints, messages: Ints, tokens: Ints) -> Floats:
    """What the best ratios per unit of text and per message leave of the tokens of each interval: least squares."""
    one, both, other = (float((a * b).sum()) for a, b in ((units, units), (units, messages), (messages, messages)))
    by_unit, by_message = float((units * tokens).sum()), float((messages * tokens).sum())
    divisor = one * other - both * both
    if divisor <= 0.0:  # every message is as long as another
        return tokens.astype(np.float64)
    per_unit = (by_unit * other - by_message * both) / divisor
    per_message = (by_message * one - by_unit * both) / divisor
    return np.asarray(tokens - per_unit * units - per_message * messages)


def _squares(error: Floats) -> float:
    """The sum of squares, at least that of rounding, which may be off by half a token."""
    return max(float(np.cumsum(error * error)[-1]), len(error) / 12)


class Weighing(NamedTuple):
    """What text is weighed by: `units` of each event (None: lexical tokens), the name of that unit, and where the fit
    begins (None: at what is usual for the agent)."""

    units: Ints | None
    start: Start | None
    name: str


def weighed(ledger: Ledger, weights: Ints | None, name: str = "tokenizer") -> Weighing:
    """The weights that are given, of this name; without them characters where the counts follow these, or else the
    tokens of the model's tokenizer where the ledger has them."""
    if weights is not None:
        return Weighing(weights, None, name)
    by_characters = characters(ledger)
    if by_characters is not None:
        return Weighing(by_characters, EVEN_START, CHARACTERS)
    if ledger.encoding:
        model = next(filter(None, (ledger.main_model, *ledger.models)), "")
        is_exact = encoding_of([model]) == ledger.encoding
        start = starting_exact(ledger.agent, model) if is_exact else None
        return Weighing(ledger.events["tokenizer_tokens"], start, ledger.encoding)
    return Weighing(None, None, LEXICAL)


def drift(ledger: Ledger, intervals: Intervals, estimate: Floats) -> float:
    """Tokens to add to answers after the last counted prompt: the mean growth that estimates leave unexplained.

    Reminders, reasoning and files that a recording does not hold come with nearly every call. No interval says more
    than that as much again came with it as its messages cost: what grows by more follows something else or came once,
    unless the file lacks what was asked.
    """
    size = len(intervals.tokens)
    if not size or not (ledger.steps["prompt_tokens"] > 0).any():
        return 0.0
    expected = intervals.totals(estimate)
    error = intervals.tokens - expected
    if lacks_requests(ledger, intervals):
        return max(_trimmed_sum(error) + DRIFT_BELIEF * LACKING, 0.0) / (size + DRIFT_BELIEF)
    return _trimmed_sum(np.clip(error, -expected, expected)) / (size + DRIFT_BELIEF)


def _trimmed_sum(error: Floats) -> float:
    error, tail = np.sort(error), len(error) // DRIFT_TAIL
    return float(np.cumsum(np.clip(error, error[tail], error[len(error) - 1 - tail]))[-1])


def lacks_requests(ledger: Ledger, intervals: Intervals) -> bool:
    """Does a recording have the answers alone: between most calls nothing that the second of them could answer, neither
    the user's words nor a tool's result."""
    flags = ledger.events["flags"]
    asked = ((flags & MODEL) == 0) & ((ledger.events["bytes"] > 0) | ((flags & HAS_MEDIA) > 0))
    return int((intervals.sums(asked.astype(np.int64)) == 0).sum()) * 2 > len(intervals.tokens)


def drifted(ledger: Ledger, estimate: Floats, drift: float) -> Floats:
    """Estimates of events with the drift added to the answers after the last counted prompt."""
    steps = ledger.steps
    reported = np.flatnonzero(steps["prompt_tokens"] > 0)
    added = np.zeros(ledger.event_count)
    if len(reported):
        added[steps["response"][steps["response"] >= steps["at"][reported[-1]]]] = drift
    return np.maximum(estimate + added, 0.0)


def _believed(
    ledger: Ledger, intervals: Intervals, output: Ints, amounts: tuple[Ints, Ints], ratios: Ratios, start: Start
) -> Ratios | None:
    """The ratios of everything but answers where outputs are the better measure of these; else None."""
    turn, counted = ledger.steps["turn"], intervals.sums(np.maximum(output, 0))
    inside = turn[intervals.first] == turn[intervals.last]
    test = inside & (counted > 0)
    measured = int(test.sum()) >= LEAST_MEASURED
    dropped = drops_reasoning(ledger)
    whole, rest = amounts
    if not (measured and (output >= 0).any()) and not dropped and not believed_at_once(ledger, whole, ratios):
        return None
    without = replace(intervals, tokens=np.maximum(intervals.tokens - counted, 0)).pick(inside)
    mixed = without.amounts(rest)
    other = _with_tools(ledger, without, rest, mixed, fit(mixed, without.tokens, start))
    if measured:
        by_estimate = intervals.tokens - intervals.totals(ratios.estimates(whole, ledger.events["tool"]))
        by_output = intervals.tokens - counted - intervals.totals(other.estimates(rest, ledger.events["tool"]))
        if not believed(by_output[test], by_estimate[test]):
            return None
    return other


def _with_tools(ledger: Ledger, intervals: Intervals, amounts: Ints, mixed: Ints, kinds: Floats) -> Ratios:
    """The ratios of `kinds` that explain some intervals, over which `amounts` are `mixed`, with a factor for each
    tool."""
    tools, plain = ledger.events["tool"], Ratios(kinds)
    # the tools whose results hold the most, in the order of their keys
    keys = ledger.of_events("tools", lambda: np.unique(tools))
    owner = ledger.of_events("places in tools", lambda: np.searchsorted(keys, tools))
    sizes = np.bincount(owner, amounts[:, RESULTS], len(keys)).astype(np.int64)
    places = np.lexsort((keys, -sizes))[:MOST_TOOLS]
    largest_tools = sorted(int(keys[place]) for place in places if keys[place] and sizes[place])
    by_tool = {
        key: intervals.sums(np.where(tools == key, amounts[:, RESULTS], 0)) * plain.kinds[RESULTS]
        for key in largest_tools
    }
    factors = tool_factors(plain.estimates(mixed, mixed[:, 0]), intervals.tokens, by_tool)
    return Ratios(plain.kinds, factors)
