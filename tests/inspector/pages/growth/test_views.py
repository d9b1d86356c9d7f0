"""How far a session has grown, as its open pages ask."""

import uuid

import pytest
from django.urls import reverse

from guard_core.sessions import ModelCall
from inspector.storage import appending
from tests.builders import model, session, user
from tests.inspector.pages.conftest import stored

pytestmark = pytest.mark.django_db


def test_it_counts_the_steps_and_every_change(client):
    row = stored(session(user("a"), model("b")))
    before = client.get(reverse("session_growth", args=[row.pk]))
    assert before.json() == {"steps": 1, "revision": row.revision}
    assert before.headers["Cache-Control"] == "no-store"
    page = client.get(row.get_absolute_url()).content.decode()
    assert f'data-growth="/s/{row.pk}/growth"' in page
    assert 'data-steps="1"' in page
    appending.append(row, [user("c"), model("d")], [ModelCall(at=3, response=3)])
    assert client.get(reverse("session_growth", args=[row.pk])).json() == {"steps": 2, "revision": row.revision + 1}


def test_a_session_that_is_not_there_has_none(client):
    assert client.get(reverse("session_growth", args=[uuid.uuid4()])).status_code == 404
