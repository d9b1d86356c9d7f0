"""The pieces of policies: lists of messages, cuts, and the points at which a policy looks."""

from __future__ import annotations

import cProfile
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard_core.forms.edits import Replaced
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.policies.base import Point
from guard_core.policies.pieces.cuts import crossing, last_legal, last_messages, next_legal
from guard_core.policies.pieces.estimates import HEURISTIC
from guard_core.policies.pieces.groups import groups_of
from guard_core.policies.pieces.looks import POINTS, looks_at, looks_in, looks_of
from guard_core.policies.pieces.message_columns import between, list_messages
from guard_core.policies.pieces.messages import messages_of
from guard_core.policies.pieces.request_numbers import only_grow
from guard_core.sessions import ModelCall
from guard_core.trace import Head
from guard_core.views import Span, Synthetic, content_count
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.policies.tools import run
from tests.profiling import calls_of

LOG = session(
    user("first"),
    tool_call("read", "a"),
    tool_result("y" * 400, "read", "a"),
    model("done"),
    user("second"),
    model("also done"),
    calls=(ModelCall(1, 1, 10), ModelCall(3, 3, 20), ModelCall(5, 5, 30)),
)
LEDGER = Ledger.of(LOG)
VIEW = (Span(0, 1), Synthetic("summary", 40), Span(1, 4), Span(4, 6))


def test_a_list_has_a_row_for_every_message_of_the_view():
    messages = list_messages(LEDGER, VIEW)
    assert messages.event.tolist() == [0, -1, 1, 2, 3, 4, 5]
    assert np.flatnonzero(messages.is_user).tolist() == [0, 5]
    assert np.flatnonzero(messages.is_written).tolist() == [1]
    assert np.flatnonzero(~messages.is_whole).tolist() == [3]  # a cut before the result parts it from its call
    assert HEURISTIC.tokens(messages).sum() == HEURISTIC.view(LEDGER, VIEW)


def test_a_list_of_an_empty_log_has_what_a_policy_wrote():
    messages = list_messages(Ledger.of(session()), (Synthetic("summary", 40),))
    assert (messages.event.tolist(), messages.is_written.tolist()) == ([-1], [True])


@given(st.integers(0, 8), st.integers(0, 8))
def test_a_part_of_a_view_has_the_messages_between_two_places(start, stop):
    part = between(VIEW, start, stop)
    assert content_count(part) == len(range(7)[start:stop])
    assert list_messages(LEDGER, part).event.tolist() == list_messages(LEDGER, VIEW).event.tolist()[start:stop]


@given(st.sets(st.integers(0, 6)))
def test_chosen_messages_are_a_view_of_them_in_order(chosen):
    messages = list_messages(LEDGER, VIEW)
    taken = list_messages(LEDGER, messages.take(sorted(chosen)))
    assert taken.event.tolist() == messages.event[sorted(chosen)].tolist()


def test_messages_in_a_form_are_a_message_of_a_library_that_is_made_once():
    ledger = Ledger.of(session(user("go"), tool_call("ls", "a"), tool_call("ls", "b"), tool_result("x", "ls", "a")))
    list_of = partial(groups_of, ledger)
    messages = messages_of((Span(0, 1), Span(1, 4, Replaced(text="gone").name)))
    first, again = list_of(messages), list_of(messages_of((Span(1, 4, Replaced(text="gone").name),)))
    assert [group.has_calls for group in first] == [False, True, True, False]
    assert all(one is other for one, other in zip(first[1:], again, strict=True))
    assert list_of(messages_of((Span(1, 4),)))[0] is not first[1]


@given(st.lists(st.integers(0, 50), max_size=12), st.integers(0, 200), st.integers(1, 4))
def test_a_budget_is_crossed_at_the_newest_message_with_which_the_end_exceeds_it(sizes, budget, least):
    expected = -1
    for index in range(len(sizes)):
        if sum(sizes[index:]) > budget and len(sizes) - index >= least:
            expected = index
    assert crossing(np.array(sizes, dtype=np.int64), budget, least=least) == expected


def test_cuts_move_to_legal_places():
    legal = np.array([True, False, False, True, False])
    assert [next_legal(legal, index) for index in range(5)] == [0, 3, 3, 3, 5]
    assert [last_legal(legal, index) for index in range(5)] == [0, 0, 0, 3, 3]
    assert [last_messages(5, keep) for keep in (0, 2, 9)] == [5, 3, 0]


@pytest.mark.parametrize(
    ("points", "stops"),
    [
        ((Point.BEFORE_CALL,), [1, 3, 5]),
        ((Point.AFTER_CALL,), [None, 2, 4]),
        ((Point.END_OF_TURN,), [None, None, 4]),
        ((Point.AFTER_RESULTS, Point.BEFORE_TURN), [0, 3, 4]),
        ((Point.AFTER_CALL, Point.AFTER_RESULTS), [None, 3, 4]),
    ],
)
def test_a_policy_sees_what_is_in_the_log_where_it_looks(points, stops):
    looks = looks_at(points, LEDGER, np.arange(3))
    assert [
        stop if sees else None for stop, sees in zip(looks.stop.tolist(), looks.looks.tolist(), strict=True)
    ] == stops
    assert {POINTS[point] for point in looks.point.tolist() if point >= 0} <= {*points}


@pytest.mark.parametrize("points", [(Point.BEFORE_CALL,), (Point.AFTER_CALL, Point.BEFORE_TURN)])
def test_looks_at_one_step_are_those_of_the_whole_log(points):
    ledger = Ledger.of(LOG)
    alone = [looks_of(points, ledger, step) for step in range(3)]
    assert not ledger.derived  # a live guard asks of one step, and never of the others
    whole = looks_in(points, ledger)
    for step, one in enumerate(alone):
        for column, of_all, known in zip(one, whole, looks_of(points, ledger, step), strict=True):
            assert column.tolist() == of_all[step : step + 1].tolist() == known.tolist()


def test_a_replay_finds_out_once_where_its_policy_looks():
    """A changed setting at 50,000 steps took a tenth of its replay for that."""
    events = [event for _ in range(90) for event in (user("q" * 400), model("m" * 400))]
    log = session(*events, calls=tuple(ModelCall(at, at, 900) for at in range(1, len(events), 2)))
    profile = cProfile.Profile()
    trace = profile.runcall(run, get_policy("codex"), log, window=1_000)
    assert len(trace.compactions) > 20
    assert calls_of(profile, looks_at) <= 4


def test_requests_only_grow_up_to_a_step_with_fewer_events_and_behind_it():
    calls = (ModelCall(1, 1, 10), ModelCall(3, 3, 20), ModelCall(2, None, 15), ModelCall(5, 5, 30))
    ledger, whole = Ledger.of(session(*LOG.events, calls=calls)), Head((), 0, "")
    runs = [(start, stop) for start in range(4) for stop in range(start + 1, 5)]
    growing = [(start, stop) for start, stop in runs if only_grow(ledger, whole, start, stop)]
    assert growing == [(0, 1), (0, 2), (1, 2), (2, 3), (2, 4), (3, 4)]
    assert not only_grow(ledger, Head((Synthetic("summary", 40),), 4, ""), 1, 2)  # the head has later events
