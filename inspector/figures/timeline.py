"""What the main chart shows, as plain columns: one entry per step, NaN where there is no value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guard_core.estimation.usage import PROVIDER
from guard_core.findings import NEAR_MISS_SHARE, Case, Facts
from guard_core.ledger import Ledger
from guard_core.rules import Interval, OwnChecks
from guard_core.rules.inference import bound_words
from guard_core.trace import Trace
from guard_core.views import kept_events
from inspector.replays.choice import policy_title

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NO_STEPS: Ints = np.array([], dtype=np.int64)


@dataclass(frozen=True)
class Track:
    """The watermark over time: of the `at` events in the log, how many are no longer sent as they were."""

    name: str
    at: Ints
    stripped: Ints


@dataclass(frozen=True)
class Own:
    """The rule of the agent that wrote a recording: what it compares at every step and with what, in tokens.

    `agent` is empty where its rule is not known. Where the threshold is not, or the recording excludes it
    (`is_refuted`), `inferred` are the bounds of the real one, with names.
    """

    agent: str
    counts: Floats
    threshold: Floats
    inferred: tuple[tuple[str, int], ...] = ()
    is_refuted: bool = False

    @property
    def threshold_name(self) -> str:
        """What the threshold of its rule is called."""
        return f"{self.agent} {'default' if self.is_refuted else 'threshold'}"


@dataclass(frozen=True)
class Replayed:
    """A replay of the same session: prompt tokens of the requests it sent, and where they part from the recording."""

    name: str
    prompt_tokens: Floats
    compactions: Ints
    overflows: Ints
    divergence: int | None  # first step whose request differs from the recorded one; None: it never does


@dataclass(frozen=True)
class Timeline:
    """Columns and marks of one session. `threshold` and `windows` may change from step to step.

    `policy` is the name of the one whose threshold it is, as people read it: the agent's own, unless a policy's
    arithmetic is shown as well (`shows_policy`), which then has estimates and factors. `own` is the agent's.
    `numbers` are those that pages give the compactions of the recording, from 1; 0 where it has no page of its own.
    `window` is the one that policy and replay are given, `recorded_window` the recording's own, 0 where that is
    contradicted, `windows` that of every recorded call's model, 0 where it is not known; all in tokens. `requests` are
    the recorded requests in prompt tokens, modelled where `recorded` has no count. `heuristic` and `calibrated` are
    estimates by the policy's arithmetic.
    """

    recorded: Floats
    requests: Floats
    heuristic: Floats
    calibrated: Floats
    threshold: Floats
    policy: str
    window: int
    recorded_window: int
    windows: Ints
    factor_raw: Floats
    factor: Floats
    factor_cap: float | None
    compactions: Ints = field(default_factory=lambda: NO_STEPS)
    numbers: Ints = field(default_factory=lambda: NO_STEPS)
    overflows: Ints = field(default_factory=lambda: NO_STEPS)
    near_misses: Ints = field(default_factory=lambda: NO_STEPS)
    replayed: Replayed | None = None
    tracks: tuple[Track, ...] = ()
    own: Own | None = None
    shows_policy: bool = True

    def __len__(self) -> int:
        return len(self.recorded)

    @property
    def threshold_name(self) -> str:
        name = f"{self.policy} threshold"
        if self.own is None or not self.own.agent:
            return name
        if not self.shows_policy:
            return self.own.threshold_name
        return "threshold of the replay" if name == self.own.threshold_name else name  # each line has a name of its own

    @property
    def is_replayed_in_another_window(self) -> bool:
        """Is the window of the policy another than the recording's own."""
        return self.recorded_window not in (0, self.window)

    def side(self, name: str) -> TimelineSide:
        """What one side sent: "recorded" or "replayed"."""
        if name == "replayed" and self.replayed is not None:
            other, name = self.replayed, "replayed prompt tokens (modelled)"
            sent = other.prompt_tokens
            return TimelineSide(name, sent, sent, other.compactions, other.overflows, modelled=True)
        missing = np.isnan(self.recorded)
        name = "recorded and estimated" if missing.any() else "recorded"
        name = f"{'estimated' if missing.all() and len(self) else name} prompt tokens"
        return TimelineSide(name, self.requests, self.recorded, self.compactions, self.overflows)


@dataclass(frozen=True)
class TimelineSide:
    """What one side of a session sent, and its marks. `name` says what the numbers are; of a recording, `counted` are
    those that the provider counted, nan elsewhere, which are never in one line with estimates."""

    name: str
    tokens: Floats
    counted: Floats
    compactions: Ints
    overflows: Ints
    modelled: bool = False

    def estimated(self, steps: Ints) -> Floats:
        """Of the steps that are drawn those without a count, and the counted ones beside them, to which their line
        leads; nan elsewhere."""
        missing = np.pad(np.isnan(self.counted[steps]), 1)
        joined = steps[missing[:-2] | missing[1:-1] | missing[2:]]
        line = np.full(len(self.tokens), np.nan)
        line[joined] = self.tokens[joined]
        return line


def _factors(trace: Trace, name: str) -> Floats:
    """A column of factors; nan everywhere where the policy has none."""
    return trace.columns[name].astype(np.float64) if name in trace.columns else np.full(len(trace), np.nan)


def timeline(
    recording: Case,
    observed: Trace,
    replayed: Trace | None = None,
    *,
    name: str = "replayed",
    own: Own | None = None,
    shows_policy: bool = True,
) -> Timeline:
    """The recorded session as its numbers were, observed by a policy; beside it a replay, if there is one.

    Overflows and near misses of the recording are those against its models' own windows, whichever the replay is given.
    """
    ledger = recording.facts.ledger
    columns = observed.columns
    recorded = known(np.where(columns["recorded_prompt_tokens"] > 0, columns["recorded_prompt_tokens"], -1))
    requests = recording.tokens.astype(np.float64)
    own_window = recording.window.value if recording.window_counts else 0
    tracks = [Track("recorded", ledger.steps["at"], stripped_events(ledger))]
    if replayed is not None:
        tracks.append(Track("replayed", ledger.steps["at"], np.maximum(replayed.columns["watermark"], 0)))
    nothing = np.full(len(observed), np.nan)
    compactions = recorded_compaction_steps(ledger)
    numbers = {item.step: number for number, item in enumerate(recording.facts.counts.compactions, 1)}
    whole = Timeline(
        recorded=recorded,
        requests=requests,
        heuristic=known(columns["heuristic_decided"]),
        calibrated=known(observed.column("calibrated")),
        threshold=known(columns["threshold"]),
        policy=policy_title(observed.policy),
        window=observed.window,
        recorded_window=own_window,
        windows=recording.windows,
        factor_raw=_factors(observed, "correction_raw"),
        factor=_factors(observed, "correction"),
        factor_cap=_number(observed.settings.get("cap")),
        compactions=compactions,
        numbers=np.array([numbers.get(step, 0) for step in compactions.tolist()], dtype=np.int64),
        overflows=recording.over,
        near_misses=peaks(requests, NEAR_MISS_SHARE * recording.windows, recording.windows),
        replayed=None if replayed is None else replayed_columns(recording.facts, replayed, observed, name),
        tracks=tuple(tracks),
        own=own,
        shows_policy=shows_policy,
    )
    if shows_policy:
        return whole
    threshold, agent = (nothing, "") if own is None else (own.threshold, own.agent)
    return replace(
        whole,
        heuristic=nothing,
        calibrated=nothing,
        factor_raw=nothing,
        factor=nothing,
        factor_cap=None,
        threshold=threshold,
        policy=agent,
    )


def own_series(checks: OwnChecks) -> Own:
    """What the rule of its agent compares at every step of a recording."""
    threshold, refuting = known(checks.thresholds), checks.explanation.refuting
    intervals = [refuting] if refuting else checks.explanation.inference if np.isnan(threshold).all() else ()
    return Own(checks.agent, known(checks.counts), threshold, tuple(_bounds(intervals)), refuting is not None)


def _bounds(intervals: Sequence[Interval]) -> Iterator[tuple[str, int]]:
    """The bounds of a threshold in tokens that is only inferred, of the first count that proves any."""
    for item in intervals[:1]:
        if item.contradiction or item.at_most is None or item.other_unit:
            return
        low, high = bound_words(item.relation)
        if item.above is not None:
            yield f"threshold {low} (inferred)", item.above
        yield f"threshold {high} (inferred)", item.at_most


def replayed_columns(facts: Facts, replayed: Trace, observed: Trace, name: str) -> Replayed:
    """The part of a replay that the chart shows. Nothing overflows a window that the recording contradicts."""
    return Replayed(
        name=name,
        prompt_tokens=known(replayed.columns["modelled_prompt_tokens"]),
        compactions=np.flatnonzero(replayed.columns["fired"] == 1),
        overflows=facts.over(replayed),
        divergence=divergence(facts.ledger, replayed, observed),
    )


def divergence(ledger: Ledger, replayed: Trace, observed: Trace) -> int | None:
    """The first step at which the replay sends another request than the recording did; None if it never does.

    All of the log is the recorded request where a resumed history repeats a part of it: the agent would have resumed
    the uncompacted session just so.
    """
    same = np.ones(len(observed), dtype=bool)
    for name in ("contents_sent", "heuristic_sent"):
        same &= replayed.columns[name] == observed.columns[name]
    same |= _sends_recorded(ledger, replayed)
    resumed = np.array([False, *ledger.whole_resumes])[ledger.steps["epoch"] + 1]
    is_whole = np.maximum.accumulate(replayed.columns["fired"]) == 0 if len(same) else same
    is_whole &= replayed.columns["contents_sent"] == ledger.steps["at"]
    same |= resumed & is_whole
    apart = np.flatnonzero(~same)
    return int(apart[0]) if len(apart) else None


def _sends_recorded(ledger: Ledger, replayed: Trace) -> NDArray[np.bool_]:
    """At which steps the count of a replay shows that it sends the recorded request: it has the recorded count, or the
    step has none, and it has that of another step at which both sides begin as they do here."""
    counted = replayed.columns["prompt_tokens_source"] == PROVIDER
    beginnings = replayed.columns["head"] * (len(ledger.bases) + 1) + ledger.steps["epoch"] + 1
    uncounted = ledger.steps["prompt_tokens"] <= 0
    return np.asarray(counted | (uncounted & np.isin(beginnings, beginnings[counted])))


def recorded_compaction_steps(ledger: Ledger) -> Ints:
    """The first step after each recorded compaction; quiet edits of the history are none."""
    if not ledger.step_count:
        return NO_STEPS
    count = _by_epoch(ledger, "compactions", lambda: np.cumsum([0, *(not base.is_edit for base in ledger.bases)]))
    return np.flatnonzero(np.diff(count, prepend=0) > 0)


def _by_epoch(ledger: Ledger, name: str, of_bases: Callable[[], Ints]) -> Ints:
    """Per step, a number of its epoch: those of the epochs, the one before the first base included, are made once for a
    ledger."""
    key = "by epoch", name
    if key not in ledger.derived:
        ledger.derived[key] = np.asarray(of_bases(), dtype=np.int64)
    numbers: Ints = ledger.derived[key][ledger.steps["epoch"] + 1]
    return numbers


def peaks(values: Floats, low: NDArray[Any] | float, high: NDArray[Any] | float) -> Ints:
    """The highest step of each unbroken run of values above `low` and not above `high`, both for all steps or each."""
    shown = np.nan_to_num(values)
    near = np.append((shown > low) & (shown <= high), False)
    edges = np.flatnonzero(np.diff(near, prepend=False))
    tops = [start + int(np.argmax(shown[start:stop])) for start, stop in zip(edges[::2], edges[1::2], strict=True)]
    return np.array(tops, dtype=np.int64)


def stripped_events(ledger: Ledger) -> Ints:
    """Per step, how many events of the log the recorded request no longer held as they were."""

    def stripped() -> Ints:
        sent = [sum(len(span) for span in kept_events(base.view)) for base in ledger.bases]
        return np.array([0, *(base.at - count for base, count in zip(ledger.bases, sent, strict=True))])

    return _by_epoch(ledger, "stripped events", stripped)


def known(column: NDArray[Any]) -> Floats:
    """A trace column of ints as floats, NaN where the engine says there is no value."""
    values = column.astype(np.float64)
    return np.where(values < 0, np.nan, values)


def _number(value: Any) -> float | None:
    """A setting as a number; None where the policy has none of that name, or one of another kind."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
