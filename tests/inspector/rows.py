"""Rows of the session list, made without a recording behind them."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from itertools import count
from typing import Any

from inspector.models import Recording, Session, default_project
from inspector.models.sessions import ENGINE

_numbers = count()


def recording_row(**values: Any) -> Recording:
    """A recording whose bytes nobody asks for."""
    digest = hashlib.sha256(str(next(_numbers)).encode()).hexdigest()
    project = values.pop("project", None) or default_project()
    return Recording.objects.of(project).create(**{"sha256": digest, "name": "a.jsonl", "size": 120_000, **values})


def session_row(title: str = "a session", size: int = 120_000, **values: Any) -> Session:
    """A session as the list sees it, assessed: 200,000 tokens of window, ten calls, a peak of 50 %."""
    peak = values.get("prompt_tokens_max", 100_000)
    project = values.pop("project", None) or default_project()
    given = {
        "recording": values.pop("recording", None) or recording_row(size=size, project=project),
        "format": "claude-code",
        "agent": "coder",
        "model": "claude-sonnet-4",
        "window": 200_000,
        "window_source": "model table",
        "calls": 10,
        "reported_calls": 10,
        "prompt_tokens_max": peak,
        "peak_tokens": peak,
        "peak_source": "recorded" if peak else "",
        "severity": Session.Severity.FINE,
        "verdict": "Healthy.",
        "assessed_by": ENGINE,
        "assessed_window": values.get("window_override") or values.get("window", 200_000),
        "prompt_tokens_sum": 600_000,
        "started_at": datetime(2026, 3, 1, tzinfo=UTC),
    }
    return Session.objects.of(project).create(title=title, **{**given, **values})
