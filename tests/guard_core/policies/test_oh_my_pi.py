"""oh-my-pi: pi's compaction with a larger reserve, within turns, too."""

import pytest

from guard_core.policies import get_policy
from guard_core.sessions import ModelCall
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.policies.tools import run


@pytest.mark.parametrize(
    ("window", "threshold"),
    [(60_000, 43_616), (109_226, 92_842), (200_000, 170_000), (1_000_000, 850_000), (16_384, 13_927)],
)
def test_at_least_15_percent_of_the_window_stay_free(window, threshold):  # 18.2.3: its functions, and runs of the first
    assert get_policy("oh-my-pi").threshold(window) == threshold


def test_a_reserve_that_was_set_counts_if_it_is_more():
    assert get_policy("oh-my-pi", reserve_tokens=50_000).threshold(200_000) == 150_000
    assert get_policy("oh-my-pi", reserve_tokens=10_000).threshold(200_000) == 170_000


@pytest.mark.parametrize(
    ("settings", "threshold", "rule"),
    [
        ({"threshold_percent": 60}, 120_000, "60 % of 200,000"),
        ({"threshold_percent": 0.5}, 2_000, "1 % of 200,000"),
        ({"threshold_percent": 100}, 198_000, "99 % of 200,000"),
        ({"threshold_percent": 60, "threshold_tokens": 90_000}, 90_000, "90,000"),
        ({"threshold_tokens": 300_000}, 199_999, "199,999"),
    ],
)
def test_a_share_or_a_number_of_tokens_takes_the_place_of_the_reserve(settings, threshold, rule):
    """18.2.3: resolveThresholdTokens, and a run with 60 %."""
    policy = get_policy("oh-my-pi", reserve_tokens=50_000, **settings)
    assert (policy.threshold(200_000), policy.rule(200_000)) == (threshold, rule)


def test_it_compacts_within_a_turn_on_the_last_answers_total_alone():
    rounds = [
        event
        for number in range(6)
        for event in (tool_call("bash", f"c{number}", n=number), tool_result("x" * 40_000, id=f"c{number}"))
    ]
    totals = [20_000, 30_000, 40_000, 43_616, 43_617, 50_000]
    counted = tuple(ModelCall(2 * i + 1, 2 * i + 1, total - 10, output_tokens=10) for i, total in enumerate(totals))
    trace = run(get_policy("oh-my-pi"), session(user("go"), *rounds, calls=counted), window=60_000)
    assert [record.step for record in trace.compactions][:1] == [5]
    assert get_policy("pi").threshold(60_000) == 43_616
    assert not run(get_policy("pi"), session(user("go"), *rounds, calls=counted), window=60_000).compactions


@pytest.mark.parametrize(("per_round", "kept_from"), [(7_550, 7), (22_500, 9), (11_000, 9)])
def test_what_stays_is_counted_in_the_providers_tokens_and_is_at_least_the_last_call(per_round, kept_from):
    """18.2.3, run with prompts 3.5 times as large as what it estimates: the last call and its result alone stayed."""
    rounds = [
        event
        for number in range(5)
        for event in (tool_call("bash", f"c{number}", n=number), tool_result("x" * 30_000, id=f"c{number}"))
    ]
    counted = tuple(ModelCall(2 * i + 1, 2 * i + 1, per_round * (i + 1), output_tokens=0) for i in range(5))
    policy = get_policy("oh-my-pi", threshold_tokens=per_round * 5 - 1)
    (record,) = run(
        policy, session(user("go"), *rounds, model("done"), calls=(*counted, ModelCall(11, 11, 9))), window=200_000
    ).compactions
    assert record.step == 5
    assert record.kept_from == kept_from


@pytest.mark.parametrize(("policy", "kept_from"), [("oh-my-pi", 6), ("pi", 5)])
def test_the_message_with_which_the_budget_is_exceeded_does_not_stay_as_it_does_in_pi(policy, kept_from):
    """18.2.3, findCutPoint: of answers of 7,500 tokens two are within the budget of 20,000."""
    turns = [event for number in range(5) for event in (user(f"{number}"), model("x" * 30_000))]
    counted = tuple(ModelCall(2 * i + 1, 2 * i + 1, 7_000 * i + 100, output_tokens=7_000) for i in range(5))
    built = session(*turns, user("go on"), model("done"), calls=(*counted, ModelCall(11, 11, 9)))
    (record,) = run(get_policy(policy, keep_recent_tokens=20_000), built, window=50_000).compactions
    assert record.kept_from == kept_from
