"""Stored sessions for the tests of pages."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from guard_core.attribution import attribute
from guard_core.findings import Facts, request_words
from guard_core.ledger import Ledger
from guard_core.sessions import Provenance, Session, Sourced
from guard_core.simulator.samples import SAMPLES
from guard_core.window_evidence import judge_session
from inspector.models import Recording, default_project
from inspector.models import Session as Row
from inspector.storage.convert import store_session
from inspector.storage.counts import session_counts


def stored(value: Session, window: int = 200_000, title: str = "made") -> Row:
    """A session as an import would leave it."""
    ledger = Ledger.of(value)
    sourced = value.window or Sourced(window, Provenance.ASSUMED, "for a test")
    digest = hashlib.sha256(f"{title}{ledger.event_count}".encode()).hexdigest()
    recording = Recording.objects.of(default_project()).create(sha256=digest, name=title, size=1, format=value.format)
    words = request_words(value, ledger, value.events)
    facts = Facts(value, ledger, attribute(ledger), judge_session(value, sourced), words)
    return store_session(recording, 0, value, ledger, facts.attribution, window=sourced, counts=session_counts(facts))


@pytest.fixture
def store(db: Any) -> Any:
    return stored


@pytest.fixture
def gap(db: Any) -> Row:
    """140,000 tokens seen, 180,018 there: compacted at step 48."""
    return stored(SAMPLES["timing-gap"].build(), title="timing gap")


@pytest.fixture
def coding(db: Any) -> Row:
    """144 steps, three compactions."""
    return stored(SAMPLES["long-coding"].build(), title="long coding")


@pytest.fixture
def part_of(client: Any) -> Any:
    """Fetch the part of a page that htmx would ask for."""

    def get(url: str, target: str) -> Any:
        return client.get(url, headers={"HX-Request": "true", "HX-Target": target})

    return get
