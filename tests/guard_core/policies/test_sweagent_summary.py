"""The summaries of the Complexity Trap: when a checkpoint is made, and which checkpoints a request has."""

import pytest

from guard_core.events import part_text
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.requests import materialise
from guard_core.sessions import ModelCall
from guard_core.summaries.sizes import ScriptedSummaries
from guard_core.trace import SUMMARISER_FAILED
from guard_core.views import Span, Synthetic
from tests.builders import session, tool_call, tool_result, user
from tests.guard_core.policies.tools import run


def turns(count):
    """A task and so many turns, with a call before each of them and after the last."""
    events = [user("Fix it")]
    for number in range(count):
        events += [tool_call("bash", f"c{number}"), tool_result("line\n", "bash", f"c{number}")]
    return session(*events, calls=tuple(ModelCall(at) for at in range(1, len(events) + 1, 2)))


def views(log, trace):
    """The view of every request, the numbers of its checkpoints in place of them."""
    ledger = Ledger.of(log)
    return [
        tuple(item.bytes - 33 if isinstance(item, Synthetic) else item for item in trace.view(step, call.at, ledger))
        for step, call in enumerate(log.calls)
    ]


@pytest.mark.parametrize(("count", "steps"), [(30, []), (31, [31]), (51, [31]), (52, [31, 52])])
def test_21_turns_are_summarised_where_there_are_10_more(count, steps):
    trace = run(get_policy("sweagent-summary"), turns(count), window=200_000)
    assert [record.step for record in trace.compactions] == steps
    if steps:
        assert trace.compactions[0].passes[0].summariser_view == (Span(0, 1), Span(1, 43))
        assert trace.compactions[0].after[2:] == (Span(43, 63),)


@pytest.mark.parametrize(("static", "at_once"), [(True, (2,)), (False, (1, 2))])
def test_only_the_request_of_a_new_checkpoint_is_without_earlier_ones(static, at_once):
    policy = get_policy("sweagent-summary", n=2, keep_last_m_turns=1, enable_static_checkpointing=static)
    log = turns(6)
    trace = run(policy, log, window=200_000, summarizer=ScriptedSummaries((1, 2, 3)))
    requests = views(log, trace)
    assert requests[3:5] == [(Span(0, 1), 1, Span(5, 7)), (Span(0, 1), 1, Span(5, 9))]
    assert requests[5] == (Span(0, 1), *at_once, Span(9, 11))
    assert requests[6] == (Span(0, 1), 1, 2, Span(9, 13))
    assert isinstance(trace.compactions[1].passes[0].summariser_view[0], Synthetic)
    assert trace.compactions[1].passes[0].summariser_view[1:] == (Span(5, 9),)


def test_a_summary_that_fails_is_asked_for_again():
    policy = get_policy("sweagent-summary", n=2, keep_last_m_turns=1)
    trace = run(policy, turns(4), window=200_000, summarizer=ScriptedSummaries((None, 1)))
    assert trace.columns["held"][3] == SUMMARISER_FAILED
    assert [record.step for record in trace.compactions] == [4]


def test_the_hybrid_masks_old_observations_and_summarises_later():
    policy = get_policy("sweagent-summary", profile="hybrid")
    assert (policy.settings.n, policy.settings.keep_last_m_turns, policy.settings.keep_observations) == (43, 10, 10)
    log = turns(54)
    trace = run(policy, log, window=200_000)
    summaries = [record.step for record in trace.compactions if record.passes[0].summariser_view]
    assert summaries == [53]
    assert masked(log, trace, 10) == []
    assert masked(log, trace, 11) == [2]  # of 12 observations the task and the newest ten stay


def masked(log, trace, step):
    """The messages of a request that are masked."""
    sent = materialise(trace.view(step, log.calls[step].at, Ledger.of(log)), log)
    texts = [str(part_text(event.parts[0])) for event in sent]
    return [place for place, text in enumerate(texts) if text.startswith("Old environment output: (")]


def test_a_checkpoint_of_the_hybrid_is_made_of_whole_observations():
    policy = get_policy("sweagent-summary", profile="hybrid", n=4, keep_last_m_turns=2, keep_observations=2)
    log = turns(7)
    trace = run(policy, log, window=200_000)
    (record,) = (record for record in trace.compactions if record.passes[0].summariser_view)
    assert record.step == 6
    assert record.passes[0].summariser_view == (Span(0, 1), Span(1, 9))
    assert masked(log, trace, 6) == []  # the task and two observations are left
    assert masked(log, trace, 7) == [3]
