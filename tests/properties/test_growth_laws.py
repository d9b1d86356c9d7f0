"""Laws of sessions that grow: extended in any pieces, the ledger is the one made at once, byte for byte."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import msgspec
from hypothesis import event, given
from hypothesis import strategies as st

from guard_core.attribution import attribute
from guard_core.chunks import ROWS, GrowingLedger, joined, read_state
from guard_core.extension import basis, extended
from guard_core.ledger import Ledger
from guard_core.policies.base import dump_state, load_state
from guard_core.replay import replay
from guard_core.sessions import Session
from guard_core.usage import usage_for
from tests.properties import test_attribution_laws as counted
from tests.properties.strategies import sessions, summarizers, windows
from tests.properties.test_policy_laws import listed_policies

SMALL = {"events": 3, "calls": 2, "bases": 1}  # rows of a chunk, so that few events cross many borders
any_sessions = st.one_of(sessions(), counted.sessions())


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
    """A session when its log had so many events."""
    calls = tuple(call for call in session.calls if call.at <= events)
    compactions = tuple(item for item in session.compactions if item.at <= events)
    return msgspec.structs.replace(session, events=session.events[:events], calls=calls, compactions=compactions)


def lengths(draw: st.DrawFn, session: Session) -> list[int]:
    return [*sorted(draw(st.lists(st.integers(0, len(session.events)), max_size=5))), len(session.events)]


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
