"""What a file proves of messages that it lacks: an entry follows, by its own words, one that the file does not have."""

from __future__ import annotations

from collections.abc import Sequence


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
