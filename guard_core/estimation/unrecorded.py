"""Not in this file: how much larger the first prompt after a compaction is than the messages in the recording explain.

Agents attach files, reminders and sealed summaries again after a compaction, and record none of it. The size is
measured where the provider reported the first call after a recorded compaction; elsewhere it is what the agent's
compactions usually add, or the files that it attaches by its rule with what else came after earlier ones. Where the
agent estimates what sealed compactions leave, it follows from that and the one before (`anchors`). A file that has the
tools of its requests has the requests, too (Claude Code from 2.1.300 on): nothing is usual there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from guard_core.compaction_bases import EDIT, SEALED
from guard_core.ledger import Ints, Ledger

# Tokens by agent (format of the recording). Source: medians, rounded, over the first prompts after 21 compactions in 19
# public recordings of Claude Code (9,700), and of 15 in 8 of Codex (sealed summaries are among them). The files of
# other agents explain their prompts.
USUAL = {"claude-code": 9_000, "codex": 2_000}
# Agents that record the exact history behind a compaction (`replacement_history`): what is missing is in sealed
# summaries alone.
_EXACT = frozenset({"codex"})
# Tokens of system prompt, tools and project notes that an agent's requests begin with. Source: the first prompts of 58
# public recordings of Claude Code, whose median is 41,800 (quartiles 29,800 and 42,600), rounded. 53 of them have at
# most 45,200 besides their messages; the others, 79,700 and more, begin in the middle of a conversation.
USUAL_OVERHEAD = {"claude-code": 40_000}
# The same besides files. Source: the median over the first prompts after 33 compactions in 24 public recordings of
# Claude Code 2.0.76 to 2.1.42, rounded.
USUAL_BESIDES_FILES = 950
BEGUN = 1.5  # times that: a first prompt with more holds an earlier conversation


@dataclass(frozen=True)
class Unrecorded:
    """Tokens that the first prompt after a compaction holds and the file does not.

    `measured` has one entry per recorded compaction with a reported call after it: (epoch, tokens, prompt tokens);
    `usual` is the agent's constant, None where there is none. `restored` says of each recorded compaction how many of
    them are files that the agent attaches again by its rule, -1 where that is not known, and `exact` whether the file
    has all that it left.
    """

    measured: tuple[tuple[int, int, int], ...]
    usual: int | None
    restored: tuple[int, ...] = ()
    exact: tuple[bool, ...] = ()

    def after(self, epoch: int) -> int:
        """What is expected after one recorded compaction: its files, and what those before it held besides theirs."""
        if self.exact[epoch]:
            return max(0, self._after_exact)
        files = self.restored[epoch]
        return self.tokens if files < 0 else max(0, files + self._besides_files)

    @cached_property
    def _after_exact(self) -> int:
        """The median after compactions of which the file has all that they left."""
        alike = [tokens for number, tokens, _ in self.measured if self.exact[number]]
        return round(float(np.median(alike or [0])))

    @cached_property
    def _besides_files(self) -> int:
        """The median besides files that are attached by the rule."""
        rests = [tokens - self.restored[number] for number, tokens, _ in self.measured if self.restored[number] >= 0]
        return round(float(np.median([*rests, self._usual_besides])))

    @cached_property
    def _usual_besides(self) -> int:
        """What is usual besides files, less what the overhead has of it: the smallest prompt after a compaction, which
        the overhead is taken from and nothing is missing in, had files and the rest, too."""
        held = (self.restored[number] for number, tokens, _ in self.measured if not tokens)
        return next((-files for files in held if files >= 0), USUAL_BESIDES_FILES)

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


def unrecorded(ledger: Ledger, residual: Ints, ratios: dict[str, float]) -> Unrecorded:
    """The quantity of a session whose attribution leaves `residual` (tokens per step) and has these tokens per lexical
    token."""
    epoch, recorded = ledger.steps["epoch"], ledger.steps["prompt_tokens"]
    reported = np.flatnonzero(recorded > 0)
    epochs, places = np.unique(epoch[reported], return_index=True)
    measured = tuple(
        (int(number), int(residual[step]), int(recorded[step]))
        for number, step in zip(epochs, reported[places], strict=True)
        if number >= 0 and ledger.bases[number].kind != EDIT
    )
    ratio = ratios["tool results"]  # as which files are sent
    restored = tuple(round(base.restored_tokens * ratio) if base.restored_tokens >= 0 else -1 for base in ledger.bases)
    exact = tuple(ledger.agent in _EXACT and base.kind != SEALED for base in ledger.bases)
    return Unrecorded(measured, None if ledger.tools_recorded else USUAL.get(ledger.agent), restored, exact)
