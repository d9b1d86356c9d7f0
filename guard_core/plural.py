"""Numbers with their noun, and steps, wherever people read one."""

from __future__ import annotations


def counted(count: int, name: str) -> str:
    """One as in "1 compaction", several as in "4 compactions"."""
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def place_of(step: int, calls: int, before: str = "") -> str:
    """Where a check was made: "step 41", with `before` "before step 41", and "after the last step" of a session of
    that many `calls` where no call followed. `step` counts from 0."""
    return "after the last step" if step >= calls else f"{before}step {step + 1:,}"
