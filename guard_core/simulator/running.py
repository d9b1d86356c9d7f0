"""Running scenarios: what a policy does in each, judged as the source judges, and by stricter measures of our own."""

from __future__ import annotations

import msgspec
import numpy as np

from guard_core.defaults import LOOP_LENGTH
from guard_core.ledger import Ledger
from guard_core.policies import POLICIES
from guard_core.policies.base import Policy
from guard_core.replay import replay
from guard_core.simulator.flow import Simulation, play
from guard_core.simulator.scenario import Scenario
from guard_core.summaries.base import Summarizer
from guard_core.summaries.sizes import FixedSummaries
from guard_core.trace import Trace


class ScenarioResult(msgspec.Struct, frozen=True):
    """What happened in one scenario. Tokens are modelled prompt tokens; `injections` counts as the source does.

    A loop is a compaction at every one of at least three consecutive steps, each leaving the request at or over the
    threshold. `met` says whether the source's assertions hold (None: it has none, or the profile is older than the
    scenario).
    """

    name: str
    window: int
    steps: int
    compactions: int
    injections: int
    peak: int
    overflow_steps: int
    loop_steps: int
    longest_loop: int
    tokens_sent: int
    met: bool | None
    digests: tuple[str, ...]


def run_scenario(scenario: Scenario, policy: Policy, *, summarizer: Summarizer | None = None) -> ScenarioResult:
    """Play a scenario's simulations under a policy: what they count together, and whether that is what the scenario
    requires. Summaries have a fixed size without a `summarizer`."""
    traces = [run_simulation(simulation, policy, summarizer=summarizer) for simulation in scenario.simulations]
    injections = sum(map(count_injections, traces))
    overflows = sum(int(trace.columns["overflow"].sum()) for trace in traces)
    loops = [length for trace in traces for length in loop_lengths(trace)]
    expected = scenario.expected
    asserts = expected.no_overflow or expected.injections or expected.no_loop
    older = getattr(policy.settings, "profile", "") in ("tail", "early") and scenario.since == "current"
    met = (not expected.no_overflow or not overflows) and injections >= expected.injections
    return ScenarioResult(
        name=scenario.name,
        window=scenario.simulations[0].window,
        steps=sum(map(len, traces)),
        compactions=sum(len(trace.compactions) for trace in traces),
        injections=injections,
        peak=max(int(trace.columns["modelled_prompt_tokens"].max(initial=0)) for trace in traces),
        overflow_steps=overflows,
        loop_steps=sum(loops),
        longest_loop=max(loops, default=0),
        tokens_sent=sum(int(trace.columns["modelled_prompt_tokens"].sum()) for trace in traces),
        met=met if asserts and not older else None,
        digests=tuple(trace.digest() for trace in traces),
    )


def run_simulation(simulation: Simulation, policy: Policy, *, summarizer: Summarizer | None = None) -> Trace:
    """One simulation under a policy."""
    ledger = Ledger.of(play(simulation).session)
    summaries = summarizer or FixedSummaries(simulation.summary_bytes)
    return replay(ledger, policy, window=simulation.window, summarizer=summaries)


def count_injections(trace: Trace) -> int:
    """Steps whose request was smaller than built while a summary exists: what the source's simulator counts."""
    columns = trace.columns
    smaller = columns["heuristic_sent"] < columns["heuristic_built"]
    return int((smaller & (columns["summary_bytes"] > 0)).sum())


def loop_lengths(trace: Trace) -> list[int]:
    """The lengths of all loops: consecutive compactions that leave the request at or over the threshold."""
    return [length for length in vain_streaks(trace) if length >= LOOP_LENGTH]


def vain_streaks(trace: Trace) -> list[int]:
    """How many compactions followed one another, each leaving the request at or over the threshold; none of a policy
    that cuts each request anew from the whole log, without a summary: it has nothing that could last."""
    kind = POLICIES.get(trace.policy)
    if kind is not None and not kind.summarises and not any(one.carried or one.kept_from for one in trace.compactions):
        return []
    columns = trace.columns
    over = (columns["modelled_prompt_tokens"] >= columns["threshold"]) & (columns["threshold"] >= 0)
    vain = np.concatenate(([False], (columns["fired"] == 1) & over, [False]))
    edges = np.flatnonzero(np.diff(vain.astype(np.int8)))
    return [int(length) for length in edges[1::2] - edges[::2]]
