"""Every policy on one session, computed once and stored: here where it is quick, else in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from guard_core.events import Event
from guard_core.findings.facts import Facts
from guard_core.findings.sizes import NEAR_MISS_SHARE
from guard_core.outcomes.bill import Prices
from guard_core.outcomes.comparing import Candidate, Compared, candidates, compared, made_apart
from guard_core.outcomes.cycles import Cycle, text_floor
from guard_core.outcomes.losses import StatedRule, may_state_rules, stated_rules
from guard_core.outcomes.outcome import PolicyOutcome
from guard_core.outcomes.words import assumptions
from guard_core.windows.call_windows import CallWindow, WindowWarning, call_windows, windows_words
from inspector.figures.sparkline import Trend, trend
from inspector.models import Session
from inspector.replays import stored
from inspector.replays.analysis import ReplayUnderWay, TooLong, budget, facts_of, summarizer_of, window_of
from inspector.replays.choice import Choice
from inspector.replays.messages import POLICIES, PROFILES, Task
from inspector.replays.processes import REPLAYS
from inspector.storage import explanations, loading, storing
from inspector.storage.byte_cache import ByteCache

CACHE_BYTES = 4_000_000  # of comparisons in a process
BYTES_A_ROW = 40_000  # about, with the cycles that a row lists
EVENTS_AT_ONCE = 500  # texts read in one query
RULE_TEXTS = 4_000  # messages of users and the system that are searched for rules: the first so many


class PolicyRow(msgspec.Struct, frozen=True):
    """One row of the comparison. `policy` is "" for the recording, `outcome` None where a policy cannot be replayed
    here, for the reason in `problem`."""

    policy: str
    profile: str
    title: str
    outcome: PolicyOutcome | None = None
    trend: Trend | None = None
    problem: str = ""


class PolicyComparison(msgspec.Struct, frozen=True):
    """All rows in the order in which the policies are listed, and what they rest on. `floor` are the cycles of clearing
    tool results alone, `windows` those of the calls, the replays' first, `counted_in` what figures of tokens really are
    (`Facts.counted_in`)."""

    rows: tuple[PolicyRow, ...]
    window: int
    floor: tuple[Cycle, ...]
    assumptions: tuple[str, ...]
    windows: tuple[CallWindow, ...] = ()
    counted_in: str = ""


def comparison_of(row: Session, choice: Choice, *, all_profiles: bool) -> PolicyComparison:
    """The comparison in the window of a choice, where it is stored or quick.

    Raises ReplayUnderWay where it takes long, and loading.Outdated where the session's columns must be made again.
    """
    work = PROFILES if all_profiles else POLICIES
    key = _key(row, choice, work)
    if (under_way := REPLAYS.find(key)) is not None:
        raise ReplayUnderWay(under_way)
    try:
        return _cache.get(key, lambda: _stored_or_made(row, choice, work, budget()))
    except TooLong:
        raise ReplayUnderWay(REPLAYS.start(key, Task(str(row.pk), choice, work), all_steps(row, work))) from None


def compare_whole(
    row: Session,
    choice: Choice,
    work: str,
    each: Callable[[int], object],
    *,
    processes: int = 1,
    copied: Callable[[], object] = lambda: None,
) -> PolicyComparison:
    """The comparison however long it takes, stored and kept for `comparison_of`; `each` hears how many steps of all
    replays are done. With several `processes` the policies are shared out among copies of this one, where there can be
    some (guard_core.outcomes.comparing.made_apart); `copied` is called once they are there."""

    def apart(facts: Facts, chosen: Sequence[Candidate], **options: Any) -> Iterator[PolicyRow]:
        return made_apart(facts, chosen, processes, _row, copied=copied, **options)

    return _cache.get(
        _key(row, choice, work),
        lambda: _stored_or_made(row, choice, work, each, apart if processes > 1 else _one_by_one),
    )


def all_steps(row: Session, work: str) -> int:
    """How many steps the replays of a comparison have together."""
    return row.calls * len(candidates(all_profiles=work == PROFILES))


def forget() -> None:
    """Drop the comparisons that this process holds."""
    _cache.clear()


def _key(row: Session, choice: Choice, work: str) -> tuple[object, ...]:
    basis = explanations.basis_of(row)
    return str(row.pk), row.revision, row.requests is None, row.effective_window, basis, choice.window, work


_cache: ByteCache[PolicyComparison] = ByteCache(CACHE_BYTES, lambda comparison: BYTES_A_ROW * len(comparison.rows))


def _one_by_one(facts: Facts, chosen: Sequence[Candidate], **options: Any) -> Iterator[PolicyRow]:
    return map(_row, compared(facts, chosen, **options))


def _stored_or_made(
    row: Session,
    choice: Choice,
    work: str,
    each: Callable[[int], object],
    rows_of: Callable[..., Iterator[PolicyRow]] = _one_by_one,
) -> PolicyComparison:
    storing.ensure_current(row)
    facts, window = facts_of(row), window_of(row, choice).value
    chosen = candidates(all_profiles=work == PROFILES, rule=facts.explanation.rule)
    names = [work, *(f"{item.kind.name}/{item.profile}" for item in chosen)]
    place = stored.place_of(row, Choice(window=choice.window), names)
    if (known := stored.load(place, PolicyComparison)) is not None:
        return known
    simulated = facts.ledger.usage_ratio is not None
    rows = rows_of(
        facts,
        chosen,
        window=window,
        rules=rules_of(row, facts, each),
        summarizer=summarizer_of(Choice(), facts.ledger, simulated),
        each=each,
    )
    windows = call_windows(facts.other_windows, window)
    words = filter(None, [windows_words(windows, WindowWarning.COMPARISON)])
    comparison = PolicyComparison(
        tuple(rows),
        window,
        text_floor(facts, int(NEAR_MISS_SHARE * window)),
        (*words, *assumptions(facts, Prices.of(facts.session, facts.ledger))),
        windows,
        facts.counted_in,
    )
    stored.store(place, comparison)
    return comparison


def rules_of(row: Session, facts: Facts, each: Callable[[int], object]) -> tuple[StatedRule, ...]:
    """Where users and the system stated rules: their messages are read, and no others."""
    places = may_state_rules(facts.ledger)[:RULE_TEXTS].tolist()
    return stated_rules(_texts(row, places, each))


def _texts(row: Session, places: Sequence[int], each: Callable[[int], object]) -> Iterator[tuple[int, Event]]:
    """The messages at some places of the log; before each `EVENTS_AT_ONCE` of them `each` may end the work."""
    for first in range(0, len(places), EVENTS_AT_ONCE):
        each(0)
        events: Mapping[int, Event] = loading.load_some_events(row, places[first : first + EVENTS_AT_ONCE])
        yield from events.items()


def _row(item: Compared) -> PolicyRow:
    """A row with the picture of its requests."""
    if item.outcome is None or item.sent is None:
        assert item.candidate is not None
        kind = item.candidate.kind
        return PolicyRow(kind.name, item.candidate.profile, item.candidate.title, problem=item.problem)
    trace, sent = item.trace, item.sent
    over = np.zeros(len(sent.tokens), dtype=np.int64)
    over[sent.case.over] = 1
    threshold = -1  # where the policy compares no tokens with one
    if trace is not None and (trace.columns["decision_tokens"] >= 0).any():
        threshold = int(trace.columns["threshold"].max(initial=-1))
    picture = trend(
        sent.tokens,
        sent.compacted.astype(np.int64),
        over,
        threshold=threshold,
        window=item.outcome.window,
    )
    if item.candidate is None:
        return PolicyRow("", "", "Recording", item.outcome, picture)
    return PolicyRow(item.candidate.kind.name, item.candidate.profile, item.candidate.title, item.outcome, picture)
