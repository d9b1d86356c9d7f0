"""What left the requests of a side: users' messages, rules that someone stated, tool calls without their results."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import msgspec
import numpy as np

from guard_core.costs import HAS_RESULT, IN_PAIR, STARTS_TURN, SYSTEM, TEXT, USER
from guard_core.events import Event, TextPart
from guard_core.forms import get_form
from guard_core.ledger import Ints, Ledger
from guard_core.outcomes.sent import SentRequests
from guard_core.usage import normal
from guard_core.views import Rewritten, Span, View

Ranges = list[tuple[int, int]]

# A sentence states a rule if it has one of these words: ours. It finds rules that are worded as rules, and no others.
_RULE = re.compile(
    r"\b(?:must(?:n't)?|never|always|do not|don't|should(?:n't)?|shall|may not|cannot|can't|make sure|ensure|only|avoid"
    r"|required?|forbidden|prohibited|at most|at least|instead of|without|unless|prefer)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
LONGEST_RULE = 400  # characters of a sentence that is looked at; longer ones are data
MOST_RULE_CHARS = 200_000  # of one message that are looked at


class Losses(msgspec.Struct, frozen=True):
    """`requests` messages that began a turn, of them `requests_dropped` that were not in some later request as they
    were; `rules` sentences that state a rule, of them `rules_gone` from the last request (-1: not looked for);
    `parted_steps` requests with a tool call whose result is missing, or the reverse, though the log has both."""

    requests: int
    requests_dropped: int
    rules: int
    rules_gone: int
    parted_steps: int


class StatedRule(msgspec.Struct, frozen=True):
    """A message with sentences that state a rule: its place in the log and how many of them it has."""

    event: int
    sentences: int


def may_state_rules(ledger: Ledger) -> Ints:
    """The events whose texts are looked at for rules: those of users and of the system, without tool results."""
    flags = ledger.events["flags"]
    return np.flatnonzero(((flags & (USER | SYSTEM)) > 0) & ((flags & HAS_RESULT) == 0))


def stated_rules(events: Iterable[tuple[int, Event]]) -> tuple[StatedRule, ...]:
    """The rules that these messages state, by their places in the log."""
    counts = ((index, rule_sentences(event)) for index, event in events)
    return tuple(StatedRule(index, count) for index, count in counts if count)


def rule_sentences(event: Event) -> int:
    """How many sentences of a message state a rule: they have a word such as "must", "never" or "only"."""
    texts = (part.text[:MOST_RULE_CHARS] for part in event.parts if isinstance(part, TextPart))
    sentences = (sentence for text in texts for sentence in _SENTENCE_END.split(text))
    return sum(len(sentence) <= LONGEST_RULE and bool(_RULE.search(sentence)) for sentence in sentences)


def losses_of(sent: SentRequests, rules: Sequence[StatedRule] | None) -> Losses:
    """The losses of a side; `rules` None: nobody looked for them."""
    ledger, size = sent.ledger, sent.ledger.step_count
    users = np.flatnonzero(ledger.events["flags"] & STARTS_TURN).tolist()
    seen = bisect_left(users, int(ledger.steps["at"].max(initial=0)))
    missing = np.zeros(len(users) + 1, dtype=np.int64)
    parted = 0
    pairs = Pairs(ledger)
    for start, stop in _stretches(sent):
        view = sent.view(start)[0]
        for first, last in _gaps(_verbatim(ledger, view), int(ledger.steps["at"][start])):
            low, high = bisect_left(users, first), bisect_left(users, last)
            missing[low] += 1
            missing[high] -= 1
        parted += (stop - start) if pairs.are_parted(view, int(ledger.steps["at"][start])) else 0
    last_view = _verbatim(ledger, sent.view(size - 1)[0]) if size else []
    kept = sum(rule.sentences for rule in rules or () if _holds(last_view, rule.event))
    total = sum(rule.sentences for rule in rules or () if size and rule.event < int(ledger.steps["at"][size - 1]))
    return Losses(
        requests=seen,
        requests_dropped=int((np.cumsum(missing[:seen]) > 0).sum()),
        rules=total if rules is not None else -1,
        rules_gone=total - kept if rules is not None else -1,
        parted_steps=parted,
    )


def _stretches(sent: SentRequests) -> Iterator[tuple[int, int]]:
    """Runs of steps whose requests begin alike, and only reach further."""
    edges = [0, *sent.changed.tolist(), sent.ledger.step_count]
    return ((start, stop) for start, stop in pairwise(edges) if start < stop)


def _verbatim(ledger: Ledger, view: View) -> Ranges:
    """The ranges of events that a view has as they are, in the log's order. A form changes tool results, or single
    messages of users: those that it cuts are not there as they are."""
    ranges: Ranges = []
    for segment in normal(view):
        if isinstance(segment, Span) and not _cuts_messages(segment):
            ranges.append((segment.start, segment.stop))
    return sorted(ranges)


def _cuts_messages(span: Span) -> bool:
    return bool(span.form) and get_form(span.form).touches(TEXT)


def _gaps(ranges: Ranges, stop: int) -> Iterator[tuple[int, int]]:
    """What lies between sorted ranges, up to `stop`."""
    place = 0
    for first, last in ranges:
        if first > place:
            yield place, min(first, stop)
        place = max(place, last)
    if place < stop:
        yield place, stop


def _holds(ranges: Ranges, event: int) -> bool:
    return any(first <= event < last for first, last in ranges)


@dataclass(frozen=True)
class Pairs:
    """The tool calls of a log and their results, by the events that hold them."""

    ledger: Ledger

    def are_parted(self, view: View, at: int) -> bool:
        """Does a request over `at` events have a call without its result, or a result without its call."""
        ranges = sorted(
            (segment.start, segment.stop) if isinstance(segment, Span) else (segment.event, segment.event + 1)
            for segment in view
            if isinstance(segment, Span | Rewritten)
        )
        flags = self.ledger.events["flags"]
        edges = {edge for gap in _gaps(ranges, at) for edge in gap if 0 < edge < at}
        if not any(flags[edge] & IN_PAIR for edge in edges):
            return False
        held = np.zeros(at, dtype=np.bool_)
        for first, last in ranges:
            held[first : min(last, at)] = True
        calls, results = self._pairs
        inside = results < at
        return bool((held[calls[inside]] != held[results[inside]]).any())

    @property
    def _pairs(self) -> tuple[Ints, Ints]:
        parts = self.ledger.parts
        rows = np.flatnonzero(parts["answers"] >= 0)
        return parts["event"][parts["answers"][rows]], parts["event"][rows]
