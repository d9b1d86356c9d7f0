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
from inspector.pages.running.lately import GrowingSession
from inspector.pages.shared.kinds import kind_name
from inspector.pages.shared.numbers import DASH, percent, step_number, tokens
from inspector.pages.shared.parts import in_order
from inspector.storage.outlook import outlook_of

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
    """One running agent. `fill` is the share of the window that the last reported prompt filled, -1 where the provider
    has reported none."""

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
    """The last count of a provider beside the window, and the threshold of the agent's own rule where it is known."""
    session, stream = one.session, one.stream
    outlook, window = outlook_of(session), session.effective_window
    count = stream.prompt_tokens if stream else outlook.prompt_tokens
    fill = -1.0 if count is None or window <= 0 else count / window
    threshold = session.threshold if session.threshold_source == "rule" else 0
    left = DASH
    if count is not None and threshold:
        left = tokens(threshold - count) if count < threshold else "reached"
    seconds = max(0, int((now - one.heard).total_seconds()))  # of clocks that differ, just now
    return RunningAgent(
        title=in_order(session.title),
        url=session.get_absolute_url(),
        agent=agent_name(session.agent, session.format),
        model=session.model or DASH,
        fill=fill,
        percent=DASH if fill < 0 else percent(count, window),
        width=f"{min(100.0, max(0.0, 100 * fill)):.1f}",
        level="over" if fill > 1 else "near" if fill >= NEAR_MISS_SHARE else "fine",
        prompt=DASH if count is None else f"{tokens(count)} of {tokens(window)}",
        left=left,
        calls_left=outlook.left.words if outlook.left else "",
        steps=session.calls,
        compactions=session.compactions,
        heard=one.heard,
        ago=f"{seconds} s ago" if seconds < MINUTE else f"{seconds // MINUTE} min ago",
        trouble=stream.trouble if stream else "",
        alerts=[_mark(session, alert) for alert in outlook.alerts[:SHOWN_ALERTS]],
    )


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
