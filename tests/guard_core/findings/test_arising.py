"""What is said of a session that grows is what the findings of its recording say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard_core.findings import Facts, recorded_findings
from guard_core.findings.arising import LOOP, NEAR_MISS, OVERFLOW, alerts, occurrences
from guard_core.sessions import Session
from tests.builders import bundled
from tests.guard_core.checker.cases import recordings
from tests.guard_core.findings.cases import chat


def alerts_of(session: Session) -> list[tuple[str, int, int]]:
    return [(alert.finding.kind, alert.first, alert.last) for alert in alerts(Facts.of(session))]


@pytest.mark.parametrize("session", [pytest.param(session, id=name) for name, session in recordings()])
def test_they_are_the_findings_of_the_recording_and_occurred_where_they_say(session: Session) -> None:
    facts = Facts.of(session)
    arisen = alerts(facts)
    whole = [finding for finding in recorded_findings(facts) if finding.kind in (NEAR_MISS, OVERFLOW, LOOP)]
    if facts.ledger.usage_ratio is None:
        assert sorted(map(repr, whole)) == sorted(repr(alert.finding) for alert in arisen)
    assert all(0 <= alert.first <= alert.last < facts.ledger.step_count for alert in arisen)


def test_a_second_approach_is_another_occurrence_and_a_longer_one_is_the_same() -> None:
    assert alerts_of(chat(5_000, 9_500)) == [(NEAR_MISS, 1, 1)]
    assert alerts_of(chat(5_000, 9_500, 9_600)) == [(NEAR_MISS, 1, 2)]
    assert alerts_of(chat(5_000, 9_500, 9_600, 4_000, 9_700)) == [(NEAR_MISS, 4, 4)]


def test_what_was_shown_already_is_not_new() -> None:
    (alert,) = alerts(Facts.of(chat(5_000, 9_500)))
    assert alert.is_new(1)
    assert not alert.is_new(2)


def test_a_session_without_trouble_has_none() -> None:
    assert alerts_of(bundled("healthy")) == []
    assert alerts_of(chat(5_000, 9_000)) == []


def occurrences_in(session: Session, known: int = 0) -> list[tuple[str, int, int]]:
    return [(alert.finding.kind, alert.first, alert.last) for alert in occurrences(Facts.of(session), known)]


def test_every_approach_is_an_occurrence_with_a_sentence_of_its_own() -> None:
    session = chat(5_000, 9_500, 4_000, 9_600, 9_700, 4_000, 9_800)
    assert occurrences_in(session) == [(NEAR_MISS, 1, 1), (NEAR_MISS, 3, 4), (NEAR_MISS, 6, 6)]
    assert occurrences_in(session, 4) == [(NEAR_MISS, 3, 4), (NEAR_MISS, 6, 6)]
    first, second, _ = (alert.finding.sentence for alert in occurrences(Facts.of(session)))
    assert "9,500 of 10,000" in first
    assert "step 5 fills" in second
    assert "times" not in first + second


@given(
    st.lists(st.sampled_from((2_000, 5_000, 9_000, 9_001, 9_999, 10_000)), min_size=1, max_size=14),
    st.data(),
)
def test_whoever_looks_seldom_sees_what_is_seen_by_whoever_looks_at_each_step(prompts: list[int], data: st.DataObject):
    often = {item[:2] for stop in range(len(prompts)) for item in occurrences_in(chat(*prompts[: stop + 1]), stop)}
    known = data.draw(st.integers(0, len(prompts)))
    seldom = {item[:2] for item in (*occurrences_in(chat(*prompts[:known])), *occurrences_in(chat(*prompts), known))}
    assert seldom == often == {item[:2] for item in occurrences_in(chat(*prompts))}


@pytest.mark.parametrize("session", [pytest.param(session, id=name) for name, session in recordings()])
def test_the_latest_of_each_kind_is_among_the_occurrences(session: Session) -> None:
    facts = Facts.of(session)
    latest = {(alert.finding.kind, alert.first, alert.last) for alert in alerts(facts)}
    arisen = [(alert.finding.kind, alert.first, alert.last) for alert in occurrences(facts)]
    assert latest <= set(arisen)
    assert len(arisen) == len(set(arisen))
    assert [first for _, first, _ in arisen] == sorted(first for _, first, _ in arisen)
