"""Where ContextGuard splits contents into old and recent, with the original's walks, quirks included.

Source: specification of ContextGuard, section 9.
"""

from __future__ import annotations

from collections.abc import Callable

from guard_core.costs import HAS_CALL, HAS_RESULT, MODEL, USER

Flags = Callable[[int], int]


def is_result(flags: int) -> bool:
    """A user's content with a function response."""
    return bool(flags & USER and flags & HAS_RESULT)


def is_call(flags: int) -> bool:
    """A model's content with a function call."""
    return bool(flags & MODEL and flags & HAS_CALL)


def safe_split(length: int, flags: Flags, index: int) -> int:
    """The split near `index` that the original takes for safe: back over a tool chain, else forward over its pair."""
    if index <= 0 or index >= length:
        return index
    split = index
    while split > 0 and (is_result(flags(split)) or is_call(flags(split))):
        split -= 1
    if split <= 0:
        split = _forward(length, flags, index)
    return max(1, min(split, length - 1))


def _forward(length: int, flags: Flags, index: int) -> int:
    while index < length:
        if is_call(flags(index)):
            index += 1
        elif is_result(flags(index)):
            return index + 1
        else:
            break
    return index


def find_split(length: int, flags: Flags, reach: Callable[[int], int], budget: int) -> int:
    """Where `tail` splits so that about `budget` tokens stay: at the content that reaches the budget.

    `reach` gives the last content from which on the tokens reach a budget, -1 where all of them do not.
    """
    index = reach(budget)
    if index >= 0:
        return safe_split(length, flags, index + 1 if index < length - 2 else length - 2)
    return safe_split(length, flags, length // 2 if length > 2 else 1)
