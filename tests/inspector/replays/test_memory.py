"""What a process holds of a session that is looked at, in bytes for each of its steps, and for how long."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.test import Client

from guard_core import recordings
from guard_core.columns import Columns, bytes_of
from guard_core.simulator.big_files import write_claude_code
from inspector.models import Session
from inspector.pages.context import prepared
from inspector.replays import analysis
from inspector.replays.choice import Choice
from inspector.storage import byte_cache, loading
from tests.inspector.pages.conftest import stored

pytestmark = [pytest.mark.django_db, pytest.mark.once]

STEPS = 2_000
PAGES = ("", "steps?at=1000", "context?at=1000", "rule")  # other settings make room: CACHE_BYTES hold one long session
CACHES = (loading._cache, analysis._cache, analysis._facts, prepared._cache)
# Of a session of 50,000 steps at most 70 MB by the caches' own count, which is above what is really held.
MOST_BYTES_A_STEP = 70_000_000 // 50_000
FIXED = 2_300_000  # bytes: places and calls of a chunk or two, and what is counted for any session


@pytest.fixture(scope="module")
def long(shared_rows: Any, tmp_path_factory: pytest.TempPathFactory) -> Session:
    path = tmp_path_factory.mktemp("recording") / "long.jsonl"
    with path.open("wb") as out:
        write_claude_code(out, steps=STEPS, size=2_000_000)
    with shared_rows():
        return stored(recordings.read(path).sessions[0])


@pytest.fixture
def looked_at(long: Session, client: Client) -> Session:
    for cache in CACHES:
        cache.clear()
    for page in PAGES:
        assert client.get(f"/s/{long.pk}/{page}").status_code == 200
    return long


def test_the_pages_of_a_session_hold_few_bytes_for_each_of_its_steps(looked_at):
    assert all(len(cache) for cache in CACHES)
    assert analysis.CACHE_BYTES < MOST_BYTES_A_STEP * 50_000 / 2
    assert sum(cache.bytes for cache in CACHES) < MOST_BYTES_A_STEP * STEPS + FIXED


def test_columns_are_narrow_again_when_the_next_page_is_asked_for(looked_at):
    whole = analysis.analyse(looked_at, Choice())
    tables = (whole.ledger.events, whole.ledger.parts, whole.ledger.steps, whole.replayed.columns)
    narrow = [bytes_of(table) for table in tables]
    for table in tables:
        assert isinstance(table, Columns)
        assert len(dict(table)) == len(table)
    assert sum(map(bytes_of, tables)) > 2 * sum(narrow)
    analysis.analyse(looked_at, Choice())
    assert [bytes_of(table) for table in tables] == narrow


def test_what_is_not_looked_at_is_dropped_within_a_minute(looked_at):
    assert byte_cache.IDLE_SECONDS + byte_cache.LOOK_EVERY < 60
    for cache in CACHES:
        cache.forget_unused(time.monotonic())
        assert (cache.bytes, len(cache)) == (0, 0)


def test_what_an_open_page_is_made_of_stays_at_hand(looked_at, client):
    shown = analysis.analyse(looked_at, Choice())
    since = time.monotonic()
    assert client.get(f"/s/{looked_at.pk}/growth?known={STEPS}").status_code == 200
    for cache in CACHES:
        cache.forget_unused(since)
    assert analysis.analyse(looked_at, Choice()) is shown
