"""The condenser of the OpenHands SDK keeps what the original keeps."""

import cProfile

import msgspec
import pytest

from guard_core.errors import SettingError
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.policies.openhands import _history, condenser_settings
from guard_core.replay import replay
from guard_core.requests import materialise
from guard_core.sessions import ModelCall
from guard_core.summaries.sizes import ScriptedSummaries
from guard_core.trace import HELD_REASONS
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.conformance.libraries import check_equals_the_library
from tests.guard_core.policies.tools import check_compacts, check_passes_through, run
from tests.profiling import calls_of

TALK = session(*(event for _ in range(20) for event in (user("u" * 40), model("a" * 40))))


def condenser(**settings):
    return get_policy("openhands", **{"max_size": 12, "keep_first": 2, **settings})


def at_last(trace, log):
    """The last request, a letter for each message: [ for a summary, of which only the size is known."""
    messages = materialise(trace.view(len(log.calls) - 1, log.calls[-1].at), log)
    letters = (message.parts[0] for message in messages)
    return "".join("c" if hasattr(part, "arguments") else getattr(part, "text", "r")[:1] for part in letters)


def test_it_equals_recorded_runs_of_the_library():
    check_equals_the_library("openhands")


def test_a_token_limit_of_zero_is_not_taken_for_none():
    # 1.58.0 leaves out only a limit of None: with 0 a list of 450 tokens is condensed four times before one call
    with pytest.raises(SettingError, match="max_tokens of 0 is not modelled"):
        condenser_settings({"max_tokens": 0})
    assert condenser_settings({"max_tokens": None}) == {"max_tokens": None}


def test_as_many_events_as_are_allowed_stay():
    short = session(*TALK.events[:12], calls=(ModelCall(at=11), ModelCall(at=12)))
    check_passes_through(condenser(), short)


def test_one_event_more_leaves_half_of_the_limit():
    trace = check_compacts(condenser(), TALK, at_step=6)  # 13 events
    assert trace.compactions[0].after[1].bytes == 2_000
    assert trace.columns["sdk_events"][5:8].tolist() == [11, 13, 8]  # 2, the summary, 3, and two new ones
    assert "13 events > max_size 12" in trace.compactions[0].reason


@pytest.mark.parametrize(("keep_first", "kept"), [(0, 0), (1, 1), (4, 4)])
def test_the_first_events_stay(keep_first, kept):
    trace = run(condenser(keep_first=keep_first), TALK)
    head = trace.compactions[0].after
    assert (head[0].stop if kept else 0) == kept
    assert head[bool(kept)].kind == "summary"


def rounds(count, reasoning=False):
    """A request, and calls with their results."""
    call, result = tool_call("read_file", "", path="p"), tool_result("r" * 40)
    if reasoning:
        thought = model("", reasoning="t" * 20).parts[:1]
        first = msgspec.structs.replace(call, parts=(*thought, *call.parts))
    else:
        first = call
    events = [user("u"), first, result, *(event for _ in range(count - 1) for event in (call, result))]
    return session(*events, calls=tuple(ModelCall(at=at) for at in range(1, len(events) + 1, 2)))


def test_a_cut_between_a_call_and_its_result_moves_behind_the_result():
    trace = run(condenser(keep_first=1), rounds(6))  # 13 events: 9 would go, and the tenth is the result of the ninth
    assert trace.compactions[0].after[-1].start % 2 == 1


def test_a_tool_loop_that_begins_with_thinking_is_one_unit():
    log = rounds(6, reasoning=True)
    assert at_last(run(condenser(keep_first=1), log), log) == "u["
    apart = run(condenser(keep_first=1, tool_loops=False), log)
    assert at_last(apart, log).startswith("u[cr")


def test_over_the_token_limit_half_of_it_is_left():
    trace = run(condenser(max_size=1_000, max_tokens=100), TALK, summary=40)
    record = trace.compactions[0]
    assert trace.columns["decision_tokens"][record.step] == 110  # 11 messages of 40 characters
    assert trace.columns["threshold"][record.step] == 100
    assert [segment.stop for segment in record.after if hasattr(segment, "stop")] == [2, 11]
    assert record.after[-1].start == 9  # 70 of 110 tokens go, and 60 are reached with seven messages


def test_a_request_for_a_condensation_halves_the_events():
    trace = run(condenser(max_size=1_000, request_at=100), TALK, summary=40)
    record = trace.compactions[0]
    assert record.after[-1].stop - record.after[-1].start == 11 // 2 - 2 - 1
    assert record.reason == "a condensation was requested"


def test_where_nothing_fits_everything_but_the_system_prompt_is_summarised():
    log = session(user("u" * 40), model("a" * 40), user("u" * 4_000), calls=(ModelCall(at=1), ModelCall(at=3)))
    trace = run(condenser(max_size=1_000, keep_first=3, max_tokens=500), log, summary=40)
    assert at_last(trace, log) == "["


def test_a_refused_request_is_condensed():
    log = session(*TALK.events, user("u" * 3_000), model("a"), window=1_000)
    trace = run(condenser(max_size=1_000, max_tokens=100_000), log, summary=40)
    assert trace.compactions
    assert trace.compactions[-1].tokens_after < trace.compactions[-1].tokens_before


def held(trace):
    return {HELD_REASONS[number] for number in trace.columns["held"].tolist()} - {""}


def failing(log, **settings):
    return replay(Ledger.of(log), condenser(**settings), window=200_000, summarizer=ScriptedSummaries((None,)))


def test_a_failing_summariser_is_asked_again_at_every_step_while_only_events_are_too_many():
    trace = failing(TALK)
    assert held(trace) == {"the summariser failed"}
    assert (trace.columns["held"][6:] > 0).all()
    assert not trace.compactions


def test_a_failing_summariser_ends_the_run_over_the_token_limit():
    trace = failing(TALK, max_tokens=100)
    assert "the library raises an error here, and the run would end" in held(trace)
    assert not trace.compactions


def test_the_decision_is_explained_by_events_and_tokens():
    policy = condenser()
    trace = run(policy, TALK)
    terms = {term.name: term for term in policy.explain(trace, 6)}
    assert terms["events"].expression == "13 > 12"
    assert terms["verdict"].expression.endswith("it acts")


def test_a_list_is_looked_at_message_by_message_only_to_condense_it_and_to_see_that_this_was_enough():
    log = session(*(event for number in range(60) for event in (user(f"ask {number}"), model("done"))))
    profile = cProfile.Profile()
    trace = profile.runcall(run, get_policy("openhands", max_size=20), log, window=10**6)
    assert calls_of(profile, _history) == 2 * len(trace.compactions) > 0
