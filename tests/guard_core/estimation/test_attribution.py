"""Recorded prompt tokens are shared out to events, and what stays over is shown."""

import cProfile
import subprocess
import sys
import time

import msgspec
import numpy as np
import pytest

from guard_core.counts import requests_of
from guard_core.errors import GuardError
from guard_core.estimation.attribution import Attribution, attribute
from guard_core.estimation.ratios import fit
from guard_core.estimation.sharing import ATTRIBUTION_SOURCES, EXACT, SESSION, SHARED
from guard_core.ledger import Ledger
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction
from guard_core.simulator.samples import SAMPLES
from guard_core.views import Inserted, Span, Synthetic
from tests.big_sessions import big_session
from tests.builders import bundled, calls, image, model, session, tool_call, tool_result, user
from tests.profiling import calls_of


def chat(*prompts: int | None, size: int = 300) -> Ledger:
    """A chat whose model calls were reported with these prompt tokens."""
    events = [part for turn in range(len(prompts)) for part in (user("ask " * size), model("tell " * size))]
    calls = tuple(ModelCall(2 * step + 1, 2 * step + 1, tokens) for step, tokens in enumerate(prompts))
    return Ledger.of(session(*events, calls=calls))


def test_a_difference_is_shared_out_exactly(tool_heavy):
    ledger = Ledger.of(tool_heavy)
    attribution = attribute(ledger)
    at, recorded = ledger.steps["at"], ledger.steps["prompt_tokens"]
    assert np.array_equal(np.diff(attribution.prefix_at(at)), np.diff(recorded))
    assert not attribution.residual.any()


def test_an_event_alone_between_two_calls_is_exact():
    first, second = ModelCall(1, None, 800), ModelCall(2, 2, 1_050)
    ledger = Ledger.of(session(user("a" * 900), user("b" * 900), model("c"), calls=(first, second)))
    attribution = attribute(ledger)
    assert (attribution.tokens[1], attribution.source[1]) == (250, EXACT)


def test_the_first_call_fixes_the_overhead():
    attribution = attribute(chat(5_000, 5_600, 6_200))
    assert 4_600 < attribution.overhead < 4_800
    assert attribution.price((Span(0, 1),)) == 5_000


def test_an_unreported_call_is_bridged_by_its_neighbours():
    ledger = chat(1_000, None, 2_400)
    attribution = attribute(ledger)
    assert attribution.price((Span(0, 5),)) == 2_400
    assert set(attribution.source[1:5]) == {SHARED}
    assert attribution.residual[1] == 0


def test_what_no_call_measured_takes_the_sessions_ratio():
    attribution = attribute(chat(*range(1_000, 29_000, 700)))
    assert attribution.source[-1] == SESSION
    assert attribution.tokens[-1] == pytest.approx(attribution.tokens[3], rel=0.05)


@pytest.mark.parametrize(("last_growth", "fits"), [(250, 1), (140, 2)])
def test_ratios_are_fitted_again_only_where_the_first_ones_find_other_edits(last_growth, fits):
    """A growth of 140 looks like an edit until the others have shown that messages cost this little here."""
    ledger = chat(*range(1_000, 9_000, 250), 8_750 + last_growth)
    with cProfile.Profile() as profile:
        attribute(ledger)
    assert calls_of(profile, fit) == fits


def test_a_shrinking_request_starts_a_new_baseline():
    attribution = attribute(chat(2_000, 2_700, 1_500, 2_200))
    assert attribution.baseline.tolist() == [0, 0, 1, 1]
    assert attribution.residual[:2].tolist() == [0, 0]
    assert attribution.residual[2] == attribution.residual[3] < -1_500


def test_growth_that_no_event_explains_stays_residual():
    attribution = attribute(chat(1_000, 1_700, 42_400, 43_100))
    assert attribution.residual[2] > 30_000
    assert attribution.tokens.max() < 5_000


def test_a_recording_without_usage_is_assumed(no_usage_reported):
    attribution = attribute(Ledger.of(no_usage_reported))
    assert not attribution.measured
    assert set(attribution.source) == {0}
    assert attribution.tokens.min() > 0


def test_a_recorded_total_is_the_sum_of_the_modelled_requests(no_usage_reported):
    size = int(requests_of(Ledger.of(no_usage_reported)).tokens.sum())
    ledger = Ledger.of(msgspec.structs.replace(no_usage_reported, prompt_tokens_total=size + 90_003, total_calls=10))
    attribution = attribute(ledger)
    assert attribution.overhead == 9_000
    assert ATTRIBUTION_SOURCES[attribution.overhead_source] == "session total"
    assert requests_of(ledger, attribution).tokens.sum() == pytest.approx(size + 90_003, abs=5)
    assert set(attribution.source) == {0}


def test_estimates_that_a_recorded_total_shows_to_be_too_high_are_made_smaller(no_usage_reported):
    size = int(requests_of(Ledger.of(no_usage_reported)).tokens.sum())
    value = msgspec.structs.replace(no_usage_reported, prompt_tokens_total=size // 2, total_calls=10)
    ledger = Ledger.of(value)
    assert attribute(ledger).overhead < 10
    assert requests_of(ledger).tokens.sum() == pytest.approx(size // 2, rel=0.01)


def test_a_recorded_total_holds_on_top_of_a_compaction(no_usage_reported):
    cut = RecordedCompaction(8, Evidence.DECLARED, "summary", (Inserted(0), Span(6, 8)), (user("summary " * 90),))
    total = {"prompt_tokens_total": 777_777, "total_calls": 10}
    ledger = Ledger.of(msgspec.structs.replace(no_usage_reported, compactions=(cut,), **total))
    assert requests_of(ledger).tokens.sum() == pytest.approx(777_777, abs=5)


def test_a_total_over_other_calls_than_the_log_has_gives_the_average(no_usage_reported):
    value = msgspec.structs.replace(no_usage_reported, prompt_tokens_total=400_000, total_calls=40)
    assert requests_of(Ledger.of(value)).tokens.mean() == pytest.approx(10_000, abs=1)


def test_a_total_smaller_than_the_content_leaves_no_negative_overhead(no_usage_reported):
    value = msgspec.structs.replace(no_usage_reported, prompt_tokens_total=10, total_calls=10)
    assert attribute(Ledger.of(value)).overhead == 0


def test_a_total_says_nothing_where_calls_have_counts(short_chat):
    value = msgspec.structs.replace(short_chat, prompt_tokens_total=900_000, total_calls=2)
    assert attribute(Ledger.of(value)).overhead == attribute(Ledger.of(short_chat)).overhead


def test_reasoning_that_is_not_sent_again_costs_little():
    events = []
    for turn in range(60):
        thought = "consider every option " * (200 if turn % 2 else 20)
        events += [user("ask " * 100), model("tell " * 100, reasoning=thought)]
    billed = [event if index % 2 == 0 else model("tell " * 100) for index, event in enumerate(events)]
    attribution = attribute(Ledger.of(session(*events, calls=calls(tuple(billed)))))
    assert attribution.ratios["reasoning"] < 0.08
    turn = (
        400 * attribution.ratios["user text"]
        + 500 * attribution.ratios["model text"]
        + 2 * attribution.ratios["message"]
    )
    assert turn + 22 * 110 * attribution.ratios["reasoning"] == pytest.approx(300, rel=0.2)


def test_a_picture_does_not_cost_its_bytes():
    events = [user("look " * 50), image(900_000), model("A red chart."), user("and " * 50), model("Blue."), user("so")]
    calls = (ModelCall(1, None, 600), ModelCall(2, 2, 2_000), ModelCall(4, 4, 2_070))
    attribution = attribute(Ledger.of(session(*events, calls=calls)))
    assert attribution.tokens[1] == 1_400


def test_an_inserted_summary_takes_what_the_first_call_after_it_holds():
    note = user("summary " * 400)
    events = [part for _ in range(12) for part in (user("ask " * 300), model("tell " * 300))]
    cut = RecordedCompaction(18, Evidence.DECLARED, "summary", (Inserted(0),), (note,))
    prompts = (*range(900, 9_000, 900), 2_000, 2_900, 3_800)
    calls = tuple(ModelCall(2 * step + 1, 2 * step + 1, tokens) for step, tokens in enumerate(prompts))
    attribution = attribute(Ledger.of(session(*events, calls=calls, compactions=(cut,))))
    assert attribution.baseline.tolist() == [*[0] * 9, 1, 1, 1]
    assert attribution.price((Inserted(0), Span(18, 19)), 0) == pytest.approx(2_000, rel=0.05)
    assert np.abs(attribution.residual).max() < 100


def begun_in_the_middle():
    """The attribution of a recording whose first prompt is far larger than what the file has up to it."""
    note = user("summary " * 400)
    events = [part for _ in range(4) for part in (user("ask " * 300), model("tell " * 300))]
    cut = RecordedCompaction(4, Evidence.DECLARED, "summary", (Inserted(0),), (note,))
    prompts = (127_000, 127_700, 6_000, 6_700)
    calls = tuple(ModelCall(2 * step + 1, 2 * step + 1, tokens) for step, tokens in enumerate(prompts))
    return attribute(Ledger.of(session(*events, calls=calls, compactions=(cut,))))


def test_a_recording_that_begins_in_the_middle_does_not_bill_the_past_as_overhead():
    attribution = begun_in_the_middle()
    assert attribution.overhead < 6_000
    assert attribution.prologue > 110_000
    assert not attribution.residual.any()


def test_what_a_recording_leaves_out_at_its_beginning_stays_until_it_is_cut():
    attribution = begun_in_the_middle()
    assert attribution.price((Span(0, 5),)) > 127_700
    assert attribution.price((Span(1, 5),)) < 10_000


def test_more_tokens_in_the_events_than_reported_leave_no_negative_overhead():
    attribution = attribute(chat(90, 200, 310))
    assert attribution.overhead == 0
    assert attribution.tokens.min() >= 0


def test_tokenizer_counts_share_a_difference_in_their_proportion():
    events = (user("x" * 4_000), user("m" * 4_000), user("y" * 4_000), model("n"))
    calls = (ModelCall(1, None, 1_500), ModelCall(3, 3, 2_600))
    attribution = attribute(
        Ledger.of(session(*events, calls=calls)), np.array([500, 100, 900, 1]), weights_name="o200k_base"
    )
    assert attribution.tokens[2] / attribution.tokens[1] == pytest.approx(9, rel=0.2)
    assert attribution.tokens[1] + attribution.tokens[2] == 1_100
    assert attribution.weights == "o200k_base"


def test_a_synthetic_message_is_priced_at_the_sessions_ratio(tool_heavy):
    attribution = attribute(Ledger.of(tool_heavy))
    assert attribution.price((Synthetic("summary", 3_000),)) - attribution.overhead == pytest.approx(1_000, rel=0.25)


@pytest.mark.parametrize("name", SAMPLES)
def test_it_comes_back_from_bytes(name):
    attribution = attribute(Ledger.of(bundled(name)))
    assert Attribution.from_bytes(attribution.to_bytes()).to_bytes() == attribution.to_bytes()
    with pytest.raises(GuardError, match="import the session again"):
        Attribution.from_bytes(attribution.to_bytes()[:-9])


def test_tool_results_of_an_empty_session_are_no_trouble():
    assert attribute(Ledger.of(session())).overhead == 0
    lonely = attribute(Ledger.of(session(tool_call(), tool_result(""))))
    assert len(lonely.tokens) == 2


def test_another_process_and_hash_seed_give_the_same_bytes():
    code = (
        "import hashlib; from guard_core.estimation.attribution import attribute; from guard_core.ledger import Ledger;"
        "from guard_core.simulator.samples import SAMPLES;"
        "data = b''.join(attribute(Ledger.of(item.build())).to_bytes() for item in SAMPLES.values());"
        "print(hashlib.sha256(data).hexdigest())"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "LC_ALL": "C"}, capture_output=True, check=True
        )
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout
    assert len(runs[0].stdout.strip()) == 64


@pytest.mark.long
def test_a_very_long_session_is_attributed_faster_than_it_is_counted():
    """The attribution itself is tried on short sessions; only its cost needs a long one."""
    begun = time.process_time()
    ledger = Ledger.of(big_session(20_000, 40))
    counted = time.process_time()
    assert np.abs(attribute(ledger).residual).max() < 300  # a summary is estimated
    assert time.process_time() - counted < counted - begun
