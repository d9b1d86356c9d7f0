"""What sockets do for keys in team mode. `tests/services/test_streams.py` sends them over a socket."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guard_core.sessions import Session as CoreSession
from inspector.accounts import keys
from inspector.accounts.scopes import project_of
from inspector.api.sockets import answer_to
from inspector.models import ApiKey, Project, Session, default_project
from tests.inspector.streamed import lines_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("folders", "team")]


@pytest.fixture
def batch(agent_session: CoreSession) -> str:
    return json.dumps({"first": 0, "lines": lines_of(agent_session)})


def opened(*scopes: str, project: Project | None = None) -> tuple[ApiKey, dict[str, Any]]:
    """A key, and the socket that was opened with it."""
    row, text = keys.make(project or default_project(), "agent", scopes, "olga")
    return row, {"headers": [(b"authorization", f"Bearer {text}".encode())]}


def test_frames_count_as_changes_of_their_key(settings, batch):
    settings.RATE_INGEST = 2
    _, scope = opened("ingest")
    assert [answer_to(scope, "a", batch).status for _ in range(2)] == [200, 200]
    refused = answer_to(scope, "a", batch)
    assert (refused.status, 1 <= refused.body["retry_after"] <= 10) == (429, True)
    wait = refused.body["retry_after"]
    assert refused.body["error"] == f"More than 2 changes in ten seconds. Try again in {wait} seconds."
    assert answer_to(opened("ingest")[1], "a", batch).status == 200, "another key has a count of its own"


def test_a_frame_is_stored_in_the_project_of_its_key(batch):
    elsewhere = Project.objects.create(name="Elsewhere", slug="elsewhere")
    assert answer_to(opened("ingest", project=elsewhere)[1], "a", batch).status == 200
    assert Session.unscoped.get().project == elsewhere


def test_only_a_key_that_may_send_is_answered(batch):
    row, scope = opened("ingest")
    keys.revoke(row)
    refused = [scope, opened("read", "comment")[1], {"headers": [(b"authorization", b"Bearer ci_x")]}, {"headers": []}]
    assert [answer_to(each, "a", batch) for each in refused] == [None] * 4


def test_only_a_key_that_may_read_watches_a_session():
    assert [project_of(opened(scope)[1]) for scope in ("read", "ingest", "comment")] == [default_project(), None, None]
