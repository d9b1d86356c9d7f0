"""Gemini CLI: the share of the limit, and where the history is cut."""

import cProfile
import random

import msgspec
import pytest

from guard_core.estimation.usage import usage_for
from guard_core.events import Event, Role, ToolResultPart
from guard_core.forms.edits import place_in_event
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.policies.gemini_cli import GeminiCli, split_point
from guard_core.policies.pieces.counted import CountedPolicy
from guard_core.policies.pieces.message_columns import list_messages
from guard_core.replay import replay
from guard_core.requests import materialise
from guard_core.sessions import ModelCall
from guard_core.summaries.sizes import FixedSummaries
from guard_core.trace import HELD_REASONS, INFLATED, NOTHING_TO_COMPACT
from guard_core.views import Span, content_count
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.policies.tools import run
from tests.guard_core.rules.measured import run_of
from tests.profiling import calls_of


@pytest.mark.parametrize(
    ("settings", "threshold"),
    [({}, 524_288), ({"profile": "0.7"}, 734_004), ({"compression_threshold": 0.2}, 209_716)],
)
def test_the_threshold_is_a_share_of_the_limit(settings, threshold):
    assert get_policy("gemini-cli", **settings).threshold(1_048_576) == threshold


CONTEXT = user("<session_context> of the chat", meta=True)


def cut(*events):
    log = session(*events)
    return split_point(list_messages(Ledger.of(log), (Span(0, len(events)),)), 0.7)


def call(size):
    return tool_call("read", "c", path="p" * size)


def result(size):
    return tool_result("y" * size, "read", "c")


def test_it_cuts_at_the_first_text_of_the_user_behind_70_percent():
    messages = [user("u" * 1_000), model("m" * 4_000), user("u" * 1_000), model("m" * 2_000)]
    assert cut(*messages, user("u" * 500), model("m" * 1_500)) == 4


def test_where_no_text_of_the_user_is_behind_it_and_a_call_is_open_the_last_one_before_counts():
    assert cut(user("u" * 500), call(200), result(8_000), call(200), result(1_000)) == 0


def test_messages_of_the_user_in_a_row_are_one():
    """0.61.0, run: in the first turn nothing is summarised, though what opens the chat is before the user's words."""
    opening = [CONTEXT, user("u" * 500)]
    assert cut(*opening, call(200), result(8_000), call(200), result(1_000)) == 0
    assert cut(*opening, model("m" * 9_000), user("u" * 100), user("u" * 100), call(200), result(1_000)) == 3
    assert cut(*opening, call(200), result(8_000), user("u" * 500), call(200), result(1_000)) == 0


def test_what_opens_the_chat_stays_before_the_summary():
    """0.61.0, run: the next request begins with it, also after the second compaction."""
    turns = [event for _ in range(8) for event in (user("u" * 100), model("m" * 4_000))]
    counts = (300_000, 300_000, 300_000, 530_000, 300_000, 300_000, 530_000, 300_000)
    calls = tuple(ModelCall(2 * n + 2, 2 * n + 2, count) for n, count in enumerate(counts))
    trace = run(get_policy("gemini-cli"), session(CONTEXT, *turns, calls=calls), window=1_048_576)
    assert [record.step for record in trace.compactions] == [4, 7]
    for record in trace.compactions:
        context, summary, *_ = record.after
        assert (context, summary.kind) == (Span(0, 1), "summary")


def test_a_finished_answer_lets_everything_go():
    assert cut(user("u" * 500), call(200), result(8_000), model("m" * 900)) == 4


def test_it_keeps_as_many_messages_as_the_agent_kept(tmp_path):
    measured = run_of("gemini-cli/default", tmp_path)
    ledger = Ledger.of(measured.session)
    usage = usage_for(ledger, None)
    trace = replay(ledger, get_policy("gemini-cli"), window=1_048_576, usage=usage, summarizer=FixedSummaries(2_442))
    messages = measured.truth["compactions"][0]["next_request"]["n_messages"]
    assert content_count(trace.compactions[0].after) == messages + 1  # what opens the chat is sent with the summary


def turns(*sizes, prompts=100):
    """A turn for each size: a call, a result of so many characters, and an answer."""
    events, calls = [], []
    for number, size in enumerate(sizes):
        events.append(user("q"))
        calls.append(ModelCall(len(events), len(events), prompts))
        events += [tool_call("read", f"c{number}"), tool_result("y" * size, "read", f"c{number}")]
        calls.append(ModelCall(len(events), len(events), prompts))
        events.append(model("done"))
    return session(*events, calls=tuple(calls))


def sent_results(log, trace, step):
    """The characters of each result that is sent at a step."""
    messages = materialise(trace.view(step, log.calls[step].at), log)
    parts = (part for message in messages for part in message.parts)
    return [len(part.content) for part in parts if isinstance(part, ToolResultPart)]


def played(log, size=300, **settings):
    ledger = Ledger.of(log)
    policy = get_policy("gemini-cli", **settings)
    return replay(ledger, policy, window=1_000, usage=usage_for(ledger, None), summarizer=FixedSummaries(size))


@pytest.mark.parametrize(("size", "masked"), [(39_000, 0), (40_000, 3)])
def test_results_before_the_newest_fifty_thousand_tokens_are_masked_where_they_have_thirty_thousand(size, masked):
    log = turns(size, size, size, 199_000, 40, 40)
    trace = played(log)
    lengths = sent_results(log, trace, 11)
    assert sum(length < 1_000 for length in lengths[:3]) == masked
    assert lengths[3:] == [199_000, 40, 40]
    assert bool(trace.compactions) is bool(masked)
    assert played(log, masking=False).compactions == played(log, profile="0.7").compactions == ()


def test_a_result_that_crosses_the_fifty_thousand_tokens_is_masked_too():
    log = turns(200_400, 40, 40)
    assert sent_results(log, played(log), 5)[0] < 1_000


def test_of_results_of_calls_in_parallel_those_before_the_newest_tokens_are_masked():
    """0.61.0, run: it goes back result by result. Of the first two the second one follows when it is old enough."""

    def answered(*sizes):
        results = [tool_result("y" * size, "read", f"c{size}").parts[0] for size in sizes]
        calls = [tool_call("read", f"c{size}").parts[0] for size in sizes]
        return [Event(Role.MODEL, tuple(calls)), Event(Role.USER, tuple(results))]

    events = [user("q"), *answered(130_000, 90_000), *answered(100_400), *answered(40), *answered(60_400)]
    events += [*answered(60_000), *answered(41), model("done")]
    log = session(*events, calls=tuple(ModelCall(at, at, 100) for at in range(1, len(events), 2)))
    trace = played(log)
    assert [record.step for record in trace.compactions] == [2, 6]
    assert [size < 1_000 for size in sent_results(log, trace, 5)] == [True, False, False, True, False, False]
    assert [size < 1_000 for size in sent_results(log, trace, 6)] == [True, True, True, True, False, False, True]


@pytest.mark.parametrize(("text", "masked"), [("y" * 119_000, False), ("y" * 117_000 + "\n" * 1_500, True)])
def test_a_masked_result_counts_as_json(text, masked):
    log = turns(0, 199_000, 40, 40)
    result = tool_result(text, "read", "c0")
    log = msgspec.structs.replace(log, events=(*log.events[:2], result, *log.events[3:]))
    assert bool(played(log).compactions) is masked


def test_a_compaction_cuts_the_results_before_the_newest_fifty_thousand_tokens_to_their_ends():
    log = turns(9_000, 150_000, 150_000, 40)
    calls = [msgspec.structs.replace(call, prompt_tokens=500 if at == 5 else 100) for at, call in enumerate(log.calls)]
    log = msgspec.structs.replace(log, calls=tuple(calls))
    settings = {"masking": False, "preserve": 0.99, "inflation_check": False}
    cut, whole, newest = sent_results(log, played(log, **settings), 7)
    assert 40_000 < cut < 40_300
    assert (whole, newest) == (150_000, 40)
    assert sent_results(log, played(log, result_budget=0, **settings), 7) == [150_000, 150_000, 40]


def test_the_results_of_the_log_are_numbered_once_for_all_compactions():
    log, profile = turns(*(9_000 for _ in range(40)), prompts=600), cProfile.Profile()
    trace = profile.runcall(played, log, masking=False, inflation_check=False)
    assert len(trace.compactions) > 10
    assert calls_of(profile, place_in_event) == 1


def test_a_summary_that_makes_the_history_larger_is_thrown_away_and_none_is_made_again():
    log = turns(400, 400, 400, prompts=500)
    trace = played(log, 8_000)
    assert trace.compactions == ()
    assert HELD_REASONS[int(trace.columns["held"].max())] == "the summary would make the request larger"
    assert (trace.columns["held"] == INFLATED).sum() == 1
    assert len(played(log, 8_000, inflation_check=False).compactions) > 1


class AskedAtEachStep(GeminiCli):
    """The same policy, which does not know ahead where there is nothing to compact."""

    def gate(self, ledger, rows, stop, state):
        return CountedPolicy.gate(self, ledger, rows, stop, state)


def some_log(dice, steps=90):
    """A log of calls, answers, words of the user and reminders in any order, whose prompts often fire."""
    events, calls = [user("q", meta=dice.random() < 0.3)], []
    for number in range(steps):
        calls.append(ModelCall(len(events), len(events), dice.choice((100, 450, 600, 900))))
        if dice.random() < 0.15:
            events.append(model("m" * dice.randrange(900)))
        else:
            size = dice.choice((40, 3_000, 45_000, 190_000))
            events += [tool_call("read", f"c{number}"), tool_result("y" * size, "read", f"c{number}")]
        events += [user("u" * dice.randrange(400), meta=dice.random() < 0.3) for _ in range(dice.randrange(3) // 2)]
    return session(*events, calls=tuple(calls))


@pytest.mark.parametrize("seed", range(20))
def test_what_it_knows_ahead_is_what_it_would_find_at_each_step(seed):
    dice = random.Random(seed)
    log, changes = some_log(dice), {"masking": seed % 2 == 0, "inflation_check": seed % 3 == 0}
    policy = get_policy("gemini-cli", **changes)
    ledger, size = Ledger.of(log), dice.choice((300, 20_000))
    both = [
        replay(ledger, each, window=1_000, usage=usage_for(ledger, None), summarizer=FixedSummaries(size))
        for each in (policy, AskedAtEachStep(policy.settings))
    ]
    assert both[0].digest() == both[1].digest()


def test_a_long_turn_is_not_listed_at_each_of_its_steps():
    """A replay of 51,000 events took 86 seconds: at every step all messages were listed, and nothing could be cut."""
    pairs = [event for number in range(600) for event in (tool_call("read", f"c{number}"), tool_result("y" * 40))]
    log = session(user("q"), *pairs, calls=tuple(ModelCall(at, at, 600) for at in range(1, len(pairs), 2)))
    profile = cProfile.Profile()
    trace = profile.runcall(played, log)
    assert (trace.columns["held"] == NOTHING_TO_COMPACT).sum() > 500
    assert calls_of(profile, split_point) == 0
