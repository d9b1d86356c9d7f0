"""Laws of attribution over random sessions: sums are exact, nothing is negative, the measured stays measured."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from guard_core.estimation.attribution import Attribution, attribute
from guard_core.estimation.sharing import EXACT, SHARED
from guard_core.estimation.usage import AttributedUsage
from guard_core.ledger import Ledger
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Session
from guard_core.views import Inserted, Span
from tests.builders import image, model, tool_call, tool_result, user

TEXT = st.text(max_size=400)
EVENTS = st.one_of(
    st.builds(user, TEXT),
    st.builds(lambda text, thought: model(text, reasoning=thought), TEXT, TEXT),
    st.builds(lambda text: tool_call("run", "c", command=text), TEXT),
    st.builds(lambda text: tool_result(text * 8), TEXT),
    st.builds(image, st.integers(0, 10**7)),
)


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    """Any events, calls anywhere in them with any counts, and sometimes a recorded compaction."""
    events = tuple(draw(st.lists(EVENTS, max_size=24)))
    places = sorted(draw(st.lists(st.integers(0, len(events)), max_size=14)))
    counts = [draw(st.one_of(st.none(), st.integers(0, 300_000))) for _ in places]
    calls = tuple(ModelCall(at, None, count) for at, count in zip(places, counts, strict=True))
    cuts = ()
    if events and draw(st.booleans()):
        at = draw(st.integers(1, len(events)))
        base = (Inserted(0), Span(draw(st.integers(0, at)), at))
        cuts = (RecordedCompaction(at, Evidence.DECLARED, "summary", base, (user(draw(TEXT)),)),)
    return Session(events=events, calls=calls, compactions=cuts)


@given(sessions())
def test_recorded_is_attributed_plus_residual(session):
    ledger = Ledger.of(session)
    attribution = attribute(ledger)
    for step, call in enumerate(session.calls):
        if call.prompt_tokens:
            assert attribution.price(*ledger.recorded_view(step)) + attribution.residual[step] == call.prompt_tokens


@given(sessions())
def test_no_event_and_no_overhead_is_negative(session):
    attribution = attribute(Ledger.of(session))
    assert attribution.overhead >= 0
    assert (attribution.tokens >= 0).all()
    assert all(tokens >= 0 for messages in attribution.inserted for tokens in messages)


@given(sessions())
def test_within_a_baseline_the_residual_changes_only_by_unexplained_growth(session):
    attribution = attribute(Ledger.of(session))
    steps = [step for step, call in enumerate(session.calls) if call.prompt_tokens]
    for first, second in pairwise(steps):
        if attribution.baseline[first] == attribution.baseline[second]:
            assert attribution.residual[second] >= attribution.residual[first]


@given(sessions())
def test_a_longer_prefix_never_costs_less(session):
    prices = attribute(Ledger.of(session)).prices
    assert (np.diff(prices.prefix) >= 0).all()


@given(sessions())
def test_measured_events_lie_between_two_reported_calls(session):
    attribution = attribute(Ledger.of(session))
    reported = [call.at for call in session.calls if call.prompt_tokens]
    for index in np.flatnonzero((attribution.source == EXACT) | (attribution.source == SHARED)):
        assert reported[0] <= index < reported[-1]


@given(sessions())
def test_bytes_give_the_same_attribution(session):
    attribution = attribute(Ledger.of(session))
    assert Attribution.from_bytes(attribution.to_bytes()).to_bytes() == attribution.to_bytes()


@given(sessions(), st.data())
def test_any_run_equals_its_single_steps(session, data):
    ledger = Ledger.of(session)
    usage = AttributedUsage(ledger, attribute(ledger))
    if not session.calls:
        return
    kept_from = data.draw(st.integers(0, int(ledger.steps["at"][0])))
    head = data.draw(st.sampled_from([(), (Span(0, kept_from),), tuple(base.view for base in ledger.bases[:1])[:1]]))
    head = head[0] if head and isinstance(head[0], tuple) else head
    if any(isinstance(item, Inserted) for item in head):
        return
    run = usage.run(0, len(session.calls), head, kept_from, ledger.steps["at"])
    for step, call in enumerate(session.calls):
        one = usage.one(step, (*head, Span(kept_from, call.at)), 0)
        assert (run.tokens[step], run.reported[step], run.source[step]) == one
