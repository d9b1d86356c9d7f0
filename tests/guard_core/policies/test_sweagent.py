"""SWE-agent's history processor omits what the original omits."""

import pytest

from guard_core.events import Event, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.policies import POLICIES, get_policy
from guard_core.replay import replay
from guard_core.requests import materialise
from guard_core.sessions import ModelCall, Session
from tests.guard_core.conformance.libraries import check_equals_the_library


def test_it_equals_recorded_runs_of_the_library():
    check_equals_the_library("sweagent-last-n")


def observations(count):
    """A task, and a command with an output of its number of lines each; one call after each output."""
    events = [Event(Role.USER, (TextPart("Fix it"),))]
    for number in range(1, count):
        events.append(Event(Role.MODEL, (TextPart("ls"), ToolCallPart("bash", {}, f"c{number}"))))
        events.append(Event(Role.USER, (ToolResultPart("bash", "line\n" * number, f"c{number}"),)))
    return Session(tuple(events), tuple(ModelCall(at=at) for at in range(1, len(events) + 1, 2)))


def omitted(session, **settings):
    """For every step, which observations are omitted."""
    trace = replay(Ledger.of(session), get_policy("sweagent-last-n", **settings), window=1_000)
    omissions = []
    for step, call in enumerate(session.calls):
        messages = materialise(trace.view(step, call.at), session)
        texts = [getattr(event.parts[-1], "content", "") for event in messages if event.role is Role.USER]
        omissions.append([number for number, text in enumerate(texts) if str(text).startswith("Old")])
    return omissions, trace


def test_the_first_and_the_newest_stay():
    omissions, trace = omitted(observations(6), n=2)
    assert omissions == [[], [], [], [1], [1, 2], [1, 2, 3]]
    assert trace.columns["fired"].tolist() == [0, 0, 0, 1, 1, 1]


def test_with_polling_a_request_begins_as_the_one_before_more_often():
    omissions, trace = omitted(observations(9), n=2, polling=3)
    assert omissions == [[], [], [], [], [], [1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3, 4, 5, 6]]
    assert trace.columns["fired"].tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 1]


def test_an_observation_as_long_as_the_line_in_its_place_is_omitted():
    line = "Old output ommitted (1 lines)"
    events = []
    for text in ("Fix it", "x" * len(line), "newest"):
        events += [Event(Role.USER, (TextPart(text),)), Event(Role.MODEL, (TextPart("y" * len(line)),))]
    session = Session(tuple(events), (ModelCall(at=5),))
    trace = replay(Ledger.of(session), get_policy("sweagent-last-n", profile="first", n=1), window=1_000)
    messages = materialise(trace.view(0, 5), session)
    assert trace.columns["fired"].tolist() == [1]
    assert [event.parts[0].text for event in messages[1:4]] == ["y" * len(line), line, "y" * len(line)]


@pytest.mark.parametrize(
    ("profile", "text"),
    [("current", "Old environment output: (1 lines omitted)"), ("first", "Old output ommitted (1 lines)")],
)
def test_an_omitted_observation_names_its_lines(profile, text):
    session = observations(4)
    trace = replay(Ledger.of(session), get_policy("sweagent-last-n", profile=profile, n=2), window=1_000)
    messages = materialise(trace.view(3, session.calls[3].at), session)
    assert messages[2].parts[0].content == text


def test_the_number_kept_says_that_the_library_has_no_default():
    assert "the library has no default" in POLICIES["sweagent-last-n"].setting("n").help
