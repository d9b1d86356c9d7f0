"""Columns that an earlier version stored are made again from the session's texts, and no page notices."""

import msgspec
import pytest
import zstandard
from django.urls import reverse

from inspector.jobs import kinds, queue  # noqa: F401 - the kinds that there are
from inspector.models import SessionData
from inspector.storage import loading, storing
from tests.inspector.pages.conftest import stored_sample

pytestmark = pytest.mark.django_db


@pytest.fixture
def older():
    """A stored session whose columns have a version that is gone, without what the newer one has."""
    row = stored_sample("long-coding")
    data = SessionData.unscoped.get(session=row)
    for name in ("ledger", "attribution"):
        columns = msgspec.msgpack.decode(zstandard.decompress(bytes(getattr(data, name))))
        columns = {**columns, "version": 1}
        columns.pop("agent", None)
        setattr(data, name, zstandard.compress(msgspec.msgpack.encode(columns)))
    data.save()
    loading.forget(row)
    return row


def test_an_older_ledger_is_counted_again_and_stored_by_a_job(older):
    fresh = loading.load_ledger(stored_sample("long-coding", title="fresh"))
    with pytest.raises(loading.Outdated):
        loading.load_ledger(older)
    queue.run("recount_columns", str(older.pk))
    assert loading.load_ledger(older).to_bytes() == fresh.to_bytes()
    loading.forget(older)
    assert loading.load_ledger(older).to_bytes() == fresh.to_bytes()


def test_an_older_attribution_is_made_again(older):
    fresh = stored_sample("long-coding", title="fresh")
    storing.ensure_current(older)
    assert loading.load_attribution(older).to_bytes() == loading.load_attribution(fresh).to_bytes()


def jobs(row):
    return queue.entries("recount_columns").filter(args_kwargs__args__0=str(row.pk))


@pytest.mark.parametrize("page", ["overview", "steps", "estimator"])
def test_the_pages_of_an_older_session_say_that_it_is_counted_and_then_open(older, client, page):
    address = reverse(f"session_{page}", args=[older.pk])
    for _ in range(2):
        answer = client.get(address)
        assert answer.status_code == 200
        assert "being recounted" in answer.text
        assert answer["Refresh"]
        assert f"{older.events:,}" in answer.text
    assert jobs(older).count() == 1, "a second look does not ask for a second job"
    queue.run("recount_columns", str(older.pk))
    answer = client.get(address)
    assert answer.status_code == 200
    assert "being recounted" not in answer.text


def test_no_page_counts_the_texts_of_an_older_session(older, client):
    before = bytes(SessionData.unscoped.get(session=older).ledger)
    client.get(reverse("session_overview", args=[older.pk]))
    assert bytes(SessionData.unscoped.get(session=older).ledger) == before


def test_the_figure_of_an_older_session_asks_to_come_back(older, client):
    answer = client.get(reverse("session_figure", args=[older.pk]))
    assert (answer.status_code, answer.json()) == (202, {"state": "recounting"})


def test_an_open_page_is_loaded_anew(older, client):
    answer = client.get(reverse("session_overview", args=[older.pk]), headers={"HX-Request": "true"})
    assert answer["HX-Refresh"] == "true"


def test_a_count_that_failed_is_said_and_not_tried_for_ever(older, client):
    address = reverse("session_overview", args=[older.pk])
    client.get(address)
    jobs(older).update(status="FAILED")
    answer = client.get(address)
    assert "recounting its messages failed" in answer.text
    assert "Refresh" not in answer
    assert jobs(older).count() == 1


def test_the_search_finds_an_older_session_without_its_steps(older, client):
    answer = client.get(reverse("search"), {"q": "the"})
    assert answer.status_code == 200
