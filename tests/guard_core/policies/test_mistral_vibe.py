"""Mistral Vibe: which threshold counts, and when it looks."""

import pytest

from guard_core.policies import get_policy
from guard_core.sessions import ModelCall
from guard_core.views import Span
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.policies.tools import run


@pytest.mark.parametrize(
    ("settings", "threshold"),
    [
        ({}, 209_715),
        ({"window_declared": False}, 200_000),
        ({"auto_compact_threshold": 168_000}, 168_000),
        ({"auto_compact_threshold": 300_000}, 209_715),  # not below the window
        ({"auto_compact_threshold": 300_000, "window_declared": False}, 300_000),
        ({"profile": "2.18"}, 200_000),
    ],
)
def test_the_threshold_is_its_own_or_a_share_of_the_window_or_the_default(settings, threshold):
    assert get_policy("mistral-vibe", **settings).threshold(262_144) == threshold


LOG = session(
    user("first"),
    tool_call("read", "a"),
    tool_result("y" * 40, "read", "a"),
    model("done"),
    user("second"),
    calls=(
        ModelCall(1, 1, 199_990, output_tokens=10),
        ModelCall(3, 3, 199_995, output_tokens=10),
        ModelCall(5, None, 500),
    ),
)


@pytest.mark.parametrize("profile", ["3.0", "2.18"])
def test_it_looks_between_steps(profile):
    trace = run(get_policy("mistral-vibe", profile=profile, auto_compact_threshold=200_000), LOG, window=262_144)
    assert trace.compactions[0].step == 1


def test_a_note_the_messages_of_the_person_and_the_summary_stay():
    first = run(get_policy("mistral-vibe", auto_compact_threshold=200_000), LOG, window=262_144).compactions[0]
    assert [item.kind for item in first.after if not isinstance(item, Span)] == ["note", "summary"]
    assert [item for item in first.after if isinstance(item, Span)] == [Span(0, 1)]
