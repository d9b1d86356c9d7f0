"""The compactions of the OpenAI Agents SDK, by worked examples of its source."""

import pytest

from guard_core.policies import get_policy
from guard_core.sessions import ModelCall
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.policies.tools import check_compacts, check_passes_through, run

PERIOD = (user("q" * 40), tool_call("read_file", "", path="p"), tool_result("r" * 400), model("a" * 40))
TURNS = session(*PERIOD * 6, calls=tuple(ModelCall(at=at, prompt_tokens=at * 100) for at in range(1, 24, 2)))


def test_a_session_is_compacted_after_the_turn_with_the_tenth_item():
    trace = check_compacts(get_policy("openai-agents"), TURNS, at_step=8)  # three items a turn: 12 after four turns
    record = trace.compactions[0]
    assert record.point == "at the end of a turn"
    assert trace.columns["items_compared"][7:9].tolist() == [11, 0]


def test_the_messages_of_the_user_stay_before_an_item_that_cannot_be_read():
    after = run(get_policy("openai-agents"), TURNS).compactions[0].after
    assert [item.start for item in after[:4]] == [0, 4, 8, 12]
    assert after[4].kind == "opaque compaction item"
    assert after[4].text is None


@pytest.mark.parametrize("items", [13, 100])
def test_fewer_items_are_left_alone(items):
    short = session(*PERIOD * 4, calls=TURNS.calls[:8])
    check_passes_through(get_policy("openai-agents", threshold_items=items), short)


def test_a_turn_without_an_answer_is_not_compacted_after_it():
    rounds = (tool_call("read_file", "", path="p"), tool_result("r")) * 8
    log = session(user("q"), *rounds, user("again"), calls=(ModelCall(at=1), ModelCall(at=18)))
    check_passes_through(get_policy("openai-agents"), log)


def test_the_server_compacts_a_request_above_a_share_of_the_window():
    policy = get_policy("openai-agents", profile="sandbox")
    trace = check_compacts(policy, TURNS, at_step=7, window=1_600)  # 1,500 > 1,440; 1,300 is not
    assert trace.columns["threshold"][0] == 1_440
    assert len(trace.compactions[0].after) == 1


def test_a_fixed_threshold_takes_the_place_of_the_share():
    policy = get_policy("openai-agents", profile="sandbox", compact_threshold=700)
    check_compacts(policy, TURNS, at_step=4, window=1_600)
