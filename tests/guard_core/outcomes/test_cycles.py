"""The room after each compaction, and where text alone fills the request."""

import pytest

from guard_core.findings import Facts
from guard_core.outcomes.cycles import Cycle, cycles_of, stuck_at, text_floor
from guard_core.outcomes.sent import SentRequests
from guard_core.policies import get_policy
from guard_core.replay import replay
from guard_core.sessions import Provenance
from guard_core.summaries.sizes import FixedSummaries
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.findings.cases import chat, compaction
from tests.guard_core.outcomes.cast import counted, facts_of


def talk(turns, words, result):
    """Turns of so many bytes of text and one tool result each."""
    events = []
    for k in range(turns):
        events += [user("w" * words), tool_call("ls", str(k)), tool_result("r" * result, "ls", str(k)), model("ok")]
    return session(*events, overhead=1_000)


def test_each_cycle_has_the_request_before_and_after_it():
    facts = facts_of(counted(tuple(20_000 + 9_000 * k for k in range(20))))
    trace = replay(
        facts.ledger, get_policy("contextguard"), window=100_000, usage=facts.usage, summarizer=FixedSummaries(900)
    )
    cycles = cycles_of(SentRequests.replayed(facts, trace))
    assert [cycle.step for cycle in cycles] == [record.step for record in trace.compactions]
    assert all(cycle.after < cycle.before and cycle.room > 0 and 0 < cycle.freed < 1 for cycle in cycles)
    assert stuck_at(cycles) == -1


@pytest.mark.parametrize(("version", "limit"), [("2.1.14", 155_000), ("2.1.330", 200_000)])
def test_the_limit_of_a_recording_is_the_threshold_of_its_agents_rule_or_the_window(version, limit):
    """Later versions of Claude Code have no threshold unless a window is set."""
    log = chat(
        *(20_000, 155_100, 31_000),
        window=200_000,
        source=Provenance.RECORDER,
        format="claude-code",
        model="claude-opus-4-5-20251101",
        versions=((0, version),),
        compactions=(compaction(3, trigger="auto"),),
    )
    (cycle,) = cycles_of(SentRequests.recorded(Facts.of(log)))
    assert (cycle.step, cycle.after, cycle.limit) == (2, 31_000, limit)


def test_a_cycle_that_makes_no_room_is_where_a_session_is_stuck():
    assert stuck_at((Cycle(3, 900, 300, 800), Cycle(9, 900, 850, 800), Cycle(10, 950, 900, 800))) == 1
    assert stuck_at((Cycle(3, 900, 900, 2_000),)) == 0
    assert stuck_at(()) == -1


def test_clearing_results_frees_less_and_less_until_text_fills_the_request():
    facts = facts_of(talk(60, words=3_000, result=9_000))
    cycles = text_floor(facts, 40_000)
    freed = [cycle.freed for cycle in cycles]
    assert freed == sorted(freed, reverse=True)
    assert cycles[-1].is_stuck
    assert [cycle.is_stuck for cycle in cycles[:-1]] == [False] * (len(cycles) - 1)


def test_text_alone_is_counted_event_by_event():
    facts = facts_of(talk(12, words=3_000, result=9_000))
    first = text_floor(facts, 40_000)[0]
    at, tokens = int(facts.ledger.steps["at"][first.step]), facts.attribution.tokens
    kinds = [int(facts.ledger.events["result_bytes"][event]) > 0 for event in range(at)]
    fixed = facts.attribution.overhead + facts.attribution.prologue
    assert first.after == fixed + sum(int(tokens[event]) for event in range(at) if not kinds[event])
    assert first.before == fixed + sum(int(tokens[event]) for event in range(at))


def test_a_session_that_never_reaches_the_limit_has_no_cycles():
    assert text_floor(facts_of(talk(3, 100, 100)), 1_000_000) == ()
    assert text_floor(facts_of(counted(())), 1_000) == ()
