"""One session under every setting of a grid: what happened under each, in figures.

The threshold strategy runs in lanes, all settings at once (`PolicyKind.lanes`); anything else is replayed one by one.
Both give the same figures. Cost and losses need the requests of a replay, so asking for them replays every setting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from guard_core.defaults import LOOP_LENGTH
from guard_core.estimation.usage import Usage
from guard_core.findings.facts import Facts
from guard_core.findings.repeated_results import RepeatedResult, repeated_results
from guard_core.ledger import Ledger
from guard_core.outcomes.bill import Prices, bill_of
from guard_core.outcomes.losses import StatedRule, losses_of
from guard_core.outcomes.regret import read_again
from guard_core.outcomes.sent import SentRequests
from guard_core.policies import DEFAULT_POLICY, PolicyKind, get_policy, policy_kind
from guard_core.policies.base import Policy
from guard_core.replay import assumed_usage, replay
from guard_core.simulator.running import vain_streaks
from guard_core.summaries.sizes import RecordedSummaries, SizeModel
from guard_core.trace import Trace
from guard_core.windows.prices import UNIT
from guard_core.windows.request_limits import RequestLimits

# What a policy is made with in one session, under the settings of a point.
MadeWith = Callable[[PolicyKind, Mapping[str, Any]], Mapping[str, Any]]
LOSSES = ("requests_dropped", "rules_gone", "read_again")  # of figures: -1 where they were not asked for
LANES_AT_ONCE = 128  # settings between two reports of progress


def only_given(kind: PolicyKind, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of a point alone: no recording gives any."""
    return given


class Priced(NamedTuple):
    """What the cost and the losses of a session are computed from: its facts and prices, the rules that someone stated
    (None: not looked for), and the results that its agent got again after they were lost."""

    facts: Facts
    prices: Prices
    rules: Sequence[StatedRule] | None
    again: Sequence[RepeatedResult]

    @classmethod
    def of(cls, facts: Facts, rules: Sequence[StatedRule] | None = None) -> Priced:
        """Those of a session."""
        return cls(facts, Prices.of(facts.session, facts.ledger), rules, repeated_results(facts))


class Figures(msgspec.Struct, frozen=True):
    """What happened under one setting. Tokens are modelled prompt tokens; steps are -1 where there is none.

    `cost` of all calls, in the unit of `windows.prices`, is None, and `requests_dropped` (users' messages that some
    later request did not have as they were), `rules_gone` (sentences with a rule that the last request did not have as
    they were) and `read_again` (tokens of results, `outcomes.regret`) are -1, where they were not asked for; `cost` is
    None also where a model has no price.
    """

    compactions: int
    summariser_calls: int
    overflow_steps: int
    first_overflow: int
    first_compaction: int
    longest_loop: int  # consecutive compactions that leave the request over the threshold; 0 below three
    peak: int
    tokens_sent: int
    cost: int | None = None
    requests_dropped: int = -1
    rules_gone: int = -1
    read_again: int = -1


def figure_values(figures: Figures) -> dict[str, Any]:
    """The figures of one session as plain values, money in millionths of a US dollar; what was not asked for is
    null."""
    losses = {name: value if (value := getattr(figures, name)) >= 0 else None for name in LOSSES}
    return {**msgspec.structs.asdict(figures), "cost": money(figures.cost), **losses}


def money(cost: int | None) -> int | None:
    """A cost in millionths of a US dollar."""
    return None if cost is None else round(cost / UNIT)


class GridCell(msgspec.Struct, frozen=True):
    """One point of the grid. `windows` (tokens) and `figures` have one entry per session."""

    values: dict[str, Any]
    windows: tuple[int, ...]
    figures: tuple[Figures, ...]

    @property
    def window(self) -> int:
        """The smallest window of its sessions."""
        return min(self.windows)

    @property
    def overflow_steps(self) -> int:
        return sum(item.overflow_steps for item in self.figures)

    @property
    def compactions(self) -> int:
        return sum(item.compactions for item in self.figures)

    @property
    def tokens_sent(self) -> int:
        return sum(item.tokens_sent for item in self.figures)

    @property
    def peak(self) -> int:
        return max((item.peak for item in self.figures), default=0)

    @property
    def fullest(self) -> int:
        """The number of the session whose largest request fills most of its window."""
        return max(range(len(self.figures)), key=lambda at: self.figures[at].peak / max(1, self.windows[at]))

    @property
    def longest_loop(self) -> int:
        return max((item.longest_loop for item in self.figures), default=0)

    @property
    def cost(self) -> int | None:
        """Of all sessions; None where one has no price, or none was asked for."""
        costs = [item.cost for item in self.figures if item.cost is not None]
        return sum(costs) if len(costs) == len(self.figures) else None

    @property
    def requests_dropped(self) -> int | None:
        """Of all sessions; None where it was not asked for."""
        return self._known_sum("requests_dropped")

    @property
    def rules_gone(self) -> int | None:
        """Of all sessions; None where it was not asked for."""
        return self._known_sum("rules_gone")

    @property
    def read_again(self) -> int | None:
        """Of all sessions, in tokens; None where it was not asked for."""
        return self._known_sum("read_again")

    def _known_sum(self, name: str) -> int | None:
        counts = [getattr(item, name) for item in self.figures]
        return sum(counts) if min(counts, default=0) >= 0 else None

    def of(self, sessions: Sequence[int]) -> GridCell:
        """The same setting over some of its sessions."""
        windows = tuple(self.windows[at] for at in sessions)
        return GridCell(self.values, windows, tuple(self.figures[at] for at in sessions))


def session_cells(  # noqa: PLR0913 - named, and most of them optional
    ledger: Ledger,
    points: Sequence[Mapping[str, Any]],
    *,
    window: int,
    policy: str = DEFAULT_POLICY,
    settings: Mapping[str, Any] | None = None,
    usage: Usage | None = None,
    summarizer: SizeModel | None = None,
    made_with: MadeWith = only_given,
    priced: Priced | None = None,
    limits: Callable[[int], RequestLimits] = RequestLimits,
    each: Callable[[int], object] = lambda done: None,
) -> list[GridCell]:
    """The cells of one session at some points of a grid (guard_core.sweep.axes), to be judged with those of others.

    `settings` hold for every cell; `made_with` (`Facts.made_with`) adds what the recording gives to a policy. `priced`:
    what cost and losses are computed from. `limits` says of a window in tokens how large requests may be without an
    overflow (`Facts.limits`; without it, as large as the window). `each` is called with the number of cells that are
    done, often; what it raises ends the work. Raises SettingError or UnknownName where a value is not allowed.
    """
    summarizer = summarizer or RecordedSummaries.of(ledger)
    windows = [int(point.get("window", window)) for point in points]
    policies = [policy_at(point, policy, settings or {}, made_with) for point in points]
    figures: list[Figures | None] = [None] * len(points)
    if priced is None and (usage is not None or ledger.usage_ratio is not None):
        _run_lanes(ledger, policies, windows, usage, summarizer, figures, limits, each)
    left = [index for index, item in enumerate(figures) if item is None]
    for done, index in enumerate(left, len(points) - len(left)):
        trace = replay(
            ledger,
            policies[index],
            window=windows[index],
            usage=usage,
            summarizer=summarizer,
            each=lambda step, done=done: each(done),  # type: ignore[misc]
        )
        figures[index] = figures_of(trace, priced, limits(windows[index]))
    each(len(points))
    return [
        GridCell(dict(point), (size,), (item,))
        for point, size, item in zip(points, windows, figures, strict=True)
        if item
    ]


def policy_at(
    point: Mapping[str, Any], policy: str, settings: Mapping[str, Any], made_with: MadeWith = only_given
) -> Policy:
    """The policy of one point of a grid. Raises SettingError or UnknownName."""
    name = str(point.get("policy", policy))
    changes = {name: value for name, value in point.items() if name not in ("window", "policy")}
    return get_policy(name, **made_with(policy_kind(name), {**settings, **changes}))


def _run_lanes(
    ledger: Ledger,
    policies: Sequence[Policy],
    windows: Sequence[int],
    usage: Usage | None,
    summarizer: SizeModel,
    figures: list[Figures | None],
    limits: Callable[[int], RequestLimits],
    each: Callable[[int], object],
) -> None:
    """Fill in the figures of the policies that can run in lanes."""
    groups: dict[PolicyKind, list[int]] = {}
    for index, policy in enumerate(policies):
        groups.setdefault(policy_kind(policy.name), []).append(index)
    for kind, indices in groups.items():
        if kind.lanes is None:
            continue
        known = usage or assumed_usage(ledger, policies[indices[0]])
        for first in range(0, len(indices), LANES_AT_ONCE):
            each(first)
            some = indices[first : first + LANES_AT_ONCE]
            alike = [policies[index] for index in some]
            sizes = [windows[index] for index in some]
            known_limits = {size: limits(size) for size in set(sizes)}
            rows = kind.lanes(ledger, alike, sizes, known, summarizer, [known_limits[size] for size in sizes])
            for index, row in zip(some, rows, strict=True):
                figures[index] = None if row is None else Figures(*row)


def figures_of(trace: Trace, priced: Priced | None = None, limits: RequestLimits | None = None) -> Figures:
    """The figures of a single replay; with cost and losses where they can be computed.

    A request that was refused, made smaller and sent again is no overflow, as nowhere else.
    """
    columns, limits = trace.columns, limits or RequestLimits(trace.window)
    overflow = np.flatnonzero(limits.over(columns["modelled_prompt_tokens"]))
    fired = np.flatnonzero(columns["fired"])
    longest = max(vain_streaks(trace), default=0)
    figures = Figures(
        compactions=len(trace.compactions),
        summariser_calls=sum(len(record.passes) for record in trace.compactions),
        overflow_steps=len(overflow),
        first_overflow=int(overflow[0]) if len(overflow) else -1,
        first_compaction=int(fired[0]) if len(fired) else -1,
        longest_loop=longest if longest >= LOOP_LENGTH else 0,
        peak=int(columns["modelled_prompt_tokens"].max(initial=0)),
        tokens_sent=int(columns["modelled_prompt_tokens"].sum()),
    )
    if priced is None:
        return figures
    sent = SentRequests.replayed(priced.facts, trace)
    losses = losses_of(sent, priced.rules)
    return msgspec.structs.replace(
        figures,
        cost=bill_of(sent, priced.prices).total,
        requests_dropped=losses.requests_dropped,
        rules_gone=losses.rules_gone,
        read_again=read_again(sent, priced.again),
    )
