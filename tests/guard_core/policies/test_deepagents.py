"""Deep Agents' summarization does what the library does."""

import math

import msgspec
import numpy as np
import pytest

from guard_core.conformance.libraries.scripts import ScriptedUsage
from guard_core.estimation.usage import RatioUsage
from guard_core.events import Event, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.policies.deepagents import deepagents_settings
from guard_core.replay import replay
from guard_core.requests import materialise
from guard_core.sessions import ModelCall, Session, ToolDefinition
from guard_core.summaries.sizes import FixedSummaries, ScriptedSummaries
from guard_core.trace import RAISED
from tests.guard_core.conformance.libraries import check_equals_the_library


def test_it_equals_recorded_runs_of_the_library():
    check_equals_the_library("deepagents-summarization")


def user(text):
    return Event(Role.USER, (TextPart(text),))


def call(id_, **arguments):
    return Event(Role.MODEL, (ToolCallPart("read_file", arguments, id_),))


def result(id_, text):
    return Event(Role.USER, (ToolResultPart("read_file", text, id_),))


def replayed(events, window=1_000, texts=True, usage=None, summarizer=None, **settings):
    session = Session(tuple(events), (ModelCall(at=len(events)),))
    trace = replay(
        Ledger.of(session),
        get_policy("deepagents-summarization", **settings),
        window=window,
        usage=usage,
        summarizer=summarizer or FixedSummaries(100),
        session=session if texts else None,
    )
    return trace, materialise(trace.view(0, len(events)), session)


LINES = "\n".join("line" for _ in range(4_000))
LARGE = [user("Go"), call("a", path="x"), result("a", LINES)]


def size_of(message):
    return len(message.parts[0].content)


def test_a_result_at_the_end_moves_to_a_file_where_the_request_does_not_fit():
    trace, messages = replayed(LARGE)
    assert size_of(messages[-1]) < 1_000
    assert trace.compactions[0].after[-1].form.startswith("moved to a file")


def test_without_texts_the_lines_of_a_result_are_taken_as_equally_long():
    _, with_texts = replayed(LARGE)
    _, without = replayed(LARGE, texts=False)
    assert abs(size_of(with_texts[-1]) - size_of(without[-1])) <= 10


def test_an_answer_that_was_counted_scales_the_list_after_the_results_behind_it_moved_to_files():
    """langchain-core 1.7.2, `count_tokens_approximately`: by the last answer in the list that was counted, at most by a
    quarter; the answer behind the moved result was not."""
    events = [*LARGE, Event(Role.MODEL, (TextPart("d" * 400),)), user("e" * 400)]
    calls = ModelCall(at=1, response=1, output_tokens=100), ModelCall(at=3, response=3), ModelCall(at=5)
    session = Session(tuple(events), calls)
    policy = get_policy("deepagents-summarization", keep="messages 3")
    plain, scaled = (
        replay(Ledger.of(session), policy, window=2_000, usage=usage, session=session)
        for usage in (ScriptedUsage(np.array([reported, -1, -1]), session) for reported in (-1, 900))
    )
    assert plain.columns["fired"].tolist() == scaled.columns["fired"].tolist() == [0, 1, 0]
    counts = [trace.columns["decision_tokens"].item(2) for trace in (plain, scaled)]
    assert counts[1] == math.ceil(counts[0] * 1.25)


def test_of_a_file_that_was_read_the_beginning_stays():
    _, messages = replayed([user("Go"), call("a", file_path="/x.py"), result("a", "x" * 40_000)], window=3_000)
    assert 4_000 < size_of(messages[-1]) < 4_500


def test_a_request_that_does_not_fit_even_then_raises():
    trace, messages = replayed([user("Go"), call("a"), result("a", "ok"), user("x" * 40_000)])
    assert trace.columns["held"].tolist() == [RAISED]
    assert len(messages) == 4


@pytest.mark.parametrize(("answer", "held", "compactions"), [(0, 0, 0), (392, 0, 0), (393, 0, 1), (5_000, RAISED, 0)])
def test_the_most_tokens_of_an_answer_are_taken_off_what_a_request_may_have(answer, held, compactions):
    """deepagents 0.7.32, a model whose `max_tokens` is set: a list of 3,408 tokens, 3,800 of a window of 4,000."""
    events = [user("x" * 6_788), Event(Role.MODEL, (TextPart("y" * 6_784),)), user("z")]
    settings = {"trigger": "tokens 100000", "keep": "messages 1", "max_output_tokens": answer}
    trace, _ = replayed(events, window=4_000, usage=RatioUsage(0.5), **settings)
    assert (trace.columns["held"].item(0), len(trace.compactions)) == (held, compactions)


@pytest.mark.parametrize(
    ("settings", "more"), [({}, 10), ({"model_kind": "anthropic-chat"}, 13), ({"tool_tokens": 700}, 700)]
)
def test_tool_definitions_are_counted_with_each_request(settings, more):
    """deepagents 0.7.32, `_count_tokens`: characters of the definitions / 4, or / 3.3 with Claude, rounded up."""
    events = (user("x" * 400),)
    plain = Session(events, (ModelCall(at=1),))
    with_tools = msgspec.structs.replace(plain, tools=(ToolDefinition("grep", "d" * 36),))
    policy = get_policy("deepagents-summarization", **settings)
    without = get_policy("deepagents-summarization", **{**settings, "tool_tokens": 0})
    counts = [
        replay(Ledger.of(session), replayed_by, window=10_000).columns["decision_tokens"].item(0)
        for session, replayed_by in ((plain, without), (with_tools, policy))
    ]
    assert counts[1] - counts[0] == more


def test_a_refused_request_is_summarised_once():
    settings = {"profile": "window-not-known", "keep": "messages 1"}
    events = [user("x" * 8_000), Event(Role.MODEL, (TextPart("y" * 8_000),)), user("And now?")]
    trace, messages = replayed(events, window=1_000, usage=RatioUsage(1.0), **settings)
    assert trace.columns["overflow"].tolist() == [1]
    assert [record.point for record in trace.compactions] == ["on an overflow"]
    assert len(messages) == 2


def test_a_summariser_that_fails_before_the_call_leaves_no_request_to_refuse():
    """deepagents 0.7.32: the error leaves the middleware; no result is moved to a file."""
    events = [user("Hi"), Event(Role.MODEL, (TextPart("Yes?"),)), user("Go"), call("a"), result("a", LINES)]
    settings = {"profile": "window-not-known", "trigger": "messages 3", "keep": "messages 1"}
    failing = ScriptedSummaries((None,))
    trace, messages = replayed(events, usage=RatioUsage(1.0), summarizer=failing, **settings)
    assert trace.columns["held"].tolist() == [RAISED]
    assert (trace.compactions, messages) == ((), tuple(events))


def test_of_a_request_that_is_refused_after_its_summary_nothing_is_kept():
    events = [user("x" * 8_000), Event(Role.MODEL, (TextPart("y" * 8_000),)), user("z" * 40_000)]
    events += [Event(Role.MODEL, (TextPart("Done"),)), user("And now?")]
    session = Session(tuple(events), (ModelCall(at=3, response=3), ModelCall(at=5)))
    policy = get_policy("deepagents-summarization", profile="window-not-known", keep="messages 1")
    usage, summaries = RatioUsage(1.0), FixedSummaries(100)
    trace = replay(Ledger.of(session), policy, window=1_000, usage=usage, summarizer=summaries, session=session)
    assert trace.columns["held"].tolist() == [RAISED, 0]
    assert trace.columns["decision_tokens"].tolist()[1] > 14_000  # all five messages


@pytest.mark.parametrize("profile", ["factory", "window-not-known", "constructor"])
def test_what_is_under_the_trigger_stays(profile):
    trace, _ = replayed([user("x" * 400), call("a"), result("a", "ok")], window=10_000, profile=profile)
    assert trace.compactions == ()


# ---- long arguments of calls that write files


def edits(count, text="x" * 3_000, tool="edit_file"):
    events = [user("Go")]
    for number in range(count):
        path = {"file_path": "/a.py", "old_string": text, "new_string": "short"}
        events.append(Event(Role.MODEL, (ToolCallPart(tool, path, f"call{number}"),)))
        events.append(Event(Role.USER, (ToolResultPart(tool, "ok", f"call{number}"),)))
    return events


def stepped(events, texts=True, summary_bytes=100, **settings):
    steps = tuple(ModelCall(at=at, response=at) for at in range(1, len(events) + 1, 2))
    session = Session(tuple(events), steps)
    trace = replay(
        Ledger.of(session),
        get_policy("deepagents-summarization", **settings),
        window=1_000_000,
        summarizer=FixedSummaries(summary_bytes),
        session=session if texts else None,
    )
    return trace, [materialise(trace.view(step, call.at), session) for step, call in enumerate(steps)]


def cut_calls(messages):
    calls = [(place, part) for place, event in enumerate(messages) for part in event.parts]
    return [
        place
        for place, part in calls
        if isinstance(part, ToolCallPart) and part.arguments["old_string"].endswith("(argument truncated)")
    ]


def test_from_20_messages_on_long_arguments_are_cut_but_in_the_last_20():
    trace, requests = stepped(edits(15), profile="window-not-known")
    assert [cut_calls(messages) for messages in requests[:11]] == [[]] * 11  # up to 21 messages; the first has no call
    assert cut_calls(requests[11]) == [1]
    assert cut_calls(requests[15]) == [1, 3, 5, 7, 9]
    arguments = requests[15][1].parts[0].arguments
    assert arguments == {
        "file_path": "/a.py",
        "old_string": "x" * 20 + "...(argument truncated)",
        "new_string": "short",
    }
    assert [record.step for record in trace.compactions] == [11, 12, 13, 14, 15]
    assert all(record.reason.startswith("arguments: ") for record in trace.compactions)


@pytest.mark.parametrize(("tool", "text"), [("edit_file", "x" * 2_000), ("run", "x" * 3_000)])
def test_shorter_arguments_and_those_of_other_tools_stay(tool, text):
    trace, requests = stepped(edits(15, text, tool), profile="window-not-known")
    assert cut_calls(requests[-1]) == []
    assert not trace.compactions


def test_the_constructor_cuts_no_arguments_unless_told_when():
    assert cut_calls(stepped(edits(15), profile="constructor")[1][-1]) == []
    set_ = {"truncate_trigger": "messages 10", "truncate_keep": "messages 4"}
    assert cut_calls(stepped(edits(15), profile="constructor", **set_)[1][-1])[-1] == 25


def test_no_argument_is_cut_where_the_last_message_alone_is_over_what_is_kept():
    settings = {"profile": "constructor", "truncate_trigger": "messages 10", "truncate_keep": "tokens 100"}
    assert cut_calls(stepped(edits(10), **settings)[1][-1])
    large = [*edits(10)[:-1], Event(Role.USER, (ToolResultPart("edit_file", "z" * 400, "call9"),))]
    assert cut_calls(stepped(large, **settings)[1][-1]) == []


def test_after_a_summary_the_arguments_that_were_cut_are_whole_again():
    settings = {"trigger": "messages 21", "keep": "messages 8"}
    settings |= {"truncate_trigger": "messages 10", "truncate_keep": "messages 2"}
    _, requests = stepped(edits(12), profile="constructor", **settings)
    assert cut_calls(requests[10])  # the request of the summary
    assert len(requests[10]) < 10
    assert cut_calls(requests[11]) == ([] if len(requests[11]) < 10 else cut_calls(requests[11]))


def test_a_summary_is_not_due_where_cutting_the_arguments_is_enough():
    settings = {"trigger": "tokens 5000", "truncate_trigger": "tokens 5000", "truncate_keep": "messages 2"}
    trace, requests = stepped(edits(9), profile="constructor", **settings)
    assert cut_calls(requests[-1]) == [1, 3, 5, 7, 9, 11, 13, 15]
    assert len(requests[-1]) == 19
    assert not any(one.summary_bytes for record in trace.compactions for one in record.passes)


def test_without_texts_the_arguments_are_taken_as_one_text():
    with_texts, _ = stepped(edits(15), profile="window-not-known")
    without, _ = stepped(edits(15), texts=False, profile="window-not-known")
    sent = [trace.columns["heuristic_sent"].tolist() for trace in (with_texts, without)]
    assert all(abs(one - other) < 100 for one, other in zip(*sent, strict=True))
    assert [record.step for record in with_texts.compactions] == [record.step for record in without.compactions]


@pytest.mark.parametrize("texts", [True, False])
def test_the_note_behind_a_cut_argument_can_be_another(texts):
    trace, requests = stepped(edits(15), texts, profile="window-not-known", truncation_text="+ cut")
    if texts:
        assert requests[15][1].parts[0].arguments["old_string"] == "x" * 20 + "+ cut"
    usual, _ = stepped(edits(15), texts, profile="window-not-known")
    saved = usual.columns["heuristic_sent"] - trace.columns["heuristic_sent"]
    each = len("...(argument truncated)") // 4 - len("+ cut") // 4
    assert saved[10] == 0
    assert all(abs(tokens - count * each) <= count for count, tokens in enumerate(saved[10:].tolist()))


@pytest.mark.parametrize(("given", "ours"), [(0, 1), (None, 0), (500, 500)])
def test_a_summariser_that_may_be_given_no_tokens_is_given_none_whoever_makes_the_middleware(given, ours):
    for made_by in ({"factory": True, "window": 2_000}, {"factory": True}, {}):
        settings = deepagents_settings({**made_by, "trim_tokens_to_summarize": given})
        assert settings["trim_tokens_to_summarize"] == ours
