"""Laws of sessions that grow: extended in any pieces, the ledger is the one made at once, byte for byte."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import msgspec
from hypothesis import event, given
from hypothesis import strategies as st

from guard_core.chunks import ROWS, GrowingLedger, joined, read_state
from guard_core.estimation import grown
from guard_core.estimation.attribution import attribute
from guard_core.estimation.usage import usage_for
from guard_core.events import Event
from guard_core.extension import basis, extended
from guard_core.ledger import Ledger
from guard_core.policies.base import dump_state, load_state
from guard_core.replay import replay
from guard_core.sessions import ModelCall, Session
from tests.builders import tool_call, tool_result, user
from tests.properties import test_attribution_laws as counted
from tests.properties.strategies import sessions, summarizers, windows
from tests.properties.test_policy_laws import listed_policies

SMALL = {"events": 3, "calls": 2, "bases": 1}  # rows of a chunk, so that few events cross many borders
any_sessions = st.one_of(sessions(), counted.sessions())


@st.composite
def answered_sessions(draw: st.DrawFn) -> Session:
    """A session of the agent that drops reasoning: turns of calls with tools, counted prompts and outputs."""
    events: list[Event] = []
    calls: list[ModelCall] = []
    prompt = 4_000
    for number, (size, is_turn) in enumerate(
        draw(st.lists(st.tuples(st.integers(0, 2_000), st.booleans()), min_size=2, max_size=16))
    ):
        if is_turn or not number:
            events.append(user("u" * (size // 3)))
        output = draw(st.integers(1, 900))
        count = prompt if draw(st.integers(0, 5)) else None
        calls.append(ModelCall(len(events), len(events), count, output_tokens=output if draw(st.booleans()) else None))
        events += [tool_call("run", f"c{number}", at=number), tool_result("r" * size, "run", f"c{number}")]
        prompt += output + size // 4 + draw(st.integers(-800, 800))
    return Session(events=tuple(events), calls=tuple(calls), format=draw(st.sampled_from(["codex", "claude-code"])))


class Store:
    """The chunks of a ledger as a database has them."""

    def __init__(self, growing: GrowingLedger) -> None:
        self.state, self.bodies = b"", {kind: [] for kind in ROWS}
        self.store(growing)

    def store(self, growing: GrowingLedger) -> int:
        """Store what is new; how many chunks were written."""
        chunks = growing.chunks()
        for kind, number, body in chunks:
            self.bodies[kind][number:] = [body]
        self.state = growing.state
        return len(chunks)

    def resumed(self) -> GrowingLedger:
        last = {kind: self.bodies[kind][number] for kind, number in read_state(self.state).open_chunks.items()}
        return GrowingLedger.resumed(self.state, last)

    @property
    def ledger(self) -> Ledger:
        return joined(self.state, self.bodies)


def beginning(session: Session, events: int) -> Session:
    """A session when its log had so many events: without the calls that were not answered yet."""
    calls = tuple(call for call in session.calls if call.at <= events and (call.response or -1) < events)
    compactions = tuple(item for item in session.compactions if item.at <= events)
    return msgspec.structs.replace(session, events=session.events[:events], calls=calls, compactions=compactions)


def lengths(draw: st.DrawFn, session: Session, least: int = 0) -> list[int]:
    """Some lengths of a log in order, the last of which is all of it."""
    size = len(session.events)
    return [*sorted(draw(st.lists(st.integers(min(least, size), size), min_size=1, max_size=5))), size]


@given(any_sessions, st.data(), st.sampled_from([SMALL, ROWS]))
def test_a_ledger_extended_in_any_pieces_is_the_one_made_at_once(session, data, sizes):
    cuts = lengths(data.draw, session)
    first = beginning(session, cuts[0])
    store = Store(GrowingLedger.of(first, sizes=sizes))
    done = first
    for _, stop in pairwise(cuts):
        now = beginning(session, stop)
        growing = store.resumed()
        growing.add(
            now.events[len(done.events) :], now.calls[len(done.calls) :], now.compactions[len(done.compactions) :]
        )
        store.store(growing)
        done = now
        assert store.ledger.to_bytes() == Ledger.of(now).to_bytes()


@given(any_sessions, st.sampled_from([SMALL, ROWS]))
def test_chunks_give_the_ledger_again(session, sizes):
    store = Store(GrowingLedger.of(session, sizes=sizes))
    assert store.ledger.to_bytes() == Ledger.of(session).to_bytes()


@given(any_sessions)
def test_what_did_not_grow_is_not_written(session):
    store = Store(GrowingLedger.of(session, sizes=SMALL))
    assert store.store(store.resumed()) == 0


@given(any_sessions)
def test_growing_by_one_event_writes_at_most_one_chunk(session):
    store = Store(GrowingLedger.of(session, sizes=SMALL))
    growing = store.resumed()
    growing.add(session.events[:1])
    assert store.store(growing) == len(session.events[:1])


@given(sessions(), listed_policies(), windows, summarizers, st.data())
def test_an_extended_trace_is_the_one_replayed_from_the_beginning(session, policy, window, summarizer, data):
    first = beginning(session, data.draw(st.integers(0, len(session.events))))
    before, ledger = Ledger.of(first), Ledger.of(session)
    known = {"window": window, "summarizer": summarizer}
    attribution = attribute(before)
    then, now = usage_for(before, attribution), usage_for(ledger, attribute(ledger))
    trace = replay(before, policy, usage=then, **known)
    rests_on = basis(before, policy, len(trace), usage=then, **known)
    again = dataclasses.replace(trace, state=load_state(policy, dump_state(trace.state)))
    longer = extended(again, rests_on, ledger, policy, usage=now, **known)
    whole = replay(ledger, policy, usage=now, **known)
    if longer is not None:
        assert longer.digest() == whole.digest()
        assert (longer.state, longer.notes) == (whole.state, whole.notes)
    event(f"extended: {longer is not None}")


counted_sessions = st.one_of(counted.sessions(), answered_sessions(), answered_sessions())
LEARNT_FROM = 8  # events; before so many little is measured


@given(counted_sessions, st.data())
def test_an_attribution_extended_in_pieces_is_the_one_extended_at_once(session, data):
    ledgers = [Ledger.of(beginning(session, stop)) for stop in lengths(data.draw, session, LEARNT_FROM)]
    learnt = in_pieces = attribute(ledgers[0])
    for ledger in ledgers[1:]:
        in_pieces = grown.extended(in_pieces, ledger)
    if grown.is_learnt(learnt):
        assert in_pieces.to_bytes() == grown.extended(learnt, ledgers[-1]).to_bytes()
    event(f"learnt: {grown.is_learnt(learnt)}, with habit: {learnt.habit is not None}")


@given(counted_sessions)
def test_an_attribution_that_is_not_extended_stays_as_it_was_made(session):
    ledger = Ledger.of(session)
    assert grown.extended(attribute(ledger), ledger).to_bytes() == attribute(ledger).to_bytes()


@given(counted_sessions, st.data())
def test_what_an_extended_attribution_leaves_over_is_its_residual(session, data):
    whole = Ledger.of(session)
    attribution = grown.extended(
        attribute(Ledger.of(beginning(session, data.draw(st.integers(whole.event_count // 2, whole.event_count))))),
        whole,
    )
    assert (attribution.tokens >= 0).all()
    for step, call in enumerate(session.calls):
        if call.prompt_tokens:
            assert attribution.price(*whole.recorded_view(step)) + attribution.residual[step] == call.prompt_tokens
