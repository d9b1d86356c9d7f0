"""What a recording shows of its agent beside the provider's counts: what it compared, and what was answered in a window
that is taken for smaller."""

from __future__ import annotations

from typing import NamedTuple

from guard_core.ledger import Ints


class ExceededWindow(NamedTuple):
    """A window in tokens, and the largest request of a recording that was answered although it is larger."""

    window: int
    answered: int


class ComparedCounts(NamedTuple):
    """What the agent that wrote a recording compared with its threshold before each call: what it wrote down at its
    compactions, else what its own rule computes. `tokens` has an entry a step, below 0 where that is not known, or only
    what it was at least; they are counts of a policy in one of its profiles, "" for a policy without any, that counts
    by `counter`: settings may change what it counts."""

    policy: str
    profile: str
    tokens: Ints
    counter: object = None


def compared_counts(usage: object, policy: str, profile: str, counter: object) -> Ints | None:
    """What the agent of a recording compared, in tokens per step, where that is the count of a policy in a profile.
    `usage` is the model of the provider (guard_core.estimation.usage)."""
    compared: ComparedCounts | None = getattr(usage, "compared", None)
    is_own = compared is not None and (*compared[:2], compared.counter) == (policy, profile, counter)
    return compared.tokens if compared is not None and is_own else None


def largest_answered(usage: object, window: int) -> int:
    """The largest request in tokens that the provider answers in a window: larger ones are refused."""
    exceeded: ExceededWindow | None = getattr(usage, "exceeded", None)
    return exceeded.answered if exceeded is not None and exceeded.window == window else window
