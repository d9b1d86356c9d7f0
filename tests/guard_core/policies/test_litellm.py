"""LiteLLM's trim_messages sends what the original sends."""

import msgspec
import pytest

from guard_core.errors import SettingError
from guard_core.events import Event, MediaPart, Role, TextPart
from guard_core.forms import CutToEnds
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.policies.litellm import Ending, litellm_settings, shortened
from guard_core.replay import replay
from guard_core.sessions import ModelCall
from guard_core.views import Span, Synthetic
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.conformance.libraries import check_equals_the_library


def test_it_equals_recorded_runs_of_the_library():
    check_equals_the_library("litellm-trim-messages")


def sent(log, limit, **settings):
    trace = replay(Ledger.of(log), get_policy("litellm-trim-messages", max_tokens=limit, **settings), window=1_000)
    return trace.view(0, log.calls[0].at)


def test_a_list_of_exactly_the_limit_is_trimmed_and_the_reason_says_so():
    log = session(user("hi"), model("m" * 400), user("v" * 400), calls=(ModelCall(at=3),))
    trace = replay(Ledger.of(log), get_policy("litellm-trim-messages", max_tokens=200), window=1_000)
    assert [record.reason for record in trace.compactions] == ["200 tokens >= limit 200"]
    assert trace.view(0, 3) == (Span(1, 3),)


CHAT = session(user("u" * 400), model("m" * 400), user("v" * 400), calls=(ModelCall(at=3),))


@pytest.mark.parametrize(
    ("limit", "view"),
    [
        (400, (Span(0, 3),)),
        (203, (Span(1, 3),)),  # three tokens are left, and no more than three end it
        (150, (Span(1, 2, CutToEnds(what="text", head=99, tail=99, marker="..").name), Span(2, 3))),
    ],
)
def test_the_newest_messages_stay_and_the_first_that_does_not_fit_loses_its_middle(limit, view):
    assert sent(CHAT, limit) == view


def test_a_system_message_over_the_limit_leaves_no_room_at_all():
    # 1.106.2: one of 100 tokens beside a limit of none is kept whole, and no other message is
    log = session(user("u" * 400), model("m" * 400), calls=(ModelCall(at=2),))
    events = (Event(Role.SYSTEM, (TextPart("s" * 400),)), *log.events)
    log = msgspec.structs.replace(log, events=events, calls=(ModelCall(at=3),))
    trace = replay(Ledger.of(log), get_policy("litellm-trim-messages", max_tokens=0, trim_ratio=0.0), window=1_000)
    assert [segment.start for segment in trace.view(0, 3)] == [0]


def test_a_share_above_the_whole_window_is_taken():
    assert get_policy("litellm-trim-messages", trim_ratio=1.5).limit(1_000) == 1_500


def test_a_limit_of_no_tokens_is_not_taken_for_none():
    with pytest.raises(SettingError, match="max_tokens of 0 is not modelled"):
        litellm_settings({"max_tokens": 0})


def test_results_at_the_end_stay_without_their_call():
    log = session(
        user("u" * 400), tool_call("read", "c", path="p" * 400), tool_result("z" * 800), calls=(ModelCall(at=3),)
    )
    assert sent(log, 20, null_content=False)[-1] == Span(2, 3)


def test_several_system_messages_become_one_at_the_beginning():
    first, second = (Event(Role.SYSTEM, (TextPart(letter * 40),)) for letter in "st")
    log = session(first, user("u" * 400), second, calls=(ModelCall(at=3),))
    joined, *others = sent(log, 60)
    assert joined == Synthetic("system messages", 81, None, Role.SYSTEM)
    assert [item.start for item in others] == [1]


def test_a_text_beside_long_arguments_is_shortened_until_both_fit_or_the_attempts_end():
    assert shortened(400, 0, 50).chars // 4 <= 50
    assert shortened(100, 36, 10) == Ending(4, "..", 4)  # 11 tokens: it does not get shorter


def test_empty_system_messages_are_messages_like_others():
    """litellm 1.106.2: only a text of the system is set apart; what is joined has no line break before it."""
    empty, rule = Event(Role.SYSTEM, (TextPart(""),)), Event(Role.SYSTEM, (TextPart("s" * 40),))
    log = session(empty, user("u" * 400), model("m" * 400), calls=(ModelCall(at=3),))
    assert sent(log, 200) == (Span(1, 3),)  # no room is left to look at the first
    between = session(user("u" * 400), empty, model("m" * 400), user("v" * 400), calls=(ModelCall(at=4),))
    assert sent(between, 204)[-1] == Span(1, 4)
    joined, *_ = sent(session(empty, user("u" * 400), rule, calls=(ModelCall(at=3),)), 60)
    assert joined == Synthetic("system messages", 40, None, Role.SYSTEM)


CALLS = session(
    user("u" * 400),
    tool_call("read", "c", path="p" * 400),
    tool_result("z" * 400, "read", "c"),
    model("m" * 200),
    user("v" * 200),
    calls=(ModelCall(at=5),),
)


@pytest.mark.parametrize(
    ("limit", "first"),
    [
        (215, 0),  # all but the call and what is before it fit, with 15 tokens to spare
        (203, 2),  # three tokens to spare are too few to go on
        (150, 2),  # the result loses its middle, and no room is left
        (350, 0),  # the question would not fit, but is shortened
    ],
)
def test_where_a_call_without_a_text_would_have_to_be_shortened_the_whole_list_is_sent(limit, first):
    view = sent(CALLS, limit)
    assert (view[0].start, view == (Span(0, 5),)) == (first, limit == 215)
    assert sent(CALLS, limit, null_content=False) != (Span(0, 5),)


def test_where_a_message_with_a_picture_would_have_to_be_shortened_the_whole_list_is_sent():
    picture = Event(Role.USER, (TextPart("u" * 400), MediaPart("image/png", 70)))
    log = session(picture, model("m" * 400), user("v" * 400), calls=(ModelCall(at=3),))
    assert sent(log, 250) == (Span(0, 3),)
    assert sent(log, 250, null_content=False) != (Span(0, 3),)
    assert sent(log, 203) == (Span(1, 3),)
