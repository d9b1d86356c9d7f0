"""The strategies of Agent Framework make of a list what the library makes of it."""

import cProfile
import json

import pytest

from guard_core.errors import SettingError
from guard_core.estimation.usage import usage_for
from guard_core.events import Event, ReasoningPart, Role
from guard_core.findings.facts import Facts
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.policies.agent_framework import KINDS, framework_settings
from guard_core.policies.agent_framework.counting import LINE_COSTS, inserted_tokens, message_costs
from guard_core.policies.agent_framework.groups import Included, groups_of
from guard_core.policies.base import dump_state, load_state
from guard_core.replay import replay
from guard_core.sessions import ModelCall
from guard_core.summaries.sizes import FixedSummaries, ScriptedSummaries
from guard_core.trace import NOTHING_TO_COMPACT, SUMMARISER_FAILED
from guard_core.views import SharedView, Span, Synthetic, content_count
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.conformance.libraries import check_equals_the_library
from tests.guard_core.policies.tools import run
from tests.profiling import calls_of
from tests.properties.test_replay_laws import StepByStep


@pytest.mark.parametrize("policy", [kind.name for kind in KINDS])
def test_it_equals_recorded_runs_of_the_library(policy):
    check_equals_the_library(policy)


def work(number):
    return tool_call("read", f"c{number}"), tool_result(f"result {number}", "read", f"c{number}")


LOG = (user("go"), *work(0), model("one"), *work(1), *work(2))
TOOLS = session(*LOG, calls=(ModelCall(at=8),))
FIRST = Synthetic("tool results", 30, None, Role.MODEL, quotes_results=True)


def after(log, policy, **settings):
    (record,) = run(get_policy(policy, **settings), log, window=1_000).compactions
    return record.after


@pytest.mark.parametrize(
    ("policy", "settings", "left"),
    [
        ("truncation", {"tokens": False, "max_n": 7, "compact_to": 5}, (Span(3, 8),)),
        (
            "truncation",
            {"tokens": False, "max_n": 7, "compact_to": 5, "preserve_first_user_group": True},
            (Span(0, 1), Span(4, 8)),
        ),
        ("truncation", {"max_n": 1, "compact_to": 1}, (Span(6, 8),)),
        ("sliding-window", {"keep_last_groups": 2}, (Span(4, 8),)),
        ("selective-tool-call", {"keep_last_tool_call_groups": 1}, (Span(0, 1), Span(3, 4), Span(6, 8))),
        ("tool-result", {"keep_last_tool_call_groups": 2}, (Span(0, 1), FIRST, Span(3, 8))),
        ("summarization", {"target_count": 3}, (Synthetic("summary", 2_000, None, Role.MODEL), Span(4, 8))),
        ("token-budget", {"token_budget": 10, "inner": "sliding3"}, (Span(6, 8),)),
    ],
)
def test_groups_stay_or_go_whole(policy, settings, left):
    assert after(TOOLS, f"agent-framework-{policy}", **settings) == left


@pytest.mark.parametrize("budget", [0, -5])
def test_of_a_budget_of_nothing_the_newest_group_is_left(budget):
    """Measured: agent-framework-core 1.23.0 sends the newest group alone, without the system message."""
    given = framework_settings({"token_budget": budget, "inner": "sliding3"})
    assert after(TOOLS, "agent-framework-token-budget", **given) == (Span(6, 8),)


@pytest.mark.parametrize(("answer", "what"), [(None, "failed"), (0, "empty")])
def test_a_summary_that_was_asked_for_in_vain_is_recorded_with_what_followed(answer, what):
    long = session(
        *(event for number in range(9) for event in (user("x" * 400), model("y"))), calls=(ModelCall(at=18),)
    )
    policy = get_policy("agent-framework-token-budget", token_budget=300, inner="tools+summary")
    trace = run(policy, long, window=1_000, summarizer=ScriptedSummaries((answer,)))
    asked, *others = trace.compactions[0].passes
    assert asked.summariser_view
    assert getattr(asked, what)
    assert others
    assert not any(step.summariser_view for step in others)


def collapsed(log, with_texts):
    ledger, policy = Ledger.of(log), get_policy("agent-framework-tool-result", keep_last_tool_call_groups=0)
    usage, given = usage_for(ledger, None), log if with_texts else None
    trace = replay(ledger, policy, window=1_000, usage=usage, summarizer=FixedSummaries(9), session=given)
    return trace.compactions[0].after[0], [new.tokens for new in trace.state.inserted]


@pytest.mark.parametrize("result", ["result", 'é "x"\n' * 3, "", "\u4e00" * 5_000])
def test_without_texts_a_collapsed_group_is_as_long(result):
    log = session(tool_call("read", "c"), tool_result(result, "read", "c"), calls=(ModelCall(at=2),))
    (message, tokens), (sized, counted) = collapsed(log, with_texts=True), collapsed(log, with_texts=False)
    assert message.text.startswith("[Tool results: read:")
    assert len(message.text) <= 4_096
    assert sized.bytes == pytest.approx(message.bytes, abs=30)
    assert counted == pytest.approx(tokens, abs=8)


def test_a_collapsed_group_costs_what_the_tool_results_of_the_session_cost():
    """A token for two bytes of a result, and for eight bytes of an answer."""
    events, calls, sent = [user("Please read all files")], [], 1_000
    for number in range(12):
        result, answer = "x1 " * (100 + 90 * (number % 4)), "word " * (60 + 70 * (number % 3))
        steps = (tool_call("read", str(number)), 20), (tool_result(result, "read", str(number)), len(result) // 2)
        for event, cost in (*steps, (model(answer), len(answer) // 8)):
            if event.role is Role.MODEL:
                calls.append(ModelCall(len(events), len(events), sent))
            events.append(event)
            sent += cost
    facts = Facts.of(session(*events, calls=tuple(calls)))
    trace = replay(facts.ledger, get_policy("agent-framework-tool-result"), window=200_000, usage=facts.usage)
    note = next(item for item in trace.compactions[-1].after if isinstance(item, Synthetic))
    assert note.bytes > 300
    assert facts.attribution.prices.segment(note, -1) == pytest.approx(note.bytes / 2, rel=0.1)


def test_results_that_do_not_follow_their_call_go_with_it():
    call, result = work(0)
    log = session(call, user("wait"), result, *work(1), calls=(ModelCall(at=5),))
    assert after(log, "agent-framework-selective-tool-call") == (Span(1, 2), Span(3, 5))


def test_reasoning_before_a_call_is_of_its_group():
    log = session(user("go"), Event(Role.MODEL, (ReasoningPart("hm"),)), *work(0), *work(1), calls=(ModelCall(at=6),))
    assert after(log, "agent-framework-selective-tool-call") == (Span(0, 1), Span(4, 6))


def test_messages_of_the_system_go_at_once_where_they_are_not_kept():
    log = session(Event(Role.SYSTEM, LOG[0].parts), *LOG, calls=(ModelCall(at=2),))
    assert after(log, "agent-framework-sliding-window", preserve_system=False) == (Span(1, 2),)


def test_the_newest_group_stays_however_large_it_is():
    log = session(*work(0), calls=(ModelCall(at=2),))
    trace = run(get_policy("agent-framework-truncation", max_n=1, compact_to=1), log, window=1_000)
    assert trace.columns["held"].tolist() == [NOTHING_TO_COMPACT]


def test_a_group_too_large_for_the_summariser_is_skipped():
    log = session(user("x" * 1_000), *LOG, calls=(ModelCall(at=9),))
    settings = {"target_count": 3, "max_summary_input_tokens": 250}
    (record,) = run(get_policy("agent-framework-summarization", **settings), log, window=1_000).compactions
    assert record.after[0] == Span(0, 1)
    assert record.passes[0].summariser_view == (Span(1, 5),)


@pytest.mark.parametrize(
    ("result", "line"),
    [
        ("all well", "2. [tool] function_result: all well [call_id=c1]"),
        ("", "2. [tool] function_result: text content [call_id=c1]"),  # as the library writes an empty text
    ],
)
def test_a_result_has_its_line_in_the_transcript(result, line):
    ledger = Ledger.of(session(user("go"), tool_result(result, "read", "c1"), calls=(ModelCall(at=2),)))
    assert LINE_COSTS.prefix(ledger)[2] - LINE_COSTS.prefix(ledger)[1] == len(line) - len("2")


LONG_LIST = session(*(event for number in range(240) for event in (user("next"), *work(number), model("done"))))


@pytest.mark.parametrize(
    ("name", "settings", "most"),
    [  # given whole lists, it would look up 1,568, 12,705, 29,043 and 309
        ("token-budget", {"token_budget": 12_000, "target_count": 20, "max_summary_input_tokens": 400}, 400),
        ("token-budget", {"token_budget": 3_000, "inner": "tools+sliding90", "early_stop": False}, 4_250),
        ("token-budget", {"token_budget": 12_000, "inner": "tools"}, 2_500),
        ("context-window", {"max_context_window_tokens": 20_000, "max_output_tokens": 100}, 255),
    ],
)
def test_of_a_long_list_only_the_beginning_is_looked_at(name, settings, most):
    """`groups_of` looks up the first run of each span that it groups, and a run of steps where it acts next, `most`
    times."""
    policy, profile = get_policy(f"agent-framework-{name}", **settings), cProfile.Profile()
    profile.runcall(run, policy, LONG_LIST, window=1_000, summarizer=FixedSummaries(100))
    looked_up = sum(entry.callcount for entry in profile.getstats() if "bisect_right" in str(entry.code))
    assert 0 < looked_up <= most


@pytest.mark.parametrize(
    "settings",
    [
        {"token_budget": 12_000, "inner": "tools+summary+sliding90", "target_count": 20},
        {"token_budget": 12_000, "inner": "tools", "early_stop": False},
        {"token_budget": 2_000, "target_count": 20, "max_summary_input_tokens": 400},
        {"token_budget": 10},
    ],
)
@pytest.mark.parametrize("replies", [(100,), (100, None, 0, 40)], ids=["summaries", "failures"])
def test_a_budget_is_kept_in_runs_of_steps_as_step_by_step(settings, replies):
    policy, given = get_policy("agent-framework-token-budget", **settings), {"window": 100_000}
    with cProfile.Profile() as profile:
        ahead = run(policy, LONG_LIST, summarizer=ScriptedSummaries(replies), **given)
    slow = run(StepByStep(policy), LONG_LIST, summarizer=ScriptedSummaries(replies), **given)
    assert ahead.digest() == slow.digest()
    assert ahead.state == slow.state
    assert [ahead.view(step, call.at) for step, call in enumerate(LONG_LIST.calls)] == [
        slow.view(step, call.at) for step, call in enumerate(LONG_LIST.calls)
    ]
    assert ahead.compactions
    if len(replies) == 1:
        assert calls_of(profile, type(policy).decide) < len(ahead) / 4


def groups_of_log(log):
    ledger = Ledger.of(log)
    costs = message_costs("")
    return groups_of(ledger, costs, Included((Span(0, ledger.event_count),), (), 0))


def test_groups_that_lie_together_go_together():
    groups = groups_of_log(LONG_LIST)
    profile = cProfile.Profile()
    left = profile.runcall(groups.without, set(range(10, 700)))
    assert left.view == (Span(0, groups.stop[9]), Span(groups.first[700], groups.stop[-1]))
    assert sum(entry.callcount for entry in profile.getstats()) < 100


@pytest.mark.parametrize("gone", [{0}, {1, 2}, {1, 3, 4}, {4}, set(range(5)), set()])
def test_what_stays_of_a_list_is_all_but_the_groups_that_go(gone):
    groups, message = groups_of_log(TOOLS), Synthetic("summary", 9, None, Role.MODEL)
    stays = [range(groups.first[row], groups.stop[row]) for row in range(len(groups.kinds)) if row not in gone]
    events = [event for each in stays for event in each]
    assert [event for span in groups.without(gone).view for event in range(span.start, span.stop)] == events
    first = min(gone, default=0)
    after = groups.without(gone, {first: (message, 3)}).view
    place = after.index(message)
    assert sum(span.stop - span.start for span in after[:place]) == groups.first[first]
    assert content_count(after) == len(events) + 1


@pytest.mark.parametrize("reply", [None, 0])
def test_a_summary_that_fails_or_is_empty_leaves_the_list_as_it_is(reply):
    policy = get_policy("agent-framework-summarization")
    trace = run(policy, TOOLS, window=1_000, summarizer=ScriptedSummaries((reply,)))
    assert trace.columns["held"].tolist() == [SUMMARISER_FAILED]
    assert trace.columns["contents_sent"].tolist() == [8]


@pytest.mark.parametrize("inner", ["window", "sliding", "tools2", "sliding" + "9" * 20])
def test_strategies_that_there_are_not_are_refused(inner):
    with pytest.raises(SettingError, match="is not a strategy"):
        get_policy("agent-framework-token-budget", inner=inner)


def test_a_message_counts_a_quarter_of_its_json():
    written = {
        "contents": [{"additional_properties": {}, "text": 'é "x"\n', "type": "text"}],
        "message_id": "msg_0",
        "role": "user",
    }
    ledger = Ledger.of(session(user('é "x"\n'), calls=(ModelCall(at=1),)))
    assert message_costs("msg_").prefix(ledger).tolist() == [0, len(json.dumps(written, ensure_ascii=False)) // 4]
    inserted = Synthetic("summary", 3, "a\nb", Role.MODEL)
    written |= {
        "contents": [{**written["contents"][0], "text": "a\nb"}],
        "message_id": "summary_9",
        "role": "assistant",
    }
    assert inserted_tokens(inserted, len("summary_9")) == len(json.dumps(written)) // 4


def test_the_tokens_of_many_inserted_messages_share_their_beginning():
    turns = (tool_call("read", "1"), tool_result("x" * 400, id="1")) * 200
    policy = get_policy("agent-framework-tool-result")
    state = run(policy, session(user("begin"), *turns)).state
    assert isinstance(state.inserted, SharedView)
    assert load_state(policy, dump_state(state)).inserted == tuple(state.inserted)


@pytest.mark.parametrize(
    "settings",
    [
        {"tool_eviction_threshold": 0.5, "truncation_threshold": 0.4},
        {"max_context_window_tokens": 10_000, "max_output_tokens": 10_000},
        {"max_context_window_tokens": 10_000, "max_output_tokens": 9_999},
        {"max_context_window_tokens": 1_000, "max_output_tokens": 100, "tool_eviction_threshold": 0.0001},
    ],
)
def test_shares_and_windows_that_the_library_refuses_are_refused(settings):
    """Run with agent-framework-core 1.23.0, which raises a ValueError."""
    with pytest.raises(SettingError):
        get_policy("agent-framework-context-window", **settings)


LATE = (user("go"), *work(0)[:1], model("wait"), user("so?"), *work(1), model("one"), work(0)[1], model("done"))
NO_RESULTS = Synthetic("tool results", 26, None, Role.MODEL, quotes_results=True)


@pytest.mark.parametrize(
    ("policy", "settings", "sent"),
    [
        ("truncation", {"tokens": False, "max_n": 5, "compact_to": 2}, (Span(1, 2), Span(4, 8))),
        ("truncation", {"tokens": False, "max_n": 4, "compact_to": 3}, (Span(4, 7),)),
        ("tool-result", {"keep_last_tool_call_groups": 1}, (Span(0, 1), NO_RESULTS, FIRST, Span(2, 7))),
    ],
)
def test_a_late_result_brings_the_rest_of_its_group_back(policy, settings, sent):
    """The call is left out, or a note in its place, before its result comes."""
    log = session(*LATE, calls=(ModelCall(at=6), ModelCall(at=8)))
    trace = run(get_policy(f"agent-framework-{policy}", **settings), log, window=1_000)
    assert Span(1, 2) not in trace.view(0, 6)
    assert trace.view(1, 8) == sent


def test_the_tokens_of_a_group_that_a_late_result_brings_back_count():
    log = session(*LATE, calls=(ModelCall(at=6), ModelCall(at=8)))
    policy = get_policy("agent-framework-truncation", tokens=False, max_n=5, compact_to=2)
    columns, costs = run(policy, log, window=1_000).columns, message_costs("msg_")
    ledger = Ledger.of(log)
    assert columns["messages_compared"].tolist() == [6, 5]
    assert columns["list_tokens"][1] == costs.view(ledger, (Span(1, 2), Span(4, 8)))
