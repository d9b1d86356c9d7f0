"""Where ContextGuard splits contents into old and recent, with the original's walks, quirks included.

Source: specification of ContextGuard, section 9.
"""

from __future__ import annotations

from guard_core.costs import HAS_CALL, HAS_RESULT, MODEL, USER
from guard_core.policies.contextguard.contents import Contents


def is_result(flags: int) -> bool:
    """A user's content with a function response."""
    return bool(flags & USER and flags & HAS_RESULT)


def is_call(flags: int) -> bool:
    """A model's content with a function call."""
    return bool(flags & MODEL and flags & HAS_CALL)


def safe_split(contents: Contents, index: int) -> int:
    """The split near `index` that the original takes for safe: back over a tool chain, else forward over its pair."""
    length = len(contents)
    if index <= 0 or index >= length:
        return index
    split = contents.outside_chain(index)
    if split <= 0:
        split = _forward(contents, index)
    return max(1, min(split, length - 1))


def _forward(contents: Contents, index: int) -> int:
    while index < len(contents):
        flags = contents.flags(index)
        if is_call(flags):
            index += 1
        elif is_result(flags):
            return index + 1
        else:
            break
    return index


def find_split(contents: Contents, budget: int) -> int:
    """Where `tail` splits so that about `budget` tokens stay: at the content that reaches the budget."""
    length, index = len(contents), contents.reach(budget)
    if index >= 0:
        return safe_split(contents, index + 1 if index < length - 2 else length - 2)
    return safe_split(contents, length // 2 if length > 2 else 1)
