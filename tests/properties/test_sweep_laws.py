"""A sweep is single replays, cell by cell."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from guard_core.estimation.usage import usage_for
from guard_core.findings.facts import Facts
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.replay import replay
from guard_core.sweep import Figures, GridCell, figures_of, sweep, trade_offs
from tests.properties.strategies import sessions, summarizers, windows

AXES = {
    "profile": ("early", "current"),
    "buffer": ("auto", "700", "40%"),
    "cap": (1.0, 5.0),
    "max_passes": (1, 3),
}


@given(sessions(), windows, summarizers, st.sampled_from(["contextguard", "contextguard-sliding"]))
def test_every_cell_is_a_replay(session, window, summarizer, policy):
    ledger = Ledger.of(session)
    usage = usage_for(ledger, None)
    result = sweep(ledger, AXES, window=window, policy=policy, usage=usage, summarizer=summarizer)
    for cell in result.cells[:: 5 if policy == "contextguard" else 12]:
        chosen = get_policy(policy, **cell.values)
        trace = replay(ledger, chosen, window=window, usage=usage, summarizer=summarizer)
        assert cell.figures == (figures_of(trace),), cell.values


@given(
    sessions(),
    st.sampled_from([2_000, 40_000]),
    st.lists(st.integers(0, 12), max_size=2),
    st.sampled_from(["contextguard", "none"]),
)
def test_a_cell_counts_the_overflows_of_the_same_replay(session, window, refused, policy):
    """By the windows of the calls' own models, and as large as what the provider refused in the recording."""
    calls = tuple(
        msgspec.structs.replace(call, model=("gpt-4", "claude-opus-4-5")[step % 3 == 0])
        for step, call in enumerate(session.calls)
    )
    places = tuple(min(place, len(session.events)) for place in refused)
    facts = Facts.of(msgspec.structs.replace(session, calls=calls, refused=places, window=None))
    axes = {"window": (window, facts.window.value, 2 * facts.window.value)}
    result = sweep(facts.ledger, axes, window=window, policy=policy, usage=facts.usage, limits=facts.limits)
    for cell in result.cells:
        trace = replay(facts.ledger, get_policy(policy), window=cell.window, usage=facts.usage)
        assert cell.overflow_steps == facts.replay(trace).overflows, cell.values


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12),
)
def test_trade_offs_are_what_brute_force_leaves(points):
    cells = [
        GridCell({"n": number}, (9,), (Figures(loss, 0, over, -1, -1, 0, 0, price),))
        for number, (over, price, loss) in enumerate(points)
    ]
    front = {points[index] for index in trade_offs(cells)}
    beaten = {p for p in points if any(q != p and all(a <= b for a, b in zip(q, p, strict=True)) for q in points)}
    assert front == set(points) - beaten
    assert len(trade_offs(cells)) == len(front)


@given(sessions(), windows, summarizers)
def test_the_recommended_setting_is_true_by_replay(session, window, summarizer):
    ledger = Ledger.of(session)
    usage = usage_for(ledger, None)
    result = sweep(ledger, AXES, window=window, usage=usage, summarizer=summarizer)
    chosen = result.cells[result.recommended]
    trace = replay(
        ledger, get_policy("contextguard", **chosen.values), window=window, usage=usage, summarizer=summarizer
    )
    own = figures_of(trace)
    rank = (own.overflow_steps, own.longest_loop, own.compactions, own.compactions, own.tokens_sent)
    for cell in result.cells:
        (item,) = cell.figures
        assert rank <= (item.overflow_steps, item.longest_loop, item.compactions, item.compactions, item.tokens_sent)
    steps = "step" if ledger.step_count == 1 else "steps"
    overflows = "overflow" if own.overflow_steps == 1 else "overflows"
    assert f": {own.overflow_steps:,} {overflows} in {ledger.step_count:,} {steps}, " in result.evidence
    assert f"largest request {own.peak:,} of {window:,} tokens" in result.evidence
