"""The compaction of Pydantic AI's harness sends what the original sends."""

import cProfile

import msgspec
import numpy as np
import pytest

from guard_core.conformance.libraries.function_model import words
from guard_core.events import Event, MediaPart, Role, TextPart
from guard_core.findings.facts import Facts
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.policies.pydantic_ai.parameters import harness_settings
from guard_core.replay import replay
from guard_core.requests import materialise
from guard_core.sessions import ModelCall
from guard_core.summaries.sizes import ScriptedSummaries
from guard_core.trace import HELD_REASONS
from tests.big_sessions import big_session
from tests.builders import image, model, session, tool_call, tool_result, user
from tests.guard_core.conformance.libraries import check_equals_the_library
from tests.guard_core.policies.tools import run
from tests.profiling import calls_of
from tests.properties.test_replay_laws import StepByStep

CLEARING = "pydantic-ai-clear-tool-results"
ROUNDS = session(
    user("u" * 400),
    *(event for _ in range(5) for event in (tool_call("read_file", path="p" * 20), tool_result("r" * 400))),
    calls=tuple(ModelCall(at=at) for at in (1, 3, 5, 7, 9, 11)),
)


def test_clearing_equals_recorded_runs_of_the_library():
    check_equals_the_library(CLEARING)


def results(log=ROUNDS, **settings):
    """The results of every request, c for a cleared one."""
    trace = replay(Ledger.of(log), get_policy(CLEARING, **{"max_tokens": 0, **settings}), window=1_000_000)
    requests = [materialise(trace.view(step, call.at), log) for step, call in enumerate(log.calls)]
    return [
        "".join(part.content[0] if part.content != "[tool result cleared]" else "c" for part in parts_of(request))
        for request in requests
    ]


def parts_of(request):
    return [part for event in request for part in event.parts if hasattr(part, "content")]


@pytest.fixture(scope="module", params=["counted", "counted now and then", "compacted", "simulated"])
def long_log(request):
    log = big_session(400, 2 if request.param == "compacted" else 0)
    if request.param == "counted now and then":
        calls = (call if at % 50 < 30 else ModelCall(call.at, call.response) for at, call in enumerate(log.calls))
        return Facts.of(msgspec.structs.replace(log, calls=tuple(calls)))
    return Facts.of(msgspec.structs.replace(log, usage_ratio=2.0) if request.param == "simulated" else log)


@pytest.mark.parametrize(
    ("settings", "few"),
    [
        ({"max_tokens": 5_000}, True),
        ({"max_tokens": 60_000}, False),  # it falls below the limit again and again
        ({"max_tokens": 30_000, "keep_pairs": 40}, False),
        ({"max_tokens": 5_000, "exclude_tools": "read_file", "clear_tool_inputs": True}, True),
        ({"max_tokens": 30_000, "max_messages": 30}, False),
        ({"max_tokens": 30_000, "min_clear_tokens": 400}, False),
    ],
)
def test_clearing_in_runs_of_steps_is_clearing_step_by_step(settings, few, long_log):
    policy = get_policy(CLEARING, **settings)
    given = {"window": 200_000, "usage": long_log.usage}
    with cProfile.Profile() as profile:
        ahead = replay(long_log.ledger, policy, **given)
    slow = replay(long_log.ledger, StepByStep(policy), **given)
    for name in slow.columns.keys() - {"head"}:
        assert np.array_equal(ahead.columns[name], slow.columns[name]), name
    assert ahead.compactions == slow.compactions
    ats = long_log.ledger.steps["at"].tolist()
    assert all(ahead.view(step, at) == slow.view(step, at) for step, at in enumerate(ats))
    assert ahead.digest() == slow.digest()
    if few:
        assert len(ahead.compactions) > 100
        assert calls_of(profile, type(policy).decide) < 40


@pytest.mark.parametrize(
    ("settings", "last"),
    [
        ({}, "rrrrr"),
        ({"max_tokens": 10}, "ccrrr"),
        ({"max_tokens": 100_000}, "rrrrr"),
        ({"max_fraction": 0.0002}, "ccrrr"),
        ({"max_tokens": 10, "keep_pairs": 0}, "ccccc"),
        ({"max_tokens": 10, "exclude_tools": "grep, read_file"}, "rrrrr"),
        ({"max_tokens": 10, "min_clear_tokens": 300}, "rrrrr"),
        ({"max_tokens": 10, "never_grows": True}, "ccrrr"),
        # 600 characters of placeholder take more tokens than 400 of a result
        ({"max_tokens": 10, "placeholder": "x" * 600}, "xxrrr"),
        ({"max_tokens": 10, "placeholder": "x" * 600, "never_grows": True}, "rrrrr"),
    ],
)
def test_older_results_are_cleared_over_a_limit(settings, last):
    assert results(**settings)[-1] == last


def test_a_least_saving_of_zero_is_not_none():
    # 0.62.0: `if self.min_clear_tokens is not None` asks what 0 saves, too
    assert harness_settings({"min_clear_tokens": 0})["never_grows"] is True
    assert "never_grows" not in harness_settings({"min_clear_tokens": None})


def test_messages_are_counted_from_the_last_cleared_result():
    assert results(max_messages=4, keep_pairs=1) == ["", "r", "cr", "crr", "cccr", "cccrr"]
    assert results(max_messages=6, keep_pairs=1) == ["", "r", "rr", "ccr", "ccrr", "ccrrr"]


def test_arguments_of_cleared_results_go_where_that_is_set():
    policy = get_policy(CLEARING, max_tokens=10, clear_tool_inputs=True)
    trace = replay(Ledger.of(ROUNDS), policy, window=1_000_000)
    sent = materialise(trace.view(5, 11), ROUNDS)
    assert [event.parts[0].arguments for event in sent[1::2]] == [{}, {}, *[{"path": "p" * 20}] * 3]


def test_of_parallel_results_those_are_cleared_that_are_old():
    three = msgspec.structs.replace(tool_result(""), parts=tuple(tool_result(letter).parts[0] for letter in "xyz"))
    calls = msgspec.structs.replace(tool_call(), parts=tool_call().parts * 3)
    log = session(user("u"), calls, three, calls=(ModelCall(at=3),))
    assert results(log, max_tokens=1, keep_pairs=2) == ["cyz"]


def test_words_are_counted_as_the_model_of_the_recorded_runs_does():
    assert words(user("two words, and.more")) == 4
    assert words(model("")) == 0
    assert words(tool_call(path="a b")) == 1 + 5  # the braces count, too
    assert words(image(70)) == 70


SLIDING, SUMMARIZING = "pydantic-ai-sliding-window", "pydantic-ai-summarizing"
TALK = session(*(event for _ in range(20) for event in (user("u" * 40), model("a" * 40))))
TURN = session(
    user("u" * 40),
    *(event for _ in range(12) for event in (tool_call("read_file", path="p"), tool_result("r" * 40))),
    calls=tuple(ModelCall(at=at) for at in range(1, 26, 2)),
)


@pytest.mark.parametrize("policy", [SLIDING, SUMMARIZING])
def test_window_and_summary_equal_recorded_runs_of_the_library(policy):
    check_equals_the_library(policy)


def windowed(name, log=TALK, **settings):
    policy = get_policy(name, **{"max_tokens": 0, **settings})
    return run(policy, log, summary=40)


def spans(view):
    """Ranges of the log in a view, S for a summary."""
    return [(item.start, item.stop) if hasattr(item, "stop") else "S" for item in view]


def test_the_window_slides_to_the_messages_that_are_kept():
    trace = windowed(SLIDING, max_messages=10, keep_messages=4)
    assert [record.step for record in trace.compactions][:2] == [5, 8]  # 11 messages; then 1 + 4, and two a step
    assert spans(trace.compactions[0].after) == [(0, 1), (7, 11)]


def test_without_the_first_message_only_new_ones_are_kept():
    trace = windowed(SLIDING, max_messages=10, keep_messages=4, preserve_first_user_message=False)
    assert spans(trace.compactions[0].after) == [(7, 11)]


def test_at_least_the_newest_message_is_kept():
    trace = windowed(SLIDING, max_messages=10, keep_messages=0)
    assert spans(trace.compactions[0].after) == [(0, 1), (10, 11)]


def test_a_limit_below_what_is_kept_removes_nothing_at_first():
    trace = windowed(SLIDING, max_messages=6, keep_messages=12)
    assert trace.compactions[0].step == 7  # of 13 messages only the first would go, which stays
    assert spans(trace.compactions[0].after) == [(0, 1), (3, 15)]


def test_a_cut_never_parts_a_call_from_its_result():
    trace = windowed(SLIDING, TURN, max_messages=10, keep_messages=3)
    assert spans(trace.compactions[0].after) == [(0, 1), (7, 11)]


def test_tokens_can_say_what_is_kept():
    quiet = msgspec.structs.replace(TALK, calls=tuple(ModelCall(at=call.at) for call in TALK.calls))
    trace = windowed(SLIDING, quiet, max_messages=10, keep_tokens=25)
    assert spans(trace.compactions[0].after)[-1] == (8, 11)  # three of ten tokens each


def test_between_two_counted_answers_their_difference_says_what_messages_hold():
    calls = tuple(ModelCall(at=at, prompt_tokens=1_000 + 100 * at, output_tokens=10) for at in range(1, 40, 2))
    counted = msgspec.structs.replace(TALK, calls=calls)
    trace = windowed(SLIDING, counted, max_messages=10, keep_tokens=150)
    assert spans(trace.compactions[0].after)[-1] == (7, 11)  # by their texts all of them hold 110


def test_the_summary_is_behind_the_first_message():
    trace = windowed(SUMMARIZING, max_messages=10, keep_messages=4)
    assert spans(trace.compactions[0].after) == [(0, 1), "S", (7, 11)]
    assert spans(trace.compactions[0].passes[0].summariser_view) == [(0, 7)]


def test_a_later_summary_is_given_the_earlier_one():
    trace = windowed(SUMMARIZING, max_messages=10, keep_messages=4)
    assert spans(trace.compactions[1].passes[0].summariser_view)[:2] == [(0, 1), "S"]
    assert spans(trace.compactions[1].after).count("S") == 1


def test_within_a_turn_the_first_message_and_the_summary_are_counted_apart():
    within = windowed(SUMMARIZING, TURN, max_messages=10, keep_messages=4)
    across = windowed(SUMMARIZING, max_messages=10, keep_messages=4)
    assert [record.step for record in within.compactions][:2] == [5, 8]  # 1 + 1 + 4, and two a step
    assert [record.step for record in across.compactions][:2] == [5, 8]  # one message together with the summary


def test_messages_of_the_user_can_stay_beside_the_summary():
    settings = {"max_messages": 10, "keep_messages": 4, "keep_user_messages": True, "keep_user_messages_max_chars": 20}
    trace = windowed(SUMMARIZING, **settings)
    after = trace.compactions[0].after
    texts = [event.parts[0].text for event in materialise(after, TALK)]
    assert texts[1:] == ["u" * 15 + "[...]"] * 4 + ["u" * 40]


def test_messages_of_the_user_in_a_row_share_the_characters_that_stay():
    """0.62.0, `_bound_sequence`: they are one prompt; of 20 characters the first takes 12 and the second the rest, a
    third goes, and of a fourth only its picture is left."""
    shown = Event(Role.USER, (TextPart("gone"), MediaPart("image/png", 70)))
    row = [user("a" * 12), user("b" * 30), user("gone"), shown]
    log = session(*row, *(item for _ in range(3) for item in (model("m"), user("u"))), calls=(ModelCall(at=10),))
    settings = {"max_messages": 5, "keep_messages": 3, "keep_user_messages": True, "keep_user_messages_max_chars": 20}
    (record,) = run(get_policy(SUMMARIZING, max_tokens=0, **settings), log).compactions
    texts = [event.parts[0].text for event in materialise(record.after, log)[1:]]
    assert texts[:3] == ["a" * 12, "bbb[...]", ""]


def test_a_message_of_the_user_stays_without_the_results_beside_it():
    mixed = Event(Role.USER, (*tool_result("r" * 40).parts, TextPart("Now this")))
    rest = [item for _ in range(3) for item in (model("m"), user("u"))]
    log = session(user("a"), tool_call("read_file"), mixed, *rest, calls=(ModelCall(at=9),))
    settings = {"max_messages": 5, "keep_messages": 5, "keep_tokens": 0, "keep_user_messages": True}
    (record,) = run(get_policy(SUMMARIZING, max_tokens=0, **settings), log).compactions
    stayed = [event for event in materialise(record.after, log) if TextPart("Now this") in event.parts]
    assert [event.parts for event in stayed] == [(TextPart("Now this"),)]


def test_an_error_of_the_summariser_ends_the_run():
    policy = get_policy(SUMMARIZING, max_tokens=0, max_messages=10, keep_messages=4)
    trace = replay(Ledger.of(TALK), policy, window=200_000, summarizer=ScriptedSummaries((None,)))
    assert HELD_REASONS[trace.columns["held"][5]] == "the library raises an error here, and the run would end"


def test_an_empty_summary_is_an_error():
    policy = get_policy(SUMMARIZING, max_tokens=0, max_messages=10, keep_messages=4)
    trace = run(policy, TALK, summary=0)
    assert HELD_REASONS[trace.columns["held"][5]] == "the library raises an error here, and the run would end"


@pytest.mark.parametrize("policy", ["clear-tool-results", "sliding-window", "summarizing"])
@pytest.mark.parametrize(("context_window", "limit"), [(0, 5_000), (8_001, 4_000), (1, 1)])
def test_a_share_is_taken_of_the_window_that_is_set(policy, context_window, limit):
    settings = {"max_fraction": 0.5, "context_window": context_window}  # `max_tokens` has its default
    assert get_policy(f"pydantic-ai-{policy}", **settings).limit(10_000) == limit


@pytest.mark.parametrize("name", ["pydantic-ai-sliding-window", "pydantic-ai-summarizing"])
def test_the_users_first_message_stays_with_results_whose_call_goes(name):
    """The harness takes the first request with a prompt as a whole, as `find_first_user_message` does."""
    log = session(
        tool_call("read_file", path="p"),
        tool_result("r"),
        user("first"),
        *(event for _ in range(3) for event in (model("m"), user("u"))),
        calls=(ModelCall(at=9),),
    )
    trace = replay(Ledger.of(log), get_policy(name, max_tokens=0, max_messages=3, keep_messages=1), window=1_000_000)
    request = materialise(trace.view(0, 9), log)
    assert [part.call_id for event in request for part in event.parts if hasattr(part, "call_id")] != []
    assert not any(hasattr(part, "arguments") for event in request for part in event.parts)


# ---- tiers

TIERED = "pydantic-ai-tiered"


def test_tiers_equal_recorded_runs_of_the_library():
    check_equals_the_library(TIERED)


@pytest.mark.parametrize(
    ("target", "cleared", "summaries"),
    [(651, 0, 0), (650, 2, 0), (461, 2, 0), (460, 0, 1), (10, 0, 1)],
)
def test_a_summary_is_made_only_where_clearing_leaves_more_than_the_target(target, cleared, summaries):
    """pydantic-ai-harness 0.62.0, run: the tiers are asked one after the other, and what one removed is taken off."""
    log = msgspec.structs.replace(ROUNDS, calls=ROUNDS.calls[-1:])
    policy = get_policy(TIERED, max_tokens=target, keep_messages=3)
    trace = replay(Ledger.of(log), policy, window=1_000_000, summarizer=ScriptedSummaries((100,)))
    shown = [part.content for part in parts_of(materialise(trace.view(0, 11), log))]
    assert shown.count("[tool result cleared]") == cleared
    assert sum(one.summary_bytes > 0 for record in trace.compactions for one in record.passes) == summaries


def test_where_the_summariser_fails_nothing_stays_cleared():
    log = msgspec.structs.replace(ROUNDS, calls=ROUNDS.calls[-1:])
    policy = get_policy(TIERED, max_tokens=10, keep_messages=3)
    trace = replay(Ledger.of(log), policy, window=1_000_000, summarizer=ScriptedSummaries((None,)))
    assert HELD_REASONS[trace.columns["held"].item(0)].startswith("the library raises an error")
    assert tuple(materialise(trace.view(0, 11), log)) == log.events
