"""The recorded provider answers with its own figure, and with a modelled one for requests that were never sent."""

import numpy as np
import pytest

from guard_core.attribution import attribute
from guard_core.ledger import Ledger
from guard_core.sessions import Session
from guard_core.simulator.samples import SAMPLES
from guard_core.trace import PROMPT_SOURCES
from guard_core.usage import AttributedUsage, RatioUsage, normal, same_request, usage_for
from guard_core.views import Inserted, Span, Synthetic, View

HEADS: list[tuple[View, int]] = [
    ((), 0),
    ((Synthetic("summary", 900),), 40),
    ((Span(0, 3), Synthetic("summary", 900), Synthetic("continuation", 180)), 60),
    ((Span(0, 10),), 10),
    ((), 12),
]


def attributed(session: Session) -> AttributedUsage:
    ledger = Ledger.of(session)
    return AttributedUsage(ledger, attribute(ledger))


@pytest.mark.parametrize(("head", "kept_from"), HEADS)
@pytest.mark.parametrize("name", ["healthy", "small-window", "unpersisted-loop", "long-coding"])
def test_a_run_equals_its_single_steps(name, head, kept_from):
    usage = attributed(SAMPLES[name].build())
    at = usage.ledger.steps["at"]
    head, kept_from = (head, kept_from) if kept_from < usage.ledger.event_count else ((), 0)
    run = usage.run(0, len(at), head, kept_from, np.zeros(len(at), dtype=np.int64))
    for step in range(len(at)):
        one = usage.one(step, (*head, Span(kept_from, int(at[step]))), 0)
        assert (run.tokens[step], run.reported[step], run.source[step]) == one


def test_a_run_over_the_recorded_view_is_the_recording():
    usage = attributed(SAMPLES["long-coding"].build())
    steps = usage.ledger.steps
    for epoch, base in enumerate(usage.ledger.bases):
        rows = np.flatnonzero(steps["epoch"] == epoch)
        run = usage.run(rows[0], rows[-1] + 1, base.view, base.at, rows)
        assert np.array_equal(run.tokens, steps["prompt_tokens"][rows])


def test_the_request_really_sent_has_the_recorded_count(tool_heavy):
    usage = attributed(tool_heavy)
    view, epoch = usage.ledger.recorded_view(7)
    tokens, reported, source = usage.one(7, view, 0, epoch)
    assert tokens == tool_heavy.calls[7].prompt_tokens
    assert (reported, PROMPT_SOURCES[source]) == (True, "provider")


def test_another_request_is_modelled_from_what_it_keeps(tool_heavy):
    usage = attributed(tool_heavy)
    at = int(usage.ledger.steps["at"][30])
    tokens, _, source = usage.one(30, (Synthetic("summary", 600), Span(at - 4, at)), 0)
    kept = usage.attribution.prices.view((Span(at - 4, at),), -1)
    assert tokens == pytest.approx(usage.attribution.overhead + kept + 200, abs=60)
    assert PROMPT_SOURCES[source] == "modelled"


def test_without_any_count_it_is_assumed_and_not_reported(no_usage_reported):
    tokens, reported, source = attributed(no_usage_reported).one(3, (Span(0, 7),), 0)
    assert tokens > 0
    assert (reported, PROMPT_SOURCES[source]) == (False, "assumed")


def test_a_simulated_session_keeps_its_ratio(short_chat):
    simulated = Ledger.of(type(short_chat)(events=short_chat.events, calls=short_chat.calls, usage_ratio=2.0))
    assert usage_for(simulated, None) == RatioUsage(2.0)
    assert isinstance(usage_for(Ledger.of(short_chat), None), AttributedUsage)


def test_joined_spans_are_the_same_request_and_other_compactions_are_not():
    assert normal((Span(0, 2), Span(2, 2), Span(2, 5))) == (Span(0, 5),)
    assert same_request((Span(0, 2), Span(2, 5)), -1, (Span(0, 5),), 3)
    assert not same_request((Inserted(0),), 0, (Inserted(0),), 1)
