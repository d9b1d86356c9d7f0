"""Estimators compared on the recorded calls of a session: what each says of the requests that were really sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from guard_core.estimation.attribution import PriceList, attributed_steps
from guard_core.estimation.measurement import Errors, errors
from guard_core.events import Event, part_text, utf8_bytes, value_text
from guard_core.ledger import Ints, Ledger, prefix_sums
from guard_core.sessions import Session
from guard_core.tokens import tokenizer

Counter = Callable[[Sequence[str]], Sequence[int]]

# What is compared: the two rules of thumb and the two shipped tokenizers.
COUNTERS: dict[str, Counter] = {
    "chars/4": lambda texts: [len(text) // 4 for text in texts],
    "bytes/4": lambda texts: [utf8_bytes(text) // 4 for text in texts],
    "o200k_base": lambda texts: tokenizer.count(texts, "o200k_base"),
    "cl100k_base": lambda texts: tokenizer.count(texts, "cl100k_base"),
}
# How much besides its own count an estimator is given.
GIVENS = ("the text alone", "and the first call", "and the call before")


def compare(session: Session, ledger: Ledger) -> dict[str, dict[str, Errors]]:
    """Errors of every counter for each of GIVENS, over the calls that the provider reported.

    "the text alone": the counter's tokens of the whole request (system prompt and tools where recorded).
    "and the first call": what the first call holds beyond its text is added to all others. "and the call before":
    the count of the call before plus the counter's tokens of what was added; calls after a compaction are left out.
    """
    return {name: given_errors(ledger, request_counts(session, ledger, counter)) for name, counter in COUNTERS.items()}


def request_counts(session: Session, ledger: Ledger, counter: Counter, events: Ints | None = None) -> Ints:
    """What a counter says of the request really sent at every step.

    `events`: what it says of each event, where that is known already; then the session's own events are not read.
    """
    if events is None:
        events = _event_counts(session.events, counter)
    inserted = tuple(
        tuple(int(value) for value in _event_counts(item.messages, counter)) for item in session.compactions
    )
    texts = [part_text(part) for part in session.system or ()]
    texts += [f"{tool.name} {tool.description} {value_text(tool.schema)}" for tool in session.tools or ()]
    fixed = sum(counter(texts))
    return attributed_steps(ledger, fixed, PriceList(prefix_sums(events), inserted))


def _event_counts(events: Sequence[Event], counter: Counter) -> Ints:
    owners = [index for index, event in enumerate(events) for _ in event.parts]
    counts = counter([part_text(part) for event in events for part in event.parts])
    totals = np.zeros(len(events), dtype=np.int64)
    np.add.at(totals, owners, counts)
    return totals


def given_errors(ledger: Ledger, counts: Ints) -> dict[str, Errors]:
    """Errors of the counts of requests, one per step, for each of GIVENS."""
    recorded, epoch = ledger.steps["prompt_tokens"], ledger.steps["epoch"]
    steps = np.flatnonzero(recorded > 0)
    if not len(steps):
        return {}
    before = np.concatenate([steps[:1], steps[:-1]])
    following = steps[1:][epoch[steps[1:]] == epoch[before[1:]]]
    grown = counts.copy()
    grown[steps] += recorded[before] - counts[before]
    offset = recorded[steps[0]] - counts[steps[0]]
    recorded_errors = (errors(recorded, counts, steps), errors(recorded, counts + offset, steps[1:]))
    named = zip(GIVENS, (*recorded_errors, errors(recorded, grown, following)), strict=True)
    return {name: value for name, value in named if value is not None}
