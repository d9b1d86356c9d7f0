"""What the list of running agents shows of each."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from guard_core.findings import NEAR_MISS_SHARE
from inspector.models import Session, Stream
from inspector.pages.shared.numbers import DASH, percent, tokens


class Row(NamedTuple):
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
    steps: int
    compactions: int
    heard: datetime
    trouble: str


def row(session: Session, stream: Stream) -> Row:
    """The last count of a provider beside the window, and the threshold of the agent's own rule where it is known."""
    count, window = stream.prompt_tokens, session.effective_window
    fill = -1.0 if count is None or window <= 0 else count / window
    threshold = session.threshold if session.threshold_source == "rule" else 0
    return Row(
        title=session.title,
        url=session.get_absolute_url(),
        agent=session.agent,
        model=session.model or DASH,
        fill=fill,
        percent=DASH if fill < 0 else percent(count, window),
        width=f"{min(100.0, max(0.0, 100 * fill)):.1f}",
        level="over" if fill > 1 else "near" if fill >= NEAR_MISS_SHARE else "fine",
        prompt=DASH if count is None else f"{tokens(count)} of {tokens(window)}",
        left=_left(count, threshold),
        steps=session.calls,
        compactions=session.compactions,
        heard=stream.heard,
        trouble=stream.trouble,
    )


def _left(count: int | None, threshold: int) -> str:
    if count is None or not threshold:
        return DASH
    return tokens(threshold - count) if count < threshold else "reached"
