"""The SDK of Cline: what it counts, when it compacts, and what stays."""

import pytest

from guard_core.policies import get_policy
from guard_core.sessions import ModelCall
from guard_core.trace import NOTHING_TO_COMPACT
from guard_core.views import Span
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.policies.tools import check_passes_through, run


@pytest.mark.parametrize(
    ("settings", "threshold"),
    [({}, 162_000), ({"max_input_tokens": 150_000}, 135_000), ({"max_input_tokens": 400_000}, 180_000)],
)
def test_the_threshold_is_90_percent_of_what_the_model_takes(settings, threshold):
    assert get_policy("cline-sdk", **settings).threshold(200_000) == threshold


def work(*prompts):
    """A turn of calls of a tool, each with a result of 3,000 characters."""
    events = [user("u" * 300)]
    for number in range(len(prompts)):
        events += [tool_call("read", str(number)), tool_result("r" * 3_000, "read", str(number))]
    calls = tuple(ModelCall(2 * n + 1, 2 * n + 1, prompt, output_tokens=1) for n, prompt in enumerate(prompts))
    return session(*events, calls=calls, system="", tools=())


def test_it_counts_the_last_prompt_of_the_run_as_four_times_its_estimate_at_most():
    trace = run(get_policy("cline-sdk"), work(1_000, 100, 3_000, 90_000, 100), window=1_000_000)
    assert trace.columns["decision_tokens"].tolist() == [133, 1_189, 2_245, 3_302, 4 * 4_358]


def test_before_the_first_answer_of_a_run_only_its_estimate_counts():
    log = session(
        user("one"),
        model("done"),
        user("two"),
        model("done"),
        calls=(ModelCall(1, 1, 190_000, output_tokens=1), ModelCall(3, 3, 190_000, output_tokens=1)),
        system="s" * 600_000,
        tools=(),
    )
    trace = run(get_policy("cline-sdk", max_input_tokens=230_000), log, window=1_000_000)
    assert trace.columns["decision_tokens"].tolist() == pytest.approx([200_050, 200_090], abs=40)
    assert trace.compactions == ()


def test_a_summary_and_the_newest_messages_stay_from_an_answer_on():
    log = work(*(100,) * 8)
    (first, *_) = run(get_policy("cline-sdk", max_input_tokens=8_000, preserved=2_500), log, summary=600).compactions
    assert (first.after[0].kind, first.after[0].bytes) == ("summary", 658)
    (kept,) = first.after[1:]
    assert log.events[kept.start].role.value == "model"
    assert kept == Span(kept.start, 2 * first.step + 1)
    assert kept.stop - kept.start == 6  # three rounds of 1,030 tokens have 2,500


def test_without_anything_before_the_newest_messages_it_does_not_compact():
    log = session(
        user("u" * 30_000), model("done"), calls=(ModelCall(1, 1, 100, output_tokens=1),), system="", tools=()
    )
    trace = run(get_policy("cline-sdk", max_input_tokens=8_000), log)
    assert trace.compactions == ()
    assert trace.columns["held"].tolist() == [NOTHING_TO_COMPACT]


def test_it_leaves_a_short_chat_alone(short_chat):
    check_passes_through(get_policy("cline-sdk"), short_chat)
