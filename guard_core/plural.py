"""A number with its noun, wherever people read one."""

from __future__ import annotations


def counted(count: int, name: str) -> str:
    """One as in "1 compaction", several as in "4 compactions"."""
    return f"{count:,} {name}{'' if count == 1 else 's'}"
