"""Rows over many sessions: joined bounds, the formula inside, who obeys a stated setting."""

import numpy as np
import pytest

from guard_core.corpus import rows_of
from guard_core.corpus.rows import explained_by
from guard_core.corpus.words import formula_words
from guard_core.rules import AGENTS
from guard_core.rules.evidence import Cause
from tests.guard_core.corpus.evidence import fired, stretch


def only(*items):
    (row,) = rows_of(items)
    return row


def test_the_bounds_are_the_largest_count_that_passed_and_the_least_that_fired_of_all_sessions():
    row = only(
        stretch("a", fired(155_300, 154_000), passed=154_000),
        stretch("b", fired(155_100, 154_800, step=7), passed=154_900),
        stretch("c"),
    )
    assert (row.above.tokens, row.above.session, row.above.step) == (154_900, "b", 9)
    assert (row.at_most.tokens, row.at_most.session, row.at_most.step) == (155_100, "b", 7)
    assert row.sessions == ("a", "b", "c")
    assert row.interval.words == "above 154,900 and at most 155,100"


def test_the_formula_is_the_simplest_one_inside_and_says_how_many_it_explains():
    row = only(stretch("a", fired(155_300, 154_000), passed=154_990), stretch("b", fired(155_001, 10), passed=0))
    assert (row.formula.threshold, row.formula.changes) == (155_000, 0)
    assert (row.explained, row.fired) == (2, 2)


def test_formulas_with_the_same_threshold_are_counted_once_and_called_thresholds():
    wide, narrow = (only(stretch("a", fired(90_000, least), passed=least)) for least in (80_000, 85_000))
    assert wide.others > narrow.others > 0
    assert formula_words(wide).endswith(f"explains 1 of 1 (as do {wide.others} other thresholds)")


def test_without_a_lower_bound_only_the_agents_own_threshold_is_named():
    assert only(stretch("a", fired(155_300))).formula.threshold == 155_000
    assert only(stretch("a", fired(90_000))).formula is None


def test_a_configured_value_is_found_where_the_rule_does_not_explain_it():
    row = only(stretch("a", fired(84_100, 83_900), passed=83_950))
    assert (row.formula.threshold, row.formula.changes) == (84_000, 1)
    assert "50 %" in row.formula.formula


def test_sessions_that_contradict_each_other_are_named_and_the_formula_says_what_it_explains():
    row = only(
        stretch("a", fired(155_100, 154_900), fired(155_200, 154_990), passed=154_990),
        stretch("b", fired(84_100, 83_950), passed=83_950),
    )
    assert row.contradiction
    assert (row.above.session, row.at_most.session) == ("a", "b")
    assert (row.formula.threshold, row.explained, row.fired) == (155_000, 2, 3)


def test_sessions_that_contradict_each_other_are_parted_into_as_few_thresholds_as_possible():
    row = only(
        stretch("a", fired(155_100, 154_990), passed=154_990),
        stretch("b", fired(84_100, 83_950), passed=83_950),
        stretch("c", fired(155_900, 150_000), passed=150_000),
        stretch("d", fired(84_900, 80_000), passed=80_000),
        stretch("quiet", passed=100_000),
    )
    low, high = row.clusters
    assert (low.sessions, low.above.tokens, low.at_most.tokens) == (("b", "d"), 83_950, 84_100)
    assert (high.sessions, high.above.tokens, high.at_most.tokens) == (("a", "c"), 154_990, 155_100)
    assert [(item.formula.threshold, item.explained, item.fired) for item in row.clusters] == [
        (84_000, 2, 2),
        (155_000, 2, 2),
    ]
    assert only(stretch("a", fired(155_100, 154_990), passed=154_990)).clusters == ()


def test_a_single_compaction_that_a_person_may_have_asked_for_contradicts_nothing():
    row = only(stretch("a", passed=100_000), stretch("b", fired(30_000, 29_000, Cause.UNSTATED), passed=29_000))
    assert (row.contradiction, row.left_out, row.at_most) == (False, 1, None)


def test_several_of_one_session_above_all_that_passed_count_as_automatic():
    low = stretch("b", *[fired(30_000 + n, 29_000, Cause.UNSTATED, step=n) for n in range(3)], passed=29_500)
    row = only(stretch("a", passed=100_000), low)
    assert row.contradiction
    assert (row.at_most.tokens, row.left_out) == (30_000, 0)


def test_manual_and_refused_compactions_bound_nothing_and_are_counted():
    row = only(stretch("a", fired(10, 0, Cause.MANUAL), fired(201_000, 0, Cause.REFUSED), passed=150_000))
    assert (row.at_most, row.fired, row.formula) == (None, 0, None)
    assert (row.compactions[Cause.MANUAL], row.compactions[Cause.REFUSED]) == (1, 1)
    assert [(item.place.tokens, item.refused) for item in row.forced] == [(201_000, True)]


def test_a_compaction_close_to_the_window_is_listed_with_those_that_were_forced():
    row = only(stretch("a", fired(180_000), fired(179_999)))
    assert [(item.place.tokens, item.refused) for item in row.forced] == [(180_000, False)]


def test_versions_models_and_windows_are_rows_of_their_own_in_order_of_the_version():
    kinds = [("2.1.100", 200_000), ("2.1.21", 1_000_000), ("2.1.21", 200_000)]
    items = [stretch(name, version=version, window=size) for name, (version, size) in zip("abc", kinds, strict=True)]
    assert [(row.key.version, row.key.window) for row in rows_of(items)] == [
        ("2.1.21", 200_000),
        ("2.1.21", 1_000_000),
        ("2.1.100", 200_000),
    ]


def test_a_stated_setting_is_a_group_of_its_own_with_the_sessions_that_obey_it():
    typed = {"autocompact_pct": "50"}
    row = only(
        stretch("obeys", fired(84_050, 83_000), passed=83_900, **typed),
        stretch("late", fired(155_000, 154_000), passed=154_000, **typed),
        stretch("early", fired(50_000, 40_000), passed=40_000, **typed),
        stretch("short", passed=20_000, **typed),
        stretch("default", fired(155_000, 154_000), passed=154_000),
    )
    stated, default = row.rules
    assert [(item.name, item.value) for item in stated.stated] == [("autocompact_pct", 50.0)]
    assert (stated.threshold, stated.sessions, stated.obeys) == (84_000, 4, ("obeys",))
    assert [(item.place.session, item.place.tokens, item.fired) for item in stated.contradicts] == [
        ("early", 50_000, True),
        ("late", 154_000, False),
    ]
    assert (default.stated, default.obeys) == ((), ("default",))


def test_an_agent_without_a_threshold_obeys_by_compacting_after_refused_requests_only():
    def new(name, *compactions, **more):
        return stretch(name, *compactions, version="2.1.330", **more)

    row = only(new("early", fired(155_000, 154_000), passed=154_000), new("quiet", passed=150_000))
    (tally,) = row.rules
    assert (tally.threshold, [item.place.session for item in tally.contradicts]) == (None, ["early"])


def test_an_agent_without_a_known_rule_has_a_row_by_its_prompts():
    row = only(stretch("a", fired(100_500, 99_000), passed=99_500, agent=None))
    assert (row.key.agent, row.key.counter, row.rules) == ("Somebody", "prompt", ())
    assert row.formula.threshold == 100_000


@pytest.mark.parametrize(("relation", "explained"), [(">=", 1), (">", 0)])
def test_at_exactly_the_threshold_the_relation_decides(relation, explained):
    assert explained_by([fired(100, 90)], np.array([100]), relation).tolist() == [explained]


def test_each_agent_has_a_label_of_its_own_by_which_its_formula_is_found():
    labels = [agent.label for agent in AGENTS]
    assert len(set(labels)) == len(labels)
