"""The rows of a request and of what is gone from it."""

from guard_core.views import Inserted, Rewritten, Span, Synthetic
from inspector.pages.shared.requests import gone_ranges, gone_rows, present, rows_of
from tests.builders import model, user

VIEW = (Inserted(0), Span(4, 7), Rewritten(7, user("[cut]"), "pruned"), Synthetic("continuation", 3, "go"), Span(9, 12))


def states(rows):
    return [(row.state, row.event) for row in rows]


def test_the_messages_of_a_view_come_in_its_order():
    rows = rows_of(VIEW, 0, 100, (user("summary"),))
    messages_kept = [("kept", 9), ("kept", 10), ("kept", 11)]
    start = [("inserted", None), ("kept", 4), ("kept", 5), ("kept", 6), ("rewritten", 7), ("inserted", None)]
    assert states(rows) == start + messages_kept


def test_a_window_of_a_view_is_the_same_as_a_slice_of_all():
    everything = rows_of(VIEW, 0, 100)
    assert all(rows_of(VIEW, i, j) == everything[i:j] for i in range(10) for j in range(i, 10))


def test_what_is_gone_is_what_the_view_does_not_hold():
    assert gone_ranges(VIEW, 14) == [range(0, 4), range(8, 9), range(12, 14)]
    assert gone_ranges((Span(0, 5),), 5) == []


def test_what_the_summariser_never_saw_is_dropped():
    rows = gone_rows([range(0, 4), range(8, 9)], 1, 5, seen=[range(2, 4)])
    assert states(rows) == [("dropped", 1), ("summarised", 2), ("summarised", 3), ("dropped", 8)]


def test_a_rewritten_event_shows_what_was_sent():
    rows = rows_of((Rewritten(1, user("[cut]"), "pruned"), Span(2, 3)), 0, 2)
    shown = [present(row, model("whole"), 1, None, "") for row in rows]
    assert [row["parts"][0]["text"] for row in shown] == ["[cut]", "whole"]


def test_a_message_of_which_only_the_size_is_modelled_keeps_that_size():
    (row,) = rows_of((Synthetic("summary", 4_590),), 0, 1)
    assert row.size == 4_590
    assert "4,590 bytes" in row.message.parts[0].text
