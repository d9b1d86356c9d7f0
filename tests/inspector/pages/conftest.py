"""Stored sessions for the tests of pages."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

import pytest

from guard_core.estimation.attribution import attribute
from guard_core.findings import Facts, request_words
from guard_core.ledger import Ledger
from guard_core.recordings import read
from guard_core.sessions import Provenance, Session, Sourced
from guard_core.windows.window_evidence import judge_session
from inspector.models import Recording, default_project
from inspector.models import Session as Row
from inspector.storage.counts import session_counts
from inspector.storage.storing import store_session
from tests.builders import bundled

LONG = Path(__file__).parents[3] / "../shared/samples/claude-code/long-2-compactions.jsonl"


class Counted(NamedTuple):
    """What an import counts of a session, the columns of its row that show it, and its window."""

    facts: Facts
    columns: dict[str, Any]
    window: Sourced


def counted(value: Session, window: int = 200_000) -> Counted:
    ledger = Ledger.of(value)
    sourced = value.window or Sourced(window, Provenance.ASSUMED, "for a test")
    words = request_words(value, ledger, lambda: value.events)
    facts = Facts(value, ledger, attribute(ledger), judge_session(value, sourced), words)
    return Counted(facts, session_counts(facts), sourced)


@cache
def counted_sample(name: str) -> Counted:
    return counted(bundled(name))


def written(title: str, facts: Facts, columns: dict[str, Any], window: Sourced) -> Row:
    """The rows of a recording and its session."""
    value, ledger = facts.session, facts.ledger
    digest = hashlib.sha256(f"{title}{ledger.event_count}".encode()).hexdigest()
    recording = Recording.objects.of(default_project()).create(sha256=digest, name=title, size=1, format=value.format)
    return store_session(recording, 0, value, ledger, facts.attribution, window=window, counts=columns)


def stored(value: Session, window: int = 200_000, title: str = "made") -> Row:
    """A session as an import would leave it."""
    return written(title, *counted(value, window))


def stored_sample(name: str, title: str = "") -> Row:
    """A bundled sample as an import would leave it."""
    return written(title or name, *counted_sample(name))


def same_sample(name: str, title: str = "") -> Row:
    """A bundled sample under one id in all tests. What the application computes of it, and keeps under id, revision and
    settings, is computed once; for tests that change nothing of what is stored of the recording itself."""
    return _same(title or name, counted_sample(name))


def _same(title: str, value: Counted) -> Row:
    return written(title, *value._replace(columns={**value.columns, "id": uuid5(NAMESPACE_URL, title)}))


@cache
def counted_long() -> Counted:
    """A real session of Claude Code with two compactions."""
    if not LONG.exists():
        pytest.skip("../shared/samples is absent")
    return counted(read(LONG).sessions[0])


@pytest.fixture
def long(db: Any) -> Row:
    """The same, stored as `same_sample` does."""
    return _same("long recording", counted_long())


@pytest.fixture
def store(db: Any) -> Any:
    return stored


@pytest.fixture
def gap(db: Any) -> Row:
    """140,000 tokens seen, 180,018 there: compacted at step 48."""
    return same_sample("timing-gap", title="timing gap")


@pytest.fixture
def coding(db: Any) -> Row:
    """144 steps, three compactions."""
    return same_sample("long-coding", title="long coding")


@pytest.fixture
def part_of(client: Any) -> Any:
    """Fetch the part of a page that htmx would ask for."""

    def get(url: str, target: str) -> Any:
        return client.get(url, headers={"HX-Request": "true", "HX-Target": target})

    return get
