"""A recorded prompt that falls while the log grew is found, and what usually makes it fall is not."""

from guard_core.baselines import silent_truncations
from guard_core.ledger import Ledger
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction
from guard_core.views import Span
from tests.builders import model, session, user


def chat(*prompts: int, models: tuple[str, ...] = (), output: int | None = None, **fields) -> Ledger:
    """Turns of one call each, reported with these prompt tokens; every message has 1,200 letters."""
    events = [part for _ in prompts for part in (user("question" * 150), model("answers " * 150))]
    names = models or ("one",) * len(prompts)
    made = tuple(
        ModelCall(2 * step + 1, 2 * step + 1, tokens, output_tokens=output, model=names[step])
        for step, tokens in enumerate(prompts)
    )
    return Ledger.of(session(*events, calls=made, **fields))


def test_a_prompt_that_falls_while_the_log_grew_is_a_silent_truncation():
    found = silent_truncations(chat(40_000, 40_600, 30_000, 30_600))
    assert [(item.step, item.before, item.after) for item in found] == [(2, 40_600, 30_000)]
    assert 300 < found[0].added < 900
    assert found[0].missing == 10_600 + found[0].added


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
    assert silent_truncations(chat(40_000, 50_000, 42_000, output=10_000)) == ()
    assert len(silent_truncations(chat(40_000, 50_000, 42_000, output=2_000))) == 1


def test_a_session_without_counts_has_none(no_usage_reported):
    assert silent_truncations(Ledger.of(no_usage_reported)) == ()
