"""What the cells of a sweep say: the recommended setting, the one that overflows least or is next worse, the
trade-offs, and a cross-over.

Settings are ordered by overflows (`Case.overflows`, with those that a policy made smaller), then loops, then a chosen
figure, then compactions, then total prompt tokens.
A recommendation of several sessions is checked by a cross-over: chosen on one half of them, judged on the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from guard_core.errors import UnknownName
from guard_core.findings.words import at_step
from guard_core.outcomes.words import dollars
from guard_core.plural import counted
from guard_core.sweep.axes import words
from guard_core.sweep.cells import Figures, GridCell
from guard_core.windows.models import if_window_is

WITHIN = (
    "a request within the window overflows where the recording has one as large that the provider refused, where its "
    "call's model has a smaller window, or where the policy made it smaller before it was answered"
)


class Measure(NamedTuple):
    """One figure of a setting: what a grid shows, and what is made small among settings that overflow and loop alike.

    `value` is None where it is not known. `priced`: it needs cost and losses. `unit` is that of a number of it. `said`:
    of a figure that sentences say only where it was chosen, what one of it is and the words behind it.
    """

    name: str
    title: str
    unit: str
    value: Callable[[GridCell], int | None]
    priced: bool = False
    said: tuple[str, str] | None = None

    def words(self, cell: GridCell) -> str:
        """The end of a list of figures: the chosen one, where the list lacks it."""
        value = self.value(cell)
        return "" if self.said is None or value is None else f", {counted(value, self.said[0])} {self.said[1]}"


MEASURES = {
    measure.name: measure
    for measure in (
        Measure("compactions", "compactions", "compactions", lambda cell: cell.compactions),
        Measure(
            "overflows",
            "requests over the window, or as large as a refused one",
            "requests",
            lambda cell: cell.overflow_steps,
        ),
        Measure("peak", "largest request", "tokens", lambda cell: cell.peak),
        Measure("tokens", "total prompt tokens", "tokens", lambda cell: cell.tokens_sent),
        Measure("cost", "cost of all calls", "US$", lambda cell: cell.cost, priced=True),
        Measure(
            "requests",
            "user requests dropped",
            "messages",
            lambda cell: cell.requests_dropped,
            priced=True,
            said=("user request", "dropped"),
        ),
        Measure(
            "instructions",
            "stated rules whose message the last request lacks",
            "sentences",
            lambda cell: cell.rules_gone,
            priced=True,
            said=("stated rule", "whose message the last request lacks"),
        ),
        Measure(
            "regret",
            "tokens lost of what the recording read again",
            "tokens",
            lambda cell: cell.read_again,
            priced=True,
            said=("token", "lost of what the recording read again"),
        ),
    )
}
COMPACTIONS = MEASURES["compactions"]


def get_measure(name: str) -> Measure:
    """A figure by its name. Raises UnknownName."""
    if name not in MEASURES:
        raise UnknownName(f"there is no figure {name[:40]!r}; known are {', '.join(MEASURES)}")
    return MEASURES[name]


class Fold(msgspec.Struct, frozen=True):
    """One direction of a cross-over: the setting that is recommended for some sessions (`chosen`, a cell's number), and
    the one that would be recommended for the others (`best`). Where several are equally good it is the first of the
    grid: of `equal` settings for the chosen one. Sessions by their numbers."""

    learnt: tuple[int, ...]
    judged: tuple[int, ...]
    chosen: int
    best: int
    equal: int = 1


@dataclass(frozen=True)
class SweepResult:
    """All cells in the order of the grid, the number of the recommended one and why.

    `equal` are the other cells with the same figures in that order, `trade_offs` the cells that no other beats in
    overflows, price and loss at once, `folds` the cross-over: none with fewer than two recordings.
    """

    axes: dict[str, tuple[Any, ...]]
    cells: tuple[GridCell, ...]
    steps: tuple[int, ...]
    by: str
    recommended: int
    equal: tuple[int, ...]
    trade_offs: tuple[int, ...]
    folds: tuple[Fold, ...]
    evidence: str


def judged(
    axes: Mapping[str, Sequence[Any]],
    columns: Sequence[Sequence[GridCell]],
    steps: Sequence[int],
    *,
    by: Measure = COMPACTIONS,
    recordings: Sequence[str] = (),
    titles: Sequence[str] = (),
    assumed: Sequence[bool] = (),
    disproved: Sequence[bool] = (),
) -> SweepResult:
    """The cells of several sessions under the same grid, put together and judged.

    `steps` counts each session's model calls. `recordings` has the hash of the bytes that each session came from: those
    of one recording are never parted by the cross-over. `titles` name the sessions in the evidence.
    `assumed`: of which sessions the window is an assumption, `disproved`: for which a larger prompt was answered, so
    that no size is an overflow there; the evidence says so.
    """
    cells = tuple(_merged(group) for group in zip(*columns, strict=True))
    ranks = [_rank(cell, by) for cell in cells]
    best = min(range(len(cells)), key=lambda index: (ranks[index], index))
    return SweepResult(
        axes={name: tuple(values) for name, values in axes.items()},
        cells=cells,
        steps=tuple(steps),
        by=by.name,
        recommended=best,
        equal=tuple(index for index, rank in enumerate(ranks) if rank == ranks[best] and index != best),
        trade_offs=trade_offs(cells),
        folds=_folds(cells, halves(recordings or [str(at) for at in range(len(steps))]), by),
        evidence="".join(
            (
                _evidence(cells, ranks, best, steps, titles, by),
                _idle(axes, cells),
                _condition(cells[best], assumed),
                _unknown(cells[best], by),
                _within(cells),
                _uncounted(cells[best], disproved),
            )
        ),
    )


def _merged(group: Sequence[GridCell]) -> GridCell:
    """The cells of several sessions under the same settings as one."""
    windows = tuple(size for cell in group for size in cell.windows)
    return GridCell(group[0].values, windows, tuple(figures for cell in group for figures in cell.figures))


Rank = tuple[int, int, bool, int, int, int]


def _rank(cell: GridCell, by: Measure) -> Rank:
    """What a setting is judged by, in this order; one without that figure comes after those that have one."""
    aim = by.value(cell)
    return cell.overflow_steps, cell.longest_loop, aim is None, aim or 0, cell.compactions, cell.tokens_sent


def trade_offs(cells: Sequence[GridCell]) -> tuple[int, ...]:
    """The cells that no other beats: none is at least as good in overflows, price and loss and better in one.

    The price is the cost, or else total prompt tokens; the loss are users' requests that were dropped, or else
    compactions. Of cells with the same three figures the first.
    """
    priced = all(cell.cost is not None for cell in cells)
    lossy = all(cell.requests_dropped is not None for cell in cells)
    points = [
        (
            cell.overflow_steps,
            (cell.cost if priced else None) or (0 if priced else cell.tokens_sent),
            (cell.requests_dropped if lossy else cell.compactions) or 0,
        )
        for cell in cells
    ]
    front: list[int] = []
    for index in sorted(range(len(cells)), key=lambda at: (points[at], at)):  # what beats a point comes before it
        if not any(all(a <= b for a, b in zip(points[known], points[index], strict=True)) for known in front):
            front.append(index)
    return tuple(front)


def halves(recordings: Sequence[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The numbers of sessions in two halves: every other recording in the order of their hashes."""
    order = {key: place for place, key in enumerate(sorted(set(recordings)))}
    sides = [order[key] % 2 for key in recordings]
    first, second = (tuple(at for at, side in enumerate(sides) if side == half) for half in (0, 1))
    return first, second


def _folds(cells: Sequence[GridCell], sides: tuple[tuple[int, ...], tuple[int, ...]], by: Measure) -> tuple[Fold, ...]:
    """Both directions of the cross-over; none where one half is empty."""
    if not all(sides):
        return ()
    best, equal = [], []
    for side in sides:
        ranks = [_rank(cell.of(side), by) for cell in cells]
        best.append(ranks.index(min(ranks)))
        equal.append(ranks.count(min(ranks)))
    there, back = sides
    return Fold(there, back, best[0], best[1], equal[0]), Fold(back, there, best[1], best[0], equal[1])


def fold_words(result: SweepResult, fold: Fold) -> str:
    """One direction of the cross-over in a sentence."""
    by = MEASURES[result.by]
    chosen, best = (result.cells[index].of(fold.judged) for index in (fold.chosen, fold.best))
    steps = sum(result.steps[at] for at in fold.judged)
    first = f" (the first of {fold.equal:,} equally good settings there)" if fold.equal > 1 else ""
    text = (
        f"chosen on {counted(len(fold.learnt), 'session')}{first}, {words(chosen.values)} gives {_outcome(chosen, by)} "
        f"in {counted(steps, 'step')} of the other {counted(len(fold.judged), 'session')}"
    )
    if _rank(chosen, by) == _rank(best, by):
        return f"{text}; no setting is better there"
    return f"{text}; the best there, {words(best.values)}, gives {_outcome(best, by)}"


def conclusion_values(result: SweepResult) -> dict[str, Any]:
    """What follows from a sweep as plain values; steps by session, settings by name."""
    return {
        "steps": result.steps,
        "recommended": result.cells[result.recommended].values,
        "equal": [result.cells[index].values for index in result.equal],
        "evidence": result.evidence,
        "trade_offs": [result.cells[index].values for index in result.trade_offs],
        "cross_over": [
            {
                "chosen_on": fold.learnt,
                "judged_on": fold.judged,
                "chosen": result.cells[fold.chosen].values,
                "best": result.cells[fold.best].values,
                "sentence": fold_words(result, fold),
            }
            for fold in result.folds
        ],
    }


def _outcome(cell: GridCell, by: Measure) -> str:
    parts = [counted(cell.overflow_steps, "overflow"), counted(cell.compactions, "compaction")]
    parts += [f"{cell.tokens_sent:,} prompt tokens"]
    parts += [] if cell.cost is None else [dollars(cell.cost)]
    return ", ".join(parts) + by.words(cell)


def _evidence(
    cells: Sequence[GridCell],
    ranks: Sequence[Rank],
    best: int,
    steps: Sequence[int],
    titles: Sequence[str],
    by: Measure,
) -> str:
    chosen = cells[best]
    sessions = "" if len(steps) == 1 else f" of {counted(len(steps), 'session')}"
    fullest, window = chosen.figures[chosen.fullest], chosen.windows[chosen.fullest]
    text = (
        f"{words(chosen.values)}: {counted(chosen.overflow_steps, 'overflow')} in {counted(sum(steps), 'step')}"
        f"{sessions}, {counted(chosen.compactions, 'compaction')}, {chosen.tokens_sent:,} prompt tokens, "
        f"largest request {fullest.peak:,} of {window:,} tokens"
        f"{'' if chosen.cost is None else ', ' + dollars(chosen.cost)}{by.words(chosen)}"
    )
    overflowing = [cell for cell in cells if cell.overflow_steps]
    if chosen.overflow_steps:
        return f"{text}; every setting of the grid overflows{_next(cells, ranks, best, by)}"
    if not overflowing:
        return f"{text}; no setting of the grid overflows{_next(cells, ranks, best, by)}"
    nearest = min(overflowing, key=lambda cell: (cell.overflow_steps, cell.peak - cell.window))
    at = next(at for at, item in enumerate(nearest.figures) if item.overflow_steps)
    first = nearest.figures[at]
    title = titles[at] if at < len(titles) else ""
    session_name = f"session {at + 1}" + (f" ({title})" if title else "")
    where = "" if len(steps) == 1 else f" of {session_name}"
    return (
        f"{text}; of the settings that overflow, {words(nearest.values)} has fewest: "
        f"{counted(nearest.overflow_steps, 'overflow')}, the first at {at_step(first.first_overflow)}{where} "
        f"(largest request {first.peak:,} of {nearest.windows[at]:,} tokens)"
    )


def _idle(axes: Mapping[str, Sequence[Any]], cells: Sequence[GridCell]) -> str:
    """The axes along which no figure changes, where some figure does along another."""
    if all(cell.figures == cells[0].figures for cell in cells):
        return ""
    idle = [name for name, values in axes.items() if len(values) > 1 and not _matters(name, cells)]
    return "".join(f"; {name} makes no difference: each of its values gives the same figures" for name in idle)


def _matters(axis: str, cells: Sequence[GridCell]) -> bool:
    """Do two settings that differ in that axis alone have different figures."""
    figures: dict[tuple[Any, ...], tuple[Figures, ...]] = {}
    for cell in cells:
        others = tuple(value for name, value in cell.values.items() if name != axis)
        if figures.setdefault(others, cell.figures) != cell.figures:
            return True
    return False


def _within(cells: Sequence[GridCell]) -> str:
    """Why requests overflow that are within the window, where all of some setting's are."""
    is_within = any(
        item.overflow_steps and item.peak <= window
        for cell in cells
        for window, item in zip(cell.windows, cell.figures, strict=True)
    )
    return f"; {WITHIN}" if is_within else ""


def _unknown(cell: GridCell, by: Measure) -> str:
    """That the chosen figure decides nothing, where it is not known of every session."""
    if by.value(cell) is not None:
        return ""
    count = len(cell.figures)
    missing = sum(by.value(cell.of((at,))) is None for at in range(count))
    some = "" if count == 1 else f" of {missing:,} of {counted(count, 'session')}"
    return f"; the chosen figure, {by.title}, is not known{some} and decides nothing"


def _condition(cell: GridCell, assumed: Sequence[bool]) -> str:
    """The windows that a recommendation rests on where they are assumptions, as the end of a clause."""
    if not any(assumed):
        return ""
    if len(assumed) == 1:
        return if_window_is(cell.window)
    return f", if the windows of {sum(assumed):,} of {counted(len(assumed), 'session')} are what is assumed"


def _uncounted(cell: GridCell, disproved: Sequence[bool]) -> str:
    """Where no size counts as an overflow."""
    if not any(disproved):
        return ""
    if len(disproved) == 1:
        return f"; no size counts as an overflow, as a prompt larger than the window of {cell.window:,} was answered"
    some = f"{sum(disproved):,} of {counted(len(disproved), 'session')}"
    return f"; in {some} no size counts as an overflow, as a prompt larger than the window was answered"


def _next(cells: Sequence[GridCell], ranks: Sequence[Rank], best: int, by: Measure) -> str:
    """The best of the settings that are worse than the recommended one."""
    worse = [index for index, rank in enumerate(ranks) if rank > ranks[best]]
    if not worse:
        return " and all come to the same" if len(cells) > 1 else ""
    index = min(worse, key=lambda at: (ranks[at], at))
    return f"; the next worse, {words(cells[index].values)}, has {_outcome(cells[index], by)}"


def failed(result: SweepResult, wanted: Iterable[str]) -> bool:
    """Does the recommended setting overflow or loop: what a CI job fails on."""
    cell = result.cells[result.recommended]
    figures = {"overflow": cell.overflow_steps, "loop": cell.longest_loop}
    return any(figures[name] for name in wanted)
