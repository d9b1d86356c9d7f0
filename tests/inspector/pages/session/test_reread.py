"""A session that an earlier version has read offers to read its stored file again."""

from __future__ import annotations

import msgspec
import pytest

from inspector.ingest.importing import run_import
from inspector.ingest.submitting import report_of
from inspector.models import Import, Session
from tests.recordings.damaged import HEAD

OFFER = "Read the file again"


@pytest.fixture
def old(bring) -> Session:
    """A session of Claude Code as an earlier version has stored it."""
    job = bring(HEAD)
    report = msgspec.structs.replace(report_of(job), reading=0)
    Import.unscoped.update(report=msgspec.json.encode(report).decode())
    return Session.unscoped.get()


def page(client, row):
    return client.get(row.get_absolute_url()).content.decode()


def test_it_says_what_is_missing_and_reads_the_stored_file_again(client, old):
    text = page(client, old)
    assert "took over no links between this session and its sub-agents" in text
    assert OFFER in text
    Session.unscoped.update(title="Mine", window_override=50_000)
    client.post(f"/imports/{Import.unscoped.get().pk}/again")
    job = Import.unscoped.latest("created")
    assert "is being read again" in page(client, old)
    run_import(str(job.pk))
    assert Session.unscoped.filter(deleted=None).get() == old
    assert Session.unscoped.filter(title="Mine", window_override=50_000).exists()
    assert OFFER not in page(client, old)


def test_a_session_read_by_this_version_offers_nothing(client, bring):
    bring(HEAD)
    assert OFFER not in page(client, Session.unscoped.get())


def test_a_format_that_gains_nothing_offers_nothing(client, old):
    Session.unscoped.update(format="aider")
    assert OFFER not in page(client, old)


@pytest.mark.parametrize(
    ("format_", "gain"),
    [
        ("otel", "messages that a span keeps in several events"),
        ("provider-log", "counts in the metadata of an answer"),
    ],
)
def test_a_format_that_the_last_reading_takes_more_from_offers_that(client, old, format_, gain):
    report = msgspec.structs.replace(report_of(Import.unscoped.get()), reading=22)
    Import.unscoped.update(report=msgspec.json.encode(report).decode())
    Session.unscoped.update(format=format_)
    assert f"took over no {gain}. If the file holds any" in page(client, old)
