"""What a request shares with the one before it."""

import cProfile

import pytest
from msgspec.structs import replace

from guard_core.checker import check
from guard_core.estimation.estimators import Heuristic
from guard_core.events import Event, ReasoningPart, Role
from guard_core.findings import recorded_findings
from guard_core.findings.facts import Facts
from guard_core.ledger import Ledger
from guard_core.outcomes.sent import SentRequests, common_beginning
from guard_core.policies import get_policy
from guard_core.replay import replay
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Session
from guard_core.summaries.continuation import repeats_request
from guard_core.summaries.sizes import FixedSummaries
from guard_core.view_sums import ViewSums
from guard_core.views import Inserted, Span, Synthetic, common_length
from tests.big_sessions import big_session
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.outcomes.cast import counted, facts_of
from tests.profiling import calls_of

RESULTS = session(
    user("go"), *(event for k in range(4) for event in (tool_call("ls", str(k)), tool_result("y" * 900, "ls", str(k))))
)
NOTE = Synthetic("summary", 400)
NOTE_TEXT = "the plan so far " * 300


@pytest.mark.parametrize(
    ("first", "second", "same", "expected"),
    [
        ((Span(0, 5),), (Span(0, 9),), True, (Span(0, 5),)),
        ((Span(0, 2), NOTE, Span(6, 7)), (Span(0, 2), NOTE, Span(6, 9)), True, (Span(0, 2), NOTE, Span(6, 7))),
        ((Span(0, 2), NOTE, Span(6, 7)), (Span(0, 2), NOTE, Span(6, 9)), False, (Span(0, 2),)),
        ((NOTE, Span(3, 5)), (Span(3, 5),), True, ()),
        ((Span(0, 9),), (Span(2, 9),), True, ()),
        ((Span(0, 9),), (Span(0, 5, "pruned"), Span(5, 9)), True, (Span(0, 2),)),
        (
            (Span(0, 3, "pruned"), Span(3, 9)),
            (Span(0, 5, "pruned"), Span(5, 9)),
            True,
            (Span(0, 3, "pruned"), Span(3, 4)),
        ),
        ((), (Span(0, 9),), True, ()),
        ((Span(0, 1),), (Span(0, 9, "pruned"),), True, (Span(0, 1),)),
        ((Span(2, 3),), (Span(2, 9, "pruned"),), True, ()),
    ],
    ids=[
        *("grown", "same summary", "new summary", "summary gone", "head gone", "pruned now", "pruned further", "empty"),
        *("one that a form leaves", "one that a form changes"),
    ],
)
def test_the_common_beginning_of_two_requests(first, second, same, expected):
    common = common_beginning(Ledger.of(RESULTS), first, second, ("summary",) if same else ())
    assert common == expected


def test_between_compactions_a_request_shares_all_of_the_one_before():
    sent = SentRequests.recorded(facts_of(counted((20_000, 21_000, 25_000))))
    assert sent.changed.tolist() == []
    assert sent.shared.tolist() == [0, 20_000, 21_000]


def test_whether_a_policy_repeats_the_request_is_asked_of_each_message_once():
    facts = facts_of(long_log(60))
    policy, summaries = get_policy("semantic-kernel-summarization"), FixedSummaries(300)
    trace = replay(facts.ledger, policy, window=4_000, usage=facts.usage, summarizer=summaries)
    sent = SentRequests.replayed(facts, trace)
    assert len(trace.heads) > 50
    with cProfile.Profile() as profile:
        repeated = sent.repeated
    assert calls_of(profile, repeats_request) <= 1
    assert (repeated == -1).all()


def test_requests_behind_a_new_summary_of_the_same_size_are_compared_for_many_at_once():
    facts = facts_of(long_log(60))
    policy, summaries = get_policy("semantic-kernel-summarization"), FixedSummaries(300)
    trace = replay(facts.ledger, policy, window=4_000, usage=facts.usage, summarizer=summaries)
    sent = SentRequests.replayed(facts, trace)
    assert len(sent.changed) > 50
    with cProfile.Profile() as profile:
        assert len(sent.shared) == len(sent.tokens)
    assert calls_of(profile, common_beginning) <= 1


def test_a_replay_that_compacts_shares_the_fixed_part_at_that_step():
    facts = facts_of(counted(tuple(20_000 + 9_000 * k for k in range(20))))
    trace = replay(
        facts.ledger, get_policy("contextguard"), window=100_000, usage=facts.usage, summarizer=FixedSummaries(900)
    )
    sent = SentRequests.replayed(facts, trace)
    step = trace.compactions[0].step
    assert sent.shared[step] == facts.attribution.overhead
    assert sent.shared[step + 2] == sent.tokens[step + 1]


def test_a_second_summary_of_the_same_size_is_a_new_one():
    facts = facts_of(counted(tuple(20_000 + 9_000 * k for k in range(40))))
    trace = replay(
        facts.ledger, get_policy("contextguard"), window=100_000, usage=facts.usage, summarizer=FixedSummaries(900)
    )
    sent = SentRequests.replayed(facts, trace)
    assert len(trace.compactions) > 1
    assert {int(sent.shared[record.step]) for record in trace.compactions} == {facts.attribution.overhead}


def test_a_simulated_provider_counts_what_is_shared_by_the_estimate():
    simulated = session(user("hi " * 900), model("yes"), user("go " * 900), model("done"), usage_ratio=2.0)
    sent = SentRequests.recorded(facts_of(simulated))
    assert sent.shared.tolist() == [0, int(sent.tokens[0])]


def test_the_summary_of_the_next_recorded_compaction_is_another_message():
    first, second = (
        RecordedCompaction(at, Evidence.DECLARED, "summary", (Inserted(0),), (user(word * 50),), "auto")
        for at, word in ((5, "summary "), (9, "another "))
    )
    calls = (20_000, 90_000, 21_000, 90_000, 21_000)
    sent = SentRequests.recorded(facts_of(counted(calls, compactions=(first, second))))
    assert sent.shared[4] == sent.facts.attribution.overhead


def twice_compacted(first, second):
    """A recording of two compactions, each of which puts a message of its own before the newest events."""
    built = counted((20_000, 30_000, 15_000, 25_000, 12_000))
    cuts = tuple(
        RecordedCompaction(
            built.calls[step].at,
            Evidence.DECLARED,
            "summary",
            (Inserted(0), Span(built.calls[step].at - 1, built.calls[step].at)),
            (message,),
            "auto",
        )
        for step, message in ((2, first), (4, second))
    )
    return replace(built, compactions=cuts)


def test_a_message_that_two_compactions_insert_word_for_word_is_shared():
    note, other = user(NOTE_TEXT, meta=True), user("another plan " * 300, meta=True)
    same, new = (
        SentRequests.recorded(facts_of(twice_compacted(note, later))) for later in (user(NOTE_TEXT, meta=True), other)
    )
    assert new.shared[4] == new.facts.attribution.overhead
    assert same.shared[4] > new.shared[4]
    sealed = Event(Role.USER, (ReasoningPart("", opaque_bytes=6),), meta=True)
    hidden = SentRequests.recorded(facts_of(twice_compacted(sealed, sealed)))
    assert hidden.shared[4] == hidden.facts.attribution.overhead


def test_the_checker_confirms_what_is_said_of_the_price_where_a_message_is_inserted_again():
    note = user(NOTE_TEXT, meta=True)
    for later in (note, user(NOTE_TEXT, meta=True), user("another plan " * 300)):
        built = twice_compacted(note, later)
        facts = facts_of(built)
        findings = recorded_findings(facts)
        assert "never_paid" in {item.kind for item in findings}
        assert check(built, findings, facts.window) == []


def long_log(turns, counts=1.0):
    """Turns of three tool calls each, with counts of its first share of calls."""
    events, calls = [], []
    for number in range(turns):
        events.append(user(f"question {number}"))
        for call in range(3):
            calls.append(
                ModelCall(len(events), len(events), 900 + 40 * len(events), None, None, 5, "claude-sonnet-4-5")
            )
            name = f"c{number}-{call}"
            events += [tool_call("look", name, at=number), tool_result("line " * (7 * number % 50), "look", name)]
    known = round(counts * len(calls))
    calls[known:] = [replace(call, prompt_tokens=None) for call in calls[known:]]
    return Session(tuple(events), tuple(calls), model="claude-sonnet-4-5")


@pytest.mark.parametrize("counts", [1.0, 0.5])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("agent-framework-tool-result", {}),
        ("agent-framework-selective-tool-call", {}),
        ("agent-framework-context-window", {"max_context_window_tokens": 1_500, "max_output_tokens": 100}),
        ("agent-framework-token-budget", {"token_budget": 1_000}),
        ("agno-compress-tool-results", {}),
        ("autogen-head-and-tail", {}),
        ("litellm-trim-messages", {"max_tokens": 400}),
        ("langchain-clear-tool-uses", {"trigger": 500}),
        ("semantic-kernel-summarization", {}),
        ("sweagent-summary", {"n": 2, "keep_last_m_turns": 2}),
    ],
)
def test_what_requests_share_is_what_each_has_in_common_with_the_one_before(name, settings, counts):
    facts = facts_of(long_log(20, counts))
    policy = get_policy(name, **settings)
    trace = replay(facts.ledger, policy, window=4_000, usage=facts.usage, summarizer=FixedSummaries(300))
    sent = SentRequests.replayed(facts, trace)
    assert len(sent.changed) > 5
    for step in sent.changed.tolist():
        common, epoch = sent.common(step)
        if common:
            tokens = facts.usage.one(step, common, 0, epoch).tokens
            assert sent.shared[step] == min(tokens, sent.tokens[step])


def test_what_requests_of_a_simulated_session_share_is_counted_for_many_at_once():
    facts = facts_of(replace(long_log(20), usage_ratio=2.0))
    trace = replay(facts.ledger, get_policy("agent-framework-tool-result"), window=4_000, usage=facts.usage)
    sent, costs = SentRequests.replayed(facts, trace), Heuristic.of(facts.ledger)
    with cProfile.Profile() as profile:
        shared = sent.shared
    assert calls_of(profile, SentRequests.common) < len(sent.changed) / 4
    for step in sent.changed.tolist():
        common, _ = sent.common(step)
        assert shared[step] == min(2 * costs.request(common), sent.tokens[step])


def test_what_would_have_been_in_common_is_found_with_one_look_at_each_short_request():
    facts = facts_of(counted(tuple(20_000 + 1_000 * k for k in range(40))))
    trace = replay(facts.ledger, get_policy("autogen-buffered"), window=200_000, usage=facts.usage)
    sent = SentRequests.replayed(facts, trace)
    with cProfile.Profile() as profile:
        sent.shared_without(sent.fired)
    assert len(sent.fired) > 20
    assert calls_of(profile, SentRequests.view) == len(sent.fired)
    assert calls_of(profile, common_length) == 0


def test_where_no_message_repeats_a_request_long_views_are_not_added_up():
    facts = Facts.of(big_session(300, 0))
    trace = replay(facts.ledger, get_policy("agent-framework-tool-result"), window=200_000, usage=facts.usage)
    sent = SentRequests.replayed(facts, trace)
    assert sent.columns is None
    with cProfile.Profile() as profile:
        assert (sent.repeated == -1).all()
    assert calls_of(profile, ViewSums.total) == 0
    assert 0 < calls_of(profile, repeats_request) < 20 * len(trace.heads)
