"""inspect_ai's strategies do what the library does."""

import cProfile

import pytest

from guard_core.events import Event, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.policies.inspect_ai import inspect_settings
from guard_core.policies.inspect_ai.edit import InspectEdit
from guard_core.policies.inspect_ai.trim import _with_both_halves
from guard_core.policies.pieces import messages as messages_module
from guard_core.policies.pieces.messages import messages_of
from guard_core.replay import replay
from guard_core.requests import materialise
from guard_core.sessions import ModelCall, Session
from guard_core.summaries.sizes import FixedSummaries, ScriptedSummaries
from guard_core.trace import RAISED
from guard_core.views import Span
from tests.builders import model, session, user
from tests.guard_core.conformance.libraries import check_equals_the_library
from tests.profiling import calls_of


@pytest.mark.parametrize(
    "policy", ["inspect-edit", "inspect-trim", "inspect-summary", "inspect-native", "inspect-auto"]
)
def test_it_equals_recorded_runs_of_the_library(policy):
    check_equals_the_library(policy)


def tools(*sizes):
    """A user's message and a call with a result of each size, called after each result."""
    events = [Event(Role.USER, (TextPart("Go"),))]
    for number, size in enumerate(sizes):
        call = ToolCallPart("read", {"n": number}, f"c{number}")
        events.append(Event(Role.MODEL, (ReasoningPart("why"), TextPart("next"), call)))
        events.append(Event(Role.USER, (ToolResultPart("read", "y" * size, f"c{number}"),)))
    calls = tuple(ModelCall(at=at) for at in range(1, len(events) + 1, 2))
    return Session(tuple(events), calls)


def replayed(session, name, summarizer=None, **settings):
    ledger, summarizer = Ledger.of(session), summarizer or FixedSummaries(300)
    trace = replay(ledger, get_policy(name, **settings), window=10_000, summarizer=summarizer, session=session)
    messages = materialise(trace.view(len(session.calls) - 1, session.calls[-1].at), session)
    return trace, messages


def test_edit_clears_all_but_the_newest_results():
    _, messages = replayed(tools(*[8_000] * 5), "inspect-edit", threshold=7_000)
    results = [part.content for event in messages for part in event.parts if isinstance(part, ToolResultPart)]
    assert results[:-3] == ["(Tool result removed)"] * 2
    assert results[-3:] == ["y" * 8_000] * 3


def test_edit_leaves_the_results_of_excluded_tools():
    trace, _ = replayed(tools(*[8_000] * 4), "inspect-edit", threshold=7_000, exclude_tools="read")
    assert trace.columns["held"][-1] == RAISED


def test_edit_may_replace_calls_by_notes():
    settings = {"threshold": 3_000, "keep_tool_uses": 1, "keep_tool_inputs": False}
    _, messages = replayed(tools(*[8_000] * 2), "inspect-edit", **settings)
    assert [part.text for part in messages[1].parts if isinstance(part, TextPart)] == [
        "next",
        "[Tool call: read (parameters and results removed from history)]",
    ]
    assert not any(isinstance(part, ToolCallPart) for part in messages[1].parts)


def test_edit_removes_reasoning_but_of_the_newest_answers():
    _, messages = replayed(tools(*[8_000] * 5), "inspect-edit", threshold=7_000, keep_thinking_turns=2)
    answers = [event for event in messages if event.role is Role.MODEL]
    has_reasoning = [any(isinstance(part, ReasoningPart) for part in event.parts) for event in answers]
    assert has_reasoning[0] is False
    assert has_reasoning[-2:] == [True, True]


def test_edit_removes_reasoning_that_an_earlier_edit_left_between_cleared_results():
    trace, messages = replayed(
        tools(*[8_000] * 8), "inspect-edit", threshold=7_000, keep_tool_uses=1, keep_thinking_turns=3
    )
    assert [item.step for item in trace.compactions] == [4, 7]
    answers = [event for event in messages if event.role is Role.MODEL]
    has_reasoning = [any(isinstance(part, ReasoningPart) for part in event.parts) for event in answers]
    assert has_reasoning == [False] * 4 + [True] * 4


def test_a_result_that_comes_late_is_cleared_though_an_edit_before_it_was_in_vain():
    calls = [ToolCallPart("read", {"n": number}, f"c{number}") for number in range(4)]
    results = [ToolResultPart("read", "y" * 8_000, f"c{number}") for number in range(3)]
    events = [
        Event(Role.USER, (TextPart("Go"),)),
        Event(Role.MODEL, tuple(calls[:2])),
        Event(Role.USER, results[:1]),
        Event(Role.MODEL, calls[2:3]),
        Event(Role.USER, (results[2], results[1])),
        Event(Role.MODEL, calls[3:]),
        Event(Role.USER, (ToolResultPart("read", "short", "c3"),)),
    ]
    session = Session(tuple(events), (ModelCall(at=5), ModelCall(at=7)))
    trace, messages = replayed(session, "inspect-edit", threshold=1_500, keep_tool_uses=1)
    assert trace.columns["held"].tolist() == [RAISED, 0]
    left = [part.content for event in messages for part in event.parts if isinstance(part, ToolResultPart)]
    assert left == ["(Tool result removed)"] * 3 + ["short"]


def test_what_is_still_over_the_threshold_ends_the_run():
    trace, _ = replayed(tools(*[8_000] * 4), "inspect-edit", threshold=5_000)
    assert trace.columns["held"].tolist() == [0, 0, 0, RAISED, RAISED]
    assert not trace.columns["fired"].any()


def test_a_list_that_stays_over_the_threshold_is_edited_once_a_step():
    edited = []

    class Counting(InspectEdit):
        def applied(self, request, state, view):
            edited.append(request.check.step)
            return super().applied(request, state, view)

    session = tools(*[8_000] * 4)
    replay(Ledger.of(session), Counting(get_policy("inspect-edit", threshold=5_000).settings), window=10_000)
    assert edited == [3, 4]


def test_steps_that_clearing_cannot_help_are_looked_over_at_once():
    edited = []

    class Counting(InspectEdit):
        def applied(self, request, state, view):
            edited.append(request.check.step)
            return super().applied(request, state, view)

    messages = [Event(Role.USER, (TextPart("Go"),)), *tools(*[400] * 200).events[1:]]
    messages.insert(1, Event(Role.USER, (TextPart("x" * 40_000),)))
    session = Session(tuple(messages), tuple(ModelCall(at=at) for at in range(2, len(messages) + 1, 2)))
    policy = Counting(get_policy("inspect-edit", threshold=5_000).settings)
    trace = replay(Ledger.of(session), policy, window=10_000)
    assert (trace.columns["held"] == RAISED).all()
    assert len(edited) < len(session.calls) / 4


def test_a_failed_summary_ends_the_run():
    trace, _ = replayed(tools(*[8_000] * 4), "inspect-summary", ScriptedSummaries((None,)), threshold=5_000)
    assert trace.columns["held"][3] == RAISED


def test_a_summary_replaces_all_behind_the_first_message():
    trace, messages = replayed(tools(*[8_000] * 3), "inspect-summary", threshold=5_000)
    assert trace.columns["fired"].tolist() == [0, 0, 0, 1]
    assert [len(event.parts[0].text) for event in messages] == [2, 300 + 275]


def test_a_result_too_large_for_the_summariser_is_cut_in_the_middle():
    trace, _ = replayed(tools(60_000), "inspect-summary", threshold=0.5)
    (record,) = trace.compactions
    given = record.passes[0].summariser_view
    assert [segment.form[:4] for segment in given] == ["", "ends"]


def test_trim_removes_calls_whose_results_are_gone():
    call, other = ToolCallPart("read", {}, "a"), ToolCallPart("read", {}, "b")
    events = [Event(Role.USER, (TextPart("Go"),)), Event(Role.MODEL, (call, other))]
    events.append(Event(Role.USER, (ToolResultPart("read", "y" * 40_000, "a"),)))
    events += [Event(Role.USER, (TextPart("more"),)), Event(Role.USER, (ToolResultPart("read", "z", "b"),))]
    session = Session(tuple(events), (ModelCall(at=len(events)),))
    trace, messages = replayed(session, "inspect-trim", threshold=9_000, preserve=0.25)
    assert trace.columns["fired"].tolist() == [1]
    assert [event.parts[0] for event in messages] == [TextPart("Go")]


def test_edit_may_remove_one_of_two_results_in_one_event():
    """Each is a message of its own in Inspect."""
    two = (ToolCallPart("read", {}, "a"), ToolCallPart("look", {}, "b"))
    results = (ToolResultPart("read", "y" * 8_000, "a"), ToolResultPart("look", "z" * 8_000, "b"))
    events = (Event(Role.USER, (TextPart("Go"),)), Event(Role.MODEL, two), Event(Role.USER, results))
    session = Session(events, (ModelCall(at=1), ModelCall(at=3)))
    settings = {"threshold": 3_000, "keep_tool_uses": 1, "keep_tool_inputs": False}
    _, messages = replayed(session, "inspect-edit", **settings)
    assert [part.id for part in messages[1].parts if isinstance(part, ToolCallPart)] == ["b"]
    assert [part.name for part in messages[2].parts] == ["look"]


def test_a_request_before_any_message_is_replayed():
    ledger = Ledger.of(Session((), (ModelCall(0),)))
    trace = replay(ledger, get_policy("inspect-edit"), window=1_000)
    assert trace.columns["fired"].tolist() == [0]


def words(messages):
    return [part.text for event in messages for part in event.parts if isinstance(part, TextPart)]


def test_openai_leaves_the_messages_of_the_user_and_an_item():
    trace, messages = replayed(tools(*[8_000] * 3), "inspect-native", threshold=5_000, provider="openai")
    assert words(messages)[0] == "Go"
    assert trace.columns["contents_sent"].tolist() == [1, 3, 5, 2]


def test_anthropic_leaves_a_block_and_a_request_to_go_on():
    trace, messages = replayed(tools(*[80_000] * 3), "inspect-native", threshold=50_001)
    assert trace.columns["contents_sent"].tolist() == [1, 3, 5, 2]
    assert words(messages)[-1] == "Please continue working."


@pytest.mark.parametrize(("provider", "sizes"), [("none", [80_000] * 3), ("anthropic", [8_000] * 3)])
def test_native_ends_the_run_where_the_provider_does_not_compact_and_auto_summarises(provider, sizes):
    settings = {"threshold": sum(sizes) / 5, "provider": provider}
    native, _ = replayed(tools(*sizes), "inspect-native", **settings)
    assert native.columns["held"].tolist() == [0, 0, 0, RAISED]
    auto, _ = replayed(tools(*sizes), "inspect-auto", **settings)
    summary, _ = replayed(tools(*sizes), "inspect-summary", threshold=settings["threshold"])
    assert auto.compactions == summary.compactions != ()


def calls_of_functions(count):
    """How many functions are called to compact a list of so many questions, which stay."""
    events = [event for number in range(count) for event in (user("Go on"), model("y" * 400 + str(number)))]
    log = session(*events, calls=tuple(ModelCall(at=at) for at in range(1, len(events), 2)))
    ledger, policy = Ledger.of(log), get_policy("inspect-native", provider="openai", threshold=2_000)
    with cProfile.Profile() as profile:
        replay(ledger, policy, window=10_000, summarizer=FixedSummaries(9))
    return sum(entry.callcount for entry in profile.getstats())


def test_questions_that_openai_leaves_are_looked_at_once():
    assert calls_of_functions(800) < 3 * calls_of_functions(400)


def test_trim_asks_once_for_the_calls_of_each_message():
    messages = messages_of((Span(0, 40),))
    ledger = Ledger.of(session(*(event for _ in range(20) for event in (user("Go on"), model("Yes")))))
    with cProfile.Profile() as profile:
        assert _with_both_halves(ledger, messages) == messages
    assert calls_of(profile, messages_module.calls_of) == len(messages)


@pytest.mark.parametrize(("threshold", "tokens"), [(1, 1), (1.0, 128_000), (0.5, 64_000), (2_500.5, 2_500), (0, 0)])
def test_a_whole_number_is_a_threshold_in_tokens(threshold, tokens):
    # 0.3.285, _resolve_threshold: an int, or a float above 1, is tokens
    policy = get_policy("inspect-trim", **inspect_settings({"threshold": threshold}))
    assert policy.limit(128_000) == tokens
