"""Views that share their beginning, their sums and their normal forms are those of each view by itself."""

from collections import Counter
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard_core.estimation.usage import normal
from guard_core.view_sums import FirstPlaces, ManySums, PlainViews, ViewSums
from guard_core.views import (
    Inserted,
    Span,
    Synthetic,
    common_length,
    content_count,
    difference,
    exchanged,
    followed,
    plain_values,
    shared,
)

SEGMENTS = st.one_of(
    st.builds(lambda start, size: Span(start, start + size), st.integers(0, 9), st.integers(0, 3)),
    st.builds(lambda start, size: Span(start, start + size, "pruned"), st.integers(0, 9), st.integers(0, 3)),
    st.builds(Synthetic, st.just("summary"), st.integers(0, 2)),
    st.builds(Inserted, st.integers(0, 2)),
)


@st.composite
def views(draw):
    """Some long views, each with a beginning of the one before."""
    several, view = [], ()
    for _ in range(draw(st.integers(1, 4))):
        view = (*view[: draw(st.integers(0, len(view)))], *draw(st.lists(SEGMENTS, max_size=40)))
        several.append(view)
    return several


@st.composite
def shared_views(draw):
    """Long views, each sharing a beginning with the one before, beside the tuples of their segments."""
    several, view, plain = [], (), ()
    for _ in range(draw(st.integers(1, 8))):
        same = draw(st.integers(0, len(plain)))
        rest = draw(st.lists(SEGMENTS, max_size=6)) * draw(st.sampled_from([1, 1, 30]))
        view, plain = followed(view, same, rest), (*plain[:same], *rest)
        several.append((view, plain))
    return several


@given(shared_views(), st.data())
def test_a_view_that_shares_its_beginning_is_the_tuple_of_its_segments(several, data):
    for view, plain in several:
        start, stop = (data.draw(st.integers(-len(plain) - 2, len(plain) + 2)) for _ in range(2))
        assert (len(view), tuple(view), hash(view)) == (len(plain), plain, hash(plain))
        assert view == plain
        assert plain == view
        assert (*view[start:stop],) == plain[start:stop]
        assert [view[place] for place in range(-len(plain), len(plain))] == [*plain, *plain]
        assert msgspec.json.encode(view, enc_hook=plain_values) == msgspec.json.encode(plain)
    for (first, one), (second, other) in pairwise(several):
        assert common_length(first, second) == common_length(one, second) == common_length(one, other)
        assert (first == second) == (one == other)
        assert shared(first, other) == other


@given(views(), st.integers(0, 2))
def test_the_first_segment_of_a_kind_is_that_of_the_view_alone(several, index):
    places = FirstPlaces(lambda segment: segment == Inserted(index))
    for view in several:
        assert places.first(view) == next((at for at, one in enumerate(view) if one == Inserted(index)), len(view))


@given(shared_views(), st.integers(0, 70), st.lists(SEGMENTS, max_size=4), st.integers(0, 2))
def test_the_first_segment_of_a_kind_is_found_where_the_oldest_messages_went(several, dropped, newer, index):
    (view, _), places = several[-1], FirstPlaces(lambda segment: segment == Inserted(index))
    for after in (view, (*newer[:2], *view[dropped:], *newer[2:])):
        assert places.first(after) == next((at for at, one in enumerate(after) if one == Inserted(index)), len(after))


def size(segment):
    return segment.stop - segment.start if isinstance(segment, Span) else 1


def plain(view):
    return normal(tuple(Span(item.start, item.stop) if isinstance(item, Span) else item for item in view))


@given(views())
def test_sums_are_those_of_the_view_alone(several):
    sums = ViewSums(size)
    for view in several:
        assert sums.total(view) == content_count(view)
        assert sums.prefix(view).tolist() == [content_count(view[:stop]) for stop in range(len(view) + 1)]


@given(views())
def test_several_sums_at_once_are_those_of_the_view_alone(several):
    sums = ManySums(lambda segments: (content_count(segments), len(segments)))
    for view in several:
        assert sums.totals(view) == (content_count(view), len(view))


@given(views())
def test_a_plain_view_is_the_normal_one_without_forms(several):
    views_plain = PlainViews()
    for view in several:
        assert views_plain.of(view) == plain(view)


@given(views())
def test_what_two_views_have_in_common_is_their_longest_equal_beginning(several):
    for first, second in pairwise(several):
        length = common_length(first, second)
        assert first[:length] == second[:length]
        assert first[length : length + 1] != second[length : length + 1] or length in (len(first), len(second))


@given(shared_views(), st.integers(0, 40))
def test_what_differs_between_two_views_lies_between_an_equal_beginning_and_an_equal_end(several, dropped):
    for (first, one), (second, other) in pairwise(several):
        check_difference(first, one, second, other)
    view, plain_view = several[-1]
    check_difference(view, plain_view, view[dropped:], plain_view[dropped:])


def check_difference(first, one, second, other):
    removed, added, kept = difference(first, second)
    check_kept(one, other, kept)
    same = common_length(one, other)
    stays = len(one) - same - len(removed)
    assert stays >= 0
    assert one == (*one[:same], *removed, *one[len(one) - stays :])
    assert other == (*one[:same], *added, *one[len(one) - stays :])


def check_kept(first, second, kept):
    old, new, size = kept
    assert tuple(first[old : old + size]) == tuple(second[new : new + size])
    assert not size or min(old, new) >= common_length(first, second)


@given(shared_views(), st.integers(0, 40), shared_views())
def test_what_went_and_what_came_are_all_that_two_views_do_not_share(several, dropped, others):
    (view, _), (other, _) = several[-1], others[-1]
    for before, after in ((view, other), (view, (*view[dropped:], *other))):
        removed, added, kept = exchanged(before, after)
        check_kept(before, after, kept)
        assert Counter(before) - Counter(removed) == Counter(after) - Counter(added)
        assert Counter(removed) <= Counter(before)
        assert Counter(added) <= Counter(after)


def singles(start, stop):
    """Every second event of the log, as the segments of a view."""
    return tuple(Span(event, event + 1) for event in range(start, stop, 2))


def test_what_a_summariser_was_given_in_between_is_added_up_alone():
    asked = []
    sums = ViewSums(lambda segment: asked.append(segment) or 1)
    view = singles(0, 2_000)
    sums.total(view)
    asked.clear()
    assert sums.total(view[:20]) == 20
    assert sums.total((Synthetic("summary", 9), *view[20:])) == 981
    assert len(asked) < 100


def test_the_list_of_another_policy_is_remembered_though_it_is_shorter():
    asked = []
    sums = ViewSums(lambda segment: asked.append(segment) or 1)
    sums.total(singles(0, 10_000))
    for size in range(100, 200):
        assert sums.total(singles(20_000, 20_000 + 2 * size)) == size
    assert len(asked) < 6_000


def test_where_the_oldest_messages_went_the_others_are_not_searched_again():
    asked = []
    places = FirstPlaces(lambda segment: asked.append(segment) or segment == Span(1_800, 1_801))
    view = singles(0, 2_000)
    assert places.first(view) == 900
    asked.clear()
    assert places.first((Synthetic("summary", 9), *view[20:], *singles(2_000, 2_010))) == 881
    assert len(asked) < 100


@pytest.mark.parametrize("newer", [0, 5])
@pytest.mark.parametrize("summary", [(), (Synthetic("summary", 9),)])
def test_where_the_oldest_messages_went_only_what_went_and_came_is_added_up(newer, summary):
    asked = []
    sums = ViewSums(lambda segment: asked.append(segment) or 1)
    view = singles(0, 2_000)
    sums.total(view)
    asked.clear()
    came = singles(3_000, 3_000 + 2 * newer)
    assert sums.total((*summary, *view[3:], *came)) == 997 + len(summary) + newer
    assert len(asked) < 100
