"""Which threshold an agent really used: an interval from the checks at which it did not and did compact.

A check that passed at a count says that the threshold is above it, an automatic compaction that it is at most its
count (with the relation ">": at least, and below). Compactions that a person asked for, and those after a refused
request, are not evidence. Bounds are of the compared count, not of the prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from guard_core.plural import place_of
from guard_core.rules.base import Hypothesis, Stretch
from guard_core.rules.counters import unit_of
from guard_core.rules.thresholds import FRACTIONS, LARGEST_LIMIT, RESERVES, round_limits, share_of, windows_of

SHOWN = 12  # hypotheses that are listed; the others are counted


class CheckEvidence(NamedTuple):
    """A check as evidence: its step (the call that comes next) and its count in `tokens`. `sure` is False for a
    compaction of which the file does not say whether a person asked for it."""

    step: int
    tokens: int
    sure: bool = True


class CountedCheck(Protocol):
    """A check with its count; what a point of any kind has."""

    @property
    def tokens(self) -> int: ...
    @property
    def sure(self) -> bool: ...


Check = TypeVar("Check", bound=CountedCheck)


def bounds_of(passed: Iterable[Check], fired: Sequence[Check]) -> tuple[Check | None, Check | None, list[Check]]:
    """The largest count that passed, the smallest that fired, and the compactions that are left out: those whose
    trigger is not known where a larger count passed, or a larger one was the smallest that is sure."""
    low = max(passed, key=lambda point: point.tokens, default=None)
    least = min((point.tokens for point in fired if point.sure), default=0)
    largest = 0 if low is None else low.tokens

    def is_doubtful(point: Check) -> bool:
        return not point.sure and (point.tokens <= largest or point.tokens < least)

    high = min((point for point in fired if not is_doubtful(point)), key=lambda point: point.tokens, default=None)
    return low, high, [point for point in fired if is_doubtful(point)]


def bound_words(relation: str) -> tuple[str, str]:
    """What a threshold is of its lower bound, and of its upper one."""
    return ("at least", "below") if relation == ">" else ("above", "at most")


class Interval(msgspec.Struct, frozen=True):
    """The threshold of a stretch lies between two counts in tokens; None: no check says it.

    `above_step` and `at_most_step` are the checks that bound it. `contradiction` is a sentence where they exclude each
    other. `left_out` are the steps of compactions whose trigger the file does not say and whose count is below one that
    passed, or below those that were automatic: a person may have asked for them.
    `hypotheses` give a threshold inside, the default first, then those with the fewest changes; `more` were left off.
    """

    start: int
    stop: int
    version: str
    model: str
    counter: str
    relation: str
    above: int | None
    above_step: int | None
    at_most: int | None
    at_most_step: int | None
    contradiction: str = ""
    left_out: tuple[int, ...] = ()
    hypotheses: tuple[Hypothesis, ...] = ()
    more: int = 0
    window: int = 0  # of the stretch in tokens; 0: not known

    def contains(self, threshold: int) -> bool:
        """Could this be the threshold."""
        if self.contradiction:
            return False
        equal = int(self.relation == ">")  # the bounds of `>` are one lower
        is_above = self.above is None or threshold > self.above - equal
        return is_above and (self.at_most is None or threshold <= self.at_most - equal)

    @property
    def is_bounded(self) -> bool:
        """Are both bounds known."""
        return None not in (self.above, self.at_most)

    @property
    def other_unit(self) -> str:
        """What its bounds are numbers of where that is not tokens; else ""."""
        unit = unit_of(self.counter)
        return "" if unit == "tokens" else unit

    @property
    def words(self) -> str:
        """The interval for people; its unit is named where that is not tokens."""
        below, above = bound_words(self.relation)
        low = "" if self.above is None else f"{below} {self.above:,}"
        high = "" if self.at_most is None else f"{above} {self.at_most:,}"
        text = " and ".join(filter(None, (low, high)))
        return f"{text} {self.other_unit}".rstrip() if text else "not bounded"

    def is_of(self, stretch: Stretch) -> bool:
        """Does it speak of the checks of a stretch."""
        return (self.version, self.model, self.window) == (stretch.version, stretch.model, stretch.window_tokens)

    @property
    def sentence(self) -> str:
        """What the checks say of the threshold."""
        if self.contradiction:
            return self.contradiction
        subject = "the threshold is" if self.at_most is not None else "a threshold, if there is one, is"
        return f"{subject} {self.words}"


def interval_of(
    stretch: Stretch,
    counter: str,
    relation: str,
    passed: Iterable[CheckEvidence],
    fired: Iterable[CheckEvidence],
    *,
    calls: int,
) -> Interval:
    """The interval that the checks of a stretch leave, in a session of so many `calls`."""
    low, high, asked = bounds_of(passed, list(fired))
    contradiction, unit = "", unit_of(counter)
    if low is not None and high is not None and low.tokens >= high.tokens:
        contradiction = (
            f"no threshold explains both: {place_of(low.step, calls, 'before ')} it did not compact at "
            f"{low.tokens:,} {unit}, {place_of(high.step, calls, 'before ')} it did at {high.tokens:,}"
        )
    return Interval(
        start=stretch.start,
        stop=stretch.stop,
        version=stretch.version,
        model=stretch.model,
        counter=counter,
        relation=relation,
        above=None if low is None else low.tokens,
        above_step=None if low is None else low.step,
        at_most=None if high is None else high.tokens,
        at_most_step=None if high is None else high.step,
        contradiction=contradiction,
        left_out=tuple(point.step for point in asked),
        window=stretch.window_tokens,
    )


def with_hypotheses(
    interval: Interval, variants: Iterable[Hypothesis], fitted: Callable[[int], str] | None = None
) -> Interval:
    """The interval with the hypotheses inside; of one with a single bound only the rule's own threshold is listed.

    `fitted`: the formula of any threshold, of an agent that takes one by hand; used where no variant is inside.
    """
    if interval.contradiction:
        return interval
    if not interval.is_bounded:
        variants = takewhile(lambda item: not item.changes, variants)
    inside: dict[str, Hypothesis] = {}
    for item in variants:
        if (item.threshold > 0 or not item.changes) and interval.contains(item.threshold):
            known = inside.get(_key(item))
            if known is None or item.changes < known.changes:
                inside[_key(item)] = item
    if not inside and fitted is not None and interval.at_most is not None and interval.is_bounded:
        limit = interval.at_most - int(interval.relation == ">")
        inside[fitted(limit)] = Hypothesis(fitted(limit), limit, 1)
    ranked = sorted(inside.values(), key=lambda item: item.changes)
    return msgspec.structs.replace(interval, hypotheses=tuple(ranked[:SHOWN]), more=max(0, len(ranked) - SHOWN))


def _key(item: Hypothesis) -> str:
    """What a formula says: of a plain number the number alone, whether it is a default, in the file or a limit."""
    return item.formula if "%" in item.formula or "−" in item.formula else f"{item.threshold}"


def general_variants(stretch: Stretch) -> Iterable[Hypothesis]:
    """What thresholds of agents usually are: a limit typed by hand, a window less a reserve, or a share of it."""
    for limit in round_limits(LARGEST_LIMIT):
        yield Hypothesis(f"a limit of {limit:,}", limit, 1)
    for window, other in windows_of(stretch):
        for reserve in RESERVES:
            yield Hypothesis(f"{window:,} − {reserve:,}", window - reserve, other + 1)
        for share in FRACTIONS:
            yield Hypothesis(*share_of(share, window), other + 1)
