"""A recorded prompt that falls while the log grew is found, and what usually makes it fall is not."""

import pytest

from guard_core.checker import check
from guard_core.estimation.attribution import attribute
from guard_core.estimation.baseline_notes import baseline_notes
from guard_core.estimation.baselines import count_changes, returned_at, silent_truncations, unexplained_rises
from guard_core.estimation.forecast import known_at
from guard_core.events import Event, MediaPart, ReasoningPart, Role
from guard_core.findings import Facts, recorded_findings
from guard_core.ledger import Ledger
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Session
from guard_core.views import Span
from tests.builders import model, session, user


def talk(*prompts: int, models: tuple[str, ...] = (), output: int | None = None, **fields) -> Session:
    """Turns of one call each, reported with these prompt tokens; every message has 1,200 letters."""
    events = [part for _ in prompts for part in (user("question" * 150), model("answers " * 150))]
    names = models or ("one",) * len(prompts)
    calls = tuple(
        ModelCall(2 * step + 1, 2 * step + 1, tokens, output_tokens=output, model=names[step])
        for step, tokens in enumerate(prompts)
    )
    return session(*events, calls=calls, **fields)


def chat(*prompts: int, **fields) -> Ledger:
    return Ledger.of(talk(*prompts, **fields))


def test_a_prompt_that_falls_while_the_log_grew_is_a_silent_truncation():
    truncations = silent_truncations(chat(40_000, 40_600, 30_000, 30_600))
    assert [(item.step, item.before, item.after) for item in truncations] == [(2, 40_600, 30_000)]
    assert 300 < truncations[0].added < 900
    assert truncations[0].missing == 10_600 + truncations[0].added


def test_growth_is_none():
    assert silent_truncations(chat(40_000, 40_600, 41_200)) == ()


def test_a_fall_of_less_than_a_tenth_is_none():
    assert silent_truncations(chat(40_000, 40_600, 38_600)) == ()


def test_a_recorded_compaction_is_none():
    cut = RecordedCompaction(5, Evidence.DECLARED, "trim", (Span(3, 5),))
    assert silent_truncations(chat(40_000, 40_600, 10_000, compactions=(cut,))) == ()


def test_another_model_that_counts_otherwise_is_none():
    assert silent_truncations(chat(40_000, 40_600, 30_000, models=("one", "one", "two"))) == ()


def test_reasoning_of_the_turn_before_that_is_not_sent_again_is_none():
    assert silent_truncations(chat(49_400, 50_000, 42_000, output=10_000)) == ()
    assert len(silent_truncations(chat(49_400, 50_000, 42_000, output=2_000))) == 1


def test_a_fall_is_none_where_what_the_model_wrote_in_the_turn_before_is_not_counted():
    """It may have been reasoning, which is not sent again."""
    ledger = chat(49_400, 50_000, 42_000, output=2_000)
    ledger.steps["output_tokens"][1] = -1
    assert silent_truncations(ledger) == ()


@pytest.mark.parametrize(
    ("words", "sealed", "is_found"),
    [("hm " * 500, 30_000, False), ("hm " * 500, 3_000, True), ("\ud800", 3_000, True)],
)  # half of a surrogate pair can only be in a session that was not read from a file
def test_where_no_answer_is_counted_the_reasoning_that_the_file_shows_bounds_a_fall(words, sealed, is_found):
    asked = user("question" * 150)
    thought = Event(Role.MODEL, (ReasoningPart(words, opaque_bytes=sealed),))
    events = [part for _ in range(3) for part in (asked, thought, model("answers " * 150))]
    calls = tuple(ModelCall(3 * step + 1, 3 * step + 1, tokens) for step, tokens in enumerate((49_400, 50_000, 42_000)))
    grown = session(*events, calls=calls)
    facts = Facts.of(grown)
    claims = recorded_findings(facts)
    assert ["silent_truncation" in [claim.kind for claim in claims], check(grown, claims, facts.window)] == [
        is_found,
        [],
    ]


def test_a_session_without_counts_has_none(no_usage_reported):
    assert silent_truncations(Ledger.of(no_usage_reported)) == ()


def recounted(factor: float, *, at: int = 20, calls: int = 40, fixed: int = 30_000) -> Ledger:
    """A chat whose provider counts everything at `factor` times the tokens from call `at` on."""
    true = [fixed + 700 * step for step in range(calls)]
    return chat(*(round(tokens * (factor if step >= at else 1.0)) for step, tokens in enumerate(true)))


def test_a_provider_that_counts_otherwise_from_a_call_on_is_noted():
    for factor in (1.35, 0.7):
        (change,) = count_changes(recounted(factor))
        assert change.step == 20
        assert abs(change.factor - factor) < 0.02
        assert silent_truncations(recounted(factor)) == ()
        assert unexplained_rises(recounted(factor)) == ()


def test_content_that_goes_or_comes_is_no_other_way_of_counting():
    falling = [30_000 + 700 * step - (12_000 if step >= 20 else 0) for step in range(40)]
    rising = [30_000 + 700 * step + (12_000 if step >= 20 else 0) for step in range(40)]
    assert count_changes(chat(*falling)) == count_changes(chat(*rising)) == ()
    assert [item.step for item in silent_truncations(chat(*falling))] == [20]
    assert [item.step for item in unexplained_rises(chat(*rising))] == [20]


def test_growth_that_messages_explain_is_no_rise():
    assert unexplained_rises(chat(30_000, 31_500, 33_000)) == ()


def test_every_new_baseline_is_noted_with_its_call():
    ledger = recounted(1.35)
    (note,) = baseline_notes(ledger, attribute(ledger))
    assert note.startswith("the provider counts the same content at 1.35 times the tokens from step 21 on")
    grown = chat(30_000, 30_700, 45_000)
    (note,) = baseline_notes(grown, attribute(grown))
    assert "rose from 30,700 to 45,000 tokens at step 3" in note


def test_a_count_that_returns_by_itself_is_not_noted_as_content_that_was_cut_away():
    for last, words in ((30_600, "content was cut away silently"), (42_000, "the count returned by itself at step 4")):
        ledger = chat(40_000, 40_600, 30_000, last)
        (fall,) = silent_truncations(ledger)
        assert returned_at(ledger, fall) == (3 if last == 42_000 else -1)
        assert words in baseline_notes(ledger, attribute(ledger))[0]


@pytest.mark.parametrize(
    ("last", "step"), [((39_000,), 3), ((33_000, 37_000, 41_000), -1), ((30_600, 30_900, 38_000), 5)]
)
def test_a_count_returns_where_it_jumps_to_less_than_a_fall_below_the_one_before(last, step):
    ledger = chat(40_000, 40_600, 30_000, *last)
    assert returned_at(ledger, silent_truncations(ledger)[0]) == step


@pytest.mark.parametrize(
    ("prompts", "steps"),
    [
        ((43_000, 65_000, 44_000), []),  # one call read pages
        ((43_000, 65_000, 63_000, 45_000), []),
        ((43_000, 65_000, 37_000), [2]),  # more is gone than came with the call
        ((43_000, 43_600, 12_000, 44_500, 12_600), [2, 4]),  # 44,500 is no rise
        ((43_000, 43_600, 12_000, 15_000, 44_500, 15_600), [2, 5]),
        ((43_000, *range(65_000, 68_000, 600), 47_000), [6]),
    ],
)
def test_a_count_that_only_loses_what_few_calls_had_beside_the_log_is_no_fall(prompts, steps):
    searched = talk(*prompts)
    facts = Facts.of(searched)
    claims = recorded_findings(facts)
    assert [fall.step for fall in facts.falls] == steps
    assert check(searched, claims, facts.window) == []


def test_a_picture_that_may_be_gone_is_no_reason_to_leave_a_fall_out():
    events = [part for _ in range(3) for part in (user("question" * 150), model("answers " * 150))]
    events[2] = Event(Role.USER, (MediaPart("image/png", 4_000),))
    calls = tuple(ModelCall(2 * step + 1, 2 * step + 1, tokens) for step, tokens in enumerate((43_000, 65_000, 44_000)))
    assert [fall.step for fall in silent_truncations(Ledger.of(session(*events, calls=calls)))] == [2]


def test_a_return_below_the_count_before_the_fall_is_named_and_confirmed():
    returning = talk(40_000, 40_600, 30_000, 39_000)
    facts = Facts.of(returning)
    claims = recorded_findings(facts)
    (fall,) = [claim for claim in claims if claim.kind == "silent_truncation"]
    assert "It returned to 39,000 at step 4" in fall.sentence
    assert check(returning, claims, facts.window) == []


def test_a_conversation_that_began_before_the_file_is_noted_with_the_guess():
    ledger = chat(127_000, 127_700, 128_400, format="claude-code")
    attribution = attribute(ledger)
    assert attribution.overhead == 40_000
    assert attribution.overhead + attribution.prologue > 126_000
    assert (
        "40,000 tokens are counted as system prompt and tools (usual for this agent)"
        in baseline_notes(ledger, attribution)[0]
    )


def test_the_part_that_stays_cached_is_part_of_what_every_request_begins_with():
    ledger = chat(127_000, 127_700, 128_400, format="claude-code")
    ledger.steps["cached_tokens"][:] = (126_000, 52_000, 127_000)
    assert attribute(ledger).overhead == 52_000
    assert known_at(ledger, 0).attribution.overhead == 40_000


def test_a_first_prompt_of_a_usual_size_begins_where_the_file_does():
    for tokens, name in ((45_000, "claude-code"), (127_000, "pi")):
        assert attribute(chat(tokens, tokens + 700, tokens + 1_400, format=name)).prologue == 0
