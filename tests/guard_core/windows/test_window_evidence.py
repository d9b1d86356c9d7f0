"""Answered prompts and automatic compactions prove a window, correct it, or cast doubt on it."""

import msgspec
import pytest

from guard_core.sessions import Evidence, ModelCall, Provenance, RecordedCompaction, Session, Sourced
from guard_core.views import Span
from guard_core.windows.models import UNKNOWN, context_window
from guard_core.windows.window_evidence import Status, automatic_triggers, fired_words, judge, judge_session
from tests.builders import transcript, user

TABLE = Sourced(1_000_000, Provenance.MODEL_TABLE, "some-model of its maker")
ASSUMED = Sourced(128_000, Provenance.ASSUMED, UNKNOWN)


def session(prompts, compactions=(), **more):
    calls = tuple(ModelCall(at=place + 1, prompt_tokens=count) for place, count in enumerate(prompts))
    return Session(tuple(user("a") for _ in prompts), calls, compactions, **more)


def compaction(at, trigger="", before=None, kind="summary"):
    return RecordedCompaction(at, Evidence.DECLARED, kind, (Span(0, 0),), trigger=trigger, tokens_before=before)


@pytest.mark.parametrize(
    ("window", "status"),
    [
        (Sourced(200_000, Provenance.RECORDER, "in the file"), Status.KNOWN),
        (Sourced(200_000, Provenance.USER, "set here"), Status.KNOWN),
        (TABLE, Status.TABLE),
        (ASSUMED, Status.ASSUMED),
    ],
)
def test_a_window_that_nothing_contradicts_keeps_its_value_and_note(window, status):
    judged = judge(window, [10, 90_000], [])
    assert judged.sourced == window
    assert (judged.status, judged.at_least) == (status, 90_000)


@pytest.mark.parametrize("source", [Provenance.RECORDER, Provenance.USER, Provenance.MODEL_TABLE, Provenance.ASSUMED])
def test_an_answered_prompt_above_a_window_contradicts_it(source):
    judged = judge(Sourced(32_768, source, "said so"), [12_238, 51_852], [], model="model-of-our-own")
    assert (judged.status, judged.value, judged.at_least) == (Status.CONTRADICTED, 32_768, 51_852)
    assert "51,852" in judged.note
    assert "32,768" in judged.note


def test_a_prompt_as_large_as_the_window_is_no_contradiction():
    assert judge(Sourced(1_000, Provenance.RECORDER), [1_000], []).status is Status.KNOWN


def test_counts_that_were_not_reported_prove_nothing():
    assert judge(ASSUMED, [-1, 0], []).at_least == 0


def test_prompts_above_the_table_name_the_one_documented_variant_that_holds_them():
    name = "claude-sonnet-4-5-20250929"
    judged = judge(context_window(name), [150_000, 312_000], [], agent="claude-code", model=name)
    assert (judged.value, judged.source, judged.status) == (1_000_000, Provenance.PROMPTS, Status.TABLE)
    assert "312,000 tokens were answered" in judged.note


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("mystery-llm-7", Status.ASSUMED),
        ("claude-opus-4-5-20251101", Status.ASSUMED),  # of 200,000 by the table, in no variant with more
        ("claude-sonnet-4-5-20250929", Status.TABLE),
        ("claude-opus-4-6", Status.TABLE),
    ],
)
def test_a_million_that_only_the_prompts_speak_for_is_assumed(name, status):
    judged = judge_session(session([150_000, 208_026], format="claude-code", model=name))
    assert (judged.value, judged.source, judged.status) == (1_000_000, Provenance.PROMPTS, status)


@pytest.mark.parametrize(
    ("name", "prompt"),
    [
        ("claude-3-7-sonnet-20250219", 312_000),  # never offered with more
        ("claude-sonnet-4-5", 1_200_000),  # larger than its long variant, too
        ("grok-4.5", 300_000),  # hosts say 328,000 and its maker 500,000: two documented windows hold it
    ],
)
def test_a_variant_is_not_guessed(name, prompt):
    smallest = Sourced(200_000, Provenance.MODEL_TABLE, "a row")
    assert judge(smallest, [prompt], [], model=name).status is Status.CONTRADICTED


def test_a_window_from_the_file_is_not_replaced_by_a_variant():
    window = Sourced(200_000, Provenance.RECORDER, "in the file")
    assert judge(window, [312_000], [], model="claude-sonnet-4-5").status is Status.CONTRADICTED


def test_an_agent_that_always_compacts_far_below_the_tables_window_casts_doubt_on_it():
    judged = judge(TABLE, [207_000], [207_123, 188_004, 201_500], agent="pi", model="claude-opus-4-6")
    assert (judged.status, judged.value) == (Status.DOUBTED, 1_000_000)
    assert judged.sourced == TABLE
    assert "all 3 automatic compactions took place at 188,004 to 207,123 tokens" in judged.note


@pytest.mark.parametrize(("trigger", "name"), [("auto", "automatic compactions"), ("", "compactions")])
def test_compactions_of_unknown_trigger_are_not_called_automatic_and_one_count_is_said_once(trigger, name):
    cuts = (compaction(1, trigger, 52_429), compaction(2, "auto", 52_429))
    note = judge_session(session([50_000, 30_000], cuts, format="claude-code"), TABLE).note
    assert note.startswith(f"both {name} took place at 52,429 tokens, below half of")


def test_one_compaction_near_the_window_takes_the_doubt_away():
    assert judge(TABLE, [], [188_000, 520_000], agent="pi").status is Status.TABLE


def test_a_variant_proved_by_prompts_is_doubted_as_the_table_is():
    window = context_window("claude-sonnet-4-5")
    judged = judge(window, [201_000], [167_000], agent="claude-code", model="claude-sonnet-4-5")
    assert (judged.status, judged.value, judged.source) == (Status.DOUBTED, 1_000_000, Provenance.PROMPTS)


def test_a_framework_that_is_given_its_threshold_casts_no_doubt():
    assert judge(TABLE, [], [21_000], agent="inspect").status is Status.TABLE


def test_a_window_that_the_file_states_is_not_doubted():
    assert judge(Sourced(1_000_000, Provenance.RECORDER), [], [90_000], agent="pi").status is Status.KNOWN


def test_codex_records_the_usable_part_so_a_prompt_up_to_the_whole_window_fits():
    window = Sourced(258_400, Provenance.RECORDER, "the usable part of it")
    assert judge(window, [272_000], [], agent="codex").status is Status.KNOWN
    assert judge(window, [272_001], [], agent="codex").status is Status.CONTRADICTED


def test_only_automatic_compactions_are_triggers():
    value = session(
        [50_000, 60_000, 70_000, 80_000, 90_000],
        (
            compaction(1, "auto", 50_500),
            compaction(2, "manual", 60_500),
            compaction(3, "resume", kind="edit"),
            compaction(4),  # not recorded: the last prompt before it; the call over four events came after it
        ),
    )
    assert automatic_triggers(value) == [50_500, 70_000]
    assert fired_words(value, 50_500, 70_000) == "at 50,500 to 70,000 tokens"  # as the recorder wrote down


def test_a_session_is_judged_by_what_it_recorded():
    value = session([188_000, 190_000], (compaction(2, "auto", 190_100),), model="claude-opus-4-6", format="pi")
    assert judge_session(value).status is Status.DOUBTED
    own = judge_session(value, Sourced(150_000, Provenance.USER, "given"))
    assert (own.status, own.at_least) == (Status.CONTRADICTED, 190_000)


def test_a_simulated_session_proves_nothing_about_a_window():
    window = Sourced(8_000, Provenance.ASSUMED, "set by the scenario")
    judged = judge_session(session([20_000], window=window, usage_ratio=1.3))
    assert (judged.status, judged.value) == (Status.KNOWN, 8_000)


def test_an_average_above_the_window_contradicts_it_where_only_the_total_is_recorded():
    value = session([None, None], prompt_tokens_total=10_816_853, total_calls=82)
    judged = judge_session(value)
    assert (judged.status, judged.at_least) == (Status.CONTRADICTED, 131_913)
    assert judged.note == "prompts of on average 131,913 tokens over 82 calls were answered, above the assumed 128,000"
    assert judge_session(value, Sourced(131_913, Provenance.USER, "given")).status is Status.KNOWN


def test_an_average_below_the_window_leaves_it_assumed():
    judged = judge_session(session([None], prompt_tokens_total=900_000, total_calls=82))
    assert (judged.status, judged.at_least) == (Status.ASSUMED, 10_976)


def test_an_average_above_the_tables_window_takes_the_documented_variant_that_holds_it():
    value = session([None], prompt_tokens_total=2_480_000, total_calls=8, model="claude-sonnet-4-5")
    judged = judge_session(value)
    assert (judged.value, judged.source) == (1_000_000, Provenance.PROMPTS)
    assert judged.note.startswith("prompts of on average 310,000 tokens over 8 calls were answered, above 200,000")


def test_counts_of_single_calls_go_before_a_total():
    judged = judge_session(session([50_000, None], prompt_tokens_total=10_816_853, total_calls=82))
    assert (judged.status, judged.at_least) == (Status.ASSUMED, 50_000)


def test_the_average_proves_nothing_of_a_window_where_the_counted_calls_had_another():
    windows = ((0, 400_000), (2, 100_000))
    stated = {"window": Sourced(100_000, Provenance.RECORDER), "windows": windows}
    totals = {"prompt_tokens_total": 300_000, "total_calls": 2}
    judged = judge_session(session([150_000, None], **stated, **totals))
    assert (judged.status, judged.at_least) == (Status.KNOWN, 0)
    assert judge_session(session([None, None], **stated, **totals)).status is Status.KNOWN


def test_a_compaction_beside_a_call_of_another_models_window_casts_no_doubt_on_this_one():
    """Whose threshold it was is not known, before such a call as behind one."""
    built = transcript(prompts=(20_000, 30_000, 40_000, 20_000, 30_000), place=3)
    for other in (2, 3):
        names = ["claude-haiku-4-5" if step == other else "claude-sonnet-4-5[1m]" for step in range(5)]
        calls = tuple(msgspec.structs.replace(call, model=name) for call, name in zip(built.calls, names, strict=True))
        assert automatic_triggers(msgspec.structs.replace(built, calls=calls, model=names[0])) == []
    assert automatic_triggers(built) == [40_000]
