"""What the list of running agents shows of each."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.urls import reverse

from guard_core.agent_names import agent_name
from guard_core.findings import NEAR_MISS_SHARE
from guard_core.findings.arising import Alert
from guard_core.findings.claims import ERROR
from inspector.models import Session
from inspector.pages.shared.kinds import kind_name
from inspector.pages.shared.lately import GrowingSession
from inspector.pages.shared.numbers import DASH, percent, step_number, tokens
from inspector.pages.shared.parts import in_order
from inspector.storage.outlook import LastPrompt, outlook_of

MINUTE = 60  # seconds
SHOWN_ALERTS = 3  # of one agent, the latest


class RunningMark(NamedTuple):
    """A near miss, overflow or loop of a running agent, with the last step at which it occurred."""

    key: str
    name: str
    step: int
    sentence: str
    url: str
    level: str


class RunningAgent(NamedTuple):
    """One running agent. `fill` is the share that the last reported prompt filled of the window of its call's model, -1
    where the provider has reported none, or that window is not known."""

    title: str
    url: str
    agent: str
    model: str
    fill: float
    percent: str
    width: str
    level: str
    prompt: str  # tokens, as words
    left: str  # tokens to the threshold of the own rule
    calls_left: str  # how many calls that is, with the range
    steps: int
    compactions: int
    heard: datetime
    ago: str  # how long that is ago
    trouble: str
    alerts: list[RunningMark]


def row(one: GrowingSession, now: datetime) -> RunningAgent:
    """The last count of a provider beside the window of that call's model, and what is left to the threshold of the
    agent's own rule, by the count that the rule compares, where it is known; not beside a call of a model with another
    window, whose threshold may be another one."""
    session, stream = one.session, one.stream
    outlook = outlook_of(session)
    last = outlook.last
    if last is None and stream is not None and stream.prompt_tokens:  # its columns are made again
        last = LastPrompt(stream.prompt_tokens, 0, is_own=True)
    room = outlook.left if last and last.is_own else None
    left, fill = DASH, -1.0
    if room:
        left = tokens(room.tokens) if room.tokens > 0 else "reached"
    if last and last.window > 0:
        fill = last.tokens / last.window
    seconds = max(0, int((now - one.heard).total_seconds()))  # of clocks that differ, just now
    return RunningAgent(
        title=in_order(session.title),
        url=session.get_absolute_url(),
        agent=agent_name(session.agent, session.format),
        model=session.model or DASH,
        fill=fill,
        percent=DASH if last is None else percent(last.tokens, last.window),
        width=f"{min(100.0, max(0.0, 100 * fill)):.1f}",
        level="over" if fill > 1 else "near" if fill >= NEAR_MISS_SHARE else "fine",
        prompt=_prompt(last),
        left=left,
        calls_left=room.calls.words if room and room.calls else "",
        steps=session.calls,
        compactions=session.compactions,
        heard=one.heard,
        ago=f"{seconds} s ago" if seconds < MINUTE else f"{seconds // MINUTE} min ago",
        trouble=stream.trouble if stream else "",
        alerts=[_mark(session, alert) for alert in outlook.alerts[:SHOWN_ALERTS]],
    )


def _prompt(last: LastPrompt | None) -> str:
    """The last counted prompt in words: of which window, and whose that is, or that it is assumed."""
    if last is None:
        return DASH
    if not last.window:
        return tokens(last.tokens) + ("" if last.is_own else "; the window of that call's model is not known")
    whose = (", assumed" if last.is_assumed else "") if last.is_own else ", the window of that call's model"
    return f"{tokens(last.tokens)} of {tokens(last.window)}{whose}"


def _mark(session: Session, alert: Alert) -> RunningMark:
    kind, step = alert.finding.kind, step_number(alert.last)
    return RunningMark(
        key=f"{session.pk} {kind} {alert.first}",
        name=kind_name(kind),
        step=step,
        sentence=alert.finding.sentence,
        url=f"{reverse('session_steps', args=[session.pk])}?at={step}",
        level="error" if alert.finding.severity == ERROR else "warn",
    )
