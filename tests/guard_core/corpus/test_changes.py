"""Change points: later sessions that contradict the earlier ones."""

import random

from guard_core.corpus import changes_of
from guard_core.rules.evidence import Cause
from tests.guard_core.corpus.evidence import DAY, fired, stretch


def old(name, day):
    return stretch(name, fired(155_100, 154_900), passed=154_900, day=day)


def new(name, day, version="2.1.21"):
    return stretch(name, fired(167_050, 166_000, step=8), passed=166_500, day=day, version=version)


def test_a_new_version_with_another_threshold_is_a_change_with_its_date_and_both_checks():
    changes = changes_of([old("a", 1), old("b", 2), new("c", 3), new("d", 4)])
    (change,) = changes.changes
    assert (change.time, change.version, change.key.version) == (3 * DAY, "2.1.14", "2.1.21")
    assert (change.before.session, change.before.tokens) == ("a", 155_100)
    assert (change.after.session, change.after.tokens) == ("c", 166_500)
    assert (change.fell, change.former, change.limits) == (False, (154_900, 155_100), (166_500, 167_050))
    assert (change.sessions_before, change.sessions_after) == (2, 2)
    assert (change.rule_before, change.rule_after, change.expected) == (155_000, 167_000, True)


def test_a_threshold_that_falls_within_one_version_is_not_what_the_rule_says():
    lower = stretch("b", fired(84_100, 83_900, step=3), passed=83_900, day=2)
    (change,) = changes_of([old("a", 1), lower]).changes
    assert (change.fell, change.expected) == (True, False)
    assert (change.before.tokens, change.after.tokens, change.after.step) == (154_900, 84_100, 3)


def test_sessions_that_one_threshold_explains_are_no_change():
    assert changes_of([old("a", 1), old("b", 2), stretch("c", passed=100, day=3)]).changes == []


def test_one_compaction_that_a_person_may_have_asked_for_is_no_change():
    asked = stretch("b", fired(30_000, 29_000, Cause.UNSTATED), passed=29_000, day=2)
    assert changes_of([old("a", 1), asked]).changes == []


def test_a_session_that_contradicts_itself_and_one_without_a_time_are_named_apart():
    itself = stretch("b", fired(100_000), passed=120_000, day=2)
    changes = changes_of([old("a", 1), itself, stretch("c", passed=170_000, day=None)])
    assert (changes.changes, changes.inconsistent, changes.undated) == ([], ["b"], 1)


def test_another_window_is_a_series_of_its_own():
    wide = stretch("b", fired(955_100, 954_000), passed=954_900, window=1_000_000, day=2)
    assert changes_of([old("a", 1), wide]).changes == []


def test_the_order_in_which_sessions_are_given_does_not_matter():
    items = [old("a", 1), old("b", 2), new("c", 3), new("d", 4), old("e", 5), stretch("f", passed=160_000, day=6)]
    expected = changes_of(items)
    assert len(expected.changes) == 3
    for seed in range(5):
        random.Random(seed).shuffle(items)
        assert changes_of(items) == expected
