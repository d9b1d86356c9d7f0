"""Scenarios under guards: what can be chosen, and one table row for each scenario and guard. No ORM, no request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import NamedTuple

import msgspec
import numpy as np

from guard_core.errors import UnknownName
from guard_core.ledger import Ledger
from guard_core.policies import GROUPS, POLICIES, get_policy, policy_kind
from guard_core.policies.base import Policy
from guard_core.replay import replay
from guard_core.simulator.flow import Simulation, play
from guard_core.simulator.running import count_injections, loop_lengths
from guard_core.simulator.scenario import Scenario
from guard_core.summaries.sizes import FixedSummaries
from guard_core.trace import Trace
from inspector.figures.sparkline import Trend, trend


class PolicyChoice(NamedTuple):
    """A policy and its profile; "" for a policy that has none."""

    policy: str
    profile: str

    @property
    def name(self) -> str:
        return f"{self.policy}/{self.profile}" if self.profile else self.policy


class Need(msgspec.Struct, frozen=True):
    """One thing that a scenario requires: overflow, summary or loop. `met` is None where it is not judged."""

    kind: str
    met: bool | None
    found: int  # steps that overflow, requests with a summary, compactions in a row
    wanted: int = 0


class ResultRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """One scenario under one policy. Tokens are modelled prompt tokens; steps count from 0 over all simulations."""

    scenario: str
    policy: str
    profile: str
    steps: int
    compactions: int
    injections: int  # steps that only put an old summary in again
    peak: int
    overflow_steps: int
    loops: int
    loop_steps: int
    trend: Trend
    compaction_steps: tuple[int, ...] = ()
    needs: tuple[Need, ...] = ()
    first_overflow: int | None = None

    @property
    def unmet(self) -> bool:
        return any(need.met is False for need in self.needs)

    @property
    def fails(self) -> bool:
        return bool(self.overflow_steps or self.loops or self.unmet)


# ---- what can be chosen


def profiles_of(policy: str) -> tuple[str, ...]:
    """The profiles that a policy knows, its default first; none for a policy without profiles."""
    return policy_kind(policy).profile_names


def guards(policies: Iterable[str], profiles: Iterable[str]) -> tuple[PolicyChoice, ...]:
    """Every chosen policy under every chosen profile it knows, else under its default. Raises UnknownName."""
    chosen, wanted = set(policies), set(profiles)
    if unknown := sorted(chosen.difference(POLICIES)):
        raise UnknownName(f"there is no policy {unknown[0][:40]!r}; known are {', '.join(POLICIES)}")
    if unknown := sorted(wanted.difference(all_profiles())):
        raise UnknownName(f"there is no profile {unknown[0][:40]!r}; known are {', '.join(all_profiles())}")
    return tuple(guard for policy in POLICIES if policy in chosen for guard in _of_policy(policy, wanted))


def _of_policy(policy: str, wanted: set[str]) -> Iterator[PolicyChoice]:
    """A policy under each wanted profile that it knows, else under its default; without profiles under "" alone."""
    known = profiles_of(policy)
    order = [name for name in all_profiles() if name in known and name in wanted]
    for profile in order or known[:1] or ("",):
        yield PolicyChoice(policy, profile)


def guards_by_group() -> list[tuple[str, list[str]]]:
    """The names of every policy under every profile it knows, by the groups of the policies."""
    profiles = all_profiles()
    return [
        (group, [guard.name for guard in guards((kind.name for kind in kinds), profiles)])
        for group, kinds in GROUPS.items()
    ]


def all_profiles() -> tuple[str, ...]:
    """The profiles of all policies, each once."""
    return tuple(dict.fromkeys(name for policy in POLICIES for name in profiles_of(policy)))


def make_policy(guard: PolicyChoice) -> Policy:
    """A policy with the defaults of the chosen profile."""
    return get_policy(guard.policy, **({"profile": guard.profile} if guard.profile else {}))


# ---- playing


def ledger_of(simulation: Simulation) -> Ledger:
    """The ledger of what a simulation plays."""
    return Ledger.of(play(simulation).session)


def play_trace(simulation: Simulation, guard: PolicyChoice, ledger: Ledger | None = None) -> Trace:
    """A simulation under a guard. As in the source's simulator, the continuation names no request."""
    summaries = FixedSummaries(simulation.summary_bytes)
    played = ledger or ledger_of(simulation)
    return replay(played, make_policy(guard), window=simulation.window, summarizer=summaries, request="")


def rows_for(scenario: Scenario, chosen: Iterable[PolicyChoice]) -> list[ResultRow]:
    """A scenario under every guard; it is played once."""
    ledgers = [ledger_of(simulation) for simulation in scenario.simulations]
    return [row_of(scenario, guard, ledgers) for guard in chosen]


def row_of(scenario: Scenario, guard: PolicyChoice, ledgers: Iterable[Ledger]) -> ResultRow:
    """A scenario's simulations under a guard, added up."""
    traces = [play_trace(*pair) for pair in zip(scenario.simulations, repeat(guard), ledgers, strict=False)]
    columns = {name: np.concatenate([trace.columns[name] for trace in traces]) for name in traces[0].columns}
    tokens, over = columns["modelled_prompt_tokens"], columns["overflow"]
    loops = [length for trace in traces for length in loop_lengths(trace)]
    threshold, window = int(columns["threshold"].max(initial=-1)), scenario.simulations[0].window
    counted = sum(map(count_injections, traces))
    put_in = (columns["heuristic_sent"] < columns["heuristic_built"]) & (columns["summary_bytes"] > 0)
    first = np.flatnonzero(over)
    return ResultRow(
        scenario=scenario.name,
        policy=guard.policy,
        profile=guard.profile,
        steps=len(tokens),
        compactions=sum(len(trace.compactions) for trace in traces),
        injections=int((put_in & (columns["fired"] == 0)).sum()),
        peak=int(tokens.max(initial=0)),
        overflow_steps=int(over.sum()),
        loops=len(loops),
        loop_steps=sum(loops),
        trend=trend(tokens, columns["fired"], over, threshold=threshold, window=window),
        compaction_steps=tuple(np.flatnonzero(columns["fired"])[:8].tolist()),
        needs=needs_of(scenario, guard, counted, int(over.sum()), max(loops, default=0)),
        first_overflow=int(first[0]) if len(first) else None,
    )


def needs_of(scenario: Scenario, guard: PolicyChoice, counted: int, overflows: int, loop: int) -> tuple[Need, ...]:
    """What the source's test asserts, judged; its check for loops is replaced by a real one."""
    expected = scenario.expected
    judged = not (guard.profile in ("tail", "early") and scenario.since == "current")
    needs = []
    if expected.no_overflow:
        needs.append(Need("overflow", overflows == 0, overflows))
    if expected.injections:
        needs.append(Need("summary", counted >= expected.injections, counted, expected.injections))
    if expected.no_loop:
        needs.append(Need("loop", loop == 0, loop))
    return tuple(need if judged else msgspec.structs.replace(need, met=None) for need in needs)
