"""What a cut does to a request is seen."""

from guard_core.boundaries import CALL_WITHOUT_RESULT, RESULT_WITHOUT_CALL, pair_violations, shared_beginning
from guard_core.ledger import Ledger
from guard_core.views import Span, Synthetic
from tests.builders import session, tool_call, tool_result, user


def test_whole_pairs_are_no_violation(sequential_chain):
    assert pair_violations(sequential_chain.events) == ()


def test_a_result_whose_call_was_cut_away_is_told(sequential_chain):
    (violation,) = pair_violations(sequential_chain.events[2:])
    assert (violation.kind, violation.message, violation.id) == (RESULT_WITHOUT_CALL, 0, "c0")


def test_a_call_that_still_waits_is_told(sequential_chain):
    (violation,) = pair_violations(sequential_chain.events[:4])
    assert (violation.kind, violation.message) == (CALL_WITHOUT_RESULT, 3)


def test_without_ids_the_name_decides():
    assert pair_violations([tool_call("look"), tool_result("x", "look")]) == ()
    assert len(pair_violations([tool_call("look"), tool_result("x", "find")])) == 2


def test_a_cut_is_moved_back_to_where_no_pair_is_parted(sequential_chain):
    ledger = Ledger.of(sequential_chain)
    assert [ledger.cut(index) for index in range(12)] == [0, 1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11]


def test_calls_that_nobody_answers_hold_no_cut_back():
    ledger = Ledger.of(session(user("a"), tool_call("t", "lost"), user("b"), user("c")))
    assert [ledger.cut(index) for index in range(5)] == [0, 1, 2, 3, 4]


def test_the_shared_beginning_ends_at_the_first_difference():
    summary = Synthetic("summary", 9, "summarised")
    assert shared_beginning((Span(0, 4),), (Span(0, 7),)) == (Span(0, 4),)
    assert shared_beginning((summary, Span(4, 6)), (summary, Span(4, 9))) == (summary, Span(4, 6))
    assert shared_beginning((Span(0, 9),), (summary, Span(9, 10))) == ()
