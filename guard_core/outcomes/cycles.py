"""The room that each compaction makes, cycle by cycle, and where no room is left.

Text that every compaction keeps adds up: after some cycles what cannot be removed fills the request again. The cycle at
which a compaction makes no room is where a session is stuck.
"""

from __future__ import annotations

import msgspec
import numpy as np

from guard_core.costs import HAS_RESULT
from guard_core.findings.facts import Facts
from guard_core.ledger import Ints, prefix_sums
from guard_core.outcomes.sent import SentRequests
from guard_core.rules import OwnChecks

MOST_CYCLES = 10_000  # of clearing tool results, looked at in one session


class Cycle(msgspec.Struct, frozen=True):
    """One cycle: the step whose request was compacted, its prompt tokens before and after, and the limit that it is
    compared with."""

    step: int
    before: int
    after: int
    limit: int

    @property
    def freed(self) -> float:
        """The share of the request that was removed; below 0 where it grew."""
        return 1 - self.after / self.before if self.before else 0.0

    @property
    def room(self) -> int:
        """Tokens from the request to the limit; 0 or less: none."""
        return self.limit - self.after

    @property
    def is_stuck(self) -> bool:
        """Did it make no room: at or over the limit, or no smaller."""
        return self.room <= 0 or self.after >= self.before


def cycles_of(sent: SentRequests) -> tuple[Cycle, ...]:
    """The cycles of one side, one for each step with compactions. The limit is the threshold of the policy, of a
    recording that of its agent's own rule, where there is one, else the window. The cycle of a recorded compaction that
    a replay makes again is the recorded one."""
    again = sent.compactions_as_recorded
    recorded = {cycle.step: cycle for cycle in cycles_of(SentRequests.recorded(sent.facts))} if again else {}
    first: dict[int, int] = {}
    for item in sent.fired:
        first.setdefault(item.step, item.before)
    after = sent.tokens[list(first)].tolist()
    rows = zip(first.items(), after, _limits(sent, first), strict=True)
    cycles = (Cycle(step, before, tokens, limit) for (step, before), tokens, limit in rows)
    return tuple(recorded[cycle.step] if cycle.step in again else cycle for cycle in cycles)


def _limits(sent: SentRequests, before: dict[int, int]) -> list[int]:
    """What each of some requests is compared with; `before` are their prompt tokens by step."""
    facts, steps = sent.facts, list(before)
    trace = sent.trace or facts.own_rule
    window = facts.window.value if trace is None else trace.window
    if trace is not None:
        compared = [trace.columns[name] for name in ("decision_tokens", "threshold")]
    elif facts.explanation.refuting is None:
        checks = OwnChecks(facts.session, facts.ledger, facts.explanation)
        compared = [checks.counts, checks.thresholds]
    else:  # the recording contradicts the threshold that its agent's rule has by default
        return [window] * len(steps)
    rows = zip(before.values(), *(column[steps].tolist() for column in compared), strict=True)
    return [_limit(window, tokens, *numbers) for tokens, *numbers in rows]


def _limit(window: int, before: int, decided: int, threshold: int) -> int:
    """What the request is compared with, in prompt tokens.

    A threshold is in the policy's own tokens: it is scaled as the policy's count at this step is to the request.
    """
    if threshold <= 0:
        return window
    is_scaled = before > 0 and decided >= threshold
    return min(window, round(threshold * before / decided) if is_scaled else threshold)


def stuck_at(cycles: tuple[Cycle, ...]) -> int:
    """The number of the first cycle that makes no room, from 0; -1: each makes some."""
    return next((number for number, cycle in enumerate(cycles) if cycle.is_stuck), -1)


def text_floor(facts: Facts, limit: int) -> tuple[Cycle, ...]:
    """The cycles of a session whose tool results alone are cleared, each time the request reaches `limit` tokens.

    All text of users and of the model stays. The last cycle is the one that makes no room, if there is one: from there
    on text alone fills the request. Source of the measure: the score cards of Hermes (specification of the evidence,
    section 2).
    """
    ledger, tokens = facts.ledger, facts.attribution.tokens
    results = np.where(ledger.events["flags"] & HAS_RESULT, _share(tokens, ledger.events), 0)
    text, cleared = prefix_sums(tokens - results), prefix_sums(results)
    at, fixed = ledger.steps["at"], facts.attribution.overhead + facts.attribution.prologue
    floor, whole = fixed + text[at], fixed + text[at] + cleared[at]
    cycles: list[Cycle] = []
    removed, step = 0, 0
    while step < len(at) and len(cycles) < MOST_CYCLES:
        reached = np.flatnonzero(whole[step:] - removed >= limit)
        if not len(reached):
            break
        step += int(reached[0])
        cycles.append(Cycle(step, int(whole[step]) - removed, int(floor[step]), limit))
        removed = int(cleared[at[step]])
        if cycles[-1].is_stuck:
            break
        step += 1
    return tuple(cycles)


def _share(tokens: Ints, events: dict[str, Ints]) -> Ints:
    """The tokens of each event's tool results: their part of its bytes."""
    return np.asarray(tokens * events["result_bytes"] // np.maximum(events["bytes"], 1))
