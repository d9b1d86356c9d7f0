"""What a compaction cost and when it was earned back, against a plain loop over the same calls."""

from dataclasses import replace
from itertools import pairwise

import pytest
from msgspec.structs import replace as replace_struct

from guard_core.bridge import recorded_bridge
from guard_core.outcomes.bill import bill_of
from guard_core.outcomes.payback import paybacks
from guard_core.outcomes.sent import SentRequests
from guard_core.policies import get_policy
from guard_core.replay import observe_recorded, replay
from guard_core.sessions import Evidence, Provenance, RecordedCompaction, Sourced
from guard_core.views import Inserted, Span
from guard_core.windows.prices import UNIT
from guard_core.windows.window_evidence import judge_session
from tests.builders import user
from tests.guard_core.outcomes.cast import SONNET, came_since, counted, facts_of, prices_of, recorded_bill


def compacted(at, before, **more):
    base = (Inserted(0), Span(at, at))
    return RecordedCompaction(
        at, Evidence.DECLARED, "summary", base, (user("summary " * 60),), "auto", tokens_before=before, **more
    )


def prices(session):
    sent, bill = recorded_bill(session)
    return sent, bill, paybacks(sent, bill)


def test_it_is_earned_back_at_the_call_whose_savings_reach_its_cost():
    after = tuple(20_000 + 100 * k for k in range(30))
    sent, bill, (price,) = prices(counted((90_000, 100_000, *after), compactions=(compacted(5, 100_100),)))
    came = came_since(sent, 2)
    assert (price.step, price.stop, price.before, price.after) == (2, 32, 100_000 + came, 20_000)
    fixed = int(bill.read[2])
    with_it = [fixed * 0.3 + (20_000 - fixed) * 3.75, *(size * 0.3 + 100 * 3.75 for size in after[:-1])]
    without = [100_000 * 0.3 + came * 3.75, *((size + 80_000 + came) * 0.3 + 100 * 3.75 for size in after[:-1])]
    summary = sent.facts.attribution.inserted[0][0] * 15 + (100_100 - 100_000) * 3 + 100_000 * 0.3
    assert price.summary == round(summary * UNIT)
    assert price.rewriting == round((with_it[0] - without[0]) * UNIT)
    assert price.saved == round((sum(without[1:]) - sum(with_it[1:])) * UNIT)
    balance, earned = -summary, -1
    for step, (less, more) in enumerate(zip(with_it, without), start=2):
        balance += more - less
        earned = step if balance >= 0 and earned < 0 else earned
    assert price.earned_back == earned > 2


def test_what_came_since_the_last_request_belongs_to_the_one_without_it():
    """The recorder counted before the last result came, and the summariser was not given it."""
    sent, bill, (price,) = prices(counted((90_000, 100_000, 20_000, 20_100), compactions=(compacted(4, 100_010),)))
    assert came_since(sent, 2) > 50
    assert price.before == 100_000 + came_since(sent, 2)
    assert price.uncached_without == came_since(sent, 2)
    assert [item.prompt for item in bill.summarising] == [100_010]


def test_the_request_without_it_is_the_one_of_its_bridge():
    """The recorder may count in another unit than the provider, and one page says both."""
    sent, _, (price,) = prices(counted((90_000, 100_000, 20_000, 20_100), compactions=(compacted(5, 61_000),)))
    facts = sent.facts
    observed = observe_recorded(facts.ledger, get_policy("none"), window=200_000, usage=facts.usage)
    bridge = recorded_bridge(facts.ledger, facts.attribution, observed, 0)
    assert price.before == bridge.uncompacted > 100_000
    assert price.uncached_without == bridge.total("grown")


def test_the_recorders_figure_counts_where_the_request_before_was_not_counted():
    built = counted((90_000, 100_000, 20_000, 20_100), compactions=(compacted(5, 61_000),))
    first, second, *rest = built.calls
    built = replace_struct(built, calls=(first, replace_struct(second, prompt_tokens=None), *rest))
    *_, (price,) = prices(built)
    assert price.before == 61_000


def test_one_that_the_next_follows_at_once_never_pays():
    calls = (90_000, 100_000, 80_000, 82_000, 30_000, 31_000)
    compactions = (compacted(5, 100_100), compacted(9, 82_100))
    *_, (first, second) = prices(counted(calls, compactions=compactions))
    assert (first.stop, second.step) == (4, 4)
    assert first.earned_back == -1
    assert first.net > 0


def test_after_a_pause_it_pays_at_once_for_the_whole_request_would_have_been_written_anew():
    start = 1_700_000_000.0
    times = (start, start + 10, start + 4_000, start + 4_010)
    sent, _, (price,) = prices(
        counted((90_000, 100_000, 20_000, 20_100), seconds=times, compactions=(compacted(5, 100_100),))
    )
    assert price.uncached == 20_000
    assert price.uncached_without == 100_000 + came_since(sent, 2)
    assert price.rewriting < 0


def test_the_step_from_which_the_window_needed_it_is_named():
    sent, bill = recorded_bill(counted((90_000, 100_000, 20_000, 60_000, 90_000), compactions=(compacted(5, 100_100),)))
    session = sent.facts.session
    narrow = judge_session(session, Sourced(165_000, Provenance.USER))
    facts = replace(sent.facts, judged=narrow)
    (price,) = paybacks(type(sent).recorded(facts), bill)
    assert price.needed_from == 4


def test_prices_add_up_to_the_difference_of_the_bills():
    calls = (90_000, 100_000, 30_000, 60_000, 80_000, 25_000, 26_000)
    _, bill, costs = prices(counted(calls, compactions=(compacted(5, 100_100), compacted(11, 80_100))))
    assert [item.step for item in costs] == [2, 5]
    assert sum(item.summary for item in costs) == bill.summary_cost
    assert sum(item.net for item in costs) == sum(item.paid for item in costs) - sum(item.saved for item in costs)


@pytest.mark.parametrize("name", ["homemade", ""])
def test_without_prices_there_are_tokens_and_no_money(name):
    session = counted((90_000, 100_000, 20_000), names=(name,) * 3, compactions=(compacted(5, 100_100),))
    sent, bill, (price,) = prices(session)
    assert bill.total is None
    assert (price.summary, price.rewriting, price.saved) == (0, 0, 0)
    assert price.uncached_without == came_since(sent, 2)


def test_a_session_without_compactions_has_no_prices():
    *_, costs = prices(counted((20_000, 21_000)))
    assert costs == ()


def test_a_file_that_begins_behind_a_compaction_does_not_say_what_it_cost():
    """The request before it would have been in the cache: that it would have been written anew follows from the gap."""
    begun = (compacted(0, 167_500),)
    assert prices(counted((20_000, 20_100, 20_200), compactions=begun))[2] == ()
    (later,) = prices(counted((20_000, 100_000, 20_200), compactions=(*begun, compacted(5, 100_100))))[2]
    assert (later.index, later.step) == (1, 2)


def test_a_summary_that_another_replaced_before_any_call_is_paid_for_with_that():
    """Both summarisers were called, and the first was given 100,100 tokens."""
    calls, last = (90_000, 100_000, 20_000, 20_100), compacted(5, 20_000)
    _, _, (alone,) = prices(counted(calls, compactions=(compacted(5, 100_100),)))
    _, bill, (price,) = prices(counted(calls, compactions=(compacted(5, 100_100), last)))
    assert (price.index, price.step) == (1, alone.step)
    assert sorted((item.step, item.prompt) for item in bill.summarising) == [(2, 20_000), (2, 100_100)]
    assert price.summary > alone.summary > 0


def test_a_second_summariser_before_a_call_reads_from_the_cache_what_the_first_left_of_the_request():
    """The request that it is given was never sent: only system prompt and tools are those of the one that was."""
    calls, last = (90_000, 100_000, 20_000, 20_100), compacted(5, 20_000)
    sent, bill, _ = prices(counted(calls, compactions=(compacted(5, 100_100), last)))
    reads = {item.prompt: item.read for item in bill.summarising}
    assert reads == {100_100: 100_000, 20_000: min(sent.fixed, 20_000)}
    assert reads[20_000] < 20_000


def test_a_request_too_small_for_the_cache_gives_the_next_one_nothing():
    """The first compaction leaves 600 tokens, fewer than a provider's cache keeps; the second comes right after it."""
    calls = (90_000, 100_000, 600, 500, 700)
    compactions = (compacted(5, 100_100), compacted(7, 9_000))
    *_, (first, second) = prices(counted(calls, compactions=compactions))
    assert (first.step, first.stop, second.step) == (2, 3, 3)
    assert second.uncached_without == second.before
    assert first.uncached_without < 1_000


def test_without_the_compaction_a_large_request_is_read_where_the_small_one_is_not():
    after = (600, 700, 800)
    sent, bill, (price,) = prices(counted((90_000, 100_000, *after), compactions=(compacted(5, 100_100),)))
    assert bill.read[3:].tolist() == [0, 0]
    sizes = [100_000 + came_since(sent, 2) + more for more in (0, 100, 200)]
    without = [before * 0.3 + (now - before) * 3.75 for before, now in pairwise(sizes)]
    assert price.saved == round((sum(without) - sum(size * 3.75 for size in after[1:])) * UNIT)


def test_a_request_made_anew_without_it_was_never_in_the_cache():
    """A buffer sends the last messages only: had it not cut the log again, all of it would have been written."""
    session = counted(tuple(range(30_000, 60_000, 3_000)))
    facts = facts_of(session)
    trace = replay(facts.ledger, get_policy("autogen-buffered", buffer_size=4), window=200_000, usage=facts.usage)
    sent = SentRequests.replayed(facts, trace)
    costs = paybacks(sent, bill_of(sent, prices_of(session)))
    assert [item.stop - item.step for item in costs[:-1]] == [1] * (len(costs) - 1)
    assert [item.uncached_without for item in costs[1:]] == [item.before - sent.fixed for item in costs[1:]]
    assert costs[0].uncached_without < 10_000  # the request before the first cut was whole


def test_a_model_that_comes_back_behind_a_compaction_would_have_found_what_it_had_sent_before():
    """Its last request was sent before the compaction, and is the beginning of what it would be sent without it."""
    haiku = "claude-haiku-4-5"
    names = (SONNET, haiku, haiku, SONNET, SONNET)
    session = counted((90_000, 100_000, 20_000, 20_100, 20_200), names=names, compactions=(compacted(5, 100_010),))
    sent, bill, (price,) = prices(session)
    came, fixed = came_since(sent, 2), int(bill.read[2])
    assert bill.read.tolist() == [0, 0, fixed, fixed, 20_100]
    larger = 80_000 + came
    with_them = (fixed * 0.3 + (20_100 - fixed) * 3.75) + (20_100 * 0.3 + 100 * 3.75)
    without = 90_000 * 0.3 + (20_100 + larger - 90_000) * 3.75 + (20_100 + larger) * 0.3 + 100 * 3.75
    assert price.saved == round((without - with_them) * UNIT)
