"""Google ADK's event compaction does what the library does."""

import pytest

from guard_core.estimation.usage import RatioUsage
from guard_core.events import Event, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.policies import POLICIES, get_policy
from guard_core.policies.base import dump_state, load_state
from guard_core.replay import replay
from guard_core.requests import materialise
from guard_core.sessions import ModelCall, Session
from guard_core.summaries.sizes import FixedSummaries, ScriptedSummaries
from guard_core.views import SharedView, Span
from tests.guard_core.conformance.libraries import check_equals_the_library


@pytest.mark.parametrize("policy", ["adk-sliding-window", "adk-token-threshold"])
def test_it_equals_recorded_runs_of_the_library(policy):
    check_equals_the_library(policy)


def chat(turns, size=400, answered=True):
    """Turns of a question, a call with a result, and an answer."""
    events, calls = [], []
    for number in range(turns):
        events.append(Event(Role.USER, (TextPart(f"question {number}"),)))
        calls.append(ModelCall(at=len(events)))
        events.append(Event(Role.MODEL, (ToolCallPart("read", {}, f"c{number}"),)))
        events.append(Event(Role.USER, (ToolResultPart("read", "y" * size, f"c{number}"),)))
        calls.append(ModelCall(at=len(events)))
        if answered:
            events.append(Event(Role.MODEL, (TextPart("done"),)))
    return Session(tuple(events), tuple(calls))


def replayed(session, name, summarizer=None, **settings):
    ledger, summarizer = Ledger.of(session), summarizer or FixedSummaries(100)
    usage = RatioUsage(1.0, reported_from=10**6)
    trace = replay(ledger, get_policy(name, **settings), window=10**6, usage=usage, summarizer=summarizer)
    return trace, [materialise(trace.view(step, call.at), session) for step, call in enumerate(session.calls)]


def test_turns_are_summarised_together_and_overlap():
    trace, requests = replayed(chat(5), "adk-sliding-window", compaction_interval=2, overlap_size=1)
    given = [record.passes[0].summariser_contents for record in trace.compactions]
    assert given == [8, 12]
    assert [event.role for event in requests[-2]] == [Role.MODEL, Role.MODEL, Role.USER]


def test_a_summary_that_contains_an_earlier_one_replaces_it():
    trace, requests = replayed(chat(5), "adk-sliding-window", compaction_interval=2, overlap_size=9)
    assert len(trace.compactions) == 2
    assert len(requests[-2]) == 2


def test_nothing_is_summarised_after_a_turn_without_an_answer():
    trace, _ = replayed(chat(5, answered=False), "adk-sliding-window", compaction_interval=1, overlap_size=0)
    assert not trace.compactions


def test_a_range_that_is_smaller_than_the_last_summary_is_left_alone():
    summaries = FixedSummaries(2_000)
    trace, _ = replayed(chat(5), "adk-sliding-window", summaries, compaction_interval=1, overlap_size=0)
    assert len(trace.compactions) == 1


def test_old_events_are_summarised_with_the_summary_before():
    trace, requests = replayed(chat(8), "adk-token-threshold", token_threshold=300, event_retention_size=4)
    first, second, *_ = trace.compactions
    assert first.passes[0].summariser_view[0].start == 0
    assert second.passes[0].summariser_view[0].kind == "summary"
    assert all(len(messages) <= 9 for messages in requests)


def test_the_error_of_a_failed_call_counts_as_an_event():
    settings = {"token_threshold": 50, "event_retention_size": 2}
    _, requests = replayed(chat(2, answered=False), "adk-token-threshold", **settings)
    assert [event.role for event in requests[2]] == [Role.MODEL, Role.USER]
    assert requests[2][1].parts[0].text == "question 1"  # with the error the second of the two that stay


def test_a_turn_whose_error_no_summary_covers_is_summarised_again():
    broken, answered = chat(1, answered=False), chat(2)
    calls = (*broken.calls, *(ModelCall(at=call.at + len(broken.events)) for call in answered.calls))
    session = Session((*broken.events, *answered.events), calls)
    settings = {"token_threshold": 150, "event_retention_size": 4, "compaction_interval": 1, "overlap_size": 0}
    trace, _ = replayed(session, "adk-token-threshold", **settings)
    before_the_answer, after_the_turn, *_ = trace.compactions
    # the four events that stay are the error of the first turn, and the next question, call and result
    assert before_the_answer.passes[0].summariser_view == (Span(0, 3),)
    assert after_the_turn.passes[0].summariser_view == (Span(0, 7),)


def test_an_empty_message_is_sent_where_another_of_the_same_event_says_something():
    """2.13.0: consecutive messages of the user are parts of one event, which goes only where all of them are empty."""
    words = ["", "go", "done", "", "", "done", "now"]
    roles = [Role.USER, Role.USER, Role.MODEL, Role.USER, Role.USER, Role.MODEL, Role.USER]
    events = [Event(role, (TextPart(text),)) for role, text in zip(roles, words, strict=True)]
    session = Session(tuple(events), (ModelCall(at=2), ModelCall(at=5), ModelCall(at=7)))
    _, requests = replayed(session, "adk-sliding-window", compaction_interval=9)
    texts = [[part.text for event in messages for part in event.parts] for messages in requests]
    assert texts == [["", "go"], ["", "go", "done"], ["", "go", "done", "done", "now"]]


def test_a_call_is_not_parted_from_its_result():
    session = chat(6)
    for retained in range(1, 6):
        _, requests = replayed(session, "adk-token-threshold", token_threshold=200, event_retention_size=retained)
        for messages in requests:
            calls = {part.id for event in messages for part in event.parts if isinstance(part, ToolCallPart)}
            results = {part.call_id for event in messages for part in event.parts if isinstance(part, ToolResultPart)}
            assert calls == results


def test_a_failed_summary_changes_nothing():
    failing = ScriptedSummaries((None,))
    trace, requests = replayed(chat(4), "adk-sliding-window", failing, compaction_interval=1, overlap_size=0)
    assert not trace.compactions
    assert len(requests[-1]) == 15


def test_settings_for_which_the_library_has_no_default_say_so():
    kinds = [POLICIES[name] for name in ("adk-sliding-window", "adk-token-threshold")]
    assert all("the library has no default" in setting.help for kind in kinds for setting in kind.settings)


def test_its_estimate_counts_no_empty_arguments():
    """2.13.0: of a call without arguments only the name counts; `{"n": 1}` has eight characters."""
    arguments = ({}, {"n": 1})
    calls = tuple(ToolCallPart("read", value, f"c{number}") for number, value in enumerate(arguments))
    session = Session((Event(Role.USER, (TextPart("ab"),)), Event(Role.MODEL, calls)), (ModelCall(at=2),))
    trace, _ = replayed(session, "adk-token-threshold", token_threshold=50, event_retention_size=2)
    assert trace.columns["decision_tokens"].tolist() == [(2 + 4 + 4 + 8) // 4]


def test_a_count_of_zero_is_a_count():
    """2.13.0: a model that reported 0 prompt tokens for a request without contents is not estimated instead."""
    words = ("", "x" * 400, "done")
    roles = (Role.USER, Role.MODEL, Role.USER)
    events = tuple(Event(role, (TextPart(text),)) for role, text in zip(roles, words, strict=True))
    ledger = Ledger.of(Session(events, (ModelCall(at=1, response=1), ModelCall(at=3))))
    policy = get_policy("adk-token-threshold", token_threshold=50, event_retention_size=0)
    trace = replay(ledger, policy, window=10**6, usage=RatioUsage(0.0), summarizer=FixedSummaries(100))
    assert trace.columns["decision_tokens"].tolist() == [0, 0]
    assert not trace.compactions


def test_many_summaries_share_those_before_them():
    policy = get_policy("adk-sliding-window")
    state = replay(Ledger.of(chat(300)), policy, window=100_000, summarizer=FixedSummaries(100)).state
    assert isinstance(state.covered, SharedView)
    assert load_state(policy, dump_state(state)).covered == tuple(state.covered)


def test_the_context_filter_sends_the_last_turns_alone_once_there_are_some_more():
    trace, requests = replayed(chat(5), "adk-context-filter", num_invocations_to_keep=2, remove_amount=2)
    begins = [request[0].parts[0].text for request in requests[::2]]
    assert begins == ["question 0", "question 0", "question 0", "question 2", "question 3"]
    assert [record.step for record in trace.compactions] == [6, 8]


def test_the_context_filter_takes_consecutive_messages_of_the_user_for_one_turn():
    asked = [Event(Role.USER, (TextPart(text),)) for text in ("first", "and this", "again")]
    answer = Event(Role.MODEL, (TextPart("done"),))
    events = (asked[0], answer, asked[1], asked[2], answer, asked[0])
    session = Session(events, (ModelCall(at=1), ModelCall(at=4), ModelCall(at=6)))
    _, requests = replayed(session, "adk-context-filter", num_invocations_to_keep=2)
    assert [len(request) for request in requests] == [1, 4, 4]


def test_the_context_filter_keeps_all_turns_without_a_number_and_sends_no_messages_without_words():
    blank = Event(Role.MODEL, (TextPart(""),))
    session = chat(3)
    session = Session((*session.events, blank), (*session.calls, ModelCall(at=len(session.events) + 1)))
    _, requests = replayed(session, "adk-context-filter", num_invocations_to_keep=0)
    assert len(requests[-1]) == len(session.events) - 1
    _, requests = replayed(session, "adk-context-filter", num_invocations_to_keep=1)
    assert len(requests[-1]) == 4
