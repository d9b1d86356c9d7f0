"""Amounts of money as people read them."""

import pytest

from guard_core.outcomes.bill import Prices
from guard_core.outcomes.payback import paybacks
from guard_core.outcomes.words import assumptions, dollars, payback_words, price_words
from guard_core.sessions import Evidence, RecordedCompaction
from guard_core.views import Inserted, Span
from guard_core.windows.prices import UNIT
from tests.builders import user
from tests.guard_core.outcomes.cast import counted, facts_of, recorded_bill


def test_small_amounts_are_not_rounded_down_to_nothing():
    million = UNIT * 1_000_000
    assert [dollars(round(value * million)) for value in (0.00002, -0.00002, 0.00006, 0.5, 12.345, 0, -0.25)] == [
        "under $0.0001", "under $0.0001", "$0.0001", "$0.5000", "$12.35", "$0.0000", "−$0.2500"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("prompts", "said"),
    [
        (
            (18_000, None, 19_000),
            "The file has no count of 1 of its 3 calls. In replays policies get none for these calls either",
        ),
        ((18_000, 18_500, 19_000), ""),
        ((None, None), ""),  # of a file without any count another sentence is said
    ],
)
def test_that_policies_get_no_count_that_the_file_lacks_is_said(prompts, said):
    facts = facts_of(counted(prompts))
    untold = [words for words in assumptions(facts, Prices.of(facts.session, facts.ledger)) if "no count of" in words]
    assert "".join(untold).startswith(said)
    assert len(untold) == bool(said)


def test_a_compaction_that_pays_with_the_very_next_call_is_not_said_to_cost_less_than_nothing():
    item = RecordedCompaction(
        1, Evidence.DECLARED, "summary", (Inserted(0), Span(1, 1)), (user("short"),), "auto", tokens_before=168_000
    )
    sent, bill = recorded_bill(counted((18_000, *range(18_100, 19_000, 100)), compactions=(item,)))
    (price,) = paybacks(sent, bill)
    assert price.paid < 0
    assert price_words(price, bill.prices).startswith(f"Compaction 1 (step 1) saved {dollars(-price.paid)} at once and")


def test_a_compaction_that_saves_twice_says_so_once():
    item = RecordedCompaction(
        1, Evidence.DECLARED, "summary", (Inserted(0), Span(1, 1)), (user("short"),), "auto", tokens_before=168_000
    )
    sent, bill = recorded_bill(counted((18_000, *range(18_100, 19_000, 100)), compactions=(item,)))
    (price,) = paybacks(sent, bill)
    assert price.saved > 0 > price.paid
    assert price_words(price, bill.prices).count("saved") == 1


def test_no_price_of_a_summary_is_said_where_messages_were_only_dropped():
    item = RecordedCompaction(21, Evidence.INFERRED, "trim", (Span(0, 1), Span(11, 21)))
    sent, bill = recorded_bill(counted((*range(20_000, 30_000, 1_000), 25_000, 26_000), compactions=(item,)))
    (price,) = paybacks(sent, bill)
    assert price.summary == 0
    assert "summary" not in " ".join(payback_words(price, bill.prices))


def test_nothing_is_saved_on_calls_that_did_not_come():
    places = [(Span(0, 1), Span(at, at)) for at in (21, 23)]
    trims = tuple(RecordedCompaction(base[1].start, Evidence.INFERRED, "trim", base) for base in places)
    sent, bill = recorded_bill(counted((*range(20_000, 30_000, 1_000), 15_000, 15_100), compactions=trims))
    for price in paybacks(sent, bill):
        words = (price_words(price, bill.prices), " ".join(payback_words(price, bill.prices)))
        assert all("o other call came before the next" in one and "$0.0000" not in one for one in words)
