"""A token opens its report for anyone; whatever does not open looks the same."""

import logging
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inspector.models import Session, Share
from inspector.project.logs import OneLineFormatter
from inspector.sharing import publishing
from inspector.storage import deleting
from tests.inspector.pages.share.tools import drafted, published, session_with_secrets

pytestmark = pytest.mark.django_db


@pytest.fixture
def row(bring):
    bring(session_with_secrets())
    return Session.unscoped.get()


def test_whatever_does_not_open_looks_the_same(client, row):
    share = drafted(client, row)
    link = published(client, share)
    assert client.get(link).status_code == 200
    unknown = client.get(f"/r/{'x' * 43}/")
    answers = {}
    rows = Share.objects.row(share)
    now = timezone.now()
    for name, values in {
        "expired": {"expires": now - timedelta(seconds=1)},
        "revoked": {"revoked": now},
        "being created": {"state": Share.State.RUNNING},
    }.items():
        before = rows.values(*values).get()
        rows.update(**values)
        answers[name] = client.get(link)
        rows.update(**before)
    deleting.delete(row.project, Session.objects.of(row.project))
    answers["deleted"] = client.get(link)
    for answer in answers.values():
        assert (answer.status_code, answer.content) == (404, unknown.content)
        assert {**answer.headers} == {**unknown.headers}
    assert client.post(link, {"password": "x"}).content == unknown.content


def test_a_token_cannot_be_read_from_the_database_or_guessed(client, row):
    tokens = [published(client, drafted(client, row)).split("/")[2] for _ in range(2)]
    stored = repr(list(Share.unscoped.values()))
    assert not [token for token in tokens if token in stored or token[:20] in stored]
    assert len(set(tokens)) == 2
    assert min(map(len, tokens)) >= 43


def test_a_password_is_asked_for_and_tries_are_counted(client, row, handler):
    share = drafted(client, row, password="plum tree")
    link = published(client, share)
    question = client.get(link)
    assert "has a password" in question.text
    assert "Deploy" not in question.text
    assert client.get(link + "report.json").status_code == 404
    assert client.post(link, {"password": "no"}).status_code == 403
    assert client.post(link, {"password": "plum tree"}).status_code == 302
    assert "Deploy" in client.get(link).text
    assert client.get(link + "report.json").status_code == 200
    other = type(client)(handler)
    for _ in range(publishing.MOST_FAILURES):
        other.post(link, {"password": "no"})
    paused = other.post(link, {"password": "plum tree"})
    assert (paused.status_code, paused["Retry-After"]) == (429, "300")
    assert "plum tree" not in repr(list(Share.unscoped.values()))


def test_a_view_reads_two_rows_and_writes_one(client, row):
    link = published(client, drafted(client, row))
    with CaptureQueriesContext(
        connection,
    ) as queries:
        client.get(link)
    assert len(queries) == 3


def test_no_log_line_holds_a_token(client, row):
    link = published(client, drafted(client, row))
    record = logging.LogRecord("django.request", logging.WARNING, "", 0, "Not Found: %s", (f"{link}report.json",), None)
    assert OneLineFormatter().format(record).endswith("Not Found: /r/…/report.json")
