"""Imports of long files: something to see while they are read, and nothing left of one that did not end well."""

from __future__ import annotations

from io import BytesIO

import pytest

from guard_core.simulator.big_files import write_claude_code
from inspector import convert
from inspector.figures.first_look import picture
from inspector.models import Import, Payload, Recording, Session
from inspector.services import importing
from inspector.services.importing import cancel_import

pytestmark = pytest.mark.django_db


@pytest.fixture
def transcript() -> bytes:
    out = BytesIO()
    write_claude_code(out, steps=300, size=1_200_000)
    return out.getvalue()


@pytest.fixture
def looks_first(monkeypatch):
    monkeypatch.setattr(importing, "LOOK_FIRST_FROM", 0)


def seen_while_counting(monkeypatch) -> list[str]:
    """What a page would show of the import while its events are counted."""
    seen: list[str] = []
    store = importing.store_texts

    def watched(events, each):
        seen.append(Import.objects.get().first_look)
        return store(events, each)

    monkeypatch.setattr(importing, "store_texts", watched)
    return seen


def test_a_chart_is_there_before_counting_begins(bring, transcript, looks_first, monkeypatch):
    seen = seen_while_counting(monkeypatch)
    job = bring(transcript)
    shown = picture(seen[0])
    assert (shown.look.calls, shown.look.compactions) == (300, Session.objects.get().compactions)
    assert len(shown.drawn.line.split()) == 300
    assert (job.state, job.first_look) == ("done", "")


def test_a_small_file_is_not_looked_at_first(bring, transcript, monkeypatch):
    seen = seen_while_counting(monkeypatch)
    assert bring(transcript).state == "done"
    assert seen == [""]


def test_a_cancel_while_texts_are_stored_leaves_none(bring, transcript, monkeypatch):
    monkeypatch.setattr(convert, "BATCH", 10)
    monkeypatch.setattr(importing, "REPORT_EVERY", 0.0)
    event = importing.Watch.event

    def cancelled_on_the_way(watch):
        if watch.counted == 150:
            assert Payload.objects.exists()
            cancel_import(watch.job)
        event(watch)

    monkeypatch.setattr(importing.Watch, "event", cancelled_on_the_way)
    assert bring(transcript).state == "cancelled"
    assert not any(kind.objects.exists() for kind in (Payload, Session, Recording))


def test_a_failure_after_texts_were_stored_leaves_none(bring, transcript, monkeypatch):
    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(convert, "store_session", full)
    assert bring(transcript).state == "failed"
    assert not any(kind.objects.exists() for kind in (Payload, Session, Recording))


def test_texts_of_other_sessions_outlive_a_failure(bring, recording, transcript, monkeypatch):
    bring(recording)
    texts = Payload.objects.count()
    monkeypatch.setattr(convert, "store_session", lambda *_, **__: 1 / 0)
    assert bring(transcript).state == "failed"
    assert Payload.objects.count() == texts > 0
