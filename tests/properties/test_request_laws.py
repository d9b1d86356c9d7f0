"""Laws of conversations rebuilt from requests: every recorded request can be told again from the session."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from guard_core.events import Event, Role, TextPart
from guard_core.ledger import Ledger
from guard_core.recordings.reading.conversations import threads_of
from guard_core.recordings.reading.limits import Limits
from guard_core.recordings.reading.requests import Request, message_key
from guard_core.sessions import ModelCall, Session
from guard_core.views import Inserted, Span

STEPS = st.lists(st.sampled_from(["grow", "grow", "grow", "summarise", "trim"]), min_size=1, max_size=25)


def message(role: Role, number: int, word: str) -> Event:
    return Event(role, (TextPart(f"{word} {number}"),))


def requests(steps: list[str]) -> list[Request]:
    """What an agent would send that grows, summarises or trims its history before each call."""
    history = [message(Role.USER, 0, "task")]
    sent = []
    for number, step in enumerate(steps, 1):
        if step == "summarise" and len(history) > 3:
            history = [history[0], message(Role.USER, number, "summary"), *history[-2:]]
        elif step == "trim" and len(history) > 5:
            history = [history[0], *history[3:]]
        history = [*history, message(Role.USER, number, "more")]
        answer = message(Role.MODEL, number, "answer")
        sent.append(Request(tuple(history), ModelCall(at=0, prompt_tokens=len(history)), answer))
        history = [*history, answer]
    return sent


def told_again(session: Session, step: int) -> list[bytes]:
    """The request of a step, from the log and the recorded compactions."""
    view, epoch = Ledger.of(session).recorded_view(step)
    messages: list[Event] = []
    for segment in view:
        if isinstance(segment, Span):
            messages.extend(session.events[segment.start : segment.stop])
        elif isinstance(segment, Inserted):
            messages.append(session.compactions[epoch].messages[segment.index])
    return [message_key(event) for event in messages]


@given(STEPS)
def test_every_request_can_be_told_again_from_the_session(steps):
    sent = requests(steps)
    threads = threads_of(sent)
    session = threads[0].session("x", Limits())

    assert len(threads) == 1
    for step, request in enumerate(sent):
        assert told_again(session, step) == [message_key(event) for event in request.messages]


@given(STEPS)
def test_the_log_holds_each_message_once_and_no_summary(steps):
    session = threads_of(requests(steps))[0].session("x", Limits())
    keys = [message_key(event) for event in session.events]
    texts = [part.text for event in session.events for part in event.parts if isinstance(part, TextPart)]

    assert len(keys) == len(set(keys))
    assert not any(text.startswith("summary") for text in texts)
