"""Edits and compactions of providers: the count of the request itself, what is cleared, what a compaction leaves."""

import pytest

from guard_core.errors import SettingError
from guard_core.events import Event, ReasoningPart, Role, ToolCallPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.requests import materialise
from guard_core.sessions import ModelCall
from guard_core.summaries.sizes import ScriptedSummaries
from guard_core.trace import SUMMARISER_FAILED, TOO_LITTLE, UNDER_WAY
from guard_core.views import Span, Synthetic
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.policies.tools import run


def rounds(names, prompts=()):
    """A question, a call of each tool with its result, and a model call after each; their recorded prompt tokens."""
    events = [user("go")]
    for number, name in enumerate(names):
        events += [tool_call(name, f"c{number}", at="here"), tool_result("y" * 4_000, name, f"c{number}")]
    ats = range(1, len(events) + 1, 2)
    counts = prompts or [500 + 1_000 * step for step in range(len(ats))]
    calls = [ModelCall(at, at if at < len(events) else None, tokens) for at, tokens in zip(ats, counts, strict=True)]
    return session(*events, calls=tuple(calls))


def requests(policy, log):
    """The messages of every request, and the trace."""
    trace = run(policy, log, window=200_000)
    ledger = Ledger.of(log)
    return [materialise(trace.view(step, call.at, ledger), log) for step, call in enumerate(log.calls)], trace


def cleared(messages):
    """The numbers of the results of a request that are cleared."""
    results = [part for event in messages for part in event.parts if isinstance(part, ToolResultPart)]
    return [number for number, part in enumerate(results) if part.content == "[tool result cleared]"]


@pytest.mark.parametrize(("trigger", "last"), [(4_499, [0]), (4_500, [])])
def test_it_clears_above_the_trigger_by_the_count_of_the_request_itself(trigger, last):
    messages, trace = requests(get_policy("anthropic-clear-tool-uses", trigger=trigger), rounds(["read"] * 4))
    assert [cleared(request) for request in messages] == [[], [], [], [], last]
    assert trace.columns["decision_tokens"].tolist() == [500, 1_500, 2_500, 3_500, 4_500]
    assert trace.columns["count_source"].tolist() == [1] * 5


def test_every_request_is_edited_anew():
    messages, trace = requests(get_policy("anthropic-clear-tool-uses", trigger=1_000, keep=1), rounds(["read"] * 4))
    assert [cleared(request) for request in messages] == [[], [], [0], [0, 1], [0, 1, 2]]
    assert trace.columns["decision_tokens"].tolist() == [500, 1_500, 2_500, 3_500, 4_500]


def test_tools_that_are_left_alone_count_among_those_that_stay():
    policy = get_policy("anthropic-clear-tool-uses", trigger=1, keep=1, exclude_tools="think, read")
    messages, _ = requests(policy, rounds(["bash", "read", "bash", "read"]))
    assert cleared(messages[-1]) == [0, 2]


@pytest.mark.parametrize(("least", "last", "held"), [(2_500, [0, 1, 2], 0), (3_100, [], TOO_LITTLE)])
def test_it_clears_nothing_where_that_saves_too_little(least, last, held):
    policy = get_policy("anthropic-clear-tool-uses", trigger=1, keep=1, clear_at_least=least)
    messages, trace = requests(policy, rounds(["read"] * 4))
    assert (cleared(messages[-1]), trace.columns["held"][-1]) == (last, held)


def test_of_calls_side_by_side_only_the_old_ones_are_cleared_with_their_arguments():
    calls = Event(Role.MODEL, tuple(ToolCallPart("read", {"at": "here"}, id_) for id_ in "abc"))
    results = Event(Role.USER, tuple(ToolResultPart("read", "y" * 4_000, id_) for id_ in "abc"))
    log = session(user("go"), calls, results, calls=(ModelCall(1, 1, 10), ModelCall(3, None, 3_000)))
    policy = get_policy("anthropic-clear-tool-uses", trigger=100, keep=1, clear_tool_inputs=True)
    messages, _ = requests(policy, log)
    assert cleared(messages[-1]) == [0, 1]
    assert [part.arguments for part in messages[-1][1].parts] == [{}, {}, {"at": "here"}]


def thinking(messages):
    return [part.text for event in messages for part in event.parts if isinstance(part, ReasoningPart)]


def test_only_the_newest_turns_with_thinking_keep_it():
    def thought(text):
        return Event(Role.MODEL, (ReasoningPart(text), ToolCallPart("read", {}, text)))

    log = session(
        *(user("one"), thought("1a"), tool_result("y", "read", "1a"), thought("1b"), tool_result("y", "read", "1b")),
        *(user("two"), model("no thinking here"), user("three"), thought("3a"), tool_result("y", "read", "3a")),
        calls=(ModelCall(5, None, 10), ModelCall(8, 8, 10), ModelCall(10, None, 10)),
    )
    messages, trace = requests(get_policy("anthropic-clear-thinking"), log)
    assert [thinking(request) for request in messages] == [["1a", "1b"], ["1a", "1b"], ["3a"]]
    assert trace.columns["turns_compared"].tolist() == [1, 1, 2]
    messages, _ = requests(get_policy("anthropic-clear-thinking", keep=2), log)
    assert thinking(messages[-1]) == ["1a", "1b", "3a"]


def test_the_card_says_what_was_compared_and_where_the_count_comes_from():
    policy = get_policy("anthropic-clear-tool-uses", trigger=4_000)
    compared, limit, verdict = policy.explain(run(policy, rounds(["read"] * 4), window=200_000), 4)
    assert (compared.value, compared.expression, limit.value) == (4_500, "the provider's count", 4_000)
    assert verdict.expression == "4,500 > 4,000: it acts"


@pytest.mark.parametrize(("trigger", "fired"), [(61_000, [0, 0, 0, 1]), (61_001, [0, 0, 0, 0])])
def test_all_messages_of_a_request_at_the_trigger_become_one_block(trigger, fired):
    log = rounds(["read"] * 3, prompts=[500, 1_500, 2_500, 61_000])
    trace = run(get_policy("anthropic-compaction", trigger=trigger), log, window=200_000)
    assert trace.columns["fired"].tolist() == fired
    for record in trace.compactions:
        assert record.passes[0].summariser_view == (Span(0, 7),)
        assert record.after == (Synthetic("summary", 2_000, None, Role.MODEL),)


def test_where_the_provider_watches_the_trigger_is_at_least_50_000():
    with pytest.raises(SettingError, match="at least 50,000 tokens in the profile threshold, not 49,999"):
        get_policy("anthropic-compaction", trigger=49_999)
    assert get_policy("anthropic-compaction", profile="on-demand", trigger=49_999).limit(200_000) == 49_999


def test_in_the_background_the_block_takes_the_place_of_what_was_there_when_it_was_begun():
    policy = get_policy("anthropic-compaction", profile="background", trigger=2_500, arrives_after=2)
    trace = run(policy, rounds(["read"] * 5), window=200_000)
    assert trace.columns["held"].tolist()[:4] == [0, 0, UNDER_WAY, 0]
    assert trace.columns["contents_sent"].tolist()[:5] == [1, 3, 5, 7, 5]
    record = trace.compactions[0]
    assert (record.step, record.passes[0].summariser_view) == (4, (Span(0, 5),))
    assert record.after == (Synthetic("summary", 2_000, None, Role.MODEL), Span(5, 9))


def test_a_block_that_fails_is_tried_again():
    def fails(number):
        return run(
            get_policy("anthropic-compaction", profile="on-demand", trigger=2_500),
            rounds(["read"] * 4),
            window=200_000,
            summarizer=ScriptedSummaries([None] * number + [2_000] * 9),
        )

    assert [record.step for record in fails(0).compactions][:1] == [2]
    trace = fails(1)
    assert trace.columns["held"].tolist()[2] == SUMMARISER_FAILED
    assert [record.step for record in trace.compactions][:1] == [3]


@pytest.mark.parametrize(("profile", "users"), [("server", ()), ("explicit", (Span(0, 1),))])
def test_openai_leaves_an_opaque_item_and_when_called_the_messages_of_the_user(profile, users):
    policy = get_policy("openai-compaction", profile=profile, compact_threshold=2_499)
    record = run(policy, rounds(["read"] * 2), window=200_000).compactions[0]
    item = Synthetic("opaque compaction item", 2_000, None, Role.MODEL)
    assert (record.step, record.after) == (2, (*users, item))


@pytest.mark.parametrize("inputs", [False, True])
def test_a_request_with_many_cleared_results_is_few_spans(inputs):
    policy = get_policy("anthropic-clear-tool-uses", trigger=1, clear_tool_inputs=inputs)
    trace = run(policy, rounds(["read"] * 30), window=200_000)
    assert max(len(record.after) for record in trace.compactions) <= 4
