"""Sessions whose bills can be checked by hand."""

from __future__ import annotations

from collections.abc import Sequence

from guard_core.events import Event
from guard_core.findings.facts import Facts
from guard_core.ledger import Ledger
from guard_core.outcomes.bill import Bill, Prices, bill_of
from guard_core.outcomes.sent import SentRequests
from guard_core.sessions import ModelCall, RecordedCompaction, Session
from guard_core.windows.window_evidence import judge_session
from tests.builders import model, tool_result, user

SONNET = "claude-sonnet-4-5"


def counted(
    prompts: Sequence[int | None],
    *,
    names: Sequence[str] = (),
    seconds: Sequence[float] = (),
    compactions: tuple[RecordedCompaction, ...] = (),
    cached: Sequence[int | None] = (),
    output: int | None = 0,
) -> Session:
    """One call per prompt, each with an answer and a tool result after it; call k is built over 1 + 2k events."""
    times = list(seconds) or [1_700_000_000.0 + 10 * k for k in range(len(prompts))]
    events: list[Event] = [user("Never push to main. Thanks.", timestamp=times[0] if times else None)]
    calls = []
    for number, prompt in enumerate(prompts):
        read = cached[number] if cached else None
        name = names[number] if names else SONNET
        calls.append(ModelCall(len(events), len(events), prompt, read, None, output, name, times[number]))
        after = times[number + 1] if number + 1 < len(times) else times[number]
        events += [model("on it", timestamp=times[number]), _at(tool_result("x" * 400, id=str(number)), after)]
    return Session(tuple(events), tuple(calls), compactions, model=calls[0].model if calls else "")


def _at(event: Event, moment: float) -> Event:
    return Event(event.role, event.parts, timestamp=moment)


def facts_of(session: Session) -> Facts:
    return Facts.of(session, judge_session(session))


def recorded_bill(session: Session) -> tuple[SentRequests, Bill]:
    """The recording's requests, and their bill as the cache is modelled."""
    facts = facts_of(session)
    sent = SentRequests.recorded(facts)
    return sent, bill_of(sent, Prices.of(session, facts.ledger))


def prices_of(session: Session) -> Prices:
    return Prices.of(session, Ledger.of(session))


def came_since(sent: SentRequests, step: int) -> int:
    """Tokens of the events between the request before a step and that step's, as they are attributed."""
    calls = sent.facts.session.calls
    return int(sent.facts.attribution.tokens[calls[step - 1].at : calls[step].at].sum())
