"""Crush fires where its buffer is reached, and sends the latest request again."""

from __future__ import annotations

import msgspec
import pytest

from guard_core.estimation.usage import usage_for
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.policies.crush import RESUME_FRAME_BYTES
from guard_core.replay import observe_recorded, replay
from guard_core.sessions import ModelCall
from guard_core.summaries.sizes import FixedSummaries, ScriptedSummaries
from guard_core.trace import SUMMARISER_FAILED
from guard_core.views import Span, Synthetic
from tests.builders import model, session, tool_call, tool_result, user


def steps(*calls):
    """One turn: a call of a tool and its result for each pair of prompt and output tokens."""
    events, model_calls = [user("Read it all")], []
    for number, (prompt, output) in enumerate(calls):
        model_calls.append(ModelCall(len(events), len(events), prompt, output_tokens=output))
        events += [tool_call("read", f"c{number}"), tool_result("y" * 400, "read", f"c{number}")]
    return session(*events, calls=tuple(model_calls))


def replayed(log, window=128_000, summarizer=None, **settings):
    ledger = Ledger.of(log)
    policy = get_policy("crush", **settings)
    usage = usage_for(ledger, None)
    return replay(ledger, policy, window=window, usage=usage, summarizer=summarizer or FixedSummaries(2_400))


@pytest.mark.parametrize(
    ("window", "threshold"),
    [
        (8_000, 6_400),
        (32_000, 25_600),
        (200_000, 160_000),
        (200_001, 180_001),
        (272_000, 252_000),
        (1_000_000, 980_000),
    ],
)
def test_the_buffer_is_a_share_of_a_small_window_and_fixed_in_a_large_one(window, threshold):
    assert get_policy("crush").threshold(window) == threshold


@pytest.mark.parametrize(("output", "fires"), [(7_399, 0), (7_400, 1)])
def test_prompt_and_output_of_the_last_step_are_compared(output, fires):
    trace = replayed(steps((95_000, output), (1_000, 5)))
    assert trace.columns["fired"].tolist() == [0, fires]


def test_before_october_2025_it_fired_above_four_fifths_of_the_window():
    for tokens, fires in ((102_400, 0), (102_401, 1)):
        log = session(
            user("a"),
            model("b"),
            user("c"),
            model("d"),
            user("e"),
            calls=(
                ModelCall(1, 1, tokens, output_tokens=0),
                ModelCall(3, 3, 10, output_tokens=0),
                ModelCall(5, None, 10),
            ),
        )
        assert replayed(log, profile="80-percent").columns["fired"].tolist() == [0, 0, fires]


def test_a_stale_count_is_that_of_the_beginning_of_the_turn():
    log = steps((95_000, 0), (120_000, 0), (121_000, 0))
    assert replayed(log).columns["fired"].tolist() == [0, 0, 1]
    stale = replayed(log, profile="stale").columns
    assert (stale["decision_tokens"].tolist(), stale["fired"].tolist()) == ([-1, -1, -1], [0, 0, 0])


def test_tokens_written_to_the_cache_are_not_counted():
    log = steps((120_000, 0), (1_000, 0))
    calls = (msgspec.structs.replace(log.calls[0], cache_write_tokens=30_000), log.calls[1])
    trace = replayed(msgspec.structs.replace(log, calls=calls))
    assert (trace.columns["decision_tokens"][1], trace.columns["fired"][1]) == (90_000, 0)


def test_a_large_result_is_not_seen_and_a_refused_request_is_not_recovered():
    log = steps((979_000, 0), (1_039_000, 0), (1_039_000, 0))
    trace = observe_recorded(Ledger.of(log), get_policy("crush"), window=1_000_000)
    assert trace.columns["fired"].tolist() == [0, 0, 1]  # only once the provider answered above its window
    assert replayed(log, window=1_000_000).columns["overflow"].tolist() == [0, 1, 0]


def test_within_a_turn_a_summary_and_the_request_replace_everything():
    record = replayed(steps((120_000, 0), (1_000, 0))).compactions[0]
    request = Synthetic("request sent again", RESUME_FRAME_BYTES + len("Read it all"))
    assert record.after == (Synthetic("summary", 2_400), request)
    assert record.passes[0].summariser_view == (Span(0, 3),)


def test_at_the_end_of_a_turn_the_summary_stands_alone_before_the_new_message():
    log = session(
        user("first"),
        model("done"),
        user("second"),
        calls=(ModelCall(1, 1, 120_000, output_tokens=0), ModelCall(3, None, 1_000)),
    )
    assert replayed(log).compactions[0].after == (Synthetic("summary", 2_400), Span(2, 3))


def test_a_failed_summary_leaves_everything_and_is_tried_again_at_the_next_step():
    trace = replayed(steps((120_000, 0), (121_000, 0), (1_000, 0)), summarizer=ScriptedSummaries((None, 2_400)))
    assert trace.columns["held"][1] == SUMMARISER_FAILED
    assert trace.columns["fired"].tolist() == [0, 0, 1]
