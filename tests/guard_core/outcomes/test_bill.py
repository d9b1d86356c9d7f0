"""What calls cost: the cache gives what a request shares with the last one to its model, while it is warm."""

import msgspec
import numpy as np
import pytest

from guard_core.outcomes.bill import OFF, REPORTED, TAKEN, CacheReach, modelled_summaries, reported_bill
from guard_core.outcomes.sent import SentRequests
from guard_core.outcomes.words import assumptions
from guard_core.policies import get_policy
from guard_core.replay import replay
from guard_core.sessions import Evidence, RecordedCompaction
from guard_core.views import Inserted
from guard_core.windows.prices import UNIT
from tests.builders import user
from tests.guard_core.outcomes.cast import SONNET, counted, facts_of, prices_of, recorded_bill

HAIKU = "claude-haiku-4-5"
GROWING = (20_000, 21_000, 23_000)


def test_a_request_that_grows_reads_all_of_the_one_before():
    _, bill = recorded_bill(counted(GROWING))
    assert bill.read.tolist() == [0, 20_000, 21_000]
    assert bill.uncached.tolist() == [20_000, 1_000, 2_000]


def test_its_price_is_that_of_reads_writes_and_answers():
    _, bill = recorded_bill(counted(GROWING, output=100))
    dollars = 41_000 * 0.30 + 23_000 * 3.75 + 300 * 15
    assert bill.total == round(dollars * UNIT)


def test_nothing_is_read_after_the_cache_has_expired():
    start = 1_700_000_000.0
    _, bill = recorded_bill(counted(GROWING, seconds=(start, start + 299, start + 299 + 301)))
    assert bill.read.tolist() == [0, 20_000, 0]


def test_what_is_cached_for_an_hour_is_read_later_and_dearer_to_write():
    start = 1_700_000_000.0
    session = counted(GROWING, seconds=(start, start + 900, start + 900 + 3_601))
    session = msgspec.structs.replace(session, cache_seconds=3_600)
    sent, bill = recorded_bill(session)
    assert bill.read.tolist() == [0, 20_000, 0]
    assert bill.total == round((20_000 * 0.30 + (sum(GROWING) - 20_000) * 2 * 3) * UNIT)
    assert any("at most 60 minutes earlier" in words for words in assumptions(sent.facts, bill.prices))


def test_another_model_reads_nothing():
    _, bill = recorded_bill(counted(GROWING, names=("claude-sonnet-4-5", "claude-opus-4-5", "claude-opus-4-5")))
    assert bill.read.tolist() == [0, 0, 21_000]


def test_models_that_take_turns_each_read_what_they_had():
    _, bill = recorded_bill(counted((20_000, 21_000, 23_000, 25_000), names=(SONNET, HAIKU, SONNET, HAIKU)))
    assert bill.read.tolist() == [0, 0, 20_000, 21_000]


def test_a_model_that_has_its_turn_late_finds_its_last_request_gone():
    start = 1_700_000_000.0
    session = counted(GROWING, names=(SONNET, HAIKU, SONNET), seconds=(start, start + 200, start + 400))
    _, bill = recorded_bill(session)
    assert bill.read.tolist() == [0, 0, 0]


def test_a_model_reads_no_more_than_a_compaction_left_before_the_call_of_another():
    base = RecordedCompaction(5, Evidence.DECLARED, "summary", (Inserted(0),), (user("summary " * 50),), "auto")
    names = (SONNET, SONNET, HAIKU, SONNET)
    sent, bill = recorded_bill(counted((20_000, 90_000, 21_000, 22_000), names=names, compactions=(base,)))
    assert bill.read.tolist() == [0, 20_000, 0, sent.facts.attribution.overhead]


def test_a_short_request_is_not_kept_by_the_cache():
    _, bill = recorded_bill(counted((900, 1_000, 2_000)))
    assert bill.read.tolist() == [0, 0, 0]


def test_after_a_compaction_only_the_fixed_part_is_read():
    base = RecordedCompaction(5, Evidence.DECLARED, "summary", (Inserted(0),), (user("summary " * 50),), "auto")
    sent, bill = recorded_bill(counted((20_000, 90_000, 21_000, 22_000), compactions=(base,)))
    assert 0 < bill.read[2] < 20_000 + 500
    assert bill.read[2] == sent.facts.attribution.overhead
    assert bill.read[3] == 21_000


def test_the_summariser_is_paid_for_too():
    base = RecordedCompaction(5, Evidence.DECLARED, "summary", (Inserted(0),), (user("summary " * 50),), "auto")
    _, bill = recorded_bill(counted((20_000, 90_000, 21_000), compactions=(base,)))
    (item,) = bill.summarising
    assert (item.calls, item.is_estimated) == (1, True)
    assert item.read == 90_000 <= item.prompt
    assert bill.total == sum(bill.costs.tolist()) + bill.summary_cost
    assert bill.summary_cost > 0


@pytest.mark.parametrize(
    ("after", "names", "read"),
    [
        (1_700_000_015.0, (SONNET, SONNET, "claude-haiku-4-5"), 90_000),  # right after the call before it, by its model
        (1_700_000_015.0, (SONNET,) * 3, 90_000),
        (1_700_003_000.0, (SONNET,) * 3, 0),  # within a pause of an hour
        (None, (SONNET,) * 3, 0),
    ],
    ids=["another model later", "before a pause", "after a pause", "no time"],
)
def test_a_summariser_reads_what_was_sent_shortly_before_whatever_comes_later(after, names, read):
    base = RecordedCompaction(
        5, Evidence.DECLARED, "summary", (Inserted(0),), (user("summary " * 50),), timestamp=after
    )
    times = (1_700_000_000.0, 1_700_000_010.0, 1_700_003_600.0)
    session = counted((20_000, 90_000, 21_000), names=names, seconds=times, compactions=(base,))
    _, bill = recorded_bill(session)
    assert [item.read for item in bill.summarising] == [read]


def test_a_compaction_that_only_cuts_asks_no_model():
    base = RecordedCompaction(5, Evidence.INFERRED, "trim", (Inserted(0),), (user("cut"),), "auto")
    _, bill = recorded_bill(counted((20_000, 90_000, 21_000), compactions=(base,)))
    assert bill.summarising == ()


@pytest.mark.parametrize(
    ("cached", "expected"), [((), TAKEN), ((0, 0, 0), OFF), ((0, 19_000, 0), REPORTED)], ids=["unknown", "off", "used"]
)
def test_whether_the_agent_used_the_cache_is_known_from_its_counts(cached, expected):
    session = counted(GROWING, cached=cached)
    assert prices_of(session).caching == expected
    _, bill = recorded_bill(session)
    assert bool(bill.read.any()) == (expected != OFF)


def test_what_the_provider_reported_is_a_bill_of_its_own():
    session = counted(GROWING, cached=(0, 19_000, 20_500))
    facts = facts_of(session)
    reported = reported_bill(facts, prices_of(session))
    assert reported.read.tolist() == [0, 19_000, 20_500]
    assert reported_bill(facts_of(counted(GROWING)), prices_of(counted(GROWING))) is None


def test_a_model_without_a_price_leaves_the_bill_without_one():
    session = counted(GROWING, names=("homemade",) * 3)
    _, bill = recorded_bill(session)
    assert bill.total is None
    assert prices_of(session).unknown == ("homemade",)
    assert bill.read.tolist() == [0, 20_000, 21_000]


def test_a_session_without_calls_has_an_empty_bill():
    sent, bill = recorded_bill(counted(()))
    assert (len(bill.prompt), bill.total, len(sent.shared)) == (0, None, 0)


def test_a_file_without_times_never_expires():
    facts = facts_of(counted(GROWING))
    ledger = facts.ledger
    ledger.events["time_ms"] = np.full(ledger.event_count, -1)
    assert CacheReach.of(ledger).alive.tolist() == [False, True, True]


def test_the_summariser_of_what_is_not_in_the_file_is_not_billed():
    base = RecordedCompaction(0, Evidence.MATCHED, "summary", (Inserted(0),), (user("summary " * 50),))
    _, bill = recorded_bill(counted((20_000, 30_000), compactions=(base,)))
    assert bill.summarising == ()


def test_the_summary_of_a_compaction_that_no_call_followed_is_on_the_bill():
    base = (Inserted(0),)
    cut = RecordedCompaction(7, Evidence.DECLARED, "summary", base, (user("In short."),), "auto", tokens_before=41_000)
    sent, bill = recorded_bill(counted((20_000, 30_000, 40_000), compactions=(cut,)))
    (summary,) = bill.summarising
    assert (summary.step, summary.calls, summary.prompt, summary.read) == (3, 1, 41_000, 40_000)
    assert bill.total == sum(bill.costs.tolist()) + bill.summary_cost
    assert len(sent.fired) == 0


def test_a_replays_summariser_is_given_what_came_before_the_file_too():
    prompts = (150_000, 160_000, 168_000, *range(6_000, 14_000, 1_000))
    cut = RecordedCompaction(7, Evidence.DECLARED, "summary", (Inserted(0),), (user("what was done " * 100),))
    facts = facts_of(counted(prompts, compactions=(cut,)))
    before = facts.attribution.prologue
    assert before > 100_000
    trace = replay(facts.ledger, get_policy("contextguard"), window=170_000, usage=facts.usage)
    ((_, _, prompt, _),) = modelled_summaries(SentRequests.replayed(facts, trace), trace)
    (record,) = trace.compactions
    held = sum(facts.attribution.tokens[: facts.ledger.steps["at"][record.step]].tolist())
    assert before < prompt < before + 2 * held
