"""Compactions that never paid for themselves are named with what they cost and saved."""

import msgspec

from guard_core.checker import check
from guard_core.findings import Facts, recorded_findings
from guard_core.sessions import Evidence, RecordedCompaction
from guard_core.views import Inserted, Span
from tests.builders import user
from tests.guard_core.outcomes.cast import counted, facts_of


def compacted(at, before):
    base = (Inserted(0), Span(at, at))
    summary = (user("summary " * 60),)
    return RecordedCompaction(at, Evidence.DECLARED, "summary", base, summary, "auto", tokens_before=before)


def findings_of(session):
    return {item.kind: item for item in recorded_findings(facts_of(session))}


CALLS = (90_000, 100_000, 80_000, 82_000, 30_000, *(31_000 + 100 * k for k in range(20)))
TWICE = (compacted(5, 100_100), compacted(9, 82_100))


def test_one_that_the_next_follows_at_once_never_paid():
    claim = findings_of(counted(CALLS, compactions=TWICE))["never_paid"]
    assert claim.numbers["compactions"] == [0]
    assert claim.numbers["paid"] > claim.numbers["saved"]
    assert "Compaction 1 (step 3) never paid for itself: it cost $" in claim.sentence
    assert {"list_prices", "modelled_cache"} <= set(claim.assumptions)


def test_the_sentence_says_how_many_calls_are_not_counted():
    built = counted(CALLS, compactions=TWICE)
    calls = tuple(
        msgspec.structs.replace(call, prompt_tokens=None) if 8 < step < 12 else call
        for step, call in enumerate(built.calls)
    )
    built = msgspec.structs.replace(built, calls=calls)
    claim = findings_of(built)["never_paid"]
    assert "(list prices, cache modelled, 3 of 25 calls not counted)" in claim.sentence
    assert (claim.numbers["uncounted"], claim.numbers["all_calls"]) == (3, 25)
    facts = Facts.of(built)
    assert check(built, [claim], facts.window) == []
    hidden = msgspec.structs.replace(claim, sentence=claim.sentence.replace(", 3 of 25 calls not counted", ""))
    assert [str(wrong) for wrong in check(built, [hidden], facts.window)] == [
        "never_paid at step 2 (from 0): it does not say how many calls are not counted"
    ]


def test_what_is_saved_does_not_follow_from_the_recorders_own_count():
    """It may count in another unit than the provider; what the summariser was given is taken from it alone."""
    own = counted(CALLS, compactions=TWICE)
    other = counted(CALLS, compactions=(compacted(5, 90_000), compacted(9, 70_000)))
    claims = {name: findings_of(built)["never_paid"] for name, built in (("own", own), ("other", other))}
    assert claims["other"].numbers["saved"] == claims["own"].numbers["saved"]
    assert claims["other"].numbers["paid"] < claims["own"].numbers["paid"]
    for built, name in ((own, "own"), (other, "other")):
        assert check(built, [claims[name]], facts_of(built).window) == []
    assert check(own, [claims["other"]], facts_of(own).window)


def test_nothing_is_said_where_the_prompt_also_fell_without_a_record():
    """What a later call would have cost without the compaction is not known."""
    calls = (*CALLS[:10], *(8_000 + 100 * k for k in range(10)))
    claims = findings_of(counted(calls, compactions=TWICE))
    assert "silent_truncation" in claims
    assert "never_paid" not in claims


def test_one_that_pays_is_not_named():
    calls = (90_000, 100_000, *(20_000 + 100 * k for k in range(30)))
    assert "never_paid" not in findings_of(counted(calls, compactions=(compacted(5, 100_100),)))


def test_nothing_is_said_without_a_price():
    assert "never_paid" not in findings_of(counted(CALLS, names=("homemade",) * len(CALLS), compactions=TWICE))


def test_one_that_the_window_needed_is_not_named():
    calls = (150_000, 199_000, 198_000, 199_500, 30_000, 31_000)
    claims = findings_of(counted(calls, compactions=(compacted(5, 201_000), compacted(9, 199_800))))
    assert 0 not in claims["never_paid"].numbers["compactions"] if "never_paid" in claims else True


def test_one_that_a_refused_request_forced_was_needed():
    session = counted(CALLS, compactions=TWICE)
    refused = msgspec.structs.replace(session, refused=(5,))
    assert "never_paid" in findings_of(session)
    assert "never_paid" not in findings_of(refused)
    facts, claim = facts_of(refused), findings_of(session)["never_paid"]
    assert any("the window needed it" in str(item) for item in check(facts.session, (claim,), facts.window))


def test_a_session_whose_counts_are_estimates_says_nothing_of_prices():
    from tests.builders import session

    built = session(*counted(CALLS).events, reported=False, compactions=TWICE)
    assert "never_paid" not in {item.kind for item in recorded_findings(Facts.of(built))}


def in_the_middle(tokens_before):
    """A recording with a compaction that replaced what is not in the file: all before it is still sent."""
    base = (Inserted(0), Span(0, 3))
    whole = RecordedCompaction(
        3, Evidence.DECLARED, "summary", base, (user("summary " * 60),), "auto", tokens_before=tokens_before
    )
    return counted((80_000, *(82_000 + 100 * k for k in range(22))), compactions=(whole,))


def test_one_that_replaced_what_is_neither_counted_nor_in_the_file_is_not_named():
    assert "never_paid" not in findings_of(in_the_middle(None))
    assert "never_paid" in findings_of(in_the_middle(80_500))


def test_nor_is_one_at_the_beginning_of_a_file_for_what_the_cache_held_is_not_known():
    first = RecordedCompaction(
        0, Evidence.DECLARED, "summary", (Inserted(0), Span(0, 0)), (user("summary"),), "auto", tokens_before=80_500
    )
    value = counted((80_000, *(82_000 + 100 * k for k in range(22))), compactions=(first,))
    assert "never_paid" not in findings_of(value)


def test_the_checker_refuses_the_same_claim():
    claim = findings_of(in_the_middle(80_500))["never_paid"]
    facts = facts_of(in_the_middle(None))
    assert any("paid for itself" in str(item) for item in check(facts.session, (claim,), facts.window))
