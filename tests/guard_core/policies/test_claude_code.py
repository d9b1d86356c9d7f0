"""Claude Code: thresholds by version as they were measured, and what a compaction keeps."""

import itertools

import pytest

from guard_core.estimation.usage import usage_for
from guard_core.events import ToolResultPart
from guard_core.ledger import Ledger
from guard_core.policies import get_policy, policy_kind
from guard_core.replay import replay
from guard_core.requests import materialise
from guard_core.sessions import ModelCall
from guard_core.summaries.sizes import FixedSummaries
from guard_core.views import Rewritten, Span
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.policies.tools import run
from tests.guard_core.rules.measured import run_of

OLD, CAPPED, NEW = "until-2.1.19", "2.1.21-2.1.152", "from-2.1.154"


@pytest.mark.parametrize(
    ("profile", "settings", "window", "threshold"),
    [
        (OLD, {}, 200_000, 155_000),
        (OLD, {}, 1_000_000, 955_000),
        (OLD, {"max_output": 8_192}, 200_000, 178_808),
        (OLD, {"autocompact_pct": 50}, 200_000, 84_000),
        (OLD, {"auto_compact_window": 100_000}, 200_000, 155_000),  # no effect in these versions
        (CAPPED, {}, 200_000, 167_000),
        (CAPPED, {"auto_compact_window": 100_000}, 200_000, 67_000),  # from 2.1.81 on
        (CAPPED, {"max_output": 64_000}, 1_000_000, 967_000),
        (NEW, {}, 200_000, None),
        (NEW, {"autocompact_pct": 50}, 200_000, None),
        (NEW, {"auto_compact_window": 200_000}, 200_000, 167_000),
        (NEW, {"auto_compact_window": 100_000}, 200_000, 67_000),
        (NEW, {"auto_compact_window": 150_000}, 200_000, 117_000),
        (NEW, {"auto_compact_window": 1_000_000}, 1_000_000, 967_000),
        (NEW, {"auto_compact_window": 200_000, "max_output": 8_192}, 200_000, 178_808),
        (NEW, {"auto_compact_window": 200_000, "autocompact_pct": 50}, 200_000, 90_000),
    ],
)
def test_thresholds_are_those_that_were_measured(profile, settings, window, threshold):
    assert get_policy("claude-code", profile=profile, **settings).threshold(window) == threshold


def test_what_a_small_window_does_not_do_is_a_known_problem():
    assert get_policy("claude-code", auto_compact_window=80_000).threshold(200_000) == 67_000
    (problem,) = (item for item in policy_kind("claude-code").known_problems if "below 100,000" in item.name)
    assert "such a value has no effect (2.1.332)" in problem.help


def rounds(count, prompt):
    """One turn of tool calls; the last call's prompt has `prompt` tokens."""
    events = [user("go")]
    for number in range(count):
        events += [tool_call("read", f"c{number}"), tool_result("y" * 400, "read", f"c{number}")]
    calls = [ModelCall(2 * k + 1, 2 * k + 1, 1_000 * (k + 1), output_tokens=20) for k in range(count - 1)]
    calls.append(ModelCall(2 * count - 1, 2 * count - 1, prompt, output_tokens=20))
    return session(*events, model("done"), calls=(*calls, ModelCall(2 * count + 1, None, 500)))


@pytest.mark.parametrize(("settings", "kept"), [({"profile": CAPPED}, 0), ({"auto_compact_window": 200_000}, 1)])
def test_at_a_threshold_it_keeps_nothing_or_the_last_tool_round(settings, kept):
    trace = run(get_policy("claude-code", **settings), rounds(6, 170_000), window=200_000)
    (record,) = trace.compactions
    assert record.after[1:] == ((Span(13 - 2 * kept, 13),) if kept else ())


def test_an_answer_without_calls_is_kept_like_one_with_calls():
    """2.1.197, run: of answers without calls the last one stayed, and no tool round from before it."""
    events = (user("go"), tool_call("read", "c"), tool_result("y" * 40, "read", "c"), model("done"), user("more"))
    calls = (ModelCall(1, 1, 50_000, output_tokens=20), ModelCall(3, 3, 170_000, output_tokens=20))
    chat = session(*events, model("done"), calls=(*calls, ModelCall(5, 5, 20_000, output_tokens=20)))
    (record,) = run(get_policy("claude-code", auto_compact_window=200_000), chat, window=200_000).compactions
    assert record.after[1:] == (Span(3, 5),)


@pytest.mark.parametrize(("settings", "steps"), [({"profile": CAPPED}, [1]), ({"auto_compact_window": 200_000}, [2])])
def test_behind_the_first_answer_later_versions_do_not_compact(settings, steps):
    """2.1.152 compacts there; 2.1.160, 2.1.197 and 2.1.332 do not, run with a long first prompt."""
    events = [user("go" * 350_000)]
    for number in range(3):
        events += [tool_call("read", f"c{number}"), tool_result("y" * 400, "read", f"c{number}")]
    counts = ((1, 170_000), (3, 170_200), (5, 170_400))
    calls = tuple(ModelCall(at, at, prompt, output_tokens=20) for at, prompt in counts)
    trace = run(get_policy("claude-code", **settings), session(*events, calls=calls), window=200_000)
    assert [record.step for record in trace.compactions] == steps


def test_the_answer_of_old_versions_counts_as_the_one_token_that_its_beginning_reports():
    count = rounds(2, 154_899)  # 154,899 + 1 + 100: the result has 400 characters
    trace = run(get_policy("claude-code", profile=OLD), count, window=200_000)
    assert trace.columns["decision_tokens"][2] == 155_000
    assert [record.step for record in trace.compactions] == [2]


def test_without_a_threshold_it_compacts_after_the_refusal_of_the_provider():
    trace = run(get_policy("claude-code"), rounds(6, 210_000), window=200_000)
    record = trace.compactions[0]
    assert (record.step, record.reason) == (5, "the provider refused the request")
    assert record.after[1:] == (Span(3, 11),)  # the last four rounds
    terms = {item.name: item for item in get_policy("claude-code").explain(trace, 4)}
    assert terms["verdict"].expression == "there is no threshold: it does not compact"


def events_of(view):
    """The events whose messages a view holds, also where the agent added to one (files, inside the last result)."""
    spans = [range(item.start, item.stop) for item in view if isinstance(item, Span)]
    return [*itertools.chain(*spans), *(item.event for item in view if isinstance(item, Rewritten))]


def test_after_a_refusal_it_keeps_the_messages_that_the_agent_kept(tmp_path):
    recorded = run_of("claude-code/2.1.330-default-overflow", tmp_path).session
    ledger = Ledger.of(recorded)
    usage = usage_for(ledger, None)
    trace = replay(ledger, get_policy("claude-code"), window=200_000, usage=usage, summarizer=FixedSummaries(2_380))
    first = trace.compactions[0]
    assert events_of(first.after) == events_of(ledger.bases[0].view)
    assert first.step == 8


def results_sent(sizes, **settings):
    """The characters of every result in the last request of a turn with results of these sizes."""
    events, calls = [user("q")], []
    for number, size in enumerate(sizes):
        calls.append(ModelCall(len(events), len(events), 1_000))
        events += [tool_call("Read", f"c{number}"), tool_result("y" * size, "Read", f"c{number}")]
    log = session(*events, calls=(*calls, ModelCall(len(events), None, 1_000)))
    trace = run(get_policy("claude-code", **settings), log, window=200_000)
    messages = materialise(trace.view(len(sizes), len(events)), log)
    return [len(part.content) for item in messages for part in item.parts if isinstance(part, ToolResultPart)]


@pytest.mark.parametrize(
    ("sizes", "cleared"),
    [
        ([40_000] * 5, 0),  # 50,000 tokens of results: 10,000 are too few to clear
        ([40_000] * 6, 2),  # 20,000 of 60,000
        ([16_000] * 5 + [160_000] * 3, 5),  # the newest three stay, however large they are
        ([4_000, 160_000, 160_000, 160_000], 0),
    ],
)
def test_microcompact_clears_old_results_until_forty_thousand_tokens_are_left(sizes, cleared):
    sent = results_sent(sizes, microcompact=True)
    assert sum(size < 100 for size in sent) == cleared
    assert sent[cleared:] == sizes[cleared:]
    assert results_sent(sizes) == sizes
