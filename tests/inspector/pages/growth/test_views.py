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
    assert before.json() == {"steps": 1, "revision": row.revision, "alerts": []}
    assert before.headers["Cache-Control"] == "no-store"
    page = client.get(row.get_absolute_url()).content.decode()
    assert f'data-growth="/s/{row.pk}/growth"' in page
    assert 'data-steps="1"' in page
    appending.append(row, [user("c"), model("d")], [ModelCall(at=3, response=3)])
    after = client.get(reverse("session_growth", args=[row.pk])).json()
    assert after == {"steps": 2, "revision": row.revision + 1, "alerts": []}


def test_near_misses_and_overflows_are_said_once_their_steps_are_new(client):
    row = stored(session(user("a"), model("b"), user("c"), model("d"), window=100_000))
    fuller = ModelCall(at=5, response=5, prompt_tokens=95_000)
    appending.append(row, [user("e"), model("f")], [fuller])
    (alert,) = alerts(client, row, known=2)
    assert (alert["kind"], alert["step"]) == ("near_miss", 3)
    assert "95,000 of 100,000 tokens" in alert["sentence"]
    assert alerts(client, row, known=3) == []
    for text in ("-1", "x", "\u0663", "9" * 30):
        assert alerts(client, row, known=text) == []
    appending.append(row, [user("x" * 90_000), model("g")], [ModelCall(at=7, response=None)])
    assert {alert["kind"] for alert in alerts(client, row, known=3)} == {"overflow"}


def alerts(client, row, known):
    return client.get(reverse("session_growth", args=[row.pk]), {"known": known}).json()["alerts"]


def test_a_session_that_is_not_there_has_none(client):
    assert client.get(reverse("session_growth", args=[uuid.uuid4()])).status_code == 404
