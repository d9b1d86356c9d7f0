"""A policy on the bundled sessions: replayed once in a process, since neither changes while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from guard_core.findings.facts import Facts
from guard_core.outcomes.comparing import Candidate, Compared, compared
from guard_core.policies import policy_kind
from guard_core.simulator.samples import SAMPLES, Sample

MOST_KEPT = 32  # policies and profiles whose examples a process keeps


@dataclass(frozen=True)
class Example:
    """A bundled session under a policy."""

    sample: Sample
    facts: Facts
    compared: Compared

    @property
    def step(self) -> int:
        """The step that shows most: the first compaction, else the largest request."""
        trace = self.compared.trace
        assert trace is not None
        if trace.compactions:
            return trace.compactions[0].step
        return int(np.argmax(trace.columns["modelled_prompt_tokens"])) if len(trace) else -1


@lru_cache(maxsize=MOST_KEPT)
def examples_of(policy: str, profile: str) -> tuple[Example, ...]:
    """Every bundled session under a policy at a profile's defaults."""
    candidate = Candidate(policy_kind(policy), profile)
    return tuple(
        Example(sample, facts, row)
        for sample, facts in zip(SAMPLES.values(), _facts(), strict=True)
        for row in compared(facts, [candidate])
        if row.candidate is not None
    )


@lru_cache(maxsize=1)
def _facts() -> tuple[Facts, ...]:
    """The same for every policy and profile."""
    return tuple(Facts.of(sample.build()) for sample in SAMPLES.values())
