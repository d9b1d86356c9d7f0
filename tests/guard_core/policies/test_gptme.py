"""gptme trims or writes a checkpoint, by worked examples of its source."""

import pytest

from guard_core.events import Event, Role, TextPart, ToolCallPart, part_text
from guard_core.policies import get_policy
from guard_core.sessions import ModelCall
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.policies.tools import check_passes_through, run

WINDOW = 100_000


def turn(result_tokens=0, answer_tokens=10):
    call = (tool_call("shell", "", cmd="c"), tool_result("r" * 4 * result_tokens)) if result_tokens else ()
    return (user("q" * 40), *call, model("a" * 4 * answer_tokens))


def log_of(*turns):
    events = [event for part in turns for event in part]
    return session(*events, user("more"), calls=(ModelCall(at=1), ModelCall(at=len(events) + 1)))


@pytest.mark.parametrize(
    ("window", "profile", "limit"),
    [
        (100_000, "0.35", 90_000),
        (50_000, "0.35", 40_808),
        (1_000_000, "0.35", 256_000),
        (5_000, "0.35", 1_000),
        (1_000_000, "d27f98d3", 900_000),
    ],
)
def test_the_limit_is_a_share_of_the_window(window, profile, limit):
    assert get_policy("gptme", profile=profile).limit(window) == limit


def test_below_the_limit_nothing_is_changed():
    check_passes_through(get_policy("gptme"), log_of(turn(80_000)), window=WINDOW)


def test_older_results_are_cleared_first():
    log = log_of(turn(20_000), turn(40_000), turn(150), turn(31_000))
    trace = run(get_policy("gptme"), log, window=WINDOW)
    (record,) = trace.compactions
    assert record.reason.endswith("results and answers are trimmed")
    assert not record.passes[0].summariser_view
    cleared = [(item.start, item.stop) for item in record.after if item.form]
    assert cleared == [(2, 7)]  # the result of 150 tokens and the one among the newest three stay
    assert 31_000 <= trace.columns["heuristic_sent"][-1] <= 32_000


def test_the_largest_results_are_trimmed_until_70_percent_are_met():
    """By the earlier revision, which clears none; 0.35 trims those that are still too large."""
    log = log_of(turn(20_000), turn(40_000), turn(10_000), turn(30_000))
    trace = run(get_policy("gptme", profile="d27f98d3"), log, window=WINDOW)
    cut = [(item.start, item.stop) for item in trace.compactions[0].after if getattr(item, "form", "")]
    assert cut == [(6, 7)]  # 40,000 of 100,000 tokens leave less than 80,000


def within(*counts):
    """One turn with a result of 400 tokens behind each answer, and these prompts of the provider."""
    rounds = [event for _ in counts for event in (tool_call("shell", "", cmd="c"), tool_result("r" * 1_600))]
    calls = [
        ModelCall(at=1 + 2 * step, response=1 + 2 * step, prompt_tokens=count) for step, count in enumerate(counts)
    ]
    return session(user("q" * 40), *rounds, calls=tuple(calls))


def test_within_a_turn_the_last_prompt_and_what_was_added_since_are_compared():
    trace = run(get_policy("gptme", budget_tokens=3_000), within(1_000, 2_000, 2_600, 2_700), window=WINDOW)
    (record,) = trace.compactions
    assert (record.step, record.reason) == (3, "3,004 tokens >= limit 3,000")
    assert record.after[1].kind == "checkpoint"  # the texts alone are below the limit


def test_the_earlier_revision_looks_after_turns_alone():
    check_passes_through(
        get_policy("gptme", profile="d27f98d3", budget_share=0.001), within(90_000, 95_000), window=WINDOW
    )


def test_a_checkpoint_is_written_though_all_messages_are_among_the_newest():
    trace = run(get_policy("gptme", budget_tokens=3_000), within(2_500, *[2_900] * 3), window=WINDOW)
    assert [record.step for record in trace.compactions] == [2, 3]
    assert [item.stop for item in trace.compactions[0].after if hasattr(item, "stop")] == [3, 5]


def test_long_answers_are_trimmed_but_for_the_newest():
    log = log_of(*[turn(answer_tokens=20_000)] * 5)
    trace = run(get_policy("gptme"), log, window=WINDOW)
    cut = [item for item in trace.compactions[0].after if getattr(item, "form", "")]
    assert {(item.start, item.stop) for item in cut} == {(3, 6)}  # the first two messages and the newest three stay


def test_a_long_answer_that_calls_a_tool_is_left():
    calling = Event(Role.MODEL, (TextPart("a" * 80_000), ToolCallPart("shell", {"cmd": "c"})))
    turns = [turn(answer_tokens=20_000)] * 4
    log = log_of(turns[0], (user("q" * 40), calling, tool_result("r"), model("a" * 40)), *turns[1:])
    trace = run(get_policy("gptme"), log, window=WINDOW)
    spans = [(item.start, item.stop) for item in trace.compactions[0].after if getattr(item, "form", "")]
    assert spans == [(7, 8)]


def test_where_trimming_saves_too_little_a_checkpoint_is_written():
    log = log_of(*[turn(190)] * 450)
    trace = run(get_policy("gptme"), log, window=WINDOW)
    (record,) = trace.compactions
    assert record.after[0].stop == 3  # the second message is a call, whose result stays, too
    assert record.after[1].kind == "checkpoint"
    assert record.passes[0].summariser_view[0].start == 0  # it asks within the conversation
    newest = log.events[record.after[2].start :]
    assert 70_000 < sum(len(part_text(part)) for event in newest for part in event.parts) <= 80_000


def test_the_earlier_revision_writes_a_checkpoint_though_a_result_is_large():
    log = log_of(turn(30_000), *[turn(1_000)] * 25)
    policy = get_policy("gptme", profile="d27f98d3")
    (record,) = run(policy, log, window=WINDOW).compactions
    assert record.passes[0].summariser_view
    check_passes_through(get_policy("gptme"), log, window=WINDOW)


@pytest.mark.parametrize(("profile", "sign", "opposite"), [("0.35", ">=", "<"), ("d27f98d3", ">", "<=")])
def test_a_decision_after_the_turn_is_explained_as_one(profile, sign, opposite):
    policy = get_policy("gptme", profile=profile)
    trace = run(policy, log_of(*[turn(190)] * 450), window=WINDOW)
    assert f"tokens {sign} limit 90,000" in trace.compactions[0].reason
    verdict = policy.explain(trace, 1)[-1].expression
    assert verdict.endswith(f" {opposite} 90,000: it acted when the turn before had ended")
