"""A sweep: one session under a grid of settings, with a recommended one and its evidence.

The threshold strategy runs in lanes, all settings at once (guard_core.lanes); anything else is replayed one by one.
Both give the same figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import msgspec
import numpy as np

from guard_core.defaults import LOOP_LENGTH
from guard_core.errors import SettingError
from guard_core.findings.words import at_step
from guard_core.ledger import Ledger
from guard_core.policies import DEFAULT_POLICY, PolicyKind, get_policy, policy_kind
from guard_core.policies.base import Policy
from guard_core.replay import assumed_usage, replay
from guard_core.simulator.running import vain_streaks
from guard_core.summaries.sizes import RecordedSummaries, SizeModel
from guard_core.trace import Trace
from guard_core.usage import Usage
from guard_core.window import parse_window

MOST_CELLS = 100_000  # a grid larger than this is a mistake


class Figures(msgspec.Struct, frozen=True):
    """What happened under one setting. Tokens are modelled prompt tokens; steps are -1 where there is none."""

    compactions: int
    summariser_calls: int
    overflow_steps: int
    first_overflow: int
    first_compaction: int
    longest_loop: int  # consecutive compactions that leave the request over the threshold; 0 below three
    peak: int
    tokens_sent: int


class Cell(msgspec.Struct, frozen=True):
    """One point of the grid. `figures` has one entry per session."""

    values: dict[str, Any]
    window: int
    figures: tuple[Figures, ...]

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
    def longest_loop(self) -> int:
        return max((item.longest_loop for item in self.figures), default=0)


@dataclass(frozen=True)
class SweepResult:
    """All cells in the order of the grid, the index of the recommended one and why."""

    axes: dict[str, tuple[Any, ...]]
    cells: tuple[Cell, ...]
    steps: tuple[int, ...]
    recommended: int
    evidence: str


def sweep(
    ledger: Ledger,
    axes: Mapping[str, Sequence[Any]],
    *,
    window: int,
    policy: str = DEFAULT_POLICY,
    settings: Mapping[str, Any] | None = None,
    usage: Usage | None = None,
    summarizer: SizeModel | None = None,
) -> SweepResult:
    """Replay a session under every combination of the axes' values.

    An axis is a setting of the policy, `window` (tokens), `profile` or `policy`. Raises SettingError or UnknownName
    where a value is not allowed, and SettingError for a grid that is too large.
    """
    return judged(axes, [_session_cells(ledger, axes, window, policy, settings or {}, usage, summarizer)], [ledger])


def judged(
    axes: Mapping[str, Sequence[Any]], columns: Sequence[Sequence[Cell]], ledgers: Sequence[Ledger]
) -> SweepResult:
    """The cells of several sessions under the same grid, put together and judged."""
    cells = tuple(_merged(group) for group in zip(*columns, strict=True))
    best = min(range(len(cells)), key=lambda index: (*_badness(cells[index]), index))
    steps = tuple(ledger.step_count for ledger in ledgers)
    return SweepResult(
        {name: tuple(values) for name, values in axes.items()}, cells, steps, best, _evidence(cells, best, sum(steps))
    )


def _merged(group: Sequence[Cell]) -> Cell:
    return Cell(group[0].values, group[0].window, tuple(figures for cell in group for figures in cell.figures))


def _badness(cell: Cell) -> tuple[int, int, int, int]:
    """What a setting is judged by, in this order: overflows, loops, compactions, tokens sent."""
    return cell.overflow_steps, cell.longest_loop, cell.compactions, cell.tokens_sent


def _evidence(cells: Sequence[Cell], best: int, steps: int) -> str:
    chosen = cells[best]
    text = (
        f"{words(chosen.values)}: {_count(chosen.overflow_steps, 'overflow')} in {_count(steps, 'step')}, "
        f"{_count(chosen.compactions, 'compaction')}, largest request {chosen.peak:,} of {chosen.window:,} tokens"
    )
    if chosen.overflow_steps:
        return f"{text}; every setting of the grid overflows"
    worse = [cell for cell in cells if cell.overflow_steps]
    if not worse:
        return f"{text}; no setting of the grid overflows"
    nearest = min(worse, key=lambda cell: (cell.overflow_steps, cell.peak - cell.window))
    first = next(item for item in nearest.figures if item.overflow_steps)
    return (
        f"{text}; the next worse, {words(nearest.values)}, overflows at {at_step(first.first_overflow)} "
        f"({nearest.peak:,} tokens)"
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def words(values: Mapping[str, Any]) -> str:
    """Settings as text."""
    return ", ".join(f"{name}={value}" for name, value in values.items()) or "the settings as they are"


def grid(axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations, the last axis changing fastest."""
    size = int(np.prod([len(values) for values in axes.values()], dtype=object)) if axes else 1
    if not 0 < size <= MOST_CELLS:
        raise SettingError(f"the grid has {size:,} settings; 1 to {MOST_CELLS:,} are allowed")
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def session_cells(
    ledger: Ledger,
    axes: Mapping[str, Sequence[Any]],
    *,
    window: int,
    policy: str = DEFAULT_POLICY,
    settings: Mapping[str, Any] | None = None,
    usage: Usage | None = None,
    summarizer: SizeModel | None = None,
) -> list[Cell]:
    """The cells of one session, to be judged together with those of others."""
    return _session_cells(ledger, axes, window, policy, settings or {}, usage, summarizer)


def _session_cells(
    ledger: Ledger,
    axes: Mapping[str, Sequence[Any]],
    window: int,
    policy: str,
    settings: Mapping[str, Any],
    usage: Usage | None,
    summarizer: SizeModel | None,
) -> list[Cell]:
    points = grid(axes)
    summarizer = summarizer or RecordedSummaries.of(ledger)
    windows = [int(point.get("window", window)) for point in points]
    policies = [_policy(point, policy, settings) for point in points]
    figures: list[Figures | None] = [None] * len(points)
    if usage is not None or ledger.usage_ratio is not None:
        for kind, indices in _by_kind(policies).items():
            if kind.lanes is not None:
                alike = [policies[index] for index in indices]
                known = usage or assumed_usage(ledger, alike[0])
                rows = kind.lanes(ledger, alike, [windows[index] for index in indices], known, summarizer)
                for index, row in zip(indices, rows, strict=True):
                    figures[index] = None if row is None else Figures(*row)
    for index, made in enumerate(policies):
        if figures[index] is None:
            trace = replay(ledger, made, window=windows[index], usage=usage, summarizer=summarizer)
            figures[index] = figures_of(trace)
    return [Cell(point, size, (item,)) for point, size, item in zip(points, windows, figures, strict=True) if item]


def _by_kind(policies: Sequence[Policy]) -> dict[PolicyKind, list[int]]:
    groups: dict[PolicyKind, list[int]] = {}
    for index, policy in enumerate(policies):
        groups.setdefault(policy_kind(policy.name), []).append(index)
    return groups


def _policy(point: Mapping[str, Any], policy: str, settings: Mapping[str, Any]) -> Policy:
    named = {**settings, **{name: value for name, value in point.items() if name not in ("window", "policy")}}
    return get_policy(str(point.get("policy", policy)), **named)


def figures_of(trace: Trace) -> Figures:
    """The figures of a single replay."""
    columns = trace.columns
    overflow, fired = np.flatnonzero(columns["overflow"]), np.flatnonzero(columns["fired"])
    longest = max(vain_streaks(trace), default=0)
    return Figures(
        compactions=len(trace.compactions),
        summariser_calls=sum(len(record.passes) for record in trace.compactions),
        overflow_steps=len(overflow),
        first_overflow=int(overflow[0]) if len(overflow) else -1,
        first_compaction=int(fired[0]) if len(fired) else -1,
        longest_loop=longest if longest >= LOOP_LENGTH else 0,
        peak=int(columns["modelled_prompt_tokens"].max(initial=0)),
        tokens_sent=int(columns["modelled_prompt_tokens"].sum()),
    )


def parse_axis(text: str) -> tuple[str, tuple[Any, ...]]:
    """An axis as typed: NAME=FROM:TO:STEP (ends included) or NAME=VALUE,VALUE. Raises SettingError."""
    name, sign, values = text.partition("=")
    name = name.strip().replace("-", "_")
    if not sign or not name or not values.strip():
        raise SettingError(f"an axis is written NAME=FROM:TO:STEP or NAME=VALUE,VALUE, not {text[:60]!r}")
    found = _range(values) if ":" in values else tuple(item.strip() for item in values.split(","))
    if name == "window":
        return name, tuple(parse_window(str(value)) for value in found)
    return name, found


def _range(text: str) -> tuple[Any, ...]:
    try:
        start, stop, step = (float(item.strip().replace("_", "")) for item in text.split(":"))
        count = int((stop - start) / step + 1e-9) + 1 if step > 0 else 0
    except (ValueError, OverflowError):
        count = 0
    if not 0 < count <= MOST_CELLS:
        raise SettingError(
            f"a range is written FROM:TO:STEP with TO not below FROM and STEP above 0, not {text[:60]!r}"
        )
    values = (round(start + number * step, 9) for number in range(count))
    return tuple(int(value) if value == int(value) else value for value in values)


def default_axes(policy: str = DEFAULT_POLICY, profile: str = "") -> dict[str, tuple[Any, ...]]:
    """The grid that is swept where none is asked for: what the policy publishes for it. Raises UnknownName."""
    kind = policy_kind(policy)
    unused = kind.unused(profile)
    return {item.name: item.sweep for item in kind.settings if item.sweep and item not in unused}


def failed(result: SweepResult, wanted: Iterable[str]) -> bool:
    """Does the recommended setting overflow or loop: what a CI job fails on."""
    cell = result.cells[result.recommended]
    figures = {"overflow": cell.overflow_steps, "loop": cell.longest_loop}
    return any(figures[name] for name in wanted)
