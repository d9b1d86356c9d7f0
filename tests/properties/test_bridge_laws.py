"""Laws of the bridge: whatever the session and the compaction, every row and every column adds up."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from guard_core.bridge import Bridge, class_tokens, recorded_bridge, replayed_bridge
from guard_core.estimation.attribution import attribute
from guard_core.estimation.usage import PROVIDER, usage_for
from guard_core.events import Event, Role, TextPart
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.replay import observe_recorded, replay
from guard_core.sessions import Evidence, RecordedCompaction, Session
from guard_core.views import Inserted, Rewritten, Span
from tests.properties.strategies import policies, sessions, sizes, summarizers, windows


def adds_up(bridge: Bridge) -> bool:
    names = ("before", "grown", "removed", "inserted", "unexplained", "after")
    rows = all(
        part.before + part.grown - part.removed + part.inserted + part.unexplained == part.after
        for part in bridge.parts
    )
    columns = {name: bridge.total(name) for name in names}
    changes = columns["grown"] - columns["removed"] + columns["inserted"] + columns["unexplained"]
    assert all(part.unexplained == 0 for part in bridge.parts[:-1])
    moved = all(min(part.removed, part.inserted) >= 0 for part in bridge.parts)
    moved &= all(part.grown >= 0 for part in bridge.parts[:-1])  # what is not explained may grow less than nothing
    return rows and moved and columns["before"] + changes == columns["after"]


@st.composite
def compacted(draw: st.DrawFn) -> Session:
    """A session with recorded compactions: summaries, tails, edits, kept beginnings."""
    session = draw(sessions())
    count = len(session.events)
    ats = sorted(draw(st.lists(st.integers(0, count), max_size=4)))
    return Session(
        events=session.events,
        calls=session.calls,
        compactions=tuple(_compaction(draw, session, at) for at in ats),
        system=session.system,
    )


def _compaction(draw: st.DrawFn, session: Session, at: int) -> RecordedCompaction:
    start = draw(st.integers(0, at))
    begin = draw(st.integers(0, start))
    summary = Event(Role.USER, (TextPart("s" * draw(sizes)),))
    edited = [Rewritten(begin, Event(Role.USER, (TextPart("cut"),)), "pruned")] if begin < start else []
    view = (Span(0, begin), *edited, Inserted(0), Span(start, at))
    return RecordedCompaction(at, Evidence.DECLARED, "summary", view, (summary,))


@given(compacted(), windows)
def test_recorded_compactions_add_up_to_the_counts_of_both_requests(session, window):
    ledger = Ledger.of(session)
    attribution = attribute(ledger)
    usage = usage_for(ledger, attribution)
    observed = observe_recorded(ledger, get_policy("none"), window=window or 1, usage=usage)
    tokens = observed.columns["modelled_prompt_tokens"]
    for place in range(len(ledger.bases)):
        bridge = recorded_bridge(ledger, attribution, observed, place)
        assert adds_up(bridge)
        if bridge.before_step is not None:
            assert bridge.total("before") == tokens[bridge.before_step]
        if bridge.after_step is not None:
            assert bridge.total("after") == tokens[bridge.after_step]


@given(sessions(), policies(), windows, summarizers)
def test_replayed_compactions_add_up_to_the_counts_of_both_requests(session, policy, window, summarizer):
    ledger = Ledger.of(session)
    attribution = attribute(ledger)
    usage = usage_for(ledger, attribution)
    trace = replay(ledger, policy, window=window or 1, usage=usage, summarizer=summarizer, request="")
    tokens = trace.columns["modelled_prompt_tokens"]
    for index, record in enumerate(trace.compactions[:20]):
        bridge = replayed_bridge(ledger, attribution, usage, trace, index)
        assert adds_up(bridge)
        assert bridge.after_step == record.step
        assert bridge.total("after") == tokens[record.step]
        assert bridge.total("before") == (tokens[record.step - 1] if record.step else 0)
        replaced = usage.one(record.step, record.before, record.tokens_before)
        assert replaced.source != PROVIDER or bridge.uncompacted == replaced.tokens


@given(sessions())
def test_the_classes_of_an_event_hold_all_of_its_tokens(session):
    ledger = Ledger.of(session)
    attribution = attribute(ledger)
    classes = class_tokens(ledger, attribution)
    assert np.array_equal(classes.sum(axis=1), attribution.tokens)
    assert (classes >= 0).all()
