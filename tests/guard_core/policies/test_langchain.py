"""LangChain's policies do what the library does."""

import pytest

from guard_core.errors import SettingError
from guard_core.estimation.usage import RatioUsage
from guard_core.events import Event, MediaPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.policies.langchain import summarization_settings
from guard_core.replay import replay
from guard_core.requests import materialise
from guard_core.sessions import ModelCall, Session
from guard_core.summaries.sizes import FixedSummaries, ScriptedSummaries
from guard_core.trace import NOTHING_TO_COMPACT, RAISED
from guard_core.views import Span
from tests.guard_core.conformance.libraries import check_equals_the_library


@pytest.mark.parametrize("policy", ["langchain-clear-tool-uses", "langchain-summarization", "langchain-trim-messages"])
def test_it_equals_recorded_runs_of_the_library(policy):
    check_equals_the_library(policy)


def user(text):
    return Event(Role.USER, (TextPart(text),))


def result(id_, size, name="read"):
    return Event(Role.USER, (ToolResultPart(name, "y" * size, id_),))


def answer(*ids, name="read"):
    return Event(Role.MODEL, tuple(ToolCallPart(name, {"at": "here"}, id_) for id_ in ids))


PARALLEL = [user("Go"), answer("a", "b", "c"), *(result(id_, 2_000) for id_ in "abc")]


def last_request(events, name, texts=True, **settings):
    """The messages of a request over all events, and the trace."""
    session = Session(tuple(events), (ModelCall(at=len(events)),))
    trace = replay(Ledger.of(session), get_policy(name, **settings), window=10_000, session=session if texts else None)
    return materialise(trace.view(0, len(events)), session), trace


def contents(messages):
    return [part.content[:9] for event in messages for part in event.parts if isinstance(part, ToolResultPart)]


def arguments(messages):
    return [part.arguments for event in messages for part in event.parts if isinstance(part, ToolCallPart)]


def test_old_results_are_cleared_within_parallel_calls():
    messages, trace = last_request(PARALLEL, "langchain-clear-tool-uses", trigger=1_000, keep=1)
    assert contents(messages) == ["[cleared]", "[cleared]", "yyyyyyyyy"]
    assert trace.columns["edited"].tolist() == [1]


def test_a_result_as_long_as_what_replaces_it_is_cleared():
    events = [user("hi"), answer("a"), result("a", len("[cleared]")), answer("b"), result("b", 400)]
    messages, _ = last_request(events, "langchain-clear-tool-uses", trigger=10, keep=1)
    assert contents(messages) == ["[cleared]", "yyyyyyyyy"]


def test_an_edit_that_changes_no_message_is_none():
    events = [user("Go"), Event(Role.MODEL, (ToolCallPart("read", {}, "a"),)), result("a", 0)]
    settings = {"trigger": 1, "keep": 0, "placeholder": "", "clear_tool_inputs": True}
    messages, trace = last_request(events, "langchain-clear-tool-uses", **settings)
    assert messages == tuple(events)
    assert (trace.columns["edited"].tolist(), trace.compactions) == ([0], ())


def test_a_cleared_result_says_what_is_set():
    settings = {"trigger": 1_000, "keep": 1, "placeholder": "(gone)"}
    messages, _ = last_request(PARALLEL, "langchain-clear-tool-uses", **settings)
    assert [part.content[:6] for event in messages for part in event.parts if isinstance(part, ToolResultPart)] == [
        "(gone)",
        "(gone)",
        "yyyyyy",
    ]


def test_only_arguments_of_cleared_calls_are_cleared():
    settings = {"trigger": 1_000, "keep": 1, "clear_tool_inputs": True}
    messages, _ = last_request(PARALLEL, "langchain-clear-tool-uses", **settings)
    assert arguments(messages) == [{}, {}, {"at": "here"}]
    messages, _ = last_request(PARALLEL, "langchain-clear-tool-uses", **settings, exclude_tools="read")
    assert messages == tuple(PARALLEL)


def test_clearing_stops_when_enough_is_reclaimed():
    messages, _ = last_request(PARALLEL, "langchain-clear-tool-uses", trigger=1_000, keep=0, clear_at_least=900)
    assert contents(messages) == ["[cleared]", "[cleared]", "yyyyyyyyy"]


def test_results_whose_call_is_not_in_the_answer_before_them_stay():
    events = [user("Go"), answer("a"), answer("b"), result("a", 5_000), result("b", 5_000)]
    messages, _ = last_request(events, "langchain-clear-tool-uses", trigger=1_000, keep=0)
    assert contents(messages) == ["yyyyyyyyy", "[cleared]"]


def test_a_result_is_cleared_whose_id_a_call_without_a_result_had_before():
    events = [user("Go"), answer("a"), user("Stop, rather that"), answer("a"), result("a", 5_000)]
    messages, _ = last_request(events, "langchain-clear-tool-uses", trigger=1_000, keep=0)
    assert contents(messages) == ["[cleared]"]


def test_the_list_itself_stays_whole():
    events = [*PARALLEL, answer("d"), result("d", 10)]
    calls = tuple(ModelCall(at=at) for at in (5, 7))
    session = Session(tuple(events), calls)
    trace = replay(Ledger.of(session), get_policy("langchain-clear-tool-uses", trigger=1_000, keep=3), window=9_999)
    assert trace.columns["contents_sent"].tolist() == [5, 7]
    assert [record.step for record in trace.compactions] == [1]


def test_an_edit_that_clears_nothing_more_is_no_further_compaction():
    events = [*PARALLEL, user("more"), user("and more")]
    session = Session(tuple(events), tuple(ModelCall(at=at) for at in (5, 6, 7)))
    trace = replay(Ledger.of(session), get_policy("langchain-clear-tool-uses", trigger=1_000, keep=1), window=9_999)
    assert trace.columns["fired"].tolist() == [1, 0, 0]
    assert trace.columns["edited"].tolist() == [1, 1, 1]


def test_trimming_keeps_the_newest_that_fit():
    messages, _ = last_request([user("x" * 400)] * 10, "langchain-trim-messages", max_tokens=320)
    assert len(messages) == 3


def test_trimming_keeps_the_oldest_that_fit():
    events = [user("first"), *[user("x" * 400)] * 9]
    messages, _ = last_request(events, "langchain-trim-messages", max_tokens=320, strategy="first")
    assert messages == tuple(events[:4])


def test_trimming_may_part_a_result_from_its_call():
    messages, _ = last_request(PARALLEL, "langchain-trim-messages", max_tokens=1_100)
    assert contents(messages) == ["yyyyyyyyy"] * 2
    assert arguments(messages) == []


def test_messages_before_the_first_allowed_one_are_left_out_even_if_all_fit():
    events = [answer("a"), result("a", 10), user("Go")]
    messages, _ = last_request(events, "langchain-trim-messages", max_tokens=10_000, start_on="human")
    assert messages == (events[2],)


def test_lines_of_the_message_that_does_not_fit_may_stay():
    events = [user("one\ntwo\nthree\n" + "x" * 30), user("last")]
    settings = {"max_tokens": 18, "allow_partial": True}
    messages, _ = last_request(events, "langchain-trim-messages", **settings)
    assert messages[0].parts[0].text == "three\n" + "x" * 30
    cut, _ = last_request(events, "langchain-trim-messages", texts=False, **settings)
    assert 0 < len(cut[0].parts[0].text) < 44


def test_pictures_may_stay_without_their_text():
    events = [Event(Role.USER, (TextPart("x" * 4_000), MediaPart("image/png", 70))), user("last")]
    messages, _ = last_request(events, "langchain-trim-messages", max_tokens=150, allow_partial=True)
    assert messages[0].parts == (MediaPart("image/png", 70),)


def test_settings_that_the_library_refuses_are_refused():
    with pytest.raises(SettingError, match="strategy last only"):
        get_policy("langchain-trim-messages", strategy="first", start_on="human")


@pytest.mark.parametrize("setting", ["start_on", "end_on"])
@pytest.mark.parametrize(
    ("name", "left"), [("human", 2), ("user", 0), ("assistant", 0), ("Human", 0), ("user, human", 2)]
)
def test_a_kind_that_the_library_does_not_know_is_of_no_message(setting, name, left):
    messages, _ = last_request([user("Go")] * 2, "langchain-trim-messages", **{setting: name})
    assert len(messages) == left


def summarised(events, calls, window=10_000, usage=None, summary=600, **settings):
    """A replay under the summarization middleware with a call before each of some events."""
    responses = {at: at if at < len(events) and events[at].role is Role.MODEL else None for at in calls}
    session = Session(tuple(events), tuple(ModelCall(at=at, response=responses[at]) for at in calls))
    return replay(
        Ledger.of(session),
        get_policy("langchain-summarization", **settings),
        window=window,
        usage=usage,
        summarizer=FixedSummaries(summary) if summary is not None else ScriptedSummaries((None,)),
        session=session,
    )


def long_chat(count):
    return [user("x" * 400) if place % 2 == 0 else says("y" * 400) for place in range(count)]


def says(text):
    return Event(Role.MODEL, (TextPart(text),))


def test_all_conditions_of_a_group_must_be_met_and_one_group_is_enough():
    events = long_chat(21)
    trace = summarised(events, range(1, 22, 2), trigger="tokens 500 and messages 9 or messages 15", keep="messages 4")
    assert trace.columns["fired"].tolist() == [0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1]
    assert trace.view(4, 9) == (*trace.compactions[0].carried, Span(5, 9))


def test_a_cut_among_results_moves_back_to_their_call():
    trace = summarised([user("Hi"), says("Yes?"), *PARALLEL], [7], trigger="messages 5", keep="messages 2")
    assert trace.compactions[0].after[1:] == (Span(3, 7),)


def test_a_list_of_one_message_stays_even_if_that_is_a_result():
    trace = summarised([result("a", 4_000), says("Done")], [1], trigger="messages 1", keep="tokens 1")
    assert trace.columns["held"].tolist() == [NOTHING_TO_COMPACT]


def test_where_no_message_fits_the_summariser_none_is_asked():
    events = [user("Go"), answer("a"), result("a", 40_000), says("done"), user("And now?")]
    trace = summarised(events, [5], trigger="tokens 4000", keep="messages 1")
    assert trace.compactions[0].passes[0].summariser_view == ()
    assert trace.compactions[0].passes[0].fallback


@pytest.mark.parametrize("limit", [0, -5])
def test_a_summariser_that_may_be_given_no_tokens_is_not_asked(limit):
    # measured: 1.4.7 trims to 0 tokens or fewer, and gives all to the summariser only with None
    assert summarization_settings({"trim_tokens_to_summarize": None})["trim_tokens_to_summarize"] == 0
    trim = summarization_settings({"trim_tokens_to_summarize": limit})["trim_tokens_to_summarize"]
    trace = summarised(
        [user("Go"), says("Yes?"), user("On")],
        [3],
        trigger="tokens 1",
        keep="messages 1",
        trim_tokens_to_summarize=trim,
    )
    assert trace.compactions[0].passes[0].fallback


def test_only_whole_lines_of_a_long_message_are_given_to_the_summariser():
    events = [user("a" * 8_000 + "\n" + "b" * 3_000), says("Yes?"), user("Go")]
    trace = summarised(events, [3], trigger="tokens 1000", keep="messages 1", trim_tokens_to_summarize=2_000)
    given = materialise(trace.compactions[0].passes[0].summariser_view, Session(tuple(events)))
    assert [len(event.parts[0].text) for event in given] == [3_000, 4]


def test_a_count_of_the_provider_over_the_trigger_is_enough():
    events = [user("Go on now"), says("Yes?"), user("Do it"), says("Done"), user("And?")]
    settings = {"trigger": "tokens 100", "keep": "messages 1"}
    reported = summarised(events, [1, 3, 5], usage=RatioUsage(100.0), **settings)
    assert reported.columns["decision_tokens"][1] < 100
    assert reported.columns["fired"].tolist() == [0, 1, 1]
    assert not summarised(events, [1, 3, 5], **settings).columns["fired"].any()


def test_three_failures_of_the_summariser_raise():
    trace = summarised(long_chat(9), [9], summary=None, trigger="messages 5", keep="messages 2")
    assert trace.columns["held"].tolist() == [RAISED]
    assert trace.state.calls == 3


@pytest.mark.parametrize("trigger", ["4000", "tokens", "tokens -1", "fraction 2", "tokens 10 and", "words 5"])
def test_a_trigger_that_cannot_be_read_is_refused(trigger):
    with pytest.raises(SettingError, match="trigger"):
        get_policy("langchain-summarization", trigger=trigger)


def test_its_decision_is_explained_in_both_units():
    trace = summarised(long_chat(9), [9], trigger="tokens 500 and messages 9", keep="messages 2")
    terms = get_policy("langchain-summarization", trigger="tokens 500 and messages 9").explain(trace, 0)
    assert [(term.name, term.value) for term in terms[1:]] == [
        ("messages of the list", 9),
        ("context window", 10_000),
        ("trigger", 500),
        ("trigger", 9),
        ("verdict", 1),
    ]
    assert terms[-1].expression == "tokens 500 and messages 9: it compacts"


def test_a_placeholder_is_sent_as_it_is_typed():
    policy = get_policy("langchain-clear-tool-uses", placeholder=" [gone]\n", exclude_tools=" read ,find ")
    assert (policy.settings.placeholder, policy.settings.exclude_tools) == (" [gone]\n", "read ,find")
