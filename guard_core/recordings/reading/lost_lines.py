"""What a file proves of messages that it lacks: an entry follows, by its own words or number, one that is not there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple


class NumberedStep(NamedTuple):
    """A step that its agent numbers within its turn, from 1 on; `turn` is what distinguishes the turn from the one
    before."""

    turn: object
    number: int
    line: int


def lost_words(lines: Sequence[int], *, are_lines: bool = True) -> tuple[str, ...]:
    """The note of a session in which the entries on these lines follow ones that are not in the file; none of none.
    `are_lines`: else they are the numbers of the entries."""
    if not lines:
        return ()
    if len(lines) == 1:
        which = f"The entry on line {lines[0]:,}" if are_lines else f"Entry {lines[0]:,}"
        return (f"{which} follows one that is not in the file: what that one held is not known.",)
    first = f"on line {min(lines):,}" if are_lines else f"number {min(lines):,}"
    return (
        f"{len(lines):,} entries, the first {first}, follow ones that are not in the file: what those "
        "held is not known.",
    )


def skipped_words(numbers: Sequence[int]) -> tuple[str, ...]:
    """The note of a session whose steps are numbered in their order by the agent and skip some; none where they skip
    none, or their numbers do not rise."""
    if any(before >= after for before, after in pairwise(numbers)):
        return ()
    gaps = [(before, after) for before, after in pairwise(numbers) if after > before + 1]
    if not gaps:
        return ()
    missing = sum(after - before - 1 for before, after in gaps)
    before, after = gaps[0]
    where = f"step {before:,} is followed by step {after:,}"
    if missing == 1:
        return (f"By its numbers a step is not in the file ({where}): what it held is not known.",)
    more = "" if len(gaps) == 1 else f", and so on: {len(gaps):,} gaps"
    return (f"By their numbers {missing:,} steps are not in the file ({where}{more}): what they held is not known.",)


def skipped_in_turns(steps: Sequence[NumberedStep]) -> tuple[str, ...]:
    """The note of a session whose steps are numbered anew in each turn and skip some, at the beginning of a turn, too;
    none where they skip none. A number that is repeated is another attempt."""
    gaps = []
    for before, step in pairwise((None, *steps)):
        assert step is not None
        reached = before.number if before is not None and before.turn == step.turn else 0
        if step.number > reached + 1:
            gaps.append((step.number - reached - 1, step))
    if not gaps:
        return ()
    missing, (_, first) = sum(count for count, _ in gaps), gaps[0]
    where = f"the first in the file behind them is step {first.number:,} of its turn, on line {first.line:,}"
    if missing == 1:
        where = f"the next one is step {first.number:,} of its turn, on line {first.line:,}"
        return (f"By its number a step is not in the file ({where}): what it held is not known.",)
    return (f"By their numbers {missing:,} steps are not in the file ({where}): what they held is not known.",)


def skipped_turns(numbers: Sequence[int]) -> tuple[str, ...]:
    """The note of a session whose turns are numbered from 0 on and that lacks some; none where they do not rise."""
    turns = [-1, *dict.fromkeys(numbers)]
    gaps = [(before, after) for before, after in pairwise(turns) if after > before + 1]
    if not gaps or turns != sorted(turns):
        return ()
    missing = sum(after - before - 1 for before, after in gaps)
    before, after = gaps[0]
    where = f"turn {after + 1:,} follows turn {before + 1:,}" if before >= 0 else f"turn {after + 1:,} is the first"
    have, what = ("turn has", "it") if missing == 1 else ("turns have", "they")
    return (f"By its numbers {missing:,} {have} no step in the file ({where}): what {what} held is not known.",)
