"""Mistral Vibe: which threshold counts, and when it looks."""

import pytest

from guard_core.events import Event, Role, TextPart, ToolCallPart
from guard_core.policies import get_policy
from guard_core.requests import materialise
from guard_core.sessions import ModelCall
from guard_core.views import Span
from tests.builders import image, model, session, tool_call, tool_result, user
from tests.guard_core.policies.tools import run


@pytest.mark.parametrize(
    ("settings", "threshold"),
    [
        ({}, 202_144),
        ({"auto_compact_threshold": 168_000}, 168_000),
        ({"profile": "3.0"}, 209_715),
        ({"profile": "3.0", "window_declared": False}, 200_000),
        ({"profile": "3.0", "auto_compact_threshold": 168_000}, 168_000),
        ({"profile": "3.0", "auto_compact_threshold": 300_000}, 209_715),  # not below the window
        ({"profile": "3.0", "auto_compact_threshold": 300_000, "window_declared": False}, 300_000),
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
    policy = get_policy("mistral-vibe", profile="3.0", auto_compact_threshold=200_000)
    first = run(policy, LOG, window=262_144).compactions[0]
    assert [item.kind for item in first.after if not isinstance(item, Span)] == ["note", "summary"]
    assert [item for item in first.after if isinstance(item, Span)] == [Span(0, 1)]


LARGE = session(  # a quarter of the JSON of the request of step 1 is more than the answer's total
    user("first"),
    tool_call("read", "a"),
    tool_result("y" * 20_000, "read", "a"),
    calls=(ModelCall(1, 1, 3_990, output_tokens=9), ModelCall(3, None, 4_990)),
)


@pytest.mark.parametrize(("profile", "fired"), [("2.18", []), ("3.0", [1])])
def test_from_2_26_on_its_own_estimate_of_the_request_counts_where_it_is_more(profile, fired):
    policy = get_policy("mistral-vibe", profile=profile, auto_compact_threshold=4_000, window_declared=False)
    trace = run(policy, LARGE, window=262_144)
    assert trace.columns["fired"].nonzero()[0].tolist() == fired
    assert trace.columns["pending"].tolist() == ([0, 5_051] if fired else [0, 0])


# What the harness of 3.0.3 did with the same messages, run with a scripted provider. Its system message, 926 bytes in
# JSON, is written as so many letters here; its one tool took 64 bytes.
SYSTEM, TOOL = "s" * 926, 64


def steps(prompt):
    """Two calls of a tool, of which the provider counted the second request as `prompt` tokens."""
    events = [user("u" * 200)]
    for call in ("c1", "c2"):
        events.append(Event(Role.MODEL, (TextPart("s" * 50), ToolCallPart("tool", {"a": 1}, call))))
        events.append(tool_result("r" * 7_000, "tool", call))
    calls = (
        ModelCall(1, 1, 300, output_tokens=50),
        ModelCall(3, 3, prompt, output_tokens=50),
        ModelCall(5, None, 500),
    )
    return session(*events, calls=calls, system=SYSTEM + "s" * TOOL, tools=())


@pytest.mark.parametrize(
    ("prompt", "count"),
    [
        (4_316, 7_978),  # twice what it had estimated
        (6_474, 11_967),
        (2_158, 3_989),  # its own estimate of the whole request, for the answer was larger than its 50 tokens
        (2_000, 3_989),
    ],
)
def test_3_0_3_corrects_its_estimate_by_the_last_count(prompt, count):
    trace = run(get_policy("mistral-vibe", auto_compact_threshold=50_000), steps(prompt), window=100_000)
    assert trace.columns["decision_tokens"].tolist() == [327, 2_158, count]


def chat(*events):
    """A turn that was answered, and another message."""
    calls = (ModelCall(1, 1, 1, output_tokens=1), ModelCall(3, None, 1))
    log = session(*events, calls=calls, system=SYSTEM, tools=())
    policy = get_policy("mistral-vibe", auto_compact_threshold=20_000)
    trace = run(policy, log, window=60_000, summary=500)
    return log, trace.compactions[0].after


def test_3_0_3_keeps_what_follows_from_the_last_answer_on():
    log, view = chat(user("u" * 40_000), model("a" * 50), user("u" * 58_200))
    assert [getattr(item, "bytes", item) for item in view] == [
        228,
        Span(0, 1, 'vibe cut:{"size":19620}'),
        618,
        Span(1, 3),
    ]
    (cut,) = materialise(view[1:2], log)
    assert len(cut.parts[0].text) == 19_620
    assert "u<system>5108 tokens truncated here for size</system>u" in cut.parts[0].text


def test_3_0_3_shortens_what_follows_where_it_does_not_fit():
    _, view = chat(user("u" * 40_000), model("a" * 50), user("u" * 58_220))
    assert [(item.kind, item.bytes) for item in view[2:]] == [("summary", 618), ("reduced", 244)]


def test_3_0_3_keeps_the_newest_message_whole_where_its_pictures_alone_are_too_much():
    pictures = (*user("c" * 3_000).parts, *image(70).parts, *image(70).parts)
    _, view = chat(Event(Role.USER, pictures), model("ok"), user("d" * 70_000))
    assert view[1] == Span(0, 1)
