"""Speed of the engine, as ratios within one run, so that a slow machine does not matter.

`-s` prints the measured times.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

import pytest

from guard_core.events import Event, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.replay import observe_recorded, replay
from guard_core.sessions import ModelCall, Session
from guard_core.summaries.sizes import FixedSummaries, NoSummaries
from guard_core.sweep import sweep

USER = Event(Role.USER, (TextPart("u" * 200),))
CALL = Event(Role.MODEL, (ToolCallPart("tool", {"param": "value"}),))
RESULT = Event(Role.USER, (ToolResultPart("tool", {"result": "x" * 3_000}),))
ANSWER = Event(Role.MODEL, (TextPart("m" * 200),))


@cache
def ledger_of(steps: int) -> Ledger:
    """The ledger of a session of so many steps."""
    return counted(steps)


def counted(steps: int) -> Ledger:
    """A session of four events a step, whose provider counts two tokens per heuristic token."""
    events = (USER, CALL, RESULT, ANSWER) * steps
    calls = tuple(ModelCall(at=4 * number + 3) for number in range(steps))
    return Ledger.of(Session(events=events, calls=calls, usage_ratio=2.0))


def best(work: Callable[[], object], repeats: int = 3) -> float:
    """Processor seconds of the fastest of some runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def replayed(ledger: Ledger, name: str = "contextguard", summarizer: object = None, **settings: object) -> float:
    policy = get_policy(name, **settings)
    summaries = summarizer or FixedSummaries(2_000)
    return best(lambda: replay(ledger, policy, window=200_000, summarizer=summaries))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def long_ledger() -> Ledger:
    return ledger_of(8_000)


def test_a_replay_costs_less_than_counting_the_session_once(long_ledger):
    seconds = replayed(long_ledger)
    counting = best(lambda: counted(8_000), repeats=1)
    print(f"\n8,000 steps: replayed in {seconds:.3f} s, counted in {counting:.3f} s")
    assert seconds < counting / 2


@pytest.mark.parametrize("profile", ["early", "current", "fixed"])
def test_the_time_per_step_is_flat(profile):
    per_step = {steps: replayed(ledger_of(steps), profile=profile) / steps for steps in (1_000, 12_000)}
    print(f"\n{profile}: " + ", ".join(f"{steps:,} steps {each * 1e6:.2f} µs" for steps, each in per_step.items()))
    assert per_step[12_000] < 3 * per_step[1_000]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("agent-framework-selective-tool-call", {}),
        ("agent-framework-tool-result", {}),
        ("agno-compress-tool-results", {}),
        ("inspect-edit", {"threshold": 30_000}),
        ("pydantic-ai-clear-tool-results", {"max_tokens": 30_000}),
    ],
)
def test_the_time_per_step_is_flat_where_most_steps_change_the_list(name, settings):
    per_step = {steps: replayed(ledger_of(steps), name, **settings) / steps for steps in (500, 2_000)}
    print(f"\n{name}: " + ", ".join(f"{steps:,} steps {each * 1e6:.0f} µs" for steps, each in per_step.items()))
    assert per_step[2_000] < 3 * per_step[500]


def test_the_time_per_turn_is_flat_where_calls_stay_without_results():
    """ADK covers what has results, and asks which calls never will: of the turns since the last summary alone."""
    several = 40
    calls = Event(Role.MODEL, tuple(ToolCallPart("tool", {}, f"c{number}") for number in range(several)))
    results = Event(Role.USER, tuple(ToolResultPart("tool", "x", f"c{number}") for number in range(1, several)))
    per_turn = {}
    for turns in (100, 1_600):
        requests = tuple(ModelCall(at=4 * number + 3) for number in range(turns))
        ledger = Ledger.of(Session(events=(USER, calls, results, ANSWER) * turns, calls=requests, usage_ratio=2.0))
        per_turn[turns] = replayed(ledger, "adk-sliding-window") / turns
    print("\nopen calls: " + ", ".join(f"{turns:,} turns {each * 1e6:.0f} µs" for turns, each in per_turn.items()))
    assert per_turn[1_600] < 3 * per_turn[100]


def test_clearing_before_summarising_costs_a_few_times_what_summarising_costs():
    ledger = ledger_of(1_000)
    one, two = (replayed(ledger, f"pydantic-ai-{name}", max_tokens=90_000) for name in ("summarizing", "tiered"))
    print(f"\nsummarising: {one:.3f} s, clearing before it: {two:.3f} s")
    assert two < 15 * one


def test_mechanical_summaries_are_priced_and_not_written(long_ledger):
    policy = {"mend_growth": True}
    plain, mechanical = replayed(long_ledger, **policy), replayed(long_ledger, summarizer=NoSummaries(), **policy)
    print(f"\nmechanical summaries: {mechanical:.3f} s, fixed sizes: {plain:.3f} s")
    assert mechanical < 4 * plain


def test_the_shadow_trace_costs_no_more_than_a_replay(long_ledger):
    policy = get_policy("contextguard")
    shadow = best(lambda: observe_recorded(long_ledger, policy, window=200_000))
    assert shadow < 6 * replayed(long_ledger)


def test_five_hundred_settings_cost_less_than_a_hundred_replays():
    ledger = ledger_of(2_500)  # 10,000 events
    axes = {
        "buffer": tuple(range(10_000, 60_000, 5_000)),
        "cap": (1.5, 2.0, 3.0, 4.0, 5.0),
        "default_factor": (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5),
    }
    seconds = best(lambda: sweep(ledger, axes, window=200_000, summarizer=FixedSummaries(2_000)), repeats=3)
    one = replayed(ledger)
    print(f"\n500 settings x 10,000 events: {seconds:.3f} s; one replay: {one:.4f} s, so 500: {500 * one:.2f} s")
    assert seconds < 100 * one
