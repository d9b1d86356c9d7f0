"""What left the requests of a side: users' messages, rules that someone stated, tool calls without their results."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import msgspec
import numpy as np

from guard_core.costs import HAS_RESULT, IN_PAIR, STARTS_TURN, SYSTEM, USER
from guard_core.events import Event, TextPart
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
    ats = ledger.steps["at"]
    users = np.flatnonzero(ledger.events["flags"] & STARTS_TURN).tolist()
    seen = bisect_left(users, int(ats.max(initial=0)))
    texts = Verbatim(ledger, np.array([*users, *(rule.event for rule in rules or ())], dtype=np.int64))
    pairs = Pairs(ledger)
    missing = np.zeros(len(users) + 1, dtype=np.int64)
    parted = 0
    for start, stop in _stretches(sent):
        view, at = sent.view(start)[0], int(ats[start])
        for first, last in _gaps(texts.ranges(view), at):
            missing[bisect_left(users, first)] += 1
            missing[bisect_left(users, last)] -= 1
        parted += (stop - start) if pairs.are_parted(view, at) else 0
    total, kept = _rules(sent, texts, rules or ())
    return Losses(
        requests=seen,
        requests_dropped=int((np.cumsum(missing[:seen]) > 0).sum()),
        rules=total if rules is not None and size else -1,
        rules_gone=total - kept if rules is not None and size else -1,
        parted_steps=parted,
    )


def _rules(sent: SentRequests, texts: Verbatim, rules: Sequence[StatedRule]) -> tuple[int, int]:
    """How many sentences state a rule before the last request, and how many of them it has."""
    size = sent.ledger.step_count
    if not size:
        return 0, 0
    stated = [rule for rule in rules if rule.event < int(sent.ledger.steps["at"][size - 1])]
    ranges = texts.ranges(sent.view(size - 1)[0])
    kept = [rule for rule in stated if any(first <= rule.event < last for first, last in ranges)]
    return sum(rule.sentences for rule in stated), sum(rule.sentences for rule in kept)


def _stretches(sent: SentRequests) -> Iterator[tuple[int, int]]:
    """Runs of steps whose requests begin alike, and only reach further."""
    edges = [0, *sent.changed.tolist(), sent.ledger.step_count]
    return ((start, stop) for start, stop in pairwise(edges) if start < stop)


@dataclass
class Verbatim:
    """Where views have some messages of the log (`events`) as they are. A form may change them, or only the messages
    between them."""

    ledger: Ledger
    events: Ints
    _changed: dict[str, list[int]] = field(default_factory=dict)

    def ranges(self, view: View) -> Ranges:
        """Sorted ranges of events: those of the messages asked for that are in them are as they were."""
        ranges: Ranges = []
        for segment in normal(view):
            if isinstance(segment, Span):
                ranges += self._unchanged(segment)
        return sorted(ranges)

    def _unchanged(self, span: Span) -> Iterator[tuple[int, int]]:
        place = span.start
        for event in self._changed_by(span.form) if span.form else ():
            if span.start <= event < span.stop:
                yield place, event
                place = event + 1
        yield place, span.stop

    def _changed_by(self, form: str) -> list[int]:
        if form not in self._changed:
            changed = self.ledger.changed_by(form)
            self._changed[form] = np.unique(self.events[changed[self.events]]).tolist()
        return self._changed[form]


def _gaps(ranges: Ranges, stop: int) -> Iterator[tuple[int, int]]:
    """What lies between sorted ranges, up to `stop`."""
    place = 0
    for first, last in ranges:
        if first > place:
            yield place, min(first, stop)
        place = max(place, last)
    if place < stop:
        yield place, stop


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
