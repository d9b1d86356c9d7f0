"""Views in columns are the views they were made of."""

import pytest

from guard_core.view_columns import MOST_SEGMENTS, ViewColumns
from guard_core.views import Inserted, Span, Synthetic

NOTE, OTHER = Synthetic("summary", 400), Synthetic("note", 7, "carry on")


def test_columns_give_back_the_views_they_were_made_of():
    views = [
        (Span(0, 5),),
        (),
        (NOTE, Span(2, 3, "pruned"), OTHER, Span(3, 9)),
        (Span(0, 2, "removed"), NOTE, Span(4, 8, "pruned")),
    ]
    columns = ViewColumns.of(views)
    assert columns.views() == views
    assert columns.names == ("", "pruned", "removed")
    assert columns.messages == (NOTE, OTHER)
    assert columns.contents.tolist() == [5, 0, 9, 7]


@pytest.mark.parametrize("view", [(Span(0, 1), Inserted(0)), (NOTE,) * (MOST_SEGMENTS + 1)])
def test_a_view_of_a_recorded_compaction_or_with_many_segments_has_no_columns(view):
    assert ViewColumns.of([(Span(0, 1),), view]) is None


def test_there_are_columns_of_no_views():
    assert ViewColumns.of([]).views() == []
