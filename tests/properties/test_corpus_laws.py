"""Laws of evidence joined over sessions: in any order the same, and around the threshold that was planted."""

from hypothesis import given
from hypothesis import strategies as st

from guard_core.corpus import Bounds, CheckPlace, SessionStretch, changes_of, rows_of
from guard_core.corpus.bounds import joined
from guard_core.rules import explain
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Session
from guard_core.views import Inserted
from tests.builders import model, tool_result, user

places = st.builds(CheckPlace, st.integers(0, 300), st.sampled_from("abc"), st.integers(0, 3), st.just(True))
bounds = st.builds(
    Bounds,
    st.none() | places,
    st.none() | places,
    st.lists(places, max_size=3).map(lambda all: tuple(sorted(place._replace(sure=False) for place in all))),
)


@given(bounds, bounds, bounds)
def test_joining_is_associative_and_free_of_order(one, two, three):
    assert one.join(two).join(three) == one.join(two.join(three))
    assert one.join(two) == two.join(one)
    assert joined((one, two, three)) == one.join(two).join(three)
    assert one.join(one._replace(unsure=())) == one


@given(bounds, bounds)
def test_more_evidence_never_widens_an_interval_nor_ends_a_contradiction(one, two):
    whole = one.join(two)
    low, high, _ = one.limits
    new_low, new_high, _ = whole.limits
    assert low is None or new_low.tokens >= low.tokens
    assert one.contradiction is None or whole.contradiction is not None
    if one.fired is not None:
        assert new_high.tokens <= high.tokens


@st.composite
def played(draw, threshold):
    """A session of an agent that compacts before a call once prompt, output and a quarter of the result reach the
    threshold, in tokens; some compactions are asked for by hand."""
    events, calls, compactions = [user("go")], [], []
    prompt = 5_000
    for step in range(draw(st.integers(1, 7))):
        result = draw(st.integers(0, 50))
        calls.append(ModelCall(len(events), len(events), prompt, output_tokens=10, model="claude-opus-4-5"))
        events += [model("reading"), tool_result("x" * 4 * result, id=str(step))]
        count = prompt + 10 + result
        asked = draw(st.sampled_from([False, False, False, True]))
        prompt += draw(st.integers(1, 30_000))
        if count >= threshold or asked:
            trigger = "auto" if count >= threshold else "manual"
            base = (Inserted(0),)
            compactions.append(
                RecordedCompaction(len(events), Evidence.DECLARED, "summary", base, (user("sum"),), trigger)
            )
            prompt = draw(st.integers(1_000, 8_000))
    return Session(
        events=tuple(events),
        calls=tuple(calls),
        compactions=tuple(compactions),
        format="claude-code",
        model="claude-opus-4-5",
        versions=((0, "2.1.14"),),
        started_at=float(draw(st.integers(0, 10))),
    )


def stretches(sessions):
    return [
        SessionStretch(str(number), "", session.started_at, evidence)
        for number, session in enumerate(sessions)
        for evidence in explain(session).evidence
    ]


@given(st.data(), st.integers(20_000, 60_000))
def test_the_interval_of_sessions_under_one_threshold_contains_it(data, threshold):
    items = stretches(data.draw(st.lists(played(threshold), min_size=1, max_size=4)))
    (row,) = rows_of(items)
    assert not row.contradiction
    assert row.interval.contains(threshold)
    assert row.explained <= row.fired
    assert changes_of(items).changes == []
    for item in items:
        low, high, _ = item.bounds.limits
        assert low is None or low.tokens <= row.above.tokens
        assert high is None or high.tokens >= row.at_most.tokens
    assert rows_of(reversed(items)) == [row]


@given(st.data(), st.integers(20_000, 40_000), st.integers(41_000, 60_000))
def test_sessions_under_two_thresholds_are_parted_into_at_most_two(data, low, high):
    sessions = data.draw(st.lists(st.one_of(played(low), played(high)), min_size=2, max_size=5))
    items = stretches(sessions)
    (row,) = rows_of(items)
    bounded = {item.session for item in items if item.bounds.fired}
    assert len(row.clusters) in ((1, 2) if row.contradiction else (0,))
    for cluster in row.clusters:
        assert cluster.above is None or cluster.above.tokens < cluster.at_most.tokens
    if row.clusters:
        assert sorted(session for cluster in row.clusters for session in cluster.sessions) == sorted(bounded)
