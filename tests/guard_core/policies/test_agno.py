"""Agno's compression of tool results sends what the original sends."""

import pytest

from guard_core.errors import SummaryFailed
from guard_core.events import Event, Role, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.policies.agno import agno_settings
from guard_core.replay import make_job, replay
from guard_core.requests import materialise
from guard_core.sessions import ModelCall
from guard_core.summaries.base import Summary
from guard_core.summaries.sizes import FixedSummaries, RecordedSummaries, ScriptedSummaries
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.conformance.libraries import check_equals_the_library

NAME = "agno-compress-tool-results"
ROUNDS = session(
    user("u"),
    *(event for _ in range(4) for event in (tool_call(), tool_result("r" * 600))),
    model("done"),
    calls=tuple(ModelCall(at=at) for at in (1, 3, 5, 7, 9)),
)


def test_it_equals_recorded_runs_of_the_library():
    check_equals_the_library(NAME)


@pytest.mark.parametrize("limit", [0, -5])
def test_a_limit_of_zero_or_less_is_not_none(limit):
    # 3.1.10 asks `is not None`: each result is compressed at once
    assert agno_settings({"compress_tool_results_limit": limit}) == {"compress_tool_results_limit": 1}
    given = {"compress_tool_results_limit": None, "compress_token_limit": limit}
    assert agno_settings(given) == {"compress_tool_results_limit": None, "compress_token_limit": 1}


def replayed(summarizer, log=ROUNDS, **settings):
    return replay(Ledger.of(log), get_policy(NAME, **settings), window=1_000_000, summarizer=summarizer)


def results(trace, step, log=ROUNDS):
    sent = materialise(trace.view(step, log.calls[step].at), log)
    return [part.content for event in sent for part in event.parts if hasattr(part, "content")]


@pytest.mark.parametrize(
    ("settings", "first"),
    [
        ({}, 3),
        ({"compress_tool_results_limit": 2}, 2),
        ({"compress_token_limit": 150}, 1),
        ({"compress_token_limit": 10_000}, None),  # the number of results matters no longer
        ({"compress_token_limit": 10_000, "compress_tool_results_limit": 4}, 4),
    ],
)
def test_all_results_that_are_not_compressed_yet_are_at_a_limit(settings, first):
    trace = replayed(FixedSummaries(50), **settings)
    assert [record.step for record in trace.compactions][:1] == ([] if first is None else [first])
    if first is not None:
        assert [len(text) for text in results(trace, first)] == [50] * first
        assert len(trace.compactions[0].passes) == first


@pytest.mark.parametrize("settings", [{}, {"compress_tool_results_limit": 1}, {"compress_token_limit": 1}])
def test_switched_off_it_compresses_nothing(settings):
    assert len(replayed(FixedSummaries(60), **settings).compactions) > 0
    trace = replayed(FixedSummaries(60), compress_tool_results=False, **settings)
    assert not trace.compactions
    assert trace.view(4, 9) == replayed(FixedSummaries(60), compress_tool_results_limit=9).view(4, 9)


def test_a_compressed_result_stays_and_is_not_asked_for_again():
    trace = replayed(FixedSummaries(50))
    assert [len(text) for text in results(trace, 4)] == [50, 50, 50, 600]
    assert [len(record.passes) for record in trace.compactions] == [3]


def test_an_answer_as_long_as_the_result_takes_its_place():
    assert results(replayed(FixedSummaries(600)), 3) != results(replayed(FixedSummaries(50)), 2)
    assert "r" * 600 not in results(replayed(FixedSummaries(600)), 3)


def test_a_failed_call_leaves_the_whole_result_behind_its_tool():
    trace = replayed(ScriptedSummaries((None,)))
    assert results(trace, 3) == ["Tool: read_file\n" + "r" * 600] * 3
    assert [item.failed for item in trace.compactions[0].passes] == [True] * 3


def test_after_an_empty_answer_a_result_is_asked_for_again():
    trace = replayed(ScriptedSummaries((50, 0, 50, 40)))
    assert [len(text) for text in results(trace, 3)] == [50, 600, 50]
    assert [len(text) for text in results(trace, 4)] == [50, 600, 50, 600]  # two are fewer than the limit
    assert len(replayed(ScriptedSummaries((0,))).compactions) == 0


class Writer:
    """A summariser whose text is known."""

    name = "writer"

    def summarise(self, request):
        if request.call == 1:
            raise SummaryFailed("no")
        return Summary(4, "brie")


def test_results_of_one_event_are_asked_for_one_by_one():
    three = Event(Role.USER, tuple(ToolResultPart("read_file", letter * 600) for letter in "abc"))
    log = session(user("u"), tool_call(), three, calls=(ModelCall(at=3),))
    trace = replayed(Writer(), log)
    assert results(trace, 0, log) == ["brie", "Tool: read_file\n" + "b" * 600, "brie"]
    given = [materialise(item.summariser_view, log)[0].parts for item in trace.compactions[0].passes]
    assert [len(parts) for parts in given] == [1, 1, 1]


def test_a_recorded_summary_of_a_whole_session_makes_no_result_longer():
    trace = replayed(RecordedSummaries((50_000,)))
    plain = replayed(FixedSummaries(50_000))
    assert trace.columns["heuristic_sent"].max() <= trace.columns["heuristic_built"].max()
    assert plain.columns["heuristic_sent"].max() > plain.columns["heuristic_built"].max()


def test_what_it_does_in_a_run_of_steps_is_decided_at_once():
    rounds = (event for _ in range(9) for event in (tool_call(), tool_result("r" * 600)))
    log = session(user("u"), *rounds, calls=tuple(ModelCall(at=3 + 2 * number) for number in range(9)))
    job = make_job(Ledger.of(log), get_policy(NAME), 10_000, summarizer=FixedSummaries(100))
    run = job.policy.scan(job.run, 0, 9, job.policy.start())
    assert run.columns["fired"].tolist() == [0, 0, 1] * 3
    assert [len(record.passes) for record in run.compactions] == [3, 3, 3]
