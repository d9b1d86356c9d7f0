"""Not in this file: how much larger the first prompt after a compaction is than the messages in the recording explain.

Agents attach files, reminders and sealed summaries again after a compaction, and record none of it. The size is
measured where the provider reported the first call after a recorded compaction; elsewhere it is what the agent's
compactions usually add.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from guard_core.ledger import Ints, Ledger

# Tokens by agent (format of the recording). Source: medians, rounded, over the first prompts after 21 compactions in 19
# public recordings of Claude Code (9,700), and of 15 in 8 of Codex (sealed summaries are among them). The files of
# other agents explain their prompts.
USUAL = {"claude-code": 9_000, "codex": 2_000}
# Tokens of system prompt, tools and project notes that an agent's requests begin with. Source: the first prompts of 58
# public recordings of Claude Code, whose median is 41,800 (quartiles 29,800 and 42,600), rounded. 53 of them have at
# most 45,200 besides their messages; the others, 79,700 and more, begin in the middle of a conversation.
USUAL_OVERHEAD = {"claude-code": 40_000}
BEGUN = 1.5  # times that: a first prompt with more holds an earlier conversation


@dataclass(frozen=True)
class Unrecorded:
    """Tokens that the first prompt after a compaction holds and the file does not.

    `measured` has one entry per recorded compaction with a reported call after it: (epoch, tokens, prompt tokens);
    `usual` is the agent's constant, None where there is none.
    """

    measured: tuple[tuple[int, int, int], ...]
    usual: int | None

    @cached_property
    def tokens(self) -> int:
        """What to add to the first prompt after a compaction of this session: the median of all that is known."""
        known = [tokens for _, tokens, _ in self.measured] + ([] if self.usual is None else [self.usual])
        return max(0, round(float(np.median(known)))) if known else 0

    @property
    def share(self) -> float | None:
        """The median share of the measured prompts; None where none was measured."""
        return float(np.median([tokens / prompt for _, tokens, prompt in self.measured])) if self.measured else None

    @property
    def source(self) -> str:
        """Where the figure is from, in words."""
        count = len(self.measured)
        own = f"{count} recorded compaction{'s' if count > 1 else ''} of this session" if count else ""
        agent = "" if self.usual is None else "what this agent's compactions usually add"
        return "median of " + " and ".join(part for part in (own, agent) if part) if own or agent else "not known"


def usual_overhead(ledger: Ledger, overhead: int) -> int:
    """The overhead of a session whose first prompt suggests `overhead` tokens: less, where that is too much.

    What stays in the provider's cache when it has forgotten the rest is a part of it.
    """
    usual = USUAL_OVERHEAD.get(ledger.agent)
    if usual is None or overhead <= usual * BEGUN:
        return overhead
    cached = ledger.steps["cached_tokens"]
    stable = int(cached[cached > 0].min()) if (cached > 0).any() else 0
    return min(overhead, max(usual, stable if stable <= usual * BEGUN else 0))


def unrecorded(ledger: Ledger, residual: Ints) -> Unrecorded:
    """The quantity of a session whose attribution leaves `residual` (tokens per step)."""
    epoch, recorded = ledger.steps["epoch"], ledger.steps["prompt_tokens"]
    reported = np.flatnonzero(recorded > 0)
    epochs, places = np.unique(epoch[reported], return_index=True)
    measured = tuple(
        (int(number), int(residual[step]), int(recorded[step]))
        for number, step in zip(epochs, reported[places], strict=True)
        if number >= 0 and not ledger.bases[number].is_edit
    )
    return Unrecorded(measured, USUAL.get(ledger.agent))
