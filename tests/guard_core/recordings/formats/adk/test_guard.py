"""ContextGuard in ADK sessions: its state keys, and the compactions that they tell of."""

from guard_core.sessions import Evidence
from guard_core.views import Inserted, Span
from tests.guard_core.recordings.formats.adk.test_session import event, read_json, user


def test_the_state_of_context_guard_is_told_per_step():
    delta = {"__context_guard_real_tokens_bot": 180_000.0, "__context_guard_last_heuristic_bot": 90_000}
    session = read_json(user(1.0), event(2.0, {"text": "a"}, actions={"stateDelta": delta})).sessions[0]
    state = session.guard_states[0]

    assert (state.at, state.agent, state.real_tokens, state.last_heuristic) == (2, "bot", 180_000, 90_000)
    assert session.compactions == ()


def test_a_compaction_of_context_guard_is_read_from_its_state():
    delta = {"__context_guard_summary_bot": "We did X", "__context_guard_contents_at_compaction_bot": 2}
    session = read_json(
        user(1.0), event(2.0, {"text": "a"}), user(3.0), event(4.0, {"text": "b"}, actions={"stateDelta": delta})
    ).sessions[0]
    compaction = session.compactions[0]

    assert (compaction.at, compaction.base, compaction.trigger) == (3, (Inserted(0), Span(2, 3)), "ContextGuard")
    assert "We did X" in compaction.messages[0].parts[0].text


def test_the_state_at_the_end_is_told_where_no_step_has_one():
    session = read_json(user(1.0), state={"__context_guard_summary_bot": "We did X"}).sessions[0]

    assert [(state.at, state.summary) for state in session.guard_states] == [(1, "We did X")]


def test_the_first_version_of_context_guard_keeps_no_watermark():
    delta = {"__context_guard_summary_bot": "We did X", "__context_guard_summarized_at_bot": 900}
    recording = read_json(user(1.0), event(2.0, {"text": "a"}, actions={"stateDelta": delta}))
    compaction = recording.sessions[0].compactions[0]

    assert (compaction.at, compaction.base, compaction.tokens_before) == (1, (Inserted(0), Span(0, 1)), 900)
    assert "without a watermark" in compaction.note
    assert recording.facts.compactions == 1


def test_the_state_at_the_end_tells_its_last_compaction_by_the_watermark():
    state = {"__context_guard_summary_bot": "We did X", "__context_guard_contents_at_compaction_bot": 2}
    recording = read_json(user(1.0), event(2.0, {"text": "a"}), user(3.0), event(4.0, {"text": "b"}), state=state)
    compaction = recording.sessions[0].compactions[0]

    assert (compaction.at, compaction.base, compaction.evidence) == (2, (Inserted(0),), Evidence.DECLARED)
    assert recording.facts.compactions == 1


def test_a_cleared_count_is_no_compaction():
    delta = {"__context_guard_real_tokens_bot": 0, "__context_guard_summary_bot": ""}

    assert read_json(user(1.0, actions={"stateDelta": delta})).facts.compactions == 0
