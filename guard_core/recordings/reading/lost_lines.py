"""What a file proves of messages that it lacks: an entry follows, by its own words or number, one that is not there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise


def lost_words(lines: Sequence[int]) -> tuple[str, ...]:
    """The note of a session in which the entries on these lines follow ones that are not in the file; none of none."""
    if not lines:
        return ()
    if len(lines) == 1:
        return (
            f"The entry on line {lines[0]:,} follows one that is not in the file: what that one held is not known.",
        )
    return (
        f"{len(lines):,} entries, the first on line {min(lines):,}, follow ones that are not in the file: what those "
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
