"""How LangChain's settings name sizes: tokens, messages, or a fraction of the window; and when a trigger is met.

A trigger is written as conditions that are joined by `and`, of which one group is enough where they are joined by `or`:
`tokens 2000 and messages 30 or tokens 20000`. A condition is met when its number is reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from guard_core.errors import SettingError

TOKENS, MESSAGES, FRACTION = "tokens", "messages", "fraction"
LARGEST = 10**12  # ours, as of every count


class ContextSize(NamedTuple):
    """A number of tokens or messages, or a fraction of the window."""

    kind: str
    value: float

    def __str__(self) -> str:
        return f"{self.kind} {self.value:g}" if self.kind == FRACTION else f"{self.kind} {int(self.value)}"

    def tokens(self, window: int) -> int:
        """The tokens that it means, at least 1; not of a number of messages."""
        return max(1, int(window * self.value) if self.kind == FRACTION else int(self.value))


Trigger = tuple[tuple[ContextSize, ...], ...]  # one group is enough, all conditions of which must be met


def size_of(text: str, what: str) -> ContextSize:
    """One size as it is typed. Raises SettingError."""
    kind, _, number = text.strip().partition(" ")
    allowed = f"{what} is written as tokens 4000, messages 50 or fraction 0.8, not {text.strip()[:40]!r}"
    if kind not in (TOKENS, MESSAGES, FRACTION):
        raise SettingError(allowed)
    try:
        value = float(number.replace("_", "").replace(",", ""))
    except ValueError:
        raise SettingError(allowed) from None
    if kind == FRACTION and not 0 < value <= 1:
        raise SettingError(f"{what}: a fraction is above 0 and at most 1, not {number.strip()[:40]}")
    if kind != FRACTION and not (1 <= value <= LARGEST and value == int(value)):
        raise SettingError(f"{what}: {kind} are a whole number from 1 to {LARGEST:,}, not {number.strip()[:40]}")
    return ContextSize(kind, value)


def trigger_of(text: str, what: str = "trigger") -> Trigger:
    """A trigger as it is typed; without a condition it is never met. Raises SettingError."""
    groups = [group for group in text.split(" or ") if group.strip()]
    return tuple(tuple(size_of(condition, what) for condition in group.split(" and ")) for group in groups)


def written(value: Any) -> str:
    """A size or trigger in the library's own shapes as it is typed here: (kind, number), {kind: number}, lists of
    both."""
    return " or ".join(_groups(value))


def _groups(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield " and ".join(f"{kind} {number}" for kind, number in value.items())
    elif isinstance(value, list | tuple):
        if len(value) == 2 and isinstance(value[0], str):
            yield f"{value[0]} {value[1]}"
        else:
            for item in value:
                yield from _groups(item)
    elif value is not None:
        raise SettingError(f"a size is a pair of a kind and a number, not {str(value)[:40]!r}")
