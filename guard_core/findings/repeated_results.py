"""Tool results that an agent got again: after a compaction had taken them out of the context, or call after call."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from guard_core.costs import RESULT
from guard_core.findings.claims import INFO, LISTED, WARNING, Finding
from guard_core.findings.facts import Case, Facts, Fired
from guard_core.findings.sliding import others
from guard_core.findings.words import at_step, counted, steps_words
from guard_core.ledger import Ints
from guard_core.views import Rewritten, Span

# Ours. Shorter results, such as "ok", are the same by accident; fewer of them, or smaller ones, are not worth a line.
LEAST_BYTES, LEAST_RESULTS, LEAST_TOKENS = 1_000, 3, 2_000

# Ours, too: so many calls in a row with one result are no accident, and so many more a warning. Shorter results, as
# "ok", are those of many calls.
LEAST_RUN, LONG_RUN, LEAST_RESULT_BYTES = 5, 10, 20
LONGEST_CYCLE = 6  # ours: calls that are made in turn, as test, read and edit

_TEXT = ("bytes", "digest")  # what distinguishes the texts of calls and results without reading them


class RepeatedResult(NamedTuple):
    """A result that was obtained again: after which of the compactions (its place among those that were asked about),
    the event of its call, those of the same results before it, and its prompt tokens."""

    place: int
    call: int
    earlier: tuple[int, ...]
    tokens: int


def asked_again(case: Case) -> list[Finding]:
    """Compactions after which results came that the context had lost: the same tool, arguments and text.
    What came twice between two compactions is polled, and says nothing of what was forgotten."""
    if not case.is_recorded or case.facts.ledger.usage_ratio is not None or case.facts.is_miscounted:
        return []
    fired = _counted_ones(case)
    sums: dict[int, list[int]] = {}
    for one in _repeated_results(case.facts, fired):
        sums.setdefault(one.place, []).append(one.tokens)
    many = {place: sizes for place, sizes in sums.items() if len(sizes) >= LEAST_RESULTS and sum(sizes) >= LEAST_TOKENS}
    if not many:
        return []
    worst = max(many, key=lambda place: (sum(many[place]), -place))
    item, tokens = fired[worst], sum(many[worst])
    indices, steps = ([getattr(fired[place], name) for place in sorted(many)] for name in ("index", "step"))
    source = "estimated" if case.facts.is_uncounted else "attributed"
    more = "" if len(many) == 1 else f" The same holds after {counted(len(many) - 1, 'more compaction')}."
    sentence = (
        f"After compaction {item.index + 1:,} ({at_step(item.step)}), the agent got {len(many[worst]):,} tool "
        f"results again that the context no longer had (same call, same result): {tokens:,} tokens ({source}).{more}"
    )
    numbers = {"compaction": item.index, "results": len(many[worst]), "tokens": tokens, "compactions": indices}
    return [Finding("asked_again", INFO, item.step, sentence, numbers, (), tuple(steps[:LISTED]), len(many))]


def repeated_results(facts: Facts) -> tuple[RepeatedResult, ...]:
    """The results that a recording got again after a compaction had taken them out of its context, however few and
    small; none of a simulated session."""
    if facts.ledger.usage_ratio is not None:
        return ()
    return tuple(_repeated_results(facts, _counted_ones(facts.recording)))


def _counted_ones(case: Case) -> list[Fired]:
    """The compactions that a call followed, without the moves of a sliding window."""
    return [item for item in others(case) if item.counted is not None]


def _repeated_results(facts: Facts, fired: list[Fired]) -> Iterator[RepeatedResult]:
    """The results after each of some compactions, in their order, that the context had lost by then."""
    parts, bases = facts.ledger.parts, facts.ledger.bases
    rows = np.flatnonzero((parts["kind"] == RESULT) & (parts["answers"] >= 0) & (parts["bytes"] >= LEAST_BYTES))
    asked = parts["answers"][rows]
    same = [parts[name][at] for at in (rows, asked) for name in _TEXT]
    sizes = np.stack([parts["tool"][rows], *same], axis=1)
    order = np.lexsort(sizes.T)  # for the rows that are in the table several times
    alike = (sizes[order][1:] == sizes[order][:-1]).all(axis=1)
    several = np.zeros(len(sizes), dtype=np.bool_)
    several[order[1:][alike]] = several[order[:-1][alike]] = True
    rows, asked, sizes = rows[several], asked[several], sizes[several].tolist()
    ats = [bases[item.counted.place].at for item in fired if item.counted]
    known: dict[tuple[int, ...], list[tuple[int, int, int]]] = {}  # where results of the same call and size are
    events, calls = parts["event"][rows].tolist(), parts["event"][asked].tolist()
    for key, event, call in zip(map(tuple, sizes), events, calls, strict=True):
        known.setdefault(key, []).append((bisect_right(ats, event), event, call))
    starts, kept = [base.at for base in bases], _Kept(facts)
    for key, places in known.items():
        if len({stretch for stretch, _, _ in places}) < len(places):
            continue
        for number, (stretch, event, call) in enumerate(places[1:], start=1):
            epoch, earlier = bisect_right(starts, event) - 1, tuple(old for _, old, _ in places[:number])
            if not bases[epoch].is_edit and not any(kept.has(epoch, old) for old in earlier):
                whole = max(1, int(facts.ledger.events["bytes"][event]))
                yield RepeatedResult(stretch - 1, call, earlier, int(facts.attribution.tokens[event]) * key[1] // whole)


class _Kept:
    """Which messages of the log recorded compactions left in the context, as they were or written anew."""

    def __init__(self, facts: Facts) -> None:
        self._ledger = facts.ledger
        self._known: dict[int, tuple[list[int], list[int], set[int]]] = {}

    def has(self, epoch: int, event: int) -> bool:
        if epoch not in self._known:
            view = self._ledger.bases[epoch].view
            spans = sorted((part.start, part.stop) for part in view if isinstance(part, Span))
            written = {part.event for part in view if isinstance(part, Rewritten)}
            written |= set(self._ledger.replaced_results(epoch).values())
            self._known[epoch] = ([start for start, _ in spans], [stop for _, stop in spans], written)
        starts, stops, written = self._known[epoch]
        place = bisect_right(starts, event) - 1
        return event in written or (place >= 0 and event < stops[place])


class RepeatedCalls(NamedTuple):
    """Calls that were made again and again, one behind the other, with the results that they had: the steps of the
    first and the last of them, how many different ones in their order (`cycle`), and how often each was made."""

    first: int
    last: int
    cycle: int
    rounds: int


def repeated_call(case: Case) -> list[Finding]:
    """A tool that was called many times in a row with the same arguments and the same result, or several in turn: an
    agent that waits for something, or makes no progress."""
    if not case.is_recorded or case.facts.ledger.usage_ratio is not None:
        return []
    runs = [run for run in _runs_of_calls(case.facts) if run.rounds >= LEAST_RUN]
    if not runs:
        return []
    worst = max(runs, key=lambda run: (run.rounds, -run.first))
    others = len(runs) - 1
    more = f" There {'is' if others == 1 else 'are'} {counted(others, 'more such run')}." if others else ""
    numbers = {**worst._asdict(), "runs": len(runs)}
    sentence = f"{repeated_words(numbers)}: the agent is waiting for something, or makes no progress.{more}"
    severity = WARNING if worst.rounds >= LONG_RUN else INFO
    steps = tuple(run.first for run in sorted(runs)[:LISTED])
    return [Finding("repeated_call", severity, worst.first, sentence, numbers, (), steps, len(runs))]


def repeated_words(numbers: dict[str, Any]) -> str:
    """Which calls were repeated, how often, and where."""
    where, times = steps_words(numbers["first"], numbers["last"]), f"{numbers['rounds']:,} times in"
    if numbers["cycle"] == 1:
        return f"A tool was called {times} a row with the same arguments and the same result ({where})"
    return f"The same {numbers['cycle']:,} calls were made {times} turn, with the same results ({where})"


def _runs_of_calls(facts: Facts) -> Iterator[RepeatedCalls]:
    """The same results to the same calls, in a row or in turn; of a run of one, no run of two is made."""
    parts, steps = facts.ledger.parts, facts.ledger.steps
    rows = np.flatnonzero((parts["kind"] == RESULT) & (parts["answers"] >= 0))
    asked = parts["answers"][rows]
    if not len(rows) or not facts.ledger.step_count:
        return
    same = [parts[name][at] for at in (rows, asked) for name in _TEXT]
    _, kinds = np.unique(np.stack([parts["tool"][rows], *same], axis=1), axis=0, return_inverse=True)
    kinds, sizes = kinds.reshape(-1), parts["bytes"][rows]
    called_at = np.maximum(0, np.searchsorted(steps["at"], parts["event"][asked], side="right") - 1)
    for cycle in range(1, LONGEST_CYCLE + 1):
        repeats = np.concatenate(([False], kinds[cycle:] == kinds[:-cycle], [False])).astype(np.int8)
        edges = np.flatnonzero(np.diff(repeats)).tolist()
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            rounds, ones = (stop - start) // cycle + 1, kinds[start : start + cycle]
            if not _repeats_itself(ones) and sizes[start : start + cycle].max() >= LEAST_RESULT_BYTES:
                yield RepeatedCalls(int(called_at[start]), int(called_at[start + rounds * cycle - 1]), cycle, rounds)


def _repeats_itself(kinds: Ints) -> bool:
    """Are some calls a shorter cycle, several times."""
    shorter = (size for size in range(1, len(kinds)) if len(kinds) % size == 0)
    return any((kinds[size:] == kinds[:-size]).all() for size in shorter)
