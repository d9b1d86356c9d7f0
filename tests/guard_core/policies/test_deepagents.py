"""Deep Agents' summarization does what the library does."""

import pytest

from guard_core.events import Event, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.replay import replay
from guard_core.requests import materialise
from guard_core.sessions import ModelCall, Session
from guard_core.summaries.sizes import FixedSummaries
from guard_core.trace import RAISED
from guard_core.usage import RatioUsage
from tests.guard_core.conformance.libraries import check_equals_the_library


def test_it_equals_recorded_runs_of_the_library():
    check_equals_the_library("deepagents-summarization")


def user(text):
    return Event(Role.USER, (TextPart(text),))


def call(id_, **arguments):
    return Event(Role.MODEL, (ToolCallPart("read_file", arguments, id_),))


def result(id_, text):
    return Event(Role.USER, (ToolResultPart("read_file", text, id_),))


def replayed(events, window=1_000, texts=True, usage=None, **settings):
    session = Session(tuple(events), (ModelCall(at=len(events)),))
    trace = replay(
        Ledger.of(session),
        get_policy("deepagents-summarization", **settings),
        window=window,
        usage=usage,
        summarizer=FixedSummaries(100),
        session=session if texts else None,
    )
    return trace, materialise(trace.view(0, len(events)), session)


LINES = "\n".join("line" for _ in range(4_000))
LARGE = [user("Go"), call("a", path="x"), result("a", LINES)]


def size_of(message):
    return len(message.parts[0].content)


def test_a_result_at_the_end_moves_to_a_file_where_the_request_does_not_fit():
    trace, messages = replayed(LARGE)
    assert size_of(messages[-1]) < 1_000
    assert trace.compactions[0].after[-1].form.startswith("moved to a file")


def test_without_texts_the_lines_of_a_result_are_taken_as_equally_long():
    _, with_texts = replayed(LARGE)
    _, without = replayed(LARGE, texts=False)
    assert abs(size_of(with_texts[-1]) - size_of(without[-1])) <= 10


def test_of_a_file_that_was_read_the_beginning_stays():
    _, messages = replayed([user("Go"), call("a", file_path="/x.py"), result("a", "x" * 40_000)], window=3_000)
    assert 4_000 < size_of(messages[-1]) < 4_500


def test_a_request_that_does_not_fit_even_then_raises():
    trace, messages = replayed([user("Go"), call("a"), result("a", "ok"), user("x" * 40_000)])
    assert trace.columns["held"].tolist() == [RAISED]
    assert len(messages) == 4


def test_a_refused_request_is_summarised_once():
    settings = {"profile": "window-not-known", "keep": "messages 1"}
    events = [user("x" * 8_000), Event(Role.MODEL, (TextPart("y" * 8_000),)), user("And now?")]
    trace, messages = replayed(events, window=1_000, usage=RatioUsage(1.0), **settings)
    assert trace.columns["overflow"].tolist() == [1]
    assert [record.point for record in trace.compactions] == ["on an overflow"]
    assert len(messages) == 2


@pytest.mark.parametrize("profile", ["factory", "window-not-known", "constructor"])
def test_what_is_under_the_trigger_stays(profile):
    trace, _ = replayed([user("x" * 400), call("a"), result("a", "ok")], window=10_000, profile=profile)
    assert trace.compactions == ()
