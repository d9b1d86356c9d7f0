"""Counters: what a policy compares with its threshold, from the provider's last count and what was added since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from guard_core.defaults import BYTES_PER_TOKEN
from guard_core.estimation.usage import CountedRun
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import ReplayRun
from guard_core.policies.pieces.message_columns import Bools
from guard_core.trace import Head


@dataclass(frozen=True)
class UsageCounter:
    """The count that is compared, in tokens: the prompt tokens of the last call that the provider counted, and more.

    `output`: with the output tokens of that call; each answer counts as `output_as` tokens where that is given.
    `pending` gives the agent's estimate of each event that was added since, by ledger and form, of which the sum is
    added (so many `pending_units` are a token, rounded down), or the `largest`; `pending_words` says how it estimates.
    `leaves_out` names a column of the ledger's steps that the agent leaves out: tokens read from the cache, or written
    to it. `at_turn_start`: within a turn the count of the turn's beginning is compared, not the last one.
    """

    output: bool = True
    output_as: int | None = None
    pending: Callable[[Ledger, str], Ints] | None = None
    largest: bool = False
    pending_words: str = ""
    pending_units: int = 1
    leaves_out: str = ""
    at_turn_start: bool = False


def outputs_of(ledger: Ledger) -> Ints:
    """Output tokens of every call: the provider's count, else the bytes of the answer // 4."""
    if "outputs" not in ledger.derived:
        output, response = ledger.steps["output_tokens"], ledger.steps["response"]
        size = np.append(ledger.events["bytes"], 0)[response]
        ledger.derived["outputs"] = np.where(output >= 0, output, size // BYTES_PER_TOKEN)
    return np.asarray(ledger.derived["outputs"])


def outputs_as_of(ledger: Ledger, as_of: Ints) -> Ints:
    """Output tokens of calls at some steps; 0 for step -1."""
    return _or_at_end(ledger, "outputs", outputs_of, 0)[as_of]


def in_steps(ledger: Ledger, name: str, as_of: Ints, none: int) -> Ints:
    """A column of the ledger's steps at some steps; `none` for step -1."""
    return _or_at_end(ledger, name, lambda ledger: ledger.steps[name], none)[as_of]


def _or_at_end(ledger: Ledger, name: str, column: Callable[[Ledger], Ints], none: int) -> Ints:
    """A column with one more entry, so that there is one for step -1; once for a ledger, for a policy that acts at
    every step asks at every step."""
    key = "with an entry behind", name, none
    if key not in ledger.derived:
        ledger.derived[key] = np.append(column(ledger), none)
    known: Ints = ledger.derived[key]
    return known


def left_out(ledger: Ledger, column: str, tokens: Ints, as_of: Ints) -> Ints:
    """Tokens of some counted calls in a column of steps; 0 where the request is not the recorded one, for then it is
    not known."""
    same = (as_of >= 0) & (ledger.steps["prompt_tokens"][as_of] == tokens)
    return np.asarray(np.where(same, np.clip(ledger.steps[column][as_of], 0, tokens), 0))


def since_answer(ledger: Ledger, as_of: Ints, stop: Ints) -> tuple[Ints, Ints]:
    """The events that were added after the answers of calls `as_of`, up to event `stop`: first and end."""
    if "events with answers" not in ledger.derived:
        response, at = ledger.steps["response"], ledger.steps["at"]
        ledger.derived["events with answers"] = np.where(response >= 0, response + 1, at)
    begin: Ints = ledger.derived["events with answers"]
    return np.minimum(begin[as_of], stop), stop


def sum_of(prefix: Ints, begin: Ints, stop: Ints) -> Ints:
    """The sum of a column over ranges of events, from its prefix sums."""
    return np.asarray(np.maximum(prefix[stop] - prefix[begin], 0))


def largest_of(prefix: Ints, begin: Ints, stop: Ints) -> Ints:
    """The largest entry of a column in each range of events, 0 for an empty one."""
    if not len(begin):
        return begin
    column = np.append(np.diff(prefix), 0)
    largest = np.maximum.reduceat(column, np.stack((begin, stop), axis=1).ravel())[::2]
    return np.asarray(np.where(stop > begin, largest, 0))


class ProviderCounts(NamedTuple):
    """The provider's last counts before some steps, in prompt tokens, and the step of each (-1: none)."""

    tokens: Ints
    as_of: Ints


class LastCounts(NamedTuple):
    """The provider's counts of a run, and what is remembered before each step and, as last entry, after the last one:
    `tokens` (prompt tokens) measured at step `as_of` (-1: none)."""

    counted: CountedRun
    tokens: Ints
    as_of: Ints

    def first(self, size: int) -> CountedRun:
        """The counts of the first steps."""
        tokens, reported, source = self.counted
        return CountedRun(tokens[:size], reported[:size], source[:size])


def last_counts(
    run: ReplayRun, start: int, stop: int, head: Head, heuristics: Ints, tokens: int, as_of: int, *, least: int = 1
) -> LastCounts:
    """What the provider counts at steps `start` to `stop`, which send `head`; `tokens` and `as_of` are remembered
    before the first. Only a count of `least` tokens or more is remembered, a missing one leaves the old."""
    counted = run.usage.run(start, stop, head.view, head.kept_from, heuristics, head.form)
    return counts_before(counted, start, tokens, as_of, least=least)


def counts_before(counted: CountedRun, start: int, tokens: int, as_of: int, *, least: int = 1) -> LastCounts:
    """The same from the counts of the requests from step `start` on."""
    size = len(counted.tokens)
    known = counted.reported & (counted.tokens >= least)
    if np.count_nonzero(known) == size:  # in a quarter of the time of `all`
        last, since = counted.tokens, np.arange(start, start + size)
    else:
        place = np.maximum.accumulate(np.where(known, np.arange(size), -1))
        last = np.where(place >= 0, counted.tokens[place], tokens)
        since = np.where(place >= 0, place + start, as_of)
    return LastCounts(counted, behind(tokens, last), behind(as_of, since))


def behind(first: int, values: Ints) -> Ints:
    """A number and then some values: what is remembered before each step and after the last one. In a third of the time
    of `np.append`, which a replay of thousands of compactions would call three times for each."""
    numbers = np.empty(len(values) + 1, dtype=np.int64)
    numbers[0], numbers[1:] = first, values
    return numbers


def recorded_counts(recorded: Ints) -> tuple[Ints, Ints]:
    """The last recorded count before each step and the step it belongs to (-1: none)."""
    size = len(recorded)
    known = np.maximum.accumulate(np.where(recorded > 0, np.arange(size), -1)) if size else np.zeros(0, dtype=np.int64)
    as_of = np.append(np.full(min(size, 1), -1, dtype=np.int64), known[:-1])
    return np.where(as_of >= 0, recorded[as_of], 0), as_of


def counts_in(ledger: Ledger) -> tuple[Ints, Ints]:
    """What `recorded_counts` gives of a recording, once for a ledger."""
    if "last counts" not in ledger.derived:
        ledger.derived["last counts"] = recorded_counts(ledger.steps["prompt_tokens"])
    known: tuple[Ints, Ints] = ledger.derived["last counts"]
    return known


def as_compared(
    numbers: dict[str, Ints], ledger: Ledger, compared: Ints, rows: slice, counts: ProviderCounts
) -> dict[str, Ints]:
    """The columns of the decision at some steps with what the agent of the recording compared there (per step of the
    ledger): it compares the same again where the last request was the recorded one. Its estimate of what was added has
    then what the file lacks, too."""
    tokens, as_of = (column[rows] for column in counts_in(ledger))
    same = (as_of >= 0) & (counts.as_of == as_of) & (counts.tokens == tokens)
    if not np.count_nonzero(same):
        return numbers
    count, rest = compared[rows], compared[rows] - numbers["last_prompt"]
    same &= (count >= 0) & (rest >= 0)
    output = np.where(same, np.minimum(numbers["last_output"], rest), numbers["last_output"])
    return numbers | {
        "last_output": output,
        "pending": np.where(same, rest - output, numbers["pending"]),
        "decision_tokens": np.where(same, count, numbers["decision_tokens"]),
    }


def counts_before_turns(
    last: ProviderCounts, begins: Bools, before: ProviderCounts
) -> tuple[ProviderCounts, ProviderCounts]:
    """For each of some steps the last count before the turn began in which a look at it is, and the last count before
    its own turn began. `last` has one more entry than there are steps; `before` is what is remembered of the turn of
    the first step."""
    place = np.maximum.accumulate(np.where(begins, np.arange(len(begins)), -1))
    own = ProviderCounts(*(np.where(place >= 0, new[place], old) for new, old in zip(last, before, strict=True)))
    looked = ProviderCounts(*(np.append(old, values)[: len(begins)] for old, values in zip(before, own, strict=True)))
    return looked, own
