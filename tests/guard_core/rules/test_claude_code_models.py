"""What Claude Code's rule owes to the model: its window, whether it compacts by itself, and how it estimates."""

import msgspec
import pytest

from guard_core.claude_code_limits import chars_per_token, limit_of, name_of
from guard_core.ledger import Ledger
from guard_core.rules import Agreement, explain
from guard_core.rules.decisions import OwnChecks
from guard_core.sessions import Evidence, ModelCall, Provenance, RecordedCompaction, Session
from guard_core.views import Inserted
from guard_core.windows.window_evidence import judge_session
from tests.builders import model, tool_result, user

OUTPUT = 10


def session_of(name, version, *prompts, fired=(), written=(), chars=4_000):
    """Calls whose results have so many characters; a compaction before those of `fired`, with the counts `written`."""
    events, calls, compactions = [user("go")], [], []
    for step, prompt in enumerate(prompts):
        if step in fired:
            count = written[fired.index(step)] if written else None
            compactions.append(
                RecordedCompaction(
                    len(events), Evidence.DECLARED, "summary", (Inserted(0),), (user("sum"),), "auto", count
                )
            )
        calls.append(ModelCall(len(events), len(events), prompt, None, None, OUTPUT, name))
        events += [model("reading"), tool_result("x" * chars, id=str(step))]
    versions = ((0, version),)
    return Session(tuple(events), tuple(calls), tuple(compactions), format="claude-code", model=name, versions=versions)


@pytest.mark.parametrize(
    ("name", "version", "window", "threshold"),
    [
        ("claude-sonnet-4-6", "2.1.332", 200_000, 167_000),
        ("claude-sonnet-4-6", "2.1.250", 200_000, 167_000),
        ("claude-opus-4-6", "2.1.200", 200_000, 167_000),
        ("us.anthropic.claude-opus-4-6-v1", "2.1.170", 200_000, 167_000),
        ("claude-opus-4-6", "2.1.160", 200_000, None),
        ("claude-opus-4-5-20251101", "2.1.330", 200_000, None),
        ("claude-sonnet-4-5", "2.1.301", 200_000, None),
        ("claude-opus-4-8", "2.1.200", 200_000, None),
        ("claude-opus-5-5", "2.1.332", 1_000_000, 967_000),
        ("claude-sonnet-5", "2.1.332", 1_000_000, 967_000),
        ("my-model-1", "2.1.220", 200_000, None),
        ("arn:aws:bedrock:us-east-1:1:application-inference-profile/a1", "2.1.250", 200_000, None),
        ("my-model-1", "2.1.250", 200_000, 167_000),
        ("my-model-1", "2.1.301", 200_000, 167_000),
        ("my-model-1", "2.1.332", 1_000_000, 967_000),
    ],
)
def test_later_versions_compact_some_models_where_no_window_is_set(name, version, window, threshold):
    session = session_of(name, version, 50_000)
    rule = explain(session).rule
    assert (rule.threshold, rule.window.value) == (threshold, window)
    assert judge_session(session).sourced.value == window
    limit = limit_of(version, window, max_output=32_000, set_window=None, percent=None, model=name)
    assert (limit and limit[1]) == threshold


def test_a_million_tokens_that_were_asked_for_are_not_compacted_at_the_default_window():
    assert explain(session_of("claude-sonnet-4-6", "2.1.332", 250_000)).rule.threshold is None


def test_the_window_that_nobody_set_is_named_as_the_agents_own():
    *_, setting = explain(session_of("claude-sonnet-4-6", "2.1.332", 1_000)).rule.settings
    assert (setting.name, setting.value, setting.source) == ("auto_compact_window", 200_000, Provenance.ASSUMED)
    assert setting.note.endswith("Claude Code's own for this model")


def test_a_window_that_is_set_may_be_larger_than_200000_for_models_of_a_million_tokens():
    session = session_of("claude-opus-5-5", "2.1.332", 50_000)
    assert explain(session, typed={"auto_compact_window": "300000"}).rule.threshold == 267_000


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("claude-opus-4-20250514", "claude-opus-4-0"),
        ("anthropic/claude-sonnet-4.6", "claude-sonnet-4-6"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("claude-3-5-haiku-20241022", "claude-3-5-haiku"),
        ("claude-opus-5-5[1m]", "claude-opus-5-5"),
        ("qwen3-coder", ""),
    ],
)
def test_a_model_is_known_by_its_name_without_provider_and_date(spelled, name):
    assert name_of(spelled) == name


@pytest.mark.parametrize(
    ("version", "name", "chars"),
    [
        ("2.1.120", "claude-opus-4-7", 4),
        ("2.1.140", "claude-opus-4-7", 3),
        ("2.1.152", "claude-opus-4-6", 4),
        ("2.1.332", "claude-opus-5-5", 3),
        ("2.1.332", "my-model-1", 3),
        ("2.1.332", "claude-haiku-4-5-20251001", 4),
        ("2.1.332", "", 4),
    ],
)
def test_a_token_has_fewer_characters_for_later_models(version, name, chars):
    assert chars_per_token(version, name) == chars


def test_what_is_compared_for_later_models_is_more_than_what_is_written_down():
    """2.1.152 with Opus 4.7 wrote 166,566 where it fired at 167,125, by its threshold of 167,000."""
    session = session_of("claude-opus-4-7", "2.1.152", 165_700, 30_000, fired=[1], written=[166_710])
    explanation = explain(session)
    (compaction,) = explanation.compactions
    assert (compaction.recorded, compaction.decision_tokens) == (166_710, 165_700 + OUTPUT + 1_333)
    assert compaction.verdict is Agreement.AGREES
    decision = OwnChecks(session, Ledger.of(session), explanation).at(1)
    assert (decision.count, decision.terms[3].source) == (167_043, Provenance.RECOMPUTED.value)


def test_what_was_written_beyond_the_file_is_compared_too():
    """A reminder that the file lacks is in the count that was written down."""
    session = session_of("claude-opus-4-7", "2.1.152", 165_700, 30_000, fired=[1], written=[166_710 + 120])
    assert explain(session).compactions[0].decision_tokens == 165_700 + OUTPUT + 1_333 + 120


def test_a_second_compaction_before_any_answer_has_no_count_that_is_known():
    session = session_of("claude-opus-4-7", "2.1.152", 166_000, 30_000, fired=[1], written=[167_010])
    (first,) = session.compactions
    again = msgspec.structs.replace(session, compactions=(first, first))
    assert explain(again).compactions[1].verdict is Agreement.NOT_MODELLED


def test_an_earlier_model_is_compared_by_what_is_written_down():
    session = session_of("claude-opus-4-6", "2.1.152", 166_000, 30_000, fired=[1], written=[167_010])
    (compaction,) = explain(session).compactions
    assert (compaction.decision_tokens, compaction.verdict) == (167_010, Agreement.AGREES)


@pytest.mark.parametrize(("version", "is_missed"), [("2.1.152", True), ("2.1.160", False), ("2.1.197", False)])
def test_later_versions_do_not_compact_behind_the_first_answer_alone(version, is_missed):
    session = session_of("claude-opus-4-8", version, 116_489, 118_000, 40_000, fired=(2,), written=(119_500,))
    explanation = explain(session, typed={"auto_compact_window": "200000", "autocompact_pct": "60"})
    assert [check.step for check in explanation.missed] == [1] * is_missed
    (compaction,) = explanation.compactions
    assert (compaction.verdict is Agreement.AGREES) is not is_missed


def test_the_check_behind_the_first_answer_is_not_held_once_a_compaction_was_made():
    session = session_of(
        "claude-opus-4-8", "2.1.197", 90_000, 116_000, 116_000, 116_000, fired=(1,), written=(116_489,)
    )
    explanation = explain(session, typed={"auto_compact_window": "200000", "autocompact_pct": "60"})
    assert [check.step for check in explanation.missed] == [2, 3]
