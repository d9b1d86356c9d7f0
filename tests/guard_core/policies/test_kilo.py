"""Kilo Code: OpenCode's threshold, which a share of the window may lower."""

import pytest

from guard_core.policies import get_policy
from guard_core.sessions import ModelCall
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.policies.tools import run


@pytest.mark.parametrize(
    ("settings", "threshold"),
    [
        ({}, 168_000),
        ({"profile": "reserving"}, 148_000),
        ({"threshold_percent": 60}, 120_000),
        ({"threshold_percent": 90}, 168_000),
        ({"threshold_percent": 60, "fixed_part": 10_000}, 107_000),
        ({"input_limit": 180_000}, 160_000),
        ({"reserved": "10000"}, 168_000),
        ({"reserved": "10000", "profile": "reserving"}, 158_000),
    ],
)
def test_the_threshold_is_the_lower_of_both(settings, threshold):
    assert get_policy("kilo", **settings).threshold(200_000) == threshold


LOG = session(
    user("go"),
    tool_call("read", "a"),
    tool_result("y" * 400, "read", "a"),
    model("done"),
    user("more"),
    calls=(
        ModelCall(1, 1, 130_000, output_tokens=10),
        ModelCall(3, 3, 130_100, output_tokens=10),
        ModelCall(5, None, 500),
    ),
)


def test_with_a_share_it_never_compacts_right_after_a_tool_result():
    assert [
        record.step for record in run(get_policy("kilo", threshold_percent=60), LOG, window=200_000).compactions
    ] == [2]
    assert run(get_policy("kilo"), LOG, window=200_000).compactions == ()
