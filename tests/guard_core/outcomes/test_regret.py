"""What an agent had to read again, under settings that would have lost it, too, or would not."""

import pytest

from guard_core.findings import Facts
from guard_core.findings.repeated_results import repeated_results
from guard_core.outcomes.regret import read_again
from guard_core.outcomes.sent import SentRequests
from guard_core.policies import get_policy
from guard_core.replay import replay
from guard_core.summaries.sizes import FixedSummaries
from guard_core.sweep import Priced, get_measure, grid, judged, session_cells
from tests.guard_core.findings.test_repeated_results import FILES, claims, reading

BUILT = reading(FILES, FILES[1:5])
(CLAIM,) = claims(BUILT)
ALL = CLAIM.numbers["tokens"]


def regret(name, window, built=BUILT):
    """Tokens, and how many compactions the replay has."""
    facts = Facts.of(built)
    policy, summaries = get_policy(name), FixedSummaries(100)
    trace = replay(facts.ledger, policy, window=window, usage=facts.usage, summarizer=summaries)
    return read_again(SentRequests.replayed(facts, trace), repeated_results(facts)), len(trace.compactions)


def test_of_the_recording_it_is_all_that_came_again():
    facts = Facts.of(BUILT)
    assert read_again(SentRequests.recorded(facts), repeated_results(facts)) == ALL > 0


@pytest.mark.parametrize(
    ("policy", "window", "tokens", "compactions"),
    [
        ("none", 1_000_000, 0, 0),
        ("contextguard", 4_000, ALL, 10),  # each file had left when it was read again
        ("contextguard", 13_000, 0, 1),  # it compacts behind all that is read again
    ],
)
def test_a_setting_reads_again_what_its_requests_have_lost_by_then(policy, window, tokens, compactions):
    assert regret(policy, window) == (tokens, compactions)


def test_what_left_only_after_it_was_asked_for_again_is_not_in_it():
    """In a window of 12,000 the only compaction comes between the last two calls that ask again."""
    *others, last = repeated_results(Facts.of(BUILT))
    assert regret("contextguard", 12_000) == (last.tokens, 1)
    assert others


def test_what_was_asked_for_again_though_it_was_there_counts_for_no_setting():
    assert regret("contextguard", 4_000, reading([*FILES, *FILES]))[0] == 0


def test_a_sweep_recommends_by_it_and_says_it():
    facts = Facts.of(BUILT)
    by, axes = get_measure("regret"), {"window": (11_500, 12_000, 17_000)}
    cells = session_cells(
        facts.ledger,
        grid(axes),
        window=17_000,
        usage=facts.usage,
        summarizer=FixedSummaries(100),
        priced=Priced.of(facts),
    )
    result = judged(axes, [cells], [facts.ledger.step_count], by=by)
    assert result.cells[result.recommended].values == {"window": 17_000}
    assert ", 0 tokens lost of what the recording read again" in result.evidence
    assert f", {cells[1].read_again:,} tokens lost of what the recording read again" in result.evidence
    assert all(cell.rules_gone is None for cell in cells)  # nobody looked for rules
