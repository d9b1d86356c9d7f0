"""Columns that an earlier version stored are made again from the session's texts, and no page notices."""

import msgspec
import pytest
import zstandard
from django.urls import reverse

from guard_core.simulator.samples import SAMPLES
from inspector import convert
from inspector.models import SessionData
from tests.inspector.views.conftest import stored

pytestmark = pytest.mark.django_db


@pytest.fixture
def older():
    """A stored session whose columns have a version that is gone, without what the newer one has."""
    row = stored(SAMPLES["long-coding"].build())
    data = SessionData.objects.get(session=row)
    for name in ("ledger", "attribution"):
        columns = msgspec.msgpack.decode(zstandard.decompress(bytes(getattr(data, name))))
        columns = {**columns, "version": 1}
        columns.pop("agent", None)
        setattr(data, name, zstandard.compress(msgspec.msgpack.encode(columns)))
    data.save()
    convert.forget(row)
    return row


def test_an_older_ledger_is_counted_again_and_stored(older):
    fresh = convert.load_ledger(stored(SAMPLES["long-coding"].build(), title="fresh"))
    assert convert.load_ledger(older).to_bytes() == fresh.to_bytes()
    convert.forget(older)
    assert zstandard.decompress(bytes(SessionData.objects.get(session=older).ledger)) == fresh.to_bytes()


def test_an_older_attribution_is_made_again(older):
    fresh = stored(SAMPLES["long-coding"].build(), title="fresh")
    assert convert.load_attribution(older).to_bytes() == convert.load_attribution(fresh).to_bytes()


@pytest.mark.parametrize("page", ["overview", "steps", "estimator"])
def test_the_pages_of_an_older_session_open(older, client, page):
    assert client.get(reverse(f"session_{page}", args=[older.pk])).status_code == 200
