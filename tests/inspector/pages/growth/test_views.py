"""How far a session has grown, as its open pages ask."""

import re
import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from guard_core.sessions import ModelCall
from inspector.models import Session
from inspector.storage import appending
from tests.builders import model, session, user
from tests.inspector.pages.conftest import stored

pytestmark = pytest.mark.django_db


def test_it_counts_the_steps_and_every_change(client):
    row = stored(session(user("a"), model("b")))
    before = client.get(reverse("session_growth", args=[row.pk]))
    assert before.json() == {"steps": 1, "revision": row.revision, "alerts": [], "left": ""}
    assert before.headers["Cache-Control"] == "no-store"
    page = client.get(row.get_absolute_url()).content.decode()
    assert f'data-growth="/s/{row.pk}/growth"' in page
    assert 'data-steps="1"' in page
    appending.append(row, [user("c"), model("d")], [ModelCall(at=3, response=3)])
    after = client.get(reverse("session_growth", args=[row.pk])).json()
    assert after == {"steps": 2, "revision": row.revision + 1, "alerts": [], "left": ""}


def test_near_misses_and_overflows_are_said_once_their_steps_are_new(client, settings):
    settings.OUTLOOK_SECONDS = 0
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


def test_the_calls_left_to_the_rules_threshold_are_said_with_their_range(client):
    row = stored(session(user("a"), model("b"), window=100_000))
    Session.unscoped.filter(pk=row.pk).update(threshold=80_000, threshold_source="rule")
    events, calls = [], []
    for number, tokens in enumerate((40_000, 41_000, 46_000, 50_000, 52_000)):
        events += [user(f"c{number}"), model("d")]
        calls.append(ModelCall(at=3 + 2 * number, response=3 + 2 * number, prompt_tokens=tokens))
    appending.append(row, events, calls)
    left = client.get(reverse("session_growth", args=[row.pk]), {"known": 1}).json()["left"]
    assert re.fullmatch(r"about \d+ calls left, \d+ to \d+", left)
    Session.unscoped.filter(pk=row.pk).update(threshold_source="inferred")
    assert client.get(reverse("session_growth", args=[row.pk]), {"known": 1}).json()["left"] == ""


def test_alerts_of_a_fast_session_are_looked_for_now_and_then_and_its_steps_counted_at_once(client, settings):
    settings.OUTLOOK_SECONDS = 3_600
    row = stored(session(user("a"), model("b"), window=100_000))
    appending.append(row, [user("c"), model("d")], [ModelCall(at=3, response=3, prompt_tokens=95_000)])
    (alert,) = alerts(client, row, known=1)
    with CaptureQueriesContext(connection) as queries:
        appending.append(row, [user("e"), model("f")], [ModelCall(at=5, response=5, prompt_tokens=99_000)])
    before = len(queries)
    with CaptureQueriesContext(connection) as queries:
        grown = client.get(reverse("session_growth", args=[row.pk]), {"known": 1}).json()
    assert (grown["steps"], grown["alerts"]) == (3, [alert])
    assert len(queries) == 2 < before  # the project and the row: no columns are read
    Session.unscoped.filter(pk=row.pk).update(window_override=99_500)  # by a person, who looks at the page
    (changed,) = alerts(client, row, known=1)
    assert (alert["step"], changed["step"]) == (2, 3)


def alerts(client, row, known):
    return client.get(reverse("session_growth", args=[row.pk]), {"known": known}).json()["alerts"]


def test_a_session_that_is_not_there_has_none(client):
    assert client.get(reverse("session_growth", args=[uuid.uuid4()])).status_code == 404
