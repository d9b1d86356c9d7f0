"""Every policy on one session: the recording on top, then a replay of each listed policy at its defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from guard_core.errors import GuardError
from guard_core.findings.facts import Facts
from guard_core.outcomes.bill import Prices
from guard_core.outcomes.losses import StatedRule
from guard_core.outcomes.outcome import PolicyOutcome, recorded_outcome, replayed_outcome
from guard_core.policies import POLICIES, PolicyKind
from guard_core.replay import replay
from guard_core.summaries.base import Summarizer
from guard_core.trace import Trace


class Candidate(NamedTuple):
    """A policy in one of its profiles ("" for a policy without profiles)."""

    kind: PolicyKind
    profile: str

    @property
    def title(self) -> str:
        """What pages and tables call it."""
        is_default = self.profile == self.kind.default_profile
        return self.kind.title if is_default else f"{self.kind.title}, {self.profile}"


@dataclass(frozen=True)
class Compared:
    """One row, with the replay that it is made from (None: the recording). `problem` is why a policy cannot be replayed
    here; it has no outcome then."""

    candidate: Candidate | None
    outcome: PolicyOutcome | None
    trace: Trace | None = None
    problem: str = ""


def candidates(*, all_profiles: bool = False) -> tuple[Candidate, ...]:
    """The policies that are compared, in the order in which they are listed: each in its default profile, or in all."""
    return tuple(
        Candidate(kind, profile)
        for kind in POLICIES.values()
        for profile in ((kind.profile_names or ("",)) if all_profiles else (kind.default_profile,))
    )


def compared(
    facts: Facts,
    chosen: Sequence[Candidate],
    *,
    window: int | None = None,
    rules: Sequence[StatedRule] | None = None,
    summarizer: Summarizer | None = None,
    each: Callable[[int], object] = lambda done: None,
) -> Iterator[Compared]:
    """The rows one after the other: the recording, where there is one, then each policy.

    Replays are in the session's window, or in `window` tokens, with the settings that the recording gives to its own
    agent's policy. `each` hears how many steps of all are done, and what it raises ends the work.
    """
    prices = Prices.of(facts.session, facts.ledger)
    size = facts.ledger.step_count
    simulated = facts.ledger.usage_ratio is not None
    if not simulated:
        yield Compared(None, recorded_outcome(facts, prices, rules))
    for place, item in enumerate(chosen):
        done = place * size
        each(done)
        try:
            settings = item.kind.recorded(facts.session)
            policy = item.kind.make(item.profile or None, **settings)
            trace = replay(
                facts.ledger,
                policy,
                window=facts.window.value if window is None else window,
                usage=facts.usage,
                summarizer=summarizer,
                request="" if simulated else None,
                each=lambda step, done=done: each(done + step),  # type: ignore[misc]
            )
            outcome = replayed_outcome(facts, trace, prices, rules)
        except GuardError as error:
            yield Compared(item, None, problem=str(error))
            continue
        yield Compared(item, outcome, trace)
