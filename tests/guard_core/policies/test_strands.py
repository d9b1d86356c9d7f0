"""Strands' conversation managers do what the library does."""

from dataclasses import dataclass

import msgspec
import numpy as np
import pytest

from guard_core.estimation.usage import PROVIDER, CountedRun, RatioUsage, RequestCount
from guard_core.events import Event, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.policies.strands import SUMMARIZING, strands_settings
from guard_core.replay import replay
from guard_core.requests import materialise
from guard_core.sessions import ModelCall, Session
from guard_core.summaries.sizes import FixedSummaries, ScriptedSummaries
from guard_core.trace import RAISED
from guard_core.views import Span
from tests.guard_core.conformance.libraries import check_equals_the_library


@pytest.mark.parametrize("policy", ["strands-sliding-window", "strands-summarizing"])
def test_it_equals_recorded_runs_of_the_library(policy):
    check_equals_the_library(policy)


def turns(count, size=400):
    """Turns of a user's message, a call with a result, and an answer; a call of the model before each answer."""
    events, calls = [], []
    for number in range(count):
        events.append(Event(Role.USER, (TextPart(f"question {number}"),)))
        calls.append(ModelCall(at=len(events)))
        events.append(Event(Role.MODEL, (ToolCallPart("read", {}, f"c{number}"),)))
        events.append(Event(Role.USER, (ToolResultPart("read", "y" * size, f"c{number}"),)))
        calls.append(ModelCall(at=len(events)))
        events.append(Event(Role.MODEL, (TextPart("done"),)))
    return Session(tuple(events), tuple(calls), usage_ratio=1.0)


def replayed(session, name, window=1_000_000, summarizer=None, **settings):
    ledger = Ledger.of(session)
    policy, summarizer = get_policy(name, **settings), summarizer or FixedSummaries(100)
    trace = replay(ledger, policy, window=window, usage=RatioUsage(1.0), summarizer=summarizer, session=session)
    return trace, [materialise(trace.view(step, call.at), session) for step, call in enumerate(session.calls)]


def test_the_oldest_messages_go_after_a_turn():
    trace, requests = replayed(turns(4), "strands-sliding-window", window_size=6)
    assert [record.point for record in trace.compactions] == ["at the end of a turn"] * 2
    assert [len(messages) for messages in requests] == [1, 3, 5, 7, 5, 7, 5, 7]
    assert requests[-1][0].parts[0].text == "question 2"


def test_it_may_check_before_calls_too():
    trace, requests = replayed(turns(4), "strands-sliding-window", window_size=6, per_turn=1)
    assert max(map(len, requests)) <= 6
    assert "" in {record.point for record in trace.compactions}


@dataclass(frozen=True)
class Reports:
    """A provider that reports the same number of tokens, whatever is sent."""

    tokens: int = 500
    refuses = False

    def one(self, step, view, heuristic, epoch=-1):
        return RequestCount(self.tokens, True, PROVIDER)

    def run(self, start, stop, head, kept_from, heuristics, form=""):
        size = stop - start
        return CountedRun(np.full(size, self.tokens), np.ones(size, dtype=bool), np.full(size, PROVIDER))

    def overhead(self, heuristic):
        return 0

    def notes(self, *, compacted):
        return ()


def test_what_is_projected_goes_on_from_the_count_of_a_pinned_answer():
    # 1.62.0: with every later answer gone, the last one in the list is the pinned one, whose usage was 500 + 40
    said = [Event(Role.USER if place % 2 == 0 else Role.MODEL, (TextPart("x" * 80),)) for place in range(7)]
    calls = tuple(ModelCall(at=place, output_tokens=40, response=place) for place in (1, 3, 5, 7))
    ledger = Ledger.of(Session(tuple(said), calls))
    policy = get_policy("strands-sliding-window", window_size=0, pin_first=2)
    trace = replay(ledger, policy, window=8_000, usage=Reports(), summarizer=FixedSummaries(100))
    assert trace.columns["decision_tokens"].tolist() == [20, 500 + 40 + 20, 500 + 40 + 20, 500 + 40 + 20]
    assert [trace.view(step, call.at) for step, call in enumerate(calls)][-1] == (Span(0, 2), Span(6, 7))


def test_the_output_of_an_answer_without_a_prompt_counts_alone():
    # 1.62.0: after an empty request (no message stays, before every call) the usage was 0 + 40
    said = [Event(Role.USER if place % 2 == 0 else Role.MODEL, (TextPart("x" * 80),)) for place in range(3)]
    calls = tuple(ModelCall(at=place, output_tokens=40, response=place) for place in (1, 3))
    ledger = Ledger.of(Session(tuple(said), calls))
    policy = get_policy("strands-sliding-window")
    trace = replay(ledger, policy, window=8_000, usage=Reports(0), summarizer=FixedSummaries(100))
    assert trace.columns["decision_tokens"].tolist() == [20, 40 + 20]


def test_a_call_without_messages_is_replayed():
    session = Session((), (ModelCall(at=0),), system=(TextPart("x" * 400),), usage_ratio=1.0)
    trace, requests = replayed(session, "strands-sliding-window", window=1_000)
    assert (requests, len(trace.compactions)) == ([()], 0)


def test_pinned_messages_stay():
    _, requests = replayed(turns(5), "strands-sliding-window", window_size=6, pin_first=2)
    # the pinned call keeps its result
    assert [event.parts[0] for event in requests[-1][:3]] == [event.parts[0] for event in turns(1).events[:3]]


def test_a_refused_request_has_the_oldest_results_cut_first():
    trace, requests = replayed(turns(2, size=4_000), "strands-sliding-window", window=1_900)
    assert [record.step for record in trace.compactions] == [3]
    content = requests[3][2].parts[0].content
    assert content == "y" * 200 + "...\n\n... [truncated: 3600 chars removed] ...\n\n..." + "y" * 200


def test_refusals_of_a_list_that_cannot_shrink_are_all_calls_that_are_counted():
    # 1.62.0: a pinned message alone is sent again without an error; the scripts refuse it 60 times and then take it
    said = [Event(Role.USER, (TextPart("x" * 8_000),)), Event(Role.MODEL, (TextPart("y"),))]
    said.append(Event(Role.USER, (TextPart("z"),)))
    log = Session(tuple(said), (ModelCall(at=1), ModelCall(at=3)), usage_ratio=1.0)
    trace, _ = replayed(log, "strands-sliding-window", window=1_000, window_size=0, pin_first=1, per_turn=3)
    # the second step begins with call 62, before which nothing is checked: its message goes when that is refused
    assert [record.point for record in trace.compactions] == ["at the end of a turn", "on an overflow"]


def test_a_request_that_nothing_makes_small_enough_ends_the_run():
    trace, _ = replayed(turns(1, size=400_000), "strands-summarizing", window=1_000)
    assert trace.columns["held"][-1] == RAISED


def test_a_refused_request_has_its_oldest_messages_summarised():
    trace, requests = replayed(turns(6), "strands-summarizing", window=600, preserve_recent_messages=4)
    assert trace.compactions
    assert all(record.point == "on an overflow" for record in trace.compactions)
    assert requests[-1][0].parts[0].text.startswith("[summary of 100 bytes")


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"summary_ratio": 2}, {"summary_ratio": 0.8}),
        ({"summary_ratio": -1}, {"summary_ratio": 0.1}),
        ({"summary_ratio": 0.5}, {"summary_ratio": 0.5}),
        ({"pin_first": -1, "preserve_recent_messages": -3}, {"pin_first": 0, "preserve_recent_messages": 0}),
        ({"pin_first": None}, {"pin_first": 0}),
    ],
)
def test_parameters_outside_the_limits_of_the_library_are_taken_as_it_takes_them(given, taken):
    settings = strands_settings(given)
    assert settings == {**taken, "proactive": False}
    SUMMARIZING.make(**settings)


def test_the_summariser_is_given_empty_answers_as_they_are():
    log = turns(6)
    events = (*log.events[:3], Event(Role.MODEL, (TextPart(""),)), *log.events[4:])
    log = msgspec.structs.replace(log, events=events)
    trace, requests = replayed(log, "strands-summarizing", window=600, preserve_recent_messages=4)
    (given,) = trace.compactions[0].passes[0].summariser_view
    assert given.stop > 4
    assert given == Span(0, given.stop)
    assert requests[-1][0].parts[0].text.startswith("[summary")


def test_before_a_call_a_failed_summary_changes_nothing():
    settings = {"proactive": True, "compression_threshold": 0.5, "preserve_recent_messages": 2}
    failing = ScriptedSummaries((None,))
    trace, requests = replayed(turns(6), "strands-summarizing", window=1_600, summarizer=failing, **settings)
    assert not trace.compactions
    assert len(requests[-1]) == 23


def test_an_answer_without_text_is_sent_as_such():
    events = (
        Event(Role.USER, (TextPart("Go"),)),
        Event(Role.MODEL, (TextPart(""),)),
        Event(Role.USER, (TextPart("?"),)),
    )
    session = Session(events, (ModelCall(at=3),))
    _, requests = replayed(session, "strands-sliding-window")
    assert requests[0][1].parts == (TextPart("[blank text]"),)


@pytest.mark.parametrize("blanks", ["", " ", "\n\n", "\u3000"])
def test_blanks_are_left_out_beside_a_call_and_are_said_to_be_blank_without_one(blanks):
    call = ToolCallPart("read", {"path": "a"}, "1")
    events = (
        Event(Role.USER, (TextPart(blanks or "Go"),)),
        Event(Role.MODEL, (TextPart(blanks), call)),
        Event(Role.USER, (ToolResultPart("read", "text", "1"),)),
        Event(Role.MODEL, (TextPart(blanks),)),
        Event(Role.USER, (TextPart("?"),)),
    )
    trace, requests = replayed(Session(events, (ModelCall(at=5),)), "strands-sliding-window")
    assert [event.parts for event in requests[0]] == [
        events[0].parts,
        (call,),
        events[2].parts,
        (TextPart("[blank text]"),),
        events[4].parts,
    ]
    sent = Ledger.of(Session(tuple(requests[0]), ())).events["text_tokens"]
    assert trace.columns["heuristic_sent"].tolist() == [sent.sum()]
